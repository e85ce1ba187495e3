//! Completions for shells and kubectl: the arguments of the command line, and names from the
//! cluster.
//!
//! A shell calls this program for every completion, with [`VARIABLE`] set; kubectl calls
//! `kubectl_complete-5spot`, which calls `5spot __complete`. Both need a fast response, so a
//! request that fails or takes too long completes nothing, without an error. The interface of
//! `clap_complete` for this is marked as unstable; eight lines call it.

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::time::Duration;

use clap::{Args as _, FromArgMatches as _};
use clap_complete::CompleteEnv;
use clap_complete::engine::{self, ArgValueCompleter, CompletionCandidate};
use fivespot_api::lint::LINTS;
use fivespot_api::resource::SCHEDULED_MACHINE;
use fivespot_api::{ScheduleOverride, rules};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, ListParams};
use kube::config::Kubeconfig;
use kube::core::{ApiResource, PartialObjectMeta};
use kube::{Api, Client, ResourceExt};

use crate::cluster::{self, Access};
use crate::named::{self, Named};
use crate::{Failure, Outcome, plain};

/// Set by the script of a shell, to the shell's name.
pub(crate) const VARIABLE: &str = "FIVESPOT_COMPLETE";

/// How long a completion waits for names from the cluster.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The largest number of names that are requested. A longer list is of no use.
const MAX_NAMES: u32 = 500;

/// The value of cobra's `ShellCompDirectiveNoFileComp`, which kubectl reads.
const NO_FILES: &str = ":4";

/// The hidden command that `kubectl_complete-5spot` calls.
pub(crate) const COMMAND: &str = "__complete";

/// Handles a shell's request for completions and ends the process. Does nothing without one.
pub(crate) fn answer_shell() {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// The command line, with completions for the flags that other programs have too.
fn command() -> clap::Command {
    with_contexts(crate::command())
}

fn with_contexts(command: clap::Command) -> clap::Command {
    command
        .mut_args(|flag| {
            if flag.get_id() == "context" {
                flag.add(ArgValueCompleter::new(contexts))
            } else {
                flag
            }
        })
        .mut_subcommands(with_contexts)
}

/// Completes for kubectl: one candidate in a line, with its meaning after a tab
#[derive(Debug, clap::Args)]
#[command(hide = true, after_help = "Example:\n  5spot __complete explain bus")]
pub(crate) struct Args {
    /// The words after `kubectl 5spot`, the last one as far as it is typed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

pub(crate) fn run(args: Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let mut words = vec![OsString::from("5spot")];
    words.extend(args.words);
    if words.len() == 1 {
        words.push(OsString::new());
    }
    let index = words.len() - 1;
    let mut command = command();
    // An unknown argument has no completions after it.
    let found = engine::complete(&mut command, words, index, None);
    for candidate in found.unwrap_or_default() {
        if candidate.is_hide_set() {
            continue;
        }
        let value = candidate.get_value().to_string_lossy();
        let help = candidate.get_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        match help.lines().next() {
            None | Some("") => writeln!(out, "{value}")?,
            Some(help) => writeln!(out, "{value}\t{help}")?,
        }
    }
    writeln!(out, "{NO_FILES}")?;
    Ok(Outcome::Yes)
}

/// The ScheduledMachines of the namespace on the command line.
pub(crate) fn machines(current: &OsStr) -> Vec<CompletionCandidate> {
    objects(current, &[SCHEDULED_MACHINE])
}

/// The same, and the ScheduledCapacities after `scap/`, of the namespace on the command line.
pub(crate) fn followers(current: &OsStr) -> Vec<CompletionCandidate> {
    objects(current, named::FOLLOWERS)
}

/// The same, and sets after `smset/`.
pub(crate) fn shown(current: &OsStr) -> Vec<CompletionCandidate> {
    objects(current, named::SHOWN)
}

/// The same, and the schedules that they share after `tbss/` and `cms/`.
pub(crate) fn explained(current: &OsStr) -> Vec<CompletionCandidate> {
    objects(current, named::EXPLAINED)
}

fn objects(
    current: &OsStr,
    kinds: &[&'static fivespot_api::Resource],
) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let Ok(named) = Named::of(&typed, kinds) else {
        return Vec::new();
    };
    let prefix = typed.strip_suffix(named.name).unwrap_or_default();
    let name = OsStr::new(named.name);
    let names = from_cluster(name, |client| {
        Api::default_namespaced_with(client, &named.served())
    });
    let names = names.into_iter();
    names.map(|name| name.add_prefix(prefix)).collect()
}

/// The ScheduleOverrides of the namespace on the command line.
pub(crate) fn overrides(current: &OsStr) -> Vec<CompletionCandidate> {
    let resource = ApiResource::erase::<ScheduleOverride>(&());
    from_cluster(current, |it| Api::default_namespaced_with(it, &resource))
}

/// The namespaces of the cluster.
pub(crate) fn namespaces(current: &OsStr) -> Vec<CompletionCandidate> {
    let resource = ApiResource::erase::<Namespace>(&());
    from_cluster(current, |it| Api::all_with(it, &resource))
}

/// The contexts of the kubeconfig.
fn contexts(current: &OsStr) -> Vec<CompletionCandidate> {
    let kubeconfig = match selected_access(typed_words()).kubeconfig() {
        None => Kubeconfig::read(),
        Some(path) => Kubeconfig::read_from(path),
    };
    let contexts = kubeconfig.map_or_else(|_| Vec::new(), |it| it.contexts);
    candidates(current, contexts.into_iter().map(|it| it.name))
}

/// The ids of rules and lints.
pub(crate) fn rules(current: &OsStr) -> Vec<CompletionCandidate> {
    let rules = rules::all().map(|it| it.id.to_owned());
    let lints = LINTS.iter().map(|it| it.code.to_owned());
    candidates(current, rules.chain(lints))
}

/// The names of one kind in the selected cluster. Empty if the request fails.
fn from_cluster(
    current: &OsStr,
    api: impl FnOnce(Client) -> Api<PartialObjectMeta<DynamicObject>>,
) -> Vec<CompletionCandidate> {
    let access = selected_access(typed_words());
    let names = cluster::block_on(async {
        let client = access.client().await?;
        let limit = ListParams::default().limit(MAX_NAMES);
        let api = api(client);
        let list = tokio::time::timeout(TIMEOUT, api.list_metadata(&limit));
        let found = list.await.map_err(|it| Failure::new("listing", it))?;
        let found = found.map_err(|it| Failure::new("listing", it))?;
        Ok(found.items.iter().map(ResourceExt::name_any).collect())
    });
    candidates(current, names.unwrap_or_else(|_: Failure| Vec::new()))
}

/// The names that begin with what is typed.
fn candidates(
    current: &OsStr,
    names: impl IntoIterator<Item = String>,
) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let names = names.into_iter();
    names
        .filter(|name| name.starts_with(current.as_ref()))
        .map(|name| CompletionCandidate::new(plain::line(&name).to_string()))
        .collect()
}

/// The arguments of the command line that is being completed.
fn typed_words() -> impl Iterator<Item = String> {
    std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .skip_while(|word| word != "--" && word != COMMAND)
        .skip(1)
}

/// The cluster and the namespace that `words` select. Other arguments are ignored.
fn selected_access(words: impl Iterator<Item = String>) -> Access {
    let command = clap::Command::new("5spot").no_binary_name(true);
    Access::augment_args(command)
        .try_get_matches_from(access_flags(words))
        .and_then(|matches| Access::from_arg_matches(&matches))
        .unwrap_or_default()
}

/// The flags among `words` that select a cluster or a namespace, with their values.
fn access_flags(mut words: impl Iterator<Item = String>) -> Vec<String> {
    const FLAGS: [&str; 4] = ["-n", "--namespace", "--context", "--kubeconfig"];
    let mut flags = Vec::new();
    while let Some(word) = words.next() {
        let flag = word.split('=').next().unwrap_or(&word);
        if !FLAGS.contains(&flag) {
            continue;
        }
        let has_value = flag != word;
        flags.push(word);
        if !has_value {
            flags.extend(words.next());
        }
    }
    flags
}

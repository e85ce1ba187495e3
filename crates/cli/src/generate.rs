//! `5spot generate`: files that are generated from the API types, the rules and the command line.

mod agent;
mod completions;
mod image;
mod man;
mod manifests;
mod metrics;
mod network;
mod node;
mod rbac;
mod reference;
mod webhook;

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use fivespot_api::crd;
use fivespot_api::manifest::{GeneratedFile, Group};
use fivespot_install::file;
use kubemu_admission::KubeVersion;

use crate::document::unreadable;
use crate::{Failure, Outcome};

/// Print, write or check generated manifests, roles, docs, man pages and completions
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  5spot generate crd | kubectl apply -f -")]
pub(crate) struct Args {
    #[command(subcommand)]
    artifact: Artifact,
}

#[derive(Debug, Subcommand)]
enum Artifact {
    /// The CustomResourceDefinition
    #[command(after_help = "Example:\n  5spot generate crd | kubectl apply -f -")]
    Crd(Definition),
    /// The admission policy and its bindings
    #[command(after_help = "Example:\n  5spot generate admission -o admission/\n  \
                      kubectl apply -f admission/")]
    Admission(Output),
    Rbac(rbac::Args),
    /// Everything for a management cluster: CRD, policy, roles, operator
    ///
    /// Prints one stream of documents. With --output-dir, also writes them as separate files in
    /// folders, as under deploy/ in the source tree.
    #[command(
        after_help = "Example:\n  5spot generate manifests --image registry.example/5spot-controller:0.1.0 \\\n    \
                      --kubeconfig team-a/prod | kubectl apply --server-side -f -"
    )]
    Manifests(manifests::Args),
    Webhook(webhook::Args),
    Agent(agent::Args),
    /// The Helm chart
    #[command(after_help = "Example:\n  5spot generate chart -o chart\n  \
                      helm install 5spot ./chart -n 5spot-system --create-namespace")]
    Chart(Output),
    /// Shell completions for this command line
    ///
    /// Prints a script that has the shell call `5spot` for each completion. So names of machines,
    /// namespaces and contexts are completed. Load it when a shell starts; do not keep it in a file,
    /// because another version may need another script.
    #[command(after_help = COMPLETIONS)]
    Completions(completions::Args),
    /// The reference pages
    #[command(after_help = "Example:\n  5spot generate docs -o docs/reference")]
    Docs(Output),
    /// The manual pages
    ///
    /// Without --output-dir, prints the page of `5spot` itself.
    #[command(after_help = "Examples:\n  5spot generate man | man -l -\n  \
                      5spot generate man -o ~/.local/share/man/man1")]
    Man(Output),
}

const COMPLETIONS: &str = "\
Examples:
  source <(5spot generate completions bash)
  5spot generate completions fish | source";

/// The directory of the manual pages in a source tree.
const MAN: &str = "man";

#[derive(Debug, clap::Args)]
struct Definition {
    #[command(flatten)]
    output: Output,

    /// Oldest Kubernetes version that must accept the CRD; below 1.30, more updates of objects that
    /// already violate a rule are rejected
    #[arg(long, value_name = "VERSION", default_value_t = default_version())]
    kube_version: KubeVersion,
}

/// Where the output is written.
#[derive(Debug, clap::Args)]
struct Output {
    /// Compare with the existing files, print the differences, and exit with 1 if there are any
    #[arg(long)]
    check: bool,

    /// Directory to write files to, instead of printing them; with --check, the directory to
    /// compare with [default: the one in the source tree]
    #[arg(short = 'o', long = "output-dir", value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn run(args: Args, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let shipped = default_version().minor();
    let (output, files, tree) = match args.artifact {
        Artifact::Crd(args) => {
            let files = Group::Crd.files(args.kube_version.minor());
            (args.output, files.map_err(failed)?, Group::Crd.directory())
        }
        Artifact::Admission(output) => {
            let mut files = Group::Admission.files(shipped).map_err(failed)?;
            // Files in subdirectories are alternatives to these, not additions.
            files.retain(|file| !output.is_printed() || !file.path.contains('/'));
            (output, files, Group::Admission.directory())
        }
        Artifact::Rbac(args) => {
            let files = args.files()?;
            (args.output, files, file::ROLES)
        }
        Artifact::Manifests(args) => {
            let files = args.files()?;
            (args.output, files, file::DEPLOY)
        }
        Artifact::Webhook(args) => {
            let files = vec![args.file()?];
            (args.output, files, file::DEPLOY)
        }
        Artifact::Agent(args) => {
            let files = vec![args.file()?];
            (args.output, files, file::DEPLOY)
        }
        Artifact::Chart(output) => {
            let files = file::chart().map_err(failed)?;
            (output, files, file::CHART)
        }
        Artifact::Completions(args) => return completions::run(&args, out),
        Artifact::Man(output) => {
            let mut pages = man::pages(crate::command())?;
            if output.is_printed() {
                pages.truncate(1);
            }
            (output, pages, MAN)
        }
        Artifact::Docs(output) => {
            let mut pages = Group::Docs.files(shipped).map_err(failed)?;
            pages.push(file::permission_page());
            pages.push(metrics::page());
            pages.push(reference::page(crate::command()));
            pages.push(crate::report::schema()?);
            (output, pages, Group::Docs.directory())
        }
    };
    output.deliver(out, files, tree)
}

fn failed(error: fivespot_api::manifest::Error) -> Failure {
    Failure::new("generating", error)
}

impl Output {
    /// Whether the output goes to standard output.
    fn is_printed(&self) -> bool {
        !self.check && self.directory.is_none()
    }

    /// Prints, writes or checks `files`. `tree` is their directory in the source tree.
    fn deliver(
        self,
        out: &mut dyn Write,
        files: Vec<GeneratedFile>,
        tree: &str,
    ) -> Result<Outcome, Failure> {
        match (self.check, self.directory) {
            (true, directory) => {
                check(out, &directory.unwrap_or_else(|| tree.into()), files)
            }
            (false, Some(directory)) => write(out, &directory, &files),
            (false, None) => print(out, &files),
        }
    }
}

/// The Kubernetes version for which the files in the source tree are generated.
fn default_version() -> KubeVersion {
    format!("1.{}", crd::SHIPPED_MINOR)
        .parse()
        .unwrap_or_default()
}

fn print(out: &mut dyn Write, files: &[GeneratedFile]) -> Result<Outcome, Failure> {
    for (index, file) in files.iter().enumerate() {
        if index > 0 {
            writeln!(out, "---")?;
        }
        write!(out, "{}", file.text)?;
    }
    Ok(Outcome::Yes)
}

fn write(
    out: &mut dyn Write,
    directory: &Path,
    files: &[GeneratedFile],
) -> Result<Outcome, Failure> {
    let failed = |path: &Path, error| {
        Failure::new(format!("writing {}", path.display()), error)
            .remedy("check that the directory is writable")
    };
    for file in files {
        let path = directory.join(&file.path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
        }
        fs::write(&path, &file.text).map_err(|error| failed(&path, error))?;
        writeln!(out, "wrote {}", path.display())?;
    }
    Ok(Outcome::Yes)
}

fn check(
    out: &mut dyn Write,
    directory: &Path,
    files: Vec<GeneratedFile>,
) -> Result<Outcome, Failure> {
    if !directory.is_dir() {
        let why = format!("there is no directory {}", directory.display());
        return Err(Failure::new("--check", why)
            .remedy("run it in the source tree, or give the directory with -o"));
    }
    let mut outcome = Outcome::Yes;
    for file in files {
        let path = directory.join(&file.path);
        let found = match fs::read_to_string(&path) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                return Err(unreadable(&path.display().to_string(), &error).remedy(
                    "give the directory that contains them, or write them there first",
                ));
            }
        };
        let named = GeneratedFile {
            path: path.display().to_string(),
            ..file
        };
        if let Some(difference) = named.difference(found.as_deref()) {
            write!(out, "{difference}")?;
            outcome = Outcome::No;
        }
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Args {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let arguments = ["generate"].into_iter().chain(arguments.iter().copied());
        <Line as clap::Parser>::try_parse_from(arguments)
            .unwrap()
            .args
    }

    fn generate(arguments: &[&str]) -> (Outcome, String) {
        let mut out = Vec::new();
        let outcome = run(parse(arguments), &mut out).unwrap();
        (outcome, String::from_utf8(out).unwrap())
    }

    #[test]
    fn admission_output_has_each_policy_and_one_binding_for_each() {
        let (outcome, text) = generate(&["admission"]);
        assert_eq!(outcome, Outcome::Yes);
        // One about each kind, and three about the classes that machines and sets name.
        let count = fivespot_api::RESOURCES.len() + 3;
        let policies = text.matches("\nkind: ValidatingAdmissionPolicy\n");
        assert_eq!(policies.count(), count);
        let bindings = text.matches("\nkind: ValidatingAdmissionPolicyBinding\n");
        assert_eq!(bindings.count(), count);
        assert!(text.contains("- Deny\n") && !text.contains("- Audit\n"));
    }

    #[test]
    fn roles_name_the_selected_provider_and_read_only_granted_secrets() {
        let (_, text) = generate(&["rbac", "--provider", "metal3", "--namespace", "a,b"]);
        assert!(text.contains("metal3machines") && !text.contains("remotemachines"));
        // Two Roles for Secrets, and the operator's own.
        assert_eq!(text.matches("\nkind: Role\n").count(), 3);
        let (_, workload) = generate(&["rbac", "--workload", "--workload-user", "jane"]);
        assert!(workload.contains("- pods/eviction") && workload.contains("name: jane"));
        assert!(!workload.contains("ServiceAccount"));
    }

    #[test]
    fn the_deployment_starts_the_operator_with_valid_arguments() {
        let settings = fivespot_install::controller::Settings {
            rights: fivespot_install::role::Rights {
                namespaces: fivespot_install::role::NamespaceScope::Only(
                    ["a".to_owned()].into(),
                ),
                is_workload_cluster: true,
                ..fivespot_install::role::Rights::default()
            },
            reclaim_override: Some("4h".to_owned()),
            ..fivespot_install::controller::Settings::default()
        };
        let name = fivespot_controller::program::NAME.to_owned();
        let arguments = [name].into_iter().chain(settings.arguments());
        let command = fivespot_controller::program::command();
        let parsed = command.try_get_matches_from(arguments);
        assert!(parsed.is_ok(), "{parsed:?}");
    }

    #[test]
    fn the_webhook_deployment_starts_the_webhook_with_valid_arguments() {
        let settings = fivespot_install::webhook::Settings {
            validation_actions: vec!["Audit".to_owned()],
            capacity_targets: Some("kinds".to_owned()),
            ..fivespot_install::webhook::Settings::default()
        };
        let name = fivespot_webhook::program::NAME.to_owned();
        let arguments = [name].into_iter().chain(settings.arguments());
        let command = fivespot_webhook::program::command();
        let parsed = command.try_get_matches_from(arguments);
        assert!(parsed.is_ok(), "{parsed:?}");
        let (_, text) = generate(&[
            "webhook",
            "--image",
            "registry.example/5spot-webhook:1",
            "--operator-namespace",
            "ops",
        ]);
        assert!(!text.contains("5spot-system"), "{text}");
    }

    #[test]
    fn the_webhook_gets_the_chosen_ports_and_action() {
        let (_, text) = generate(&[
            "webhook",
            "--image",
            "registry.example/5spot-controller:1",
            "--egress-port",
            "16443",
            "--validation-actions",
            "Audit",
        ]);
        assert!(text.contains("port: 16443\n"), "{text}");
        assert!(!text.contains("port: 6443\n"), "{text}");
        assert!(text.contains("- --validation-actions=Audit\n"), "{text}");
    }

    #[test]
    fn every_generator_refuses_an_image_without_a_registry() {
        let refused = |arguments: &[&str]| {
            let line = parse(arguments);
            let error = run(line, &mut Vec::new()).unwrap_err();
            error.to_string()
        };
        let given = [
            "manifests",
            "--image",
            "registry.example/5spot-controller:1",
        ];
        let directory = [given.as_slice(), &["-o", "unwritten"]].concat();
        let agent = ["--agent-image", "registry.example/agent:1"];
        let with_agent = [directory.as_slice(), &agent].concat();
        for (arguments, flag) in [
            (["manifests"].as_slice(), "--image"),
            (&["webhook"], "--image"),
            (&["agent"], "--image"),
            (&directory, "--agent-image"),
            (&with_agent, "--webhook-image"),
        ] {
            let error = refused(arguments);
            assert!(error.contains(&format!("{flag}: ")), "{error}");
            assert!(error.contains("has no registry"), "{error}");
        }
        assert_eq!(generate(&given).0, Outcome::Yes);
    }

    #[test]
    fn the_agent_manifests_have_the_given_image() {
        let (_, text) = generate(&["agent", "--image", "registry.example/agent:1"]);
        assert!(text.contains("image: registry.example/agent:1"), "{text}");
    }

    #[test]
    fn only_an_agent_that_is_not_root_is_given_the_bus_of_its_host() {
        let given = [
            "agent",
            "--image",
            "registry.example/agent:1",
            "--login-sessions",
        ];
        let given = [&given[..], &["local", "--session-away", "locked"]].concat();
        for way in [["--kernel", "6.6"], ["--detection", "scan"]] {
            let (_, text) = generate(&[&given[..], &way].concat());
            assert!(text.contains("--session-away=locked"), "{text}");
            assert!(text.contains("mountPath: /run/dbus"), "{text}");
            assert!(text.contains("runAsNonRoot: true"), "{text}");
        }
        let refused = run(parse(&given), &mut Vec::new()).unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("--session-away"), "{refused}");
        assert!(refused.contains("--kernel 6.6"), "{refused}");
    }

    #[test]
    fn the_identity_of_a_host_names_its_machine_and_its_node() {
        let (_, text) = generate(&["agent", "--host", "team-a/desk-042"]);
        assert!(text.contains("name: 5spot-host-desk-042\n"), "{text}");
        assert!(text.contains("- reclaim-agent-desk-042\n"), "{text}");
        let node = ["--node-name", "desk-042.example"];
        let (_, text) =
            generate(&[&["agent", "--host", "team-a/desk-042"], &node[..]].concat());
        assert!(
            text.contains("- reclaim-agent-desk-042.example\n"),
            "{text}"
        );
        let (_, text) = generate(&["agent", "--host-policy"]);
        assert_eq!(text.matches("\nkind: ").count(), 2, "{text}");
        assert!(text.contains("\n  name: 5spot-host\n"), "{text}");
        for word in ["desk-042", "team-a/", "a/b/c", "Team/desk"] {
            #[derive(clap::Parser)]
            struct Line {
                #[command(flatten)]
                _args: Args,
            }
            let line = ["generate", "agent", "--host", word];
            assert!(
                <Line as clap::Parser>::try_parse_from(line).is_err(),
                "{word}"
            );
        }
    }

    #[test]
    fn the_crd_for_an_older_kubernetes_lacks_fields_that_it_rejects() {
        let (_, shipped) = generate(&["crd"]);
        assert!(shipped.contains("optionalOldSelf"));
        let (_, older) = generate(&["crd", "--kube-version", "1.29"]);
        assert!(!older.contains("optionalOldSelf"));
    }

    /// Arguments of `generate manifests` with an image.
    const MANIFESTS: [&str; 3] = [
        "manifests",
        "--image",
        "registry.example/5spot-controller:1",
    ];

    #[test]
    fn roles_for_an_older_kubernetes_have_no_policy_that_limits_them() {
        let (_, shipped) = generate(&["rbac"]);
        assert!(shipped.contains("\nkind: ValidatingAdmissionPolicy\n"));
        let (_, older) = generate(&["rbac", "--kube-version", "1.29"]);
        assert!(!older.contains("ValidatingAdmissionPolicy"), "{older}");
    }

    #[test]
    fn what_the_nodes_must_support_needs_a_kubernetes_that_has_it() {
        for (flag, older, newer, field) in [
            ("--apparmor", "1.29", "1.30", "appArmorProfile:\n"),
            ("--user-namespaces", "1.32", "1.33", "hostUsers: false\n"),
        ] {
            let line = |version: &'static str| {
                [&MANIFESTS[..], &[flag, "--kube-version", version]].concat()
            };
            let error = run(parse(&line(older)), &mut Vec::new()).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "{flag}: Kubernetes {older} does not have it by default; give --kube-version \
                     {newer} or later if every cluster has it"
                )
            );
            let (_, text) = generate(&line(newer));
            assert!(text.contains(field), "{text}");
            assert!(!generate(&MANIFESTS).1.contains(field));
        }
    }

    #[test]
    fn time_zones_are_mounted_from_the_given_volume() {
        let line = |source| [&MANIFESTS[..], &["--zoneinfo-volume", source]].concat();
        let (_, text) = generate(&line("persistentVolumeClaim: {claimName: zones}"));
        assert!(text.contains("claimName: zones\n"), "{text}");
        assert!(
            text.contains("- --zoneinfo=/usr/share/zoneinfo\n"),
            "{text}"
        );
        for source in ["zones", "", "[]", "a: {}\nb: {}", "a: ["] {
            let error = run(parse(&line(source)), &mut Vec::new()).unwrap_err();
            let error = error.to_string();
            assert!(
                error.starts_with(
                    "--zoneinfo-volume: it is not the source of a volume; give"
                ),
                "{error}"
            );
        }
    }

    #[test]
    fn manifests_for_an_older_kubernetes_have_no_admission_policy() {
        let (_, shipped) = generate(&["manifests", "--allow-unqualified-image"]);
        assert!(shipped.contains("\nkind: ValidatingAdmissionPolicy\n"));
        let (_, older) = generate(&[
            "manifests",
            "--image",
            "registry.example/5spot-controller:1",
            "--kube-version",
            "1.28",
        ]);
        assert!(!older.contains("kind: ValidatingAdmissionPolicy"));
        assert!(!older.contains("optionalOldSelf"));
    }

    #[test]
    fn every_command_has_a_manual_page() {
        let pages = man::pages(crate::command()).unwrap();
        let names: Vec<_> = pages.iter().map(|page| page.path.as_str()).collect();
        assert_eq!(names.first(), Some(&"5spot.1"));
        for name in ["5spot-explain.1", "5spot-generate-crd.1"] {
            assert!(names.contains(&name), "{names:?}");
        }
        let is_hidden = |name: &&str| name.contains("complete.") || name.contains("help");
        assert!(!names.iter().any(is_hidden), "{names:?}");
        let (_, printed) = generate(&["man"]);
        assert_eq!(Some(&printed), pages.first().map(|page| &page.text));
        assert!(printed.starts_with(".ie "), "{printed}");
    }

    #[test]
    fn completion_scripts_call_this_program() {
        for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
            let (outcome, script) = generate(&["completions", shell]);
            assert_eq!(outcome, Outcome::Yes);
            assert!(script.contains("FIVESPOT_COMPLETE"), "{script}");
        }
    }

    #[test]
    fn written_files_pass_the_check_and_edited_files_do_not() {
        let directory =
            std::env::temp_dir().join(format!("5spot-generate-{}", std::process::id()));
        let directory = directory.to_str().unwrap();
        generate(&["crd", "-o", directory]);
        assert_eq!(
            generate(&["crd", "-o", directory, "--check"]),
            (Outcome::Yes, String::new())
        );
        let file = Path::new(directory).join("scheduledmachines.5spot.finos.org.yaml");
        fs::write(&file, "edited: true\n").unwrap();
        let (outcome, text) = generate(&["crd", "-o", directory, "--check"]);
        assert_eq!(outcome, Outcome::No);
        assert!(text.contains("\n-edited: true\n+# Generated by"), "{text}");
        fs::remove_dir_all(directory).unwrap();
    }
}

//! Scans once: `--dry-run` and `--oneshot`.

use std::io::Write;

use fivespot_api::name::{AGENT_POLICY, SYSTEM_NAMESPACE, reclaim_config_map};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::command::{Failure, Outcome, failed, refused};
use crate::config::Config;
use crate::detect::with_causes;
use crate::node::{Attempt, DesiredAnnotations, OwnNode, ReclaimRequest, ReportState};
use crate::policy_check::PolicyRequirement;
use crate::proc::Proc;
use crate::run::{config_maps, text_of};
use crate::scan::{ProcessMatch, scan};
use crate::signal::{Now, Reading, Settings, Signals};

/// Parses a configuration.
pub(crate) fn parse(text: &str) -> Result<Config, Failure> {
    Config::parse(text)
        .map_err(|error| failed("reading the configuration", &error, "correct it"))
}

/// Reads the node's own configuration.
pub(crate) async fn read(node: &OwnNode) -> Result<Config, Failure> {
    let name = reclaim_config_map(&node.name);
    let what = format!("reading ConfigMap {SYSTEM_NAMESPACE}/{name}");
    let config_map = config_maps(node).get(&name).await.map_err(|error| {
        let remedy =
            "it exists while the ScheduledMachine of this node has killIfCommands";
        failed(what, &error, remedy)
    })?;
    parse(text_of(&config_map).unwrap_or_default())
}

/// What is read once.
pub(crate) struct Host<'a> {
    proc: &'a Proc,
    signals: Signals,
}

impl<'a> Host<'a> {
    /// The processes, and the signals of the command line and of a configuration.
    pub(crate) fn new(proc: &'a Proc, own: Settings, config: &Config) -> Self {
        let mut signals = Signals::new(own.sources(proc.root()));
        signals.configure(&config.signals, proc.root());
        Self { proc, signals }
    }

    async fn read_signals(&mut self, time: Timestamp) {
        self.signals.settle().await;
        let instant = Instant::now();
        self.signals.read(Now { time, instant });
    }
}

fn matches<'a>(
    proc: &'a Proc,
    config: &'a Config,
) -> Result<impl Iterator<Item = ProcessMatch> + 'a, Failure> {
    scan(proc, &config.patterns)
        .map_err(|error| failed("reading /proc", &error, "check --proc-root"))
}

/// Prints every matching process and every signal, one per line.
pub(crate) async fn print(
    mut host: Host<'_>,
    config: &Config,
    now: Timestamp,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let patterns = config.patterns.texts().len();
    let mut number = 0;
    for process in matches(host.proc, config)? {
        number += 1;
        writeln!(
            out,
            "{:>7}  {}  matches {:?} by {}",
            process.pid,
            process.names,
            process.pattern,
            process.by.as_str()
        )?;
    }
    host.read_signals(now).await;
    for (name, reading) in host.signals.readings() {
        match reading {
            Reading::NotYet => writeln!(out, "{name}: one reading does not tell")?,
            Reading::Absent => writeln!(out, "{name}: no signal")?,
            Reading::Stands(signal) => {
                writeln!(out, "{name}: signal ({})", signal.reason)?;
            }
            Reading::Unreadable { why } => {
                writeln!(out, "{name}: cannot be read: {why}")?;
            }
        }
    }
    let processes = if number == 1 {
        "process matches"
    } else {
        "processes match"
    };
    let list = if patterns == 1 { "pattern" } else { "patterns" };
    writeln!(
        out,
        "{number} {processes} {patterns} {list}; nothing was written"
    )?;
    Ok(Outcome::Yes)
}

/// Checks that the agent can write to no Node except its own.
pub(crate) async fn check_policy(
    node: &OwnNode,
    requirement: PolicyRequirement,
) -> Result<(), Failure> {
    if requirement == PolicyRequirement::NotRequired {
        return Ok(());
    }
    let tried = node.try_another().await;
    let why = match tried {
        Ok(Attempt::Rejected) => return Ok(()),
        Ok(Attempt::Allowed(_)) => {
            "it is not in force: the token of the agent may write to other Nodes"
                .to_owned()
        }
        Ok(Attempt::Unknown) => "the Node does not exist".to_owned(),
        Err(error) => with_causes(&error),
    };
    let remedy = "apply the output of 5spot generate agent, or set --skip-policy-check";
    let what = format!("checking the policy {AGENT_POLICY}");
    Err(refused(what, why, remedy))
}

/// Requests a reclaim if a process matches or a signal stands. Load has to be watched for a time, and
/// is never found.
pub(crate) async fn request(
    node: &OwnNode,
    proc: &Proc,
    own: Settings,
    now: Timestamp,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let config = read(node).await?;
    let mut host = Host::new(proc, own, &config);
    host.read_signals(now).await;
    let found = matches(proc, &config)?.next();
    let reason = match &found {
        Some(process) => Some(process.reason()),
        None => host.signals.standing().map(|signal| signal.reason.clone()),
    };
    let desired = DesiredAnnotations {
        report: ReportState::Report(config.report()),
        request: reason
            .clone()
            .map(|reason| ReclaimRequest { reason, at: now }),
        account: None,
    };
    node.write(&desired).await.map_err(|error| {
        let what = format!("annotating Node {}", node.name);
        failed(
            what,
            &error,
            "5spot-reclaim-agent doctor shows what is missing",
        )
    })?;
    match (found, reason) {
        (None, None) => writeln!(out, "no process matches")?,
        (None, Some(reason)) => {
            writeln!(out, "{reason}: reclaim requested on Node {}", node.name)?;
        }
        (Some(process), _) => writeln!(
            out,
            "process {} ({}) matches {:?} by {}: reclaim requested on Node {}",
            process.pid,
            process.names,
            process.pattern,
            process.by.as_str(),
            node.name
        )?,
    }
    Ok(Outcome::Yes)
}

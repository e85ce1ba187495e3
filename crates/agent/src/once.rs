//! Scans once: `--dry-run` and `--oneshot`.

use std::io::Write;

use fivespot_api::name::{AGENT_POLICY, SYSTEM_NAMESPACE, reclaim_config_map};
use jiff::Timestamp;

use crate::command::{Failure, Outcome};
use crate::config::Config;
use crate::node::{Attempt, DesiredAnnotations, OwnNode, ReclaimRequest, ReportState};
use crate::policy_check::PolicyRequirement;
use crate::proc::Proc;
use crate::run::{config_maps, text_of};
use crate::scan::{ProcessMatch, scan};

/// Parses a configuration.
pub(crate) fn parse(text: &str) -> Result<Config, Failure> {
    Config::parse(text)
        .map_err(|error| Failure::new("reading the configuration", &error, "correct it"))
}

/// Reads the node's own configuration.
pub(crate) async fn read(node: &OwnNode) -> Result<Config, Failure> {
    let name = reclaim_config_map(&node.name);
    let what = format!("reading ConfigMap {SYSTEM_NAMESPACE}/{name}");
    let config_map = config_maps(node).get(&name).await.map_err(|error| {
        let remedy =
            "it exists while the ScheduledMachine of this node has killIfCommands";
        Failure::new(what, &error, remedy)
    })?;
    parse(text_of(&config_map).unwrap_or_default())
}

fn matches<'a>(
    proc: &'a Proc,
    config: &'a Config,
) -> Result<impl Iterator<Item = ProcessMatch> + 'a, Failure> {
    scan(proc, &config.patterns)
        .map_err(|error| Failure::new("reading /proc", &error, "check --proc-root"))
}

/// Prints every matching process, one per line.
pub(crate) fn print(
    proc: &Proc,
    config: &Config,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let patterns = config.patterns.texts().len();
    let mut number = 0;
    for process in matches(proc, config)? {
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
        Ok(Attempt::Allowed) => NotInForce.into(),
        Err(error) => Box::<dyn std::error::Error>::from(error),
    };
    let remedy = "apply the output of 5spot generate agent, or set --skip-policy-check";
    Err(Failure::new(
        format!("checking the policy {AGENT_POLICY}"),
        why.as_ref(),
        remedy,
    ))
}

/// The error that the agent could write to other Nodes.
#[derive(Debug, thiserror::Error)]
#[error("it is not in force: the token of the agent may write to other Nodes")]
struct NotInForce;

/// Requests a reclaim if a process matches.
pub(crate) async fn request(
    node: &OwnNode,
    proc: &Proc,
    now: fn() -> Timestamp,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let config = read(node).await?;
    let found = matches(proc, &config)?.next();
    let desired = DesiredAnnotations {
        report: ReportState::Report(config.report()),
        request: found.as_ref().map(|process| ReclaimRequest {
            pattern: process.pattern.clone(),
            at: now(),
        }),
    };
    node.write(&desired).await.map_err(|error| {
        let what = format!("annotating Node {}", node.name);
        Failure::new(
            what,
            &error,
            "5spot-reclaim-agent doctor shows what is missing",
        )
    })?;
    match found {
        None => writeln!(out, "no process matches")?,
        Some(process) => writeln!(
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

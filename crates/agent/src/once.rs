//! Looking once: `--dry-run` and `--oneshot`.

use std::io::Write;

use fivespot_api::name::{AGENT_POLICY, SYSTEM_NAMESPACE, reclaim_config_map};
use jiff::Timestamp;

use crate::command::{Failure, Outcome};
use crate::config::Config;
use crate::confinement::Proof;
use crate::node::{Asked, Attempt, OwnNode, Told, Wanted};
use crate::proc::Proc;
use crate::run::{config_maps, text_of};
use crate::sight::{Sighting, scan};

/// Reads a configuration.
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
            "it is there while a ScheduledMachine of this node has killIfCommands";
        Failure::new(what, &error, remedy)
    })?;
    parse(text_of(&config_map).unwrap_or_default())
}

fn look<'a>(
    proc: &'a Proc,
    config: &'a Config,
) -> Result<impl Iterator<Item = Sighting> + 'a, Failure> {
    scan(proc, &config.patterns)
        .map_err(|error| Failure::new("reading /proc", &error, "check --proc-root"))
}

/// Prints every process that is meant, one a line.
pub(crate) fn print(
    proc: &Proc,
    config: &Config,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let patterns = config.patterns.texts().len();
    let mut number = 0;
    for sighting in look(proc, config)? {
        number += 1;
        writeln!(
            out,
            "{:>7}  {}  matches {:?} by {}",
            sighting.pid,
            sighting.names,
            sighting.pattern,
            sighting.by.as_str()
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

/// Makes sure that the agent can write to no Node but its own.
pub(crate) async fn prove(node: &OwnNode, proof: Proof) -> Result<(), Failure> {
    if proof == Proof::NotRequired {
        return Ok(());
    }
    let tried = node.try_another().await;
    let why = match tried {
        Ok(Attempt::Refused) => return Ok(()),
        Ok(Attempt::Allowed) => NotInForce.into(),
        Err(error) => Box::<dyn std::error::Error>::from(error),
    };
    let remedy = "apply what 5spot generate agent prints, or give --skip-policy-check";
    Err(Failure::new(
        format!("trying the policy {AGENT_POLICY}"),
        why.as_ref(),
        remedy,
    ))
}

/// The agent could write to other Nodes.
#[derive(Debug, thiserror::Error)]
#[error("it is not in force: the token of the agent may write to other Nodes")]
struct NotInForce;

/// Asks for the machine back if a process is meant.
pub(crate) async fn ask(
    node: &OwnNode,
    proc: &Proc,
    now: fn() -> Timestamp,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let config = read(node).await?;
    let found = look(proc, &config)?.next();
    let wanted = Wanted {
        report: Told::Report(config.report()),
        request: found.as_ref().map(|sighting| Asked {
            pattern: sighting.pattern.clone(),
            at: now(),
        }),
    };
    node.write(&wanted).await.map_err(|error| {
        let what = format!("annotating Node {}", node.name);
        Failure::new(
            what,
            &error,
            "5spot-reclaim-agent doctor says what is missing",
        )
    })?;
    match found {
        None => writeln!(out, "no process matches")?,
        Some(sighting) => writeln!(
            out,
            "process {} ({}) matches {:?} by {}: Node {} asks for reclaim",
            sighting.pid,
            sighting.names,
            sighting.pattern,
            sighting.by.as_str(),
            node.name
        )?,
    }
    Ok(Outcome::Yes)
}

//! Scans once: `--dry-run`.

use std::io::Write;

use fivespot_api::name::{SYSTEM_NAMESPACE, reclaim_config_map};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::command::{Failure, Outcome, failed};
use crate::config::Config;
use crate::node::OwnNode;
use crate::proc::Proc;
use crate::run::{config_maps, text_of};
use crate::scan::scan;
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

/// Prints every matching process and every signal, of the command line and of a configuration, one per
/// line.
pub(crate) async fn print(
    (proc, own): (&Proc, Settings),
    config: &Config,
    time: Timestamp,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let patterns = config.patterns.texts().len();
    let mut number = 0;
    let found = scan(proc, &config.patterns)
        .map_err(|error| failed("reading /proc", &error, "check --proc-root"))?;
    for process in found {
        number += 1;
        writeln!(
            out,
            "{:>7}  {}  matches {:?} by {}",
            process.pid, process.names, process.pattern, process.by
        )?;
    }
    let mut signals = Signals::new(own.sources(proc.root()));
    signals.configure(&config.signals, proc.root());
    signals.settle().await;
    let instant = Instant::now();
    signals.read(Now { time, instant });
    for (name, reading) in signals.readings() {
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

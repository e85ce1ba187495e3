//! Output formats.

use std::io::{self, Write};
use std::os::fd::AsFd as _;

use clap::ValueEnum;
use fivespot_api::condition::Reason;
use fivespot_api::verdict::Verdict;
use fivespot_drawing::terminal::TerminalOptions;
pub(crate) use fivespot_program::is_colored;
use serde::Serialize;
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

use crate::{Failure, plain};

/// The output formats of commands without additional ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Plain text
    #[default]
    Text,
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

/// Prints `value` as one indented JSON document.
pub(crate) fn json(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new("printing JSON", error))?;
    Ok(writeln!(out, "{text}")?)
}

/// Prints `value` as one YAML document.
pub(crate) fn yaml(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_saphyr::to_string(value)
        .map_err(|error| Failure::new("printing YAML", error))?;
    Ok(write!(out, "{text}")?)
}

/// Prints what to do about a verdict and who can, with the command that explains its reason.
pub(crate) fn remedy(out: &mut dyn Write, verdict: &Verdict) -> std::io::Result<()> {
    let Some(remedy) = &verdict.remedy else {
        return Ok(());
    };
    let actor = verdict.actor.as_str();
    writeln!(out, "do: {} (who: {actor})", plain::line(remedy))?;
    if Reason::row(&verdict.reason).is_some() {
        writeln!(out, "    5spot explain reason {}", verdict.reason)?;
    }
    Ok(())
}

/// Prints a line to standard error for each note about the output of a command.
pub(crate) fn notes<'n>(kind: &str, notes: impl IntoIterator<Item = &'n String>) {
    let mut stderr = std::io::stderr().lock();
    for note in notes {
        // There is no other place to report that standard error is closed.
        let _ = writeln!(stderr, "{kind}: {}", plain::lines(note));
    }
}

/// Waits until the reader of standard output has closed it, as `head` does after its last line.
/// Waits forever if standard output is a file or cannot be watched.
pub(crate) async fn closed() {
    // Unchecked, because the check would make the pipe non-blocking for all who write to it.
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    if let Ok(stdout) = stdout.and_then(Sender::from_owned_fd_unchecked)
        && stdout.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

/// The width of output that is not a terminal.
const USUAL_WIDTH: usize = 80;

/// The capabilities of standard output.
pub(crate) fn terminal_options() -> TerminalOptions {
    let stdout = std::io::stdout();
    let size = terminal_size::terminal_size_of(&stdout);
    TerminalOptions {
        width: size.map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0)),
        colored: is_colored(&stdout),
    }
}

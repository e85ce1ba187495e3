//! Output formats.

use std::io::Write;

use fivespot_api::condition::{capacity_reason, schedule_reason};
use fivespot_api::verdict::Verdict;
use fivespot_drawing::terminal::TerminalOptions;
pub(crate) use fivespot_program::is_colored;
pub(crate) use kubemu::output::{Format, closed, json, yaml};
use serde::Serialize;

use crate::{Failure, plain};

/// Prints a value in a format; `text` prints it as text.
pub(crate) fn print<E>(
    out: &mut dyn Write,
    format: Format,
    value: &impl Serialize,
    text: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), Failure>
where
    Failure: From<E>,
{
    match format {
        Format::Text => Ok(text(out)?),
        Format::Json => json(out, value),
        Format::Yaml => yaml(out, value),
    }
}

/// Prints what to do about a verdict and who can, with the command that explains its reason.
pub(crate) fn remedy(out: &mut dyn Write, verdict: &Verdict) -> std::io::Result<()> {
    let Some(remedy) = &verdict.remedy else {
        return Ok(());
    };
    let actor = verdict.actor.as_str();
    writeln!(out, "do: {} (who: {actor})", plain::line(remedy))?;
    let reason = verdict.reason.as_str();
    let is_known = capacity_reason::row(reason).or(schedule_reason::row(reason));
    if is_known.is_some() {
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

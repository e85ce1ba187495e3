//! Whether a process is one that is meant.

use std::io;

use crate::pattern::{By, Names, Patterns};
use crate::proc::{Pid, Proc};

/// A process that is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Its number.
    pub pid: Pid,
    /// What it is called.
    pub names: Names,
    /// The pattern that it matches.
    pub pattern: String,
    /// What of it matches.
    pub by: By,
    /// When it started, in clock ticks since the machine did: with the number, which process it
    /// was. None if it was gone before that could be read.
    pub started: Option<u64>,
}

/// Why a process is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// It is there: one that has ended, and is only waiting for its parent, is not meant.
    Scan,
    /// It has just begun to be called what it is: it is meant even if it was shorter than it
    /// took to look.
    Event,
}

/// Looks at one process.
pub fn look(
    proc: &Proc,
    patterns: &Patterns,
    pid: Pid,
    occasion: Occasion,
) -> Option<Sighting> {
    let process = proc.process(pid)?;
    let names = process.names()?;
    let found = patterns.find(&names)?;
    if !proc.may_match(&process) {
        return None;
    }
    let standing = process.standing();
    if names.is_bare() {
        // Kernel threads have no command line, and are nobody's program whatever they are called.
        let standing = standing?;
        if standing.is_kernel_thread || (standing.has_ended && occasion == Occasion::Scan)
        {
            return None;
        }
    }
    Some(Sighting {
        pid: process.pid(),
        pattern: found.pattern.to_owned(),
        by: found.by,
        started: standing.map(|standing| standing.started),
        names,
    })
}

/// Every process that is meant, in the order of `/proc`, found as it is asked for.
///
/// # Errors
/// `/proc` cannot be read.
pub fn scan<'a>(
    proc: &'a Proc,
    patterns: &'a Patterns,
) -> io::Result<impl Iterator<Item = Sighting> + 'a> {
    let pids = proc.pids()?;
    Ok(pids.filter_map(|pid| look(proc, patterns, pid, Occasion::Scan)))
}

#[cfg(test)]
mod tests;

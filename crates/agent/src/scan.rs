//! Checking processes against the patterns.

use std::io;

use crate::pattern::{By, Names, Patterns};
use crate::proc::{Pid, Proc};

/// A matching process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMatch {
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

/// Why a process is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// It is there: one that has ended, and is only waiting for its parent, is not meant.
    Scan,
    /// It has just begun to be called what it is: it is meant even if it was shorter than it
    /// took to look.
    Event,
}

/// Checks one process.
pub fn check(
    proc: &Proc,
    patterns: &Patterns,
    pid: Pid,
    trigger: Trigger,
) -> Option<ProcessMatch> {
    let process = proc.process(pid)?;
    let names = process.names()?;
    let found = patterns.find(&names)?;
    if !proc.may_match(&process) {
        return None;
    }
    let stat = process.stat();
    if names.is_bare() {
        // Kernel threads have no command line, and are nobody's program whatever they are called.
        let stat = stat?;
        if stat.is_kernel_thread || (stat.has_ended && trigger == Trigger::Scan) {
            return None;
        }
    }
    Some(ProcessMatch {
        pid: process.pid(),
        pattern: found.pattern.to_owned(),
        by: found.by,
        started: stat.map(|stat| stat.started),
        names,
    })
}

/// Every matching process, in the order of `/proc`, found as it is asked for.
///
/// # Errors
/// `/proc` cannot be read.
pub fn scan<'a>(
    proc: &'a Proc,
    patterns: &'a Patterns,
) -> io::Result<impl Iterator<Item = ProcessMatch> + 'a> {
    let pids = proc.pids()?;
    Ok(pids.filter_map(|pid| check(proc, patterns, pid, Trigger::Scan)))
}

#[cfg(test)]
mod tests;

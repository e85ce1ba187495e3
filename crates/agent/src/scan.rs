//! Checking processes against the patterns.

use std::io;

use crate::pattern::{Names, Patterns};
use crate::proc::{Pid, Proc};

/// A matching process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessMatch {
    /// Its PID.
    pub pid: Pid,
    /// Its names.
    pub names: Names,
    /// The pattern that it matches.
    pub pattern: String,
    /// What of it matches: `comm`, `argv[0]` or `command line`.
    pub by: &'static str,
    /// When it started, in clock ticks since boot: with the PID, it identifies the process. `None`
    /// if the process was gone before it could be read.
    pub started: Option<u64>,
}

impl ProcessMatch {
    /// Why a reclaim is requested, for the annotation on the Node.
    pub fn reason(&self) -> String {
        format!("process-match: {}", self.pattern)
    }
}

/// Why a process is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A scan: a process that has ended and waits for its parent does not match.
    Scan,
    /// An event: the process has just got its name. It matches even if it has already ended.
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
        // Kernel threads have no command line, and never match whatever their name.
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

/// All matching processes, in the order of `/proc`; the iterator checks them lazily.
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

//! Whether this replica is ready.
//!
//! Computed from the last results of watches and Lease renewals: a probe that called the API server
//! would be a request every few seconds from every replica. An unreachable workload cluster is a
//! condition of the affected machines, not of the operator.

use std::fmt;

/// One check and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The name of the check.
    pub name: String,
    /// What is wrong. `None` if the check succeeded.
    pub problem: Option<String>,
    /// An additional note for display.
    pub note: Option<String>,
}

impl Check {
    /// A check with its result.
    pub(crate) fn new(name: impl Into<String>, problem: Option<String>) -> Self {
        Self {
            name: name.into(),
            problem,
            note: None,
        }
    }

    /// The same check, with a note.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// The results of all checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The checks, in this order.
    pub checks: Vec<Check>,
}

impl Health {
    /// Whether all checks succeeded.
    pub fn is_well(&self) -> bool {
        self.checks.iter().all(|check| check.problem.is_none())
    }
}

/// The format of an API server's health endpoints: one line per check.
impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            match (&check.problem, &check.note) {
                (Some(problem), _) => {
                    writeln!(f, "[-]{} failed: {problem}", check.name)?;
                }
                (None, Some(note)) => writeln!(f, "[+]{} ok: {note}", check.name)?,
                (None, None) => writeln!(f, "[+]{} ok", check.name)?,
            }
        }
        Ok(())
    }
}

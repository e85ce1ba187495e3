//! Whether this instance is ready, truthfully.

use std::fmt;

/// What is looked at, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is looked at.
    pub name: String,
    /// What is wrong; none where all is well.
    pub problem: Option<String>,
    /// Said besides, for people.
    pub note: Option<String>,
}

impl Check {
    /// A check that went well, or did not.
    pub(crate) fn new(name: impl Into<String>, problem: Option<String>) -> Self {
        Self {
            name: name.into(),
            problem,
            note: None,
        }
    }

    /// The same, with something said besides.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// All that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// What was looked at, in this order.
    pub checks: Vec<Check>,
}

impl Health {
    /// Whether all is well.
    pub fn is_well(&self) -> bool {
        self.checks.iter().all(|check| check.problem.is_none())
    }
}

/// As an API server prints its own: a line for each check.
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

//! What an acceptable ScheduledMachine is.

use std::fmt;

use crate::scheduled_machine::ScheduledMachine;

/// One rule that one field breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule, e.g. `SM002`.
    pub rule: &'static str,
    /// The field, e.g. `spec.schedule.hoursOfDay[0]`.
    pub field: String,
    /// What the field must be.
    pub message: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.starts_with(&self.field) {
            formatter.write_str(self.message)
        } else {
            write!(formatter, "{}: {}", self.field, self.message)
        }
    }
}

/// Every rule that the object breaks, in the order of the rules; empty if it is acceptable.
pub fn check(_object: &ScheduledMachine) -> Vec<Violation> {
    Vec::new()
}

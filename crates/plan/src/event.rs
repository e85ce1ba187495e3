//! What is published for people: one event for each transition.

/// One event about the ScheduledMachine, in the words of `events.k8s.io/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Normal or Warning.
    pub kind: EventType,
    /// Why, in one CamelCase word.
    pub reason: String,
    /// What was done, in one CamelCase word.
    pub action: String,
    /// What happened, in one sentence of at most 1,024 bytes.
    pub note: String,
}

/// How an event is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Things take their course.
    Normal,
    /// Somebody should look.
    Warning,
}

impl EventType {
    /// The type as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

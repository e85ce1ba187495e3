//! Conditions, in the forms of both contract versions.

use serde_json::Value;

use crate::object::{items, text};

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConditionState {
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`, or any other value.
    Unknown,
}

/// One condition. Severity and times are omitted, because no decision depends on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The type, e.g. `Ready`.
    pub kind: String,
    /// The status.
    pub status: ConditionState,
    /// The reason; empty in v1beta1 if the condition is True.
    pub reason: String,
    /// The message; may be empty.
    pub message: String,
}

/// Reads `status.conditions`, which has the same place in both versions.
pub(crate) fn read_all(object: &Value) -> Vec<Condition> {
    items(&object["status"]["conditions"])
        .filter_map(read)
        .collect()
}

/// Finds a condition by its type.
pub fn find<'a>(all: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    all.iter().find(|condition| condition.kind == kind)
}

/// Why the object is not as desired, according to its conditions: reason and message of `Ready` if
/// that is False with a message, else of the first other such condition. `None` if there is no
/// such condition. Conditions that v1beta1 marks with `severity: Info` are skipped: they are
/// expected to change.
pub(crate) fn first_problem(object: &Value) -> Option<(String, String)> {
    let is_problem = |found: &&Value| {
        found["status"] == "False"
            && found["severity"] != "Info"
            && text(&found["message"]).is_some()
    };
    let all = || items(&object["status"]["conditions"]).filter(is_problem);
    let found = all()
        .find(|found| found["type"] == "Ready")
        .or_else(|| all().next())?;
    let of = |field: &str| text(&found[field]).unwrap_or_default();
    Some((of("reason"), of("message")))
}

fn read(condition: &Value) -> Option<Condition> {
    Some(Condition {
        kind: text(&condition["type"])?,
        status: match condition["status"].as_str() {
            Some("True") => ConditionState::True,
            Some("False") => ConditionState::False,
            _ => ConditionState::Unknown,
        },
        reason: text(&condition["reason"]).unwrap_or_default(),
        message: text(&condition["message"]).unwrap_or_default(),
    })
}

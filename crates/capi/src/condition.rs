//! Conditions, in the forms of both contract versions.

use serde_json::Value;

use crate::object::{items, text};

/// What a condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is unknown, or the stored status is none of the three.
    Unknown,
}

/// One condition; severity and times are left out, because nothing is decided from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// What it is about, e.g. `Ready`.
    pub kind: String,
    /// What it says.
    pub status: Truth,
    /// Why, in one word; empty in v1beta1 where the condition holds.
    pub reason: String,
    /// Why, for people; may be empty.
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

/// Why the object is not as it is to be, in the words of its conditions: reason and message of
/// `Ready` if that is False with a message, else of the first such condition. None if there is
/// none. What v1beta1 marks as a mere information (`severity: Info`) is left out: it is waited for
/// as planned.
pub(crate) fn trouble(object: &Value) -> Option<(String, String)> {
    let is_trouble = |found: &&Value| {
        found["status"] == "False"
            && found["severity"] != "Info"
            && text(&found["message"]).is_some()
    };
    let all = || items(&object["status"]["conditions"]).filter(is_trouble);
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
            Some("True") => Truth::True,
            Some("False") => Truth::False,
            _ => Truth::Unknown,
        },
        reason: text(&condition["reason"]).unwrap_or_default(),
        message: text(&condition["message"]).unwrap_or_default(),
    })
}

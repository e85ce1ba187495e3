//! The objects that the user of the command may not read. They say nothing about the machine.

use fivespot_controller::refusal::needed_role;
use fivespot_plan::{Fact, Observed, Unknown};
use serde::Serialize;

/// An object that the user may not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Unreadable {
    kind: String,
    message: String,
    /// The rule of a role that would allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<String>,
}

impl Unreadable {
    /// An object of this kind; `message` is the refusal of the API server.
    pub(crate) fn of(kind: &str, message: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            message: message.to_owned(),
            role: needed_role(message),
        }
    }

    /// The object in one line.
    pub(crate) fn text(&self) -> String {
        match &self.role {
            Some(role) => {
                format!("{}: not readable; a role with {role} allows it", self.kind)
            }
            None => format!("{}: not readable: {}", self.kind, self.message),
        }
    }
}

/// The objects that the API server refused to show.
pub(super) fn of(observed: &Observed) -> Vec<Unreadable> {
    let mut all = Vec::new();
    let mut add = |kind: &str, unknown: Option<&Unknown>| {
        if let Some(Unknown::Forbidden { message }) = unknown {
            all.push(Unreadable::of(kind, message));
        }
    };
    add("Cluster", unknown(&observed.cluster));
    add("Machine", unknown(&observed.machine));
    for lookup in observed.bootstrap.iter().chain(&observed.infrastructure) {
        add(&lookup.reference.kind, unknown(&lookup.found));
    }
    // Only before the machine exists it matters which host is free.
    let is_absent = observed.machine == Fact::Known(None);
    add(
        "Lease",
        observed.hosts.unknown.as_ref().filter(|_| is_absent),
    );
    add(
        "class, overrides and calendars",
        observed.schedule.unknown.as_ref(),
    );
    all
}

fn unknown<T>(fact: &Fact<T>) -> Option<&Unknown> {
    match fact {
        Fact::Known(_) => None,
        Fact::Unknown(unknown) => Some(unknown),
    }
}

//! The objects that the user of the command may not read. They say nothing about the machine.

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
    add(
        "overrides and calendars",
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

/// The rule that an API server's refusal names: `get of machines.cluster.x-k8s.io` for `... cannot
/// get resource "machines" in API group "cluster.x-k8s.io" ...`.
fn needed_role(message: &str) -> Option<String> {
    let (_, rest) = message.split_once(" cannot ")?;
    let (verb, rest) = rest.split_once(" resource \"")?;
    let (resource, rest) = rest.split_once("\" in API group \"")?;
    let (group, _) = rest.split_once('"')?;
    Some(match group {
        "" => format!("{verb} of {resource}"),
        group => format!("{verb} of {resource}.{group}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_role_that_would_allow_it() {
        let refusal = |resource: &str, group: &str| {
            format!(
                "{resource}.{group} \"b\" is forbidden: User \"owner\" cannot get resource \
                 \"{resource}\" in API group \"{group}\" in the namespace \"default\""
            )
        };
        let role = |resource: &str, group: &str| needed_role(&refusal(resource, group));
        assert_eq!(
            role("clusters", "cluster.x-k8s.io").as_deref(),
            Some("get of clusters.cluster.x-k8s.io")
        );
        assert_eq!(role("secrets", "").as_deref(), Some("get of secrets"));
        assert_eq!(needed_role("no"), None);
    }
}

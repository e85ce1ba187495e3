//! The reasons of the conditions of a ScheduledCapacity, where those of machines say something else
//! or nothing.

use fivespot_api::condition::{Actor, Reason, ReasonRow, Remedy, Section};

const PERMIT: Section = Section {
    title: "Permit it",
    path: "how-to/capacity.md#permit-it",
};
const VALUE: Section = Section {
    title: "Say which value",
    path: "how-to/capacity.md#say-which-value",
};
const WRITTEN: Section = Section {
    title: "What is written, and when",
    path: "how-to/capacity.md#what-is-written-and-when",
};
const AWAITED: Section = Section {
    title: "Wait until nothing uses it",
    path: "how-to/capacity.md#wait-until-nothing-uses-it",
};
const CREATED: Section = Section {
    title: "Create the object",
    path: "how-to/capacity.md#create-the-object",
};

/// A reason with which there is nothing to do.
const fn well(name: &'static str, meaning: &'static str) -> ReasonRow {
    ReasonRow {
        name,
        meaning,
        actor: Actor::Nobody,
        remedy: None,
    }
}

const fn row(
    name: &'static str,
    meaning: &'static str,
    actor: Actor,
    text: &'static str,
    section: Section,
) -> ReasonRow {
    ReasonRow {
        name,
        meaning,
        actor,
        remedy: Some(Remedy {
            text,
            section: Some(section),
        }),
    }
}

/// Names the kind of the target to the operator.
const GRANT: &str = "Let the operator read and patch the kind of the target: generate the manifests again with \
     `5spot generate manifests --capacity-target PLURAL.GROUP`, or `PLURAL.GROUP/scale`, and apply \
     them.";

/// Leaves the field to one client.
const ONE_WRITER: &str = "Let one of the two write it: leave the field out of the manifest that the other client \
     applies; `status.contestedBy` names it.";

/// Every reason, in the order of the conditions.
pub(crate) const TABLE: &[ReasonRow] = &[
    well("Pending", "Nothing has been written to the target yet."),
    well("Active", "The active values are written."),
    well(
        "Inactive",
        "The inactive values are written, and nothing is awaited.",
    ),
    well(
        "HandingBack",
        "The inactive values are written, and the target is still in use.",
    ),
    row(
        "HandbackTimedOut",
        "The inactive values are written, and the target is in use for longer than \
         `handback.timeout`. Nothing is forced.",
        Actor::Owner,
        "Look for what still uses the target: the message has the number that is awaited. When it \
         is 0, the phase becomes Inactive.",
        AWAITED,
    ),
    row(
        "Terminated",
        "The kill switch is set; the inactive values are written.",
        Actor::Owner,
        "To return to the schedule, set `spec.killSwitch: false`.",
        WRITTEN,
    ),
    row(
        "Held",
        "An override of mode Hold keeps the values as they are.",
        Actor::Owner,
        "It ends automatically. `5spot overrides -n NAMESPACE` lists it; `--end` with its name \
         ends it now.",
        WRITTEN,
    ),
    row(
        "InvalidSpec",
        "The spec violates a rule, or its schedule cannot be evaluated. Nothing is written.",
        Actor::Owner,
        "Correct the field that the message names. `5spot validate` reports everything that a \
         server would reject.",
        VALUE,
    ),
    row(
        "FieldNotFound",
        "The target lacks a step of the path of a field that is not its last one.",
        Actor::Owner,
        "Correct the path, or add what is missing to the target.",
        VALUE,
    ),
    well("Found", "The target exists."),
    row(
        "TargetNotFound",
        "The target does not exist. It is written once it exists.",
        Actor::Owner,
        "Create it. To name another object, delete the ScheduledCapacity and create it again: \
         `spec.target` cannot be changed.",
        VALUE,
    ),
    row(
        "TargetNotOwned",
        "An object with the name of the ScheduledCapacity exists that it has not created. It is \
         left alone.",
        Actor::Owner,
        "Rename one of the two, or name the object in `target.name` in place of the template.",
        CREATED,
    ),
    row(
        "TargetDeleting",
        "The target is being deleted. It is not written any more.",
        Actor::Owner,
        "If this is not intended, create it again when it is gone.",
        VALUE,
    ),
    row(
        "TargetPaused",
        "The target has the annotation `cluster.x-k8s.io/paused`. It keeps its values.",
        Actor::Owner,
        "Remove the annotation from the target.",
        WRITTEN,
    ),
    row(
        "Forbidden",
        "The operator may not read the target.",
        Actor::PlatformTeam,
        GRANT,
        PERMIT,
    ),
    row(
        "WriteForbidden",
        "The operator may not write the target.",
        Actor::PlatformTeam,
        GRANT,
        PERMIT,
    ),
    row(
        "WriteRejected",
        "The API server rejected the value.",
        Actor::Owner,
        "Correct what the API server's error names: the value, the path, a quota or a policy.",
        VALUE,
    ),
    row(
        "WriteFailed",
        "The target could not be written.",
        Actor::PlatformTeam,
        "The message has the API server's error. The write is retried.",
        WRITTEN,
    ),
    row(
        "FieldContested",
        "Another client has changed the value again after three writes in ten minutes. It is \
         written when the schedule changes, and at no other time.",
        Actor::Owner,
        ONE_WRITER,
        WRITTEN,
    ),
    row(
        "OtherManager",
        "Another client writes the value too (in `FieldContested`).",
        Actor::Owner,
        ONE_WRITER,
        WRITTEN,
    ),
    well("NotCreated", "Nothing has been written yet."),
    well("NotWritten", "No values have been written yet."),
    well("Waiting", "The target is still in use."),
    well("Drained", "Nothing uses the target any more."),
    well(
        "ScheduledMachine",
        "`nodeName` is the Node of a ScheduledMachine: the inactive values are written.",
    ),
    well(
        "NoScheduledMachine",
        "`nodeName` is the Node of no ScheduledMachine.",
    ),
];

/// The row of a reason of a ScheduledCapacity by its name. `None` for a reason of another
/// controller.
pub(crate) fn of(name: &str) -> Option<&'static ReasonRow> {
    let own = TABLE.iter().find(|row| row.name == name);
    own.or_else(|| Reason::row(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_that_a_remedy_links_has_its_title() {
        let page = include_str!("../../../../docs/how-to/capacity.md");
        for row in TABLE {
            let Some(section) = row.remedy.and_then(|it| it.section) else {
                continue;
            };
            let heading = format!("\n## {}\n", section.title);
            assert!(page.contains(&heading), "{section:?}");
        }
    }
}

//! The reasons of the conditions of a ScheduledCapacity, where those of machines say something else
//! or nothing.

use super::{Actor, Reason, ReasonRow, Remedy, Section};

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

const fn act(
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
pub const TABLE: &[ReasonRow] = &[
    ReasonRow::well("Pending", "Nothing has been written to the target yet."),
    ReasonRow::well("Active", "The active values are written."),
    ReasonRow::well(
        "Inactive",
        "The inactive values are written, and nothing is awaited.",
    ),
    ReasonRow::well(
        "HandingBack",
        "The inactive values are written, and the target is still in use.",
    ),
    act(
        "HandbackTimedOut",
        "The inactive values are written, and the target is in use for longer than \
         `handback.timeout`. Nothing is forced.",
        Actor::Owner,
        "Look for what still uses the target: the message has the number that is awaited. When it \
         is 0, the phase becomes Inactive.",
        AWAITED,
    ),
    act(
        "Terminated",
        "The kill switch is set; the inactive values are written.",
        Actor::Owner,
        "To return to the schedule, set `spec.killSwitch: false`.",
        WRITTEN,
    ),
    act(
        "Held",
        "An override of mode Hold keeps the values as they are.",
        Actor::Owner,
        "It ends automatically. `5spot overrides -n NAMESPACE` lists it; `--end` with its name \
         ends it now.",
        WRITTEN,
    ),
    act(
        "InvalidSpec",
        "The spec violates a rule, or its schedule cannot be evaluated. Nothing is written.",
        Actor::Owner,
        "Correct the field that the message names. `5spot validate` reports everything that a \
         server would reject.",
        VALUE,
    ),
    act(
        "FieldNotFound",
        "The target lacks a step of the path of a field that is not its last one.",
        Actor::Owner,
        "Correct the path, or add what is missing to the target.",
        VALUE,
    ),
    ReasonRow::well("Found", "The target exists."),
    act(
        "TargetNotFound",
        "The target does not exist. It is written once it exists.",
        Actor::Owner,
        "Create it. To name another object, delete the ScheduledCapacity and create it again: \
         `spec.target` cannot be changed.",
        VALUE,
    ),
    act(
        "TargetNotOwned",
        "An object with the name of the ScheduledCapacity exists that it has not created. It is \
         left alone.",
        Actor::Owner,
        "Rename one of the two, or name the object in `target.name` in place of the template.",
        CREATED,
    ),
    act(
        "TargetDeleting",
        "The target is being deleted. It is not written any more.",
        Actor::Owner,
        "If this is not intended, create it again when it is gone.",
        VALUE,
    ),
    act(
        "TargetPaused",
        "The target has the annotation `cluster.x-k8s.io/paused`. It keeps its values.",
        Actor::Owner,
        "Remove the annotation from the target.",
        WRITTEN,
    ),
    act(
        "Forbidden",
        "The operator may not read the target.",
        Actor::PlatformTeam,
        GRANT,
        PERMIT,
    ),
    act(
        "WriteForbidden",
        "The operator may not write the target.",
        Actor::PlatformTeam,
        GRANT,
        PERMIT,
    ),
    act(
        "WriteRejected",
        "The API server rejected the value.",
        Actor::Owner,
        "Correct what the API server's error names: the value, the path, a quota or a policy.",
        VALUE,
    ),
    act(
        "WriteFailed",
        "The target could not be written.",
        Actor::PlatformTeam,
        "The message has the API server's error. The write is retried.",
        WRITTEN,
    ),
    act(
        "FieldContested",
        "Another client has changed the value again after three writes in ten minutes. It is \
         written when the schedule changes, and at no other time.",
        Actor::Owner,
        ONE_WRITER,
        WRITTEN,
    ),
    act(
        "OtherManager",
        "Another client writes the value too (in `FieldContested`).",
        Actor::Owner,
        ONE_WRITER,
        WRITTEN,
    ),
    ReasonRow::well("NotCreated", "Nothing has been written yet."),
    ReasonRow::well("NotWritten", "No values have been written yet."),
    ReasonRow::well("Waiting", "The target is still in use."),
    ReasonRow::well("Drained", "Nothing uses the target any more."),
    ReasonRow::well(
        "NotAwaited",
        "Whether the target is still in use is not awaited: it had the inactive values already, or \
         nobody asks to wait, as while the kill switch is set.",
    ),
    ReasonRow::well(
        "ScheduledMachine",
        "`nodeName` is the Node of a ScheduledMachine: the inactive values are written.",
    ),
    ReasonRow::well(
        "NoScheduledMachine",
        "`nodeName` is the Node of no ScheduledMachine.",
    ),
];

/// The row of a reason of a ScheduledCapacity by its name; of a machine, where a capacity has none
/// of its own. `None` for a reason of another controller.
pub fn row(name: &str) -> Option<&'static ReasonRow> {
    let own = TABLE.iter().find(|row| row.name == name);
    own.or_else(|| Reason::row(name))
}

//! The schema of the status.

use serde_json::{Value, json};

use super::{MAX_LABEL, MAX_NAME, MAX_SHORT, list_map, object, string, taint};
use crate::scheduled_machine::MOST_APPLIED_TAINTS;
use crate::status::{LONGEST_UID, Phase, ShutdownReason};

/// Kubernetes' bound on the message of a condition.
const MAX_MESSAGE: u32 = 32_768;

pub(super) fn status() -> Value {
    let bootstrap =
        "The bootstrap object, from just before it is created until it is gone.";
    let infrastructure =
        "The infrastructure object, from just before it is created until it is gone.";
    object(
        "What was seen and decided.",
        &[],
        [
            ("phase", phase()),
            ("message", string("One sentence for people.", MAX_MESSAGE)),
            ("inSchedule", in_schedule()),
            (
                "observedGeneration",
                generation("The generation of the spec that was acted on."),
            ),
            ("conditions", conditions()),
            ("machineRef", reference("The Machine, while it exists.")),
            ("bootstrapRef", reference(bootstrap)),
            ("infrastructureRef", reference(infrastructure)),
            ("specHash", spec_hash()),
            ("nodeRef", node_reference()),
            (
                "providerID",
                string("The provider's identifier of the machine.", 2048),
            ),
            ("shutdown", shutdown()),
            ("appliedNodeTaints", applied_node_taints()),
            (
                "lastScheduledTime",
                instant("When a Machine was last created."),
            ),
            (
                "nextActivation",
                instant("The next opening of the schedule; absent while open."),
            ),
            (
                "nextCleanup",
                instant(
                    "When a leaving machine is removed at the latest; while it is wanted, when \
                     the window closes.",
                ),
            ),
            ("nextTransition", next_transition()),
        ],
    )
}

fn phase() -> Value {
    json!({
        "type": "string",
        "description": "A summary for people; nothing is decided from it.",
        "enum": Phase::ALL.map(Phase::as_str),
        "maxLength": MAX_SHORT,
    })
}

fn in_schedule() -> Value {
    json!({"type": "boolean", "description": "Whether the schedule wants the machine."})
}

fn generation(description: &str) -> Value {
    json!({"type": "integer", "format": "int64", "description": description, "minimum": 0})
}

fn instant(description: &str) -> Value {
    json!({
        "type": "string",
        "format": "date-time",
        "description": description,
        "maxLength": MAX_SHORT,
    })
}

fn next_transition() -> Value {
    instant(
        "The next change of the schedule, or the deadline of a leaving machine, whichever comes \
         first.",
    )
}

fn spec_hash() -> Value {
    string(
        "The hash of bootstrapSpec, infrastructureSpec and machineTemplate as they were when the \
         machine was created.",
        MAX_SHORT,
    )
}

fn applied_node_taints() -> Value {
    list_map(
        "The taints that 5-Spot has put, or is about to put, on the Node: it changes and removes only \
         what is named here and in the record on the Node.",
        MOST_APPLIED_TAINTS,
        &["key", "effect"],
        taint(),
    )
}

fn conditions() -> Value {
    let condition = object(
        "One aspect of the state.",
        &["type", "status", "reason", "message", "lastTransitionTime"],
        [
            ("type", string("What it is about.", 316)),
            (
                "status",
                json!({
                    "type": "string",
                    "description": "Whether it holds.",
                    "enum": ["True", "False", "Unknown"],
                    "maxLength": MAX_SHORT,
                }),
            ),
            (
                "observedGeneration",
                generation("The generation of the spec that it is about."),
            ),
            (
                "lastTransitionTime",
                instant("When the status last changed."),
            ),
            ("reason", reason()),
            ("message", string("Why, in a sentence.", MAX_MESSAGE)),
        ],
    );
    list_map("Details, one for each type.", 32, &["type"], condition)
}

/// The format is that of Kubernetes' own conditions.
fn reason() -> Value {
    json!({
        "type": "string",
        "description": "Why, in one CamelCase word.",
        "minLength": 1,
        "maxLength": 1024,
        "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
    })
}

fn reference(description: &str) -> Value {
    object(
        description,
        &["apiVersion", "kind", "name"],
        [
            ("apiVersion", string("Group and version.", MAX_NAME)),
            ("kind", string("Kind.", MAX_NAME)),
            ("name", string("Name.", MAX_NAME)),
            ("namespace", string("Namespace.", MAX_LABEL)),
            (
                "uid",
                string("Uid; absent until the object exists.", LONGEST_UID),
            ),
        ],
    )
}

fn node_reference() -> Value {
    object(
        "The Node, once the Machine has one.",
        &["apiVersion", "kind", "name"],
        [
            ("apiVersion", string("Always v1.", MAX_NAME)),
            ("kind", string("Always Node.", MAX_NAME)),
            ("name", string("Name.", MAX_NAME)),
            (
                "uid",
                string("Uid; a Node of another uid is another Node.", LONGEST_UID),
            ),
        ],
    )
}

fn shutdown() -> Value {
    object(
        "The commitment to leave: written before anything is taken away, gone when all is.",
        &["machineUID", "startedAt", "deadline", "reason"],
        [
            (
                "machineUID",
                string("The Machine that leaves.", LONGEST_UID),
            ),
            ("startedAt", instant("When it began.")),
            (
                "deadline",
                instant("When the Machine is deleted at the latest."),
            ),
            (
                "reason",
                json!({
                    "type": "string",
                    "description": "Why the machine leaves.",
                    "enum": ShutdownReason::ALL.map(ShutdownReason::as_str),
                    "maxLength": MAX_SHORT,
                }),
            ),
        ],
    )
}

//! The schema of the status.

use serde_json::{Value, json};

use super::usage::{last_provisioning, override_in_force, usage};
use super::{MAX_LABEL, MAX_NAME, MAX_SHORT, list_map, object, string, taint, with};
use crate::scheduled_machine::MOST_APPLIED_TAINTS;
use crate::status::{LONGEST_UID, Phase, ShutdownReason};

/// Kubernetes' bound on the message of a condition.
const MAX_MESSAGE: u32 = 32_768;

pub(super) fn status() -> Value {
    let bootstrap =
        "The bootstrap object, from just before it is created until it is deleted.";
    let infrastructure =
        "The infrastructure object, from just before it is created until it is deleted.";
    let status = object(
        "The observed state.",
        &[],
        [
            ("phase", phase()),
            ("message", string("The state in one sentence.", MAX_MESSAGE)),
            ("inSchedule", in_schedule()),
            (
                "observedGeneration",
                generation("The generation of the spec that was last reconciled.", -1),
            ),
            ("conditions", conditions("ScheduledMachine")),
            ("machineRef", reference("The Machine, while it exists.")),
            ("bootstrapRef", reference(bootstrap)),
            ("infrastructureRef", reference(infrastructure)),
            ("specHash", spec_hash()),
            ("nodeRef", node_reference()),
            (
                "providerID",
                string("The provider ID of the machine.", 2048),
            ),
            ("shutdown", shutdown()),
            ("appliedNodeTaints", applied_node_taints()),
            (
                "lastScheduledTime",
                instant("When a Machine was last created."),
            ),
            (
                "nextActivation",
                instant(
                    "When the machine is created for the next window; absent while it is needed.",
                ),
            ),
            (
                "nextCleanup",
                instant(
                    "During shutdown, the deadline for deleting the Machine; while the machine is \
                     needed, the start of its shutdown.",
                ),
            ),
            ("nextTransition", next_transition()),
            ("override", override_in_force()),
            ("lastProvisioning", last_provisioning()),
            ("usage", usage()),
        ],
    );
    // So that an object that no operator has seen is not taken for one that is up to date.
    with(status, "default", json!({"observedGeneration": -1}))
}

fn phase() -> Value {
    json!({
        "type": "string",
        "description": "A summary of the state. It is output only and never read by the operator.",
        "enum": Phase::ALL.map(Phase::as_str),
        "maxLength": MAX_SHORT,
    })
}

fn in_schedule() -> Value {
    json!({"type": "boolean", "description": "Whether the schedule is active now."})
}

pub(super) fn generation(description: &str, minimum: i64) -> Value {
    json!({
        "type": "integer",
        "format": "int64",
        "description": description,
        "minimum": minimum,
    })
}

pub(super) fn instant(description: &str) -> Value {
    json!({
        "type": "string",
        "format": "date-time",
        "description": description,
        "maxLength": MAX_SHORT,
    })
}

fn next_transition() -> Value {
    instant("The earlier of nextActivation and nextCleanup.")
}

fn spec_hash() -> Value {
    string(
        "The hash of bootstrapSpec, infrastructureSpec and machineTemplate at the creation of \
         the machine.",
        MAX_SHORT,
    )
}

fn applied_node_taints() -> Value {
    list_map(
        "The taints that 5-Spot has applied to the Node, or is about to apply. It changes and \
         removes only taints that are listed here and in the annotation on the Node.",
        MOST_APPLIED_TAINTS,
        &["key", "effect"],
        taint(),
    )
}

pub(super) fn conditions(kind: &str) -> Value {
    let condition = object(
        &format!("A condition of the {kind}."),
        &["type", "status", "reason", "message", "lastTransitionTime"],
        [
            ("type", string("The type of the condition.", 316)),
            (
                "status",
                json!({
                    "type": "string",
                    "description": "The status of the condition.",
                    "enum": ["True", "False", "Unknown"],
                    "maxLength": MAX_SHORT,
                }),
            ),
            (
                "observedGeneration",
                generation(
                    "The generation of the spec that the condition refers to.",
                    0,
                ),
            ),
            (
                "lastTransitionTime",
                instant("When the status last changed."),
            ),
            ("reason", reason()),
            ("message", string("The reason, in a sentence.", MAX_MESSAGE)),
        ],
    );
    list_map("Conditions, one per type.", 32, &["type"], condition)
}

/// The format is that of Kubernetes' own conditions.
fn reason() -> Value {
    json!({
        "type": "string",
        "description": "The reason, in one CamelCase word.",
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
                string("UID; absent until the object exists.", LONGEST_UID),
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
                string(
                    "UID; a Node with another UID is a different Node.",
                    LONGEST_UID,
                ),
            ),
        ],
    )
}

fn shutdown() -> Value {
    object(
        "The shutdown in progress: recorded before anything is removed, cleared when everything \
         is removed.",
        &["machineUID", "startedAt", "deadline", "reason"],
        [
            (
                "machineUID",
                string("UID of the Machine that is shut down.", LONGEST_UID),
            ),
            ("startedAt", instant("When the shutdown started.")),
            (
                "deadline",
                instant("The latest time at which the Machine is deleted."),
            ),
            (
                "reason",
                json!({
                    "type": "string",
                    "description": "Why the machine is shut down.",
                    "enum": ShutdownReason::ALL.map(ShutdownReason::as_str),
                    "maxLength": MAX_SHORT,
                }),
            ),
            (
                "windowEnd",
                instant("The end of the window by which the machine leaves, if it does."),
            ),
        ],
    )
}

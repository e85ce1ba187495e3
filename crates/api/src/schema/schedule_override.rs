//! The schema of ScheduleOverride.

use serde_json::{Value, json};

use super::status::{conditions, generation};
use super::{MAX_LABEL, MAX_NAME, MAX_SHORT, choice, list, object, string, with};
use crate::schedule_override::OverrideMode;

/// The longest key of a label: a DNS subdomain, `/` and a name.
const MAX_KEY: u32 = 317;

/// The schema of the whole object.
pub(crate) fn schedule_override() -> Value {
    super::whole(
        "A change of the schedule of one or several ScheduledMachines for a limited time.",
        [("spec", spec()), ("status", status())],
    )
}

fn spec() -> Value {
    let target = object(
        "The ScheduledMachine, in the same namespace.",
        &["name"],
        [("name", string("Name of the ScheduledMachine.", MAX_NAME))],
    );
    object(
        "The desired override. targetRef, selector and mode cannot be changed.",
        &["mode", "endTime"],
        [
            ("targetRef", target),
            ("selector", selector()),
            (
                "mode",
                choice(
                    "Run: the machine runs. Stop: it does not run. Hold: nothing is created or \
                     shut down.",
                    &OverrideMode::ALL.map(OverrideMode::as_str),
                ),
            ),
            (
                "startTime",
                string(
                    "When the override starts, RFC 3339; immediately if absent.",
                    MAX_SHORT,
                ),
            ),
            (
                "endTime",
                string(
                    "When the override ends, RFC 3339, at most 14 days after its creation.",
                    MAX_SHORT,
                ),
            ),
            ("reason", string("Why, for people.", 256)),
        ],
    )
}

fn selector() -> Value {
    let expression = object(
        "A requirement on the values of one label.",
        &["key", "operator"],
        [
            ("key", string("Key of the label.", MAX_KEY)),
            (
                "operator",
                choice(
                    "How the label is compared with the values.",
                    &["In", "NotIn", "Exists", "DoesNotExist"],
                ),
            ),
            (
                "values",
                list(
                    "The values, for In and NotIn.",
                    32,
                    json!({"type": "string", "maxLength": MAX_LABEL}),
                ),
            ),
        ],
    );
    let selector = object(
        "Selects ScheduledMachines of the same namespace by their labels, instead of targetRef.",
        &[],
        [
            (
                "matchLabels",
                json!({
                    "type": "object",
                    "description": "Labels that a ScheduledMachine must have.",
                    "maxProperties": 32,
                    "additionalProperties": {"type": "string", "maxLength": MAX_LABEL},
                }),
            ),
            (
                "matchExpressions",
                list(
                    "Requirements that the labels must meet, all of them.",
                    32,
                    expression,
                ),
            ),
        ],
    );
    with(selector, "x-kubernetes-map-type", json!("atomic"))
}

fn status() -> Value {
    let status = object(
        "The observed state.",
        &[],
        [
            (
                "observedGeneration",
                generation("The generation that was last reconciled.", -1),
            ),
            (
                "matchedMachines",
                json!({
                    "type": "integer",
                    "format": "int32",
                    "description": "How many ScheduledMachines the override is about.",
                    "minimum": 0,
                }),
            ),
            ("conditions", conditions("ScheduleOverride")),
        ],
    );
    with(status, "default", json!({"observedGeneration": -1}))
}

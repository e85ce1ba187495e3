//! Schemas of the fields whose types are Kubernetes' own or a provider's.

use schemars::{Schema, SchemaGenerator, json_schema};

use super::bound::{MAX_LABEL, MAX_MESSAGE, MAX_SHORT};

/// The longest key of a label: a DNS subdomain, `/` and a name.
const MAX_KEY: u32 = 317;

/// A provider's spec.
pub(crate) fn passed_on(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

pub(crate) fn conditions_of_scheduled_machine(_: &mut SchemaGenerator) -> Schema {
    conditions("A condition of the ScheduledMachine.")
}

pub(crate) fn conditions_of_schedule_override(_: &mut SchemaGenerator) -> Schema {
    conditions("A condition of the ScheduleOverride.")
}

pub(crate) fn conditions_of_scheduled_capacity(_: &mut SchemaGenerator) -> Schema {
    conditions("A condition of the ScheduledCapacity.")
}

pub(crate) fn conditions_of_scheduled_machine_set(_: &mut SchemaGenerator) -> Schema {
    conditions("A condition of the ScheduledMachineSet.")
}

pub(crate) fn conditions_of_spot_schedule(_: &mut SchemaGenerator) -> Schema {
    conditions("A condition of the schedule.")
}

/// An integer, a boolean or a string: no schema of Kubernetes has a choice of types, so that a
/// rule says so.
pub(crate) fn scalar(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"x-kubernetes-preserve-unknown-fields": true})
}

/// The bounds and the format of a reason are those of Kubernetes' own conditions.
fn conditions(description: &str) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 32,
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": description,
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {
                    "type": "string",
                    "description": "The type of the condition.",
                    "maxLength": 316,
                },
                "status": {
                    "type": "string",
                    "description": "The status of the condition.",
                    "enum": ["True", "False", "Unknown"],
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "description": "The generation of the spec that the condition refers to.",
                    "minimum": 0,
                },
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status last changed.",
                },
                "reason": {
                    "type": "string",
                    "description": "The reason, in one CamelCase word.",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "type": "string",
                    "description": "The reason, in a sentence.",
                    "maxLength": MAX_MESSAGE,
                },
            },
        },
    })
}

/// A LabelSelector of ScheduledMachines, with bounds.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    selector_of("Labels that a ScheduledMachine must have.")
}

/// The same of namespaces.
pub(crate) fn namespace_selector(_: &mut SchemaGenerator) -> Schema {
    selector_of("Labels that a namespace must have.")
}

fn selector_of(labels: &str) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "matchLabels": {
                "type": "object",
                "description": labels,
                "maxProperties": 32,
                "additionalProperties": {"type": "string", "maxLength": MAX_LABEL},
            },
            "matchExpressions": {
                "type": "array",
                "description": "Requirements that the labels must meet, all of them.",
                "maxItems": 32,
                "items": {
                    "type": "object",
                    "description": "A requirement on the values of one label.",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {
                            "type": "string",
                            "description": "Key of the label.",
                            "maxLength": MAX_KEY,
                        },
                        "operator": {
                            "type": "string",
                            "description": "How the label is compared with the values.",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                            "maxLength": MAX_SHORT,
                        },
                        "values": {
                            "type": "array",
                            "description": "The values, for In and NotIn.",
                            "maxItems": 32,
                            "items": {"type": "string", "maxLength": MAX_LABEL},
                        },
                    },
                },
            },
        },
        "x-kubernetes-map-type": "atomic",
    })
}

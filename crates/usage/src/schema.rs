//! The JSON Schema of the report.

use fivespot_api::verdict::State;
use serde_json::{Value, json};

/// The path of the schema, below `docs/reference`.
pub const FILE: &str = "report.schema.json";

/// The JSON Schema (2020-12) of `5spot report -o json`. Cannot fail.
pub fn json() -> Value {
    let total = total();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "5spot report",
        "description": "The usage of a month, from status.usage.",
        "type": "object",
        "additionalProperties": false,
        "required": ["month", "startTime", "endTime", "items", "total"],
        "properties": {
            "month": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$", "description": "The month, in UTC."},
            "startTime": instant("The start of the month."),
            "endTime": instant("The end of the month, or the current time if it is earlier."),
            "isForecast": {"type": "boolean", "description": "Whether it is what the schedules plan; absent if it is what was used."},
            "currency": text("The currency of the costs; absent without rates."),
            "label": text("The label key of byLabel."),
            "byLabel": {
                "type": "array",
                "description": "The figures for each value of the label.",
                "items": extended(&total, &[("value", text("The value; absent for machines without the label."))], &[]),
            },
            "items": {"type": "array", "description": "The machines, by namespace and name.", "items": item()},
            "total": total,
            "capacities": {"type": "array", "description": "The ScheduledCapacities, by namespace and name; absent without any.", "items": capacity()},
            "withoutAccount": {
                "type": "array",
                "description": "Machines without usage data for the month, as namespace/name.",
                "items": {"type": "string"},
            },
        },
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn instant(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

fn count(description: &str) -> Value {
    json!({"type": "integer", "minimum": 0, "description": description})
}

/// The properties of [`Figures`](crate::Figures).
fn figures() -> Value {
    let properties = json!({
        "wantedSeconds": count("Seconds in which the schedule wanted the machine, except while it was disabled, killed or kept from starting by an override."),
        "activeSeconds": count("Seconds with a Ready Node."),
        "provisioningSeconds": count("Seconds in which objects of the machine existed without a Ready Node."),
        "lateSeconds": count("Seconds in which the machine was wanted without a Ready Node."),
        "auditedSeconds": count("Seconds in which the machine was wanted in audit mode, and would have been used."),
        "usedSeconds": count("Seconds in which a machine existed, active and provisioning, or would have in audit mode."),
        "alwaysOnSeconds": count("Seconds of a machine that is always on, over the same time."),
        "reclaims": count("Number of emergency reclaims."),
    });
    let required: Vec<_> = properties
        .as_object()
        .into_iter()
        .flat_map(|it| it.keys())
        .collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

fn item() -> Value {
    extended(
        &figures(),
        &[
            ("namespace", text("Namespace of the ScheduledMachine.")),
            ("name", text("Name of the ScheduledMachine.")),
            (
                "labelValue",
                text("The value of the label; absent without the label."),
            ),
            ("startTime", instant("The start of the counted time.")),
            (
                "rate",
                text("The name of the matching rate; absent if no rate matches."),
            ),
            ("costs", costs()),
            ("verdict", verdict()),
        ],
        &["namespace", "name", "startTime"],
    )
}

/// The properties of [`Capacity`](crate::Capacity).
fn capacity() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["namespace", "name", "target", "startTime", "values"],
        "properties": {
            "namespace": text("Namespace of the ScheduledCapacity."),
            "name": text("Name of the ScheduledCapacity."),
            "target": text("Kind and name of the target."),
            "startTime": instant("The start of the counted time."),
            "values": {
                "type": "array",
                "description": "The active values, then the inactive ones.",
                "minItems": 2,
                "maxItems": 2,
                "items": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["values", "seconds"],
                    "properties": {
                        "values": {"type": "object", "description": "The values by their fields."},
                        "seconds": count("For how many seconds the schedule of today plans them."),
                    },
                },
            },
            "verdict": verdict(),
        },
    })
}

/// The properties of [`Verdict`](fivespot_api::verdict::Verdict).
fn verdict() -> Value {
    let states = State::ALL.map(State::as_str);
    json!({
        "type": "object",
        "description": "What the status says at present, as in the output of `5spot status`; absent in a forecast.",
        "additionalProperties": false,
        "required": ["state", "cause", "actor", "isStale"],
        "properties": {
            "state": {"type": "string", "enum": states, "description": "The state."},
            "since": instant("Since when, as far as the status says."),
            "reason": text("The reason of the condition that decides; absent if no condition does."),
            "cause": text("The operator's message, or why there is none."),
            "remedy": text("What to do; absent if there is nothing to do."),
            "page": text("The page with more details, below docs/."),
            "actor": text("Who can act."),
            "isStale": {"type": "boolean", "description": "Whether the status may be out of date."},
        },
    })
}

fn total() -> Value {
    extended(
        &figures(),
        &[
            ("machines", count("Number of machines.")),
            (
                "withoutRate",
                count(
                    "Number of machines without a rate, which the costs do not include.",
                ),
            ),
            ("costs", costs()),
        ],
        &["machines", "withoutRate"],
    )
}

fn costs() -> Value {
    let number =
        |description: &str| json!({"type": "number", "description": description});
    let amounts = |description: &str| {
        json!({
            "type": "object",
            "description": description,
            "additionalProperties": false,
            "required": ["money", "kilowattHours", "co2Kilograms"],
            "properties": {
                "money": number("In the currency of the rates, rounded to cents."),
                "kilowattHours": number("Energy, rounded to watt-hours."),
                "co2Kilograms": number("Carbon dioxide, rounded to grams."),
            },
        })
    };
    json!({
        "type": "object",
        "description": "The costs; absent without a rate.",
        "additionalProperties": false,
        "required": ["used", "alwaysOn", "saved"],
        "properties": {
            "used": amounts("Of the time in which a machine existed."),
            "alwaysOn": amounts("Of a machine that is never shut down."),
            "saved": amounts("The difference between alwaysOn and used."),
        },
    })
}

/// An object schema with additional properties, some of them required.
fn extended(schema: &Value, more: &[(&str, Value)], required: &[&str]) -> Value {
    let mut schema = schema.clone();
    for (name, property) in more {
        schema["properties"][*name] = property.clone();
    }
    if let Some(all) = schema["required"].as_array_mut() {
        all.extend(required.iter().map(|name| json!(name)));
    }
    schema
}

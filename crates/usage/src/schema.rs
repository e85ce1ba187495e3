//! The JSON Schema of the report.

use serde_json::{Value, json};

/// Where the schema is, below `docs/reference`.
pub const FILE: &str = "report.schema.json";

/// The JSON Schema (2020-12) of `5spot report -o json`. Cannot fail.
pub fn json() -> Value {
    let total = total();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "5spot report",
        "description": "The figures of a month, from the accounts in status.usage.",
        "type": "object",
        "additionalProperties": false,
        "required": ["month", "startTime", "endTime", "items", "total"],
        "properties": {
            "month": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$", "description": "The month, of UTC."},
            "startTime": instant("The first instant of the month."),
            "endTime": instant("Until when it is counted: the end of the month, or the present."),
            "currency": text("In what money is; absent without rates."),
            "label": text("The key of the label of byLabel."),
            "byLabel": {
                "type": "array",
                "description": "The figures by values of the label.",
                "items": extended(&total, &[("value", text("The value; absent for machines without the label."))], &[]),
            },
            "items": {"type": "array", "description": "The machines, by namespace and name.", "items": item()},
            "total": total,
            "withoutAccount": {
                "type": "array",
                "description": "Machines that have no account of the month, as namespace/name.",
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
        "wantedSeconds": count("In which the schedule wanted the machine."),
        "activeSeconds": count("With a Ready Node."),
        "provisioningSeconds": count("With a machine on its way."),
        "lateSeconds": count("In which the machine was wanted without a Ready Node."),
        "usedSeconds": count("In which there was a machine: active and provisioning."),
        "alwaysOnSeconds": count("Of a machine that is never switched off, over the same time."),
        "reclaims": count("How often the owner of the host reclaimed it."),
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
            ("namespace", text("Its namespace.")),
            ("name", text("Its name.")),
            (
                "labelValue",
                text("The value of its label; absent without one."),
            ),
            ("startTime", instant("From when on it is counted.")),
            (
                "rate",
                text("The name of its rate; absent where no rate matches."),
            ),
            ("costs", costs()),
        ],
        &["namespace", "name", "startTime"],
    )
}

fn total() -> Value {
    extended(
        &figures(),
        &[
            ("machines", count("How many machines.")),
            (
                "withoutRate",
                count("How many of them have no rate, so that costs are without them."),
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
                "money": number("In the currency of the rates, to cents."),
                "kilowattHours": number("Energy, to watt-hours."),
                "co2Kilograms": number("Carbon dioxide, to grams."),
            },
        })
    };
    json!({
        "type": "object",
        "description": "What it costs; absent without a rate.",
        "additionalProperties": false,
        "required": ["used", "alwaysOn", "saved"],
        "properties": {
            "used": amounts("Of the time in which there was a machine."),
            "alwaysOn": amounts("Of a machine that is never switched off."),
            "saved": amounts("The difference."),
        },
    })
}

/// An object schema with more properties, some of them required.
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

//! The structural schema of the CRDs, generated from the types.
//!
//! `schemars` supplies names, types, optionality, defaults, bounds and comments of the fields.
//! This module adds the form that Kubernetes requires, and the schemas of the fields with
//! foreign types. Why: `internals/decisions/0172-one-description-of-the-api.md`.
//!
//! Every string and every list is bounded, so that every rule has a finite cost; the exceptions
//! are the passed-on provider specs and the keys of maps. Fields of the rules 1 to 13 have no
//! pattern, no minimum length and no enum, and room for at least 64 characters, so that a user
//! reads the rule's message and not the schema's.

mod bound;
mod foreign;
mod structural;
pub(crate) mod whole;

use schemars::Schema;
use serde_json::{Value, json};

pub(crate) use bound::{MAX_LABEL, MAX_MESSAGE, MAX_NAME, MAX_SHORT, NO_GENERATION};
pub(crate) use foreign::{
    conditions_of_schedule_override, conditions_of_scheduled_capacity,
    conditions_of_scheduled_machine, conditions_of_scheduled_machine_set,
    conditions_of_spot_schedule, label_selector, namespace_selector, passed_on, scalar,
};

/// Drops the defaults of an object's fields: a field that is absent from a status is unknown.
pub(crate) fn without_defaults(schema: &mut Schema) {
    for (_, field) in properties(schema) {
        if let Some(field) = field.as_object_mut() {
            field.remove("default");
        }
    }
}

/// Bounds a map of strings.
pub(crate) fn map<const ENTRIES: u32, const VALUE: u32>(schema: &mut Schema) {
    schema.insert("maxProperties".to_owned(), json!(ENTRIES));
    if let Some(values) = schema.get_mut("additionalProperties") {
        values["maxLength"] = json!(VALUE);
    }
}

/// Completes the description of a field of an object.
pub(crate) fn append_to_description(schema: &mut Schema, field: &str, text: &str) {
    for (_, schema) in properties(schema).filter(|(name, _)| *name == field) {
        let written = schema["description"].as_str().unwrap_or_default();
        schema["description"] = json!(format!("{written}{text}"));
    }
}

fn properties(schema: &mut Schema) -> impl Iterator<Item = (&String, &mut Value)> {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flatten()
}

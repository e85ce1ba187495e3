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

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::schedule_calendar::ScheduleCalendarSpec;
use crate::schedule_override::{ScheduleOverrideSpec, ScheduleOverrideStatus};
use crate::scheduled_capacity::{ScheduledCapacitySpec, ScheduledCapacityStatus};
use crate::scheduled_machine::{ScheduleSpec, ScheduledMachineSpec};
use crate::scheduled_machine_class::ScheduledMachineClassSpec;
use crate::scheduled_machine_set::{ScheduledMachineSetSpec, ScheduledMachineSetStatus};
use crate::spot_schedule::{CapitalMarketsScheduleSpec, SpotScheduleStatus};
use crate::status::ScheduledMachineStatus;

pub(crate) use bound::{MAX_LABEL, MAX_MESSAGE, MAX_NAME, MAX_SHORT, NO_GENERATION};
pub(crate) use foreign::{
    conditions_of_schedule_override, conditions_of_scheduled_capacity,
    conditions_of_scheduled_machine, conditions_of_scheduled_machine_set,
    conditions_of_spot_schedule, label_selector, namespace_selector, passed_on, scalar,
};

/// The schema of a whole ScheduledMachine.
pub(crate) fn scheduled_machine() -> Value {
    let schema = whole::<ScheduledMachineSpec>(
        "A machine that is added to a Cluster API cluster and removed from it on a schedule.",
    );
    with_status::<ScheduledMachineStatus>(schema)
}

/// The schema of a whole ScheduleOverride.
pub(crate) fn schedule_override() -> Value {
    let schema = whole::<ScheduleOverrideSpec>(
        "A change of the schedule of one or several ScheduledMachines for a limited time.",
    );
    with_status::<ScheduleOverrideStatus>(schema)
}

/// The schema of a whole ScheduleCalendar.
pub(crate) fn schedule_calendar() -> Value {
    whole::<ScheduleCalendarSpec>(
        "Dates to which the exceptions of schedules in the same namespace refer.",
    )
}

/// The schema of a whole TimeBasedSpotSchedule.
pub(crate) fn time_based_spot_schedule() -> Value {
    let schema = whole::<ScheduleSpec>(
        "A schedule of days and hours, cron or windows that many ScheduledMachines share.",
    );
    with_status::<SpotScheduleStatus>(schema)
}

/// The schema of a whole CapitalMarketsSchedule.
pub(crate) fn capital_markets_schedule() -> Value {
    let schema = whole::<CapitalMarketsScheduleSpec>(
        "The sessions of a market with its holidays and early closes, for many ScheduledMachines.",
    );
    with_status::<SpotScheduleStatus>(schema)
}

/// The schema of a whole ScheduledCapacity.
pub(crate) fn scheduled_capacity() -> Value {
    let schema = whole::<ScheduledCapacitySpec>(
        "A value of another object, such as the replicas of a Deployment, that follows a schedule.",
    );
    with_status::<ScheduledCapacityStatus>(schema)
}

/// The schema of a whole ScheduledMachineClass.
pub(crate) fn scheduled_machine_class() -> Value {
    whole::<ScheduledMachineClassSpec>(
        "What a platform team has prepared: ScheduledMachines are made from it by its name.",
    )
}

/// The schema of a whole ScheduledMachineSet.
pub(crate) fn scheduled_machine_set() -> Value {
    let schema = whole::<ScheduledMachineSetSpec>(
        "A number of ScheduledMachines that are alike, each made from the same class.",
    );
    with_status::<ScheduledMachineSetStatus>(schema)
}

/// The schema of a whole object with that spec.
fn whole<Spec: JsonSchema>(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {
                "type": "string",
                "description": "Group and version of this object.",
                "maxLength": MAX_NAME,
            },
            "kind": {
                "type": "string",
                "description": "Kind of this object.",
                "maxLength": MAX_LABEL,
            },
            "metadata": {"type": "object"},
            "spec": of_type::<Spec>(),
        },
    })
}

fn with_status<Status: JsonSchema>(mut whole: Value) -> Value {
    let mut status = of_type::<Status>();
    status["default"] = json!({"observedGeneration": NO_GENERATION});
    whole["properties"]["status"] = status;
    whole
}

/// The structural schema of a type.
fn of_type<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    structural::of(schema.to_value())
}

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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::scheduled_machine;
    use crate::resource::RESOURCES;
    use crate::rules::RULES;

    /// Every node of the schema with its path, except those passed on unchanged.
    fn nodes<'s>(schema: &'s Value, path: &str, found: &mut Vec<(String, &'s Value)>) {
        found.push((path.to_owned(), schema));
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let dot = if path.is_empty() { "" } else { "." };
            nodes(property, &format!("{path}{dot}{name}"), found);
        }
        if let Some(items) = schema.get("items") {
            nodes(items, &format!("{path}[]"), found);
        }
        if let Some(values) = schema.get("additionalProperties") {
            nodes(values, &format!("{path}{{}}"), found);
        }
    }

    #[test]
    fn every_string_list_and_map_is_bounded_and_every_field_has_a_description() {
        let roots = RESOURCES.each_ref().map(|resource| (resource.schema)());
        let mut all = Vec::new();
        for root in &roots {
            nodes(root, "", &mut all);
        }
        for (path, node) in &all {
            let Some(of_type) = node["type"].as_str() else {
                // A value of several types; a rule bounds it.
                assert_eq!(node["x-kubernetes-preserve-unknown-fields"], true, "{path}");
                continue;
            };
            let bound = match of_type {
                "string" => "maxLength",
                "array" => "maxItems",
                _ if node.get("additionalProperties").is_some() => "maxProperties",
                _ => "type",
            };
            assert!(node.get(bound).is_some(), "{path} has no {bound}");
            let is_named =
                !path.ends_with(']') && !path.ends_with('}') && path != "metadata";
            assert!(!is_named || node.get("description").is_some(), "{path}");
        }
    }

    #[test]
    fn fields_of_rules_1_to_13_have_no_pattern_enum_or_short_bound() {
        let root = scheduled_machine();
        let mut all = Vec::new();
        nodes(&root, "", &mut all);
        for rule in &RULES[..13] {
            let (_, node) = all.iter().find(|(path, _)| path == rule.path).unwrap();
            for keyword in ["pattern", "minLength", "enum"] {
                assert!(node.get(keyword).is_none(), "{} has a {keyword}", rule.path);
            }
            let most = node["maxLength"].as_u64().unwrap_or(64);
            assert!(most >= 64, "{}", rule.path);
        }
    }
}

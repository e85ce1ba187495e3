//! The schema of the whole objects of each kind.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::structural;
use super::{MAX_LABEL, MAX_NAME, NO_GENERATION};
use crate::schedule_calendar::ScheduleCalendarSpec;
use crate::schedule_override::{ScheduleOverrideSpec, ScheduleOverrideStatus};
use crate::scheduled_capacity::{ScheduledCapacitySpec, ScheduledCapacityStatus};
use crate::scheduled_machine::{ScheduleSpec, ScheduledMachineSpec};
use crate::scheduled_machine_class::ScheduledMachineClassSpec;
use crate::scheduled_machine_set::{ScheduledMachineSetSpec, ScheduledMachineSetStatus};
use crate::spot_schedule::{CapitalMarketsScheduleSpec, SpotScheduleStatus};
use crate::status::ScheduledMachineStatus;

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

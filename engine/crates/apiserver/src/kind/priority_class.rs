//! PriorityClasses. The plugin Priority sets the priority of pods from them.

use jiff::Timestamp;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use super::field::Field;
use super::{BuiltinKind, Write, column, rule};
use crate::meta;
use crate::resource::{Column, Resource};

/// `priorityclasses` of `scheduling.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct PriorityClass;

/// The system classes with value and description.
pub(crate) const SYSTEM_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to \
         another node if necessary.",
    ),
];
/// The prefix of the names of those classes.
const SYSTEM_PREFIX: &str = "system-";
/// The maximum value of other classes.
const MAX_USER_PRIORITY: i64 = 1_000_000_000;

const VALUE: &str = "value represents the integer value of this priority class. This is the \
     actual priority that pods receive when they have the name of this class in their pod spec.";
const GLOBAL_DEFAULT: &str = "globalDefault specifies whether this PriorityClass should be \
     considered as the default priority for pods that do not have any priority class. Only one \
     PriorityClass can be marked as `globalDefault`. However, if more than one PriorityClasses \
     exists with their `globalDefault` field set to true, the smallest value of such global \
     default PriorityClasses will be used as the default priority.";
const PREEMPTION: &str = "preemptionPolicy is the Policy for preempting pods with lower \
     priority. One of Never, PreemptLowerPriority. Defaults to PreemptLowerPriority if unset.";

impl BuiltinKind for PriorityClass {
    fn resource(&self) -> Resource {
        Resource::new(
            "scheduling.k8s.io",
            "v1",
            "PriorityClass",
            "priorityclasses",
        )
        .cluster_scoped()
        .without_generation()
        .with_short_names(&["pc"])
        .with_columns(vec![
            Column::new("Value", "integer", VALUE),
            Column::new("Global-Default", "boolean", GLOBAL_DEFAULT),
            Column::age(),
            Column::new("PreemptionPolicy", "string", PREEMPTION),
        ])
    }

    fn default(&self, object: &mut Value) {
        let fields = meta::fields(object);
        let policy = || json!("PreemptLowerPriority");
        fields.entry("preemptionPolicy").or_insert_with(policy);
    }

    fn prepare_create(&self, object: &mut Value) {
        meta::set(object, "generation", 1);
    }

    fn validate(&self, write: &Write<'_>) -> Vec<FieldError> {
        match write.old {
            None => create_errors(write.object),
            Some(old) => update_errors(write.object, old),
        }
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            value(object).into(),
            object["globalDefault"].as_bool().unwrap_or_default().into(),
            column::age(object, now),
            column::string(&object["preemptionPolicy"]),
        ]
    }
}

fn value(object: &Value) -> i64 {
    object["value"].as_i64().unwrap_or_default()
}

fn create_errors(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = meta::name(object);
    if name.starts_with(SYSTEM_PREFIX) {
        if let Some(why) = system_error(object) {
            let why = format!(
                "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system \
                 use only. error: {why}"
            );
            errors.push(FieldError::forbidden("metadata.name", why));
        }
    } else if value(object) > MAX_USER_PRIORITY {
        let why = format!(
            "maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}"
        );
        errors.push(FieldError::forbidden("value", why));
    }
    let policy = Field::of(object, "preemptionPolicy");
    rule::one_of(&policy, &["PreemptLowerPriority", "Never"], &mut errors);
    errors
}

/// Why a class is not a system class (`IsKnownSystemPriorityClass`).
fn system_error(object: &Value) -> Option<String> {
    let name = meta::name(object);
    let found = SYSTEM_CLASSES.iter().find(|it| it.0 == name);
    match found {
        None => Some(format!("{name} is not a known system priority class")),
        Some((_, worth, _)) if value(object) != *worth => {
            Some(format!("value of {name} PriorityClass must be {worth}"))
        }
        Some(_) if object["globalDefault"] == true => Some(format!(
            "globalDefault of {name} PriorityClass must be false"
        )),
        Some(_) => None,
    }
}

fn update_errors(object: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if value(object) != value(old) {
        errors.push(FieldError::forbidden(
            "value",
            "may not be changed in an update.",
        ));
    }
    let field = "preemptionPolicy";
    if object[field] != old[field] {
        let actual = object[field].clone();
        errors.push(FieldError::invalid(field, actual, "field is immutable"));
    }
    errors
}

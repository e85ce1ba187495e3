//! The forms that earlier manifests used, and the current ones.
//!
//! Earlier groups were `capi.5spot.io` and `5spot.io`. Some fields had forms that an API server
//! rejects today: a single text or a number for a list, `null` for an absent value, upper case
//! or spaces in days, hours and durations, seconds as a number.

mod capacity;
mod windows;

use serde_json::Value;

use crate::name;

pub use windows::{lists_to_windows, to_windows};

/// One field whose form changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The field, e.g. `spec.schedule.daysOfWeek`.
    pub field: String,
    /// The old value.
    pub from: Value,
    /// The new value. `None` if the field is removed.
    pub to: Option<Value>,
    /// The new name of the field, in the same object. `None` if it keeps its name.
    pub renamed: Option<&'static str>,
}

/// Replaces an older group by the current one. Returns whether the object had an older one.
///
/// # Example
/// ```
/// use serde_json::json;
/// let mut object = json!({"apiVersion": "capi.5spot.io/v1alpha1"});
/// assert!(fivespot_api::older::to_current_group(&mut object));
/// assert_eq!(object["apiVersion"], "5spot.finos.org/v1alpha1");
/// ```
pub fn to_current_group(object: &mut Value) -> bool {
    let Some(Value::String(api_version)) = object.get_mut("apiVersion") else {
        return false;
    };
    let Some((group, version)) = api_version.split_once('/') else {
        return false;
    };
    let is_older = name::OLDER_GROUPS.contains(&group);
    if is_older {
        *api_version = format!("{}/{version}", name::GROUP);
    }
    is_older
}

/// Whether `object` is a ScheduledMachine, of the current group or of an older one.
pub fn is_scheduled_machine(object: &Value) -> bool {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, _) = api_version.split_once('/').unwrap_or_default();
    object["kind"] == name::KIND
        && (group == name::GROUP || name::OLDER_GROUPS.contains(&group))
}

/// Converts a ScheduledMachine to the current group and the current forms of fields, and a
/// ScheduledCapacity to the current names of fields. Returns the changes, in the order of the
/// fields' paths.
///
/// # Guarantees
/// Nothing is lost: a value that is not understood stays unchanged. The conversion is
/// idempotent. Other objects stay unchanged.
pub fn convert(object: &mut Value) -> Vec<Change> {
    let mut changes = Vec::new();
    if !is_scheduled_machine(object) {
        return capacity::convert(object);
    }
    let before = object["apiVersion"].clone();
    if to_current_group(object) {
        changes.push(Change {
            field: "apiVersion".to_owned(),
            from: before,
            to: Some(object["apiVersion"].clone()),
            renamed: None,
        });
    }
    for (parent, field, to_current) in FORMS {
        let pointer = format!("/{}", parent.replace('.', "/"));
        let Some(Value::Object(fields)) = object.pointer_mut(&pointer) else {
            continue;
        };
        let Some(from) = fields.get(field).cloned() else {
            continue;
        };
        let to = Some(to_current(&from)).filter(|to| !to.is_null());
        match &to {
            Some(to) if *to == from => continue,
            Some(to) => drop(fields.insert(field.to_owned(), to.clone())),
            None => drop(fields.shift_remove(field)),
        }
        changes.push(Change {
            field: format!("{parent}.{field}"),
            from,
            to,
            renamed: None,
        });
    }
    changes
}

/// The current form of a value; null for one that is removed, because it represented an absent value.
type Convert = fn(&Value) -> Value;

/// The fields that had other forms, each below its parent.
const FORMS: [(&str, &str, Convert); 15] = [
    ("metadata", "finalizers", finalizers),
    ("spec.schedule", "daysOfWeek", texts),
    ("spec.schedule", "hoursOfDay", texts),
    ("spec.schedule", "duration", duration),
    ("spec.schedule", "cron", Value::clone),
    ("spec.schedule", "timezone", Value::clone),
    ("spec.schedule", "enabled", Value::clone),
    ("spec", "gracefulShutdownTimeout", duration),
    ("spec", "nodeDrainTimeout", duration),
    ("spec", "killIfCommands", Value::clone),
    ("spec", "reclaim", Value::clone),
    ("spec", "nodeTaints", Value::clone),
    ("spec", "machineTemplate", Value::clone),
    ("spec", "priority", Value::clone),
    ("spec", "killSwitch", Value::clone),
];

/// Converts a list of days or hours.
fn texts(value: &Value) -> Value {
    let one = |item: &Value| match item {
        Value::String(text) => {
            let bare: String = text.chars().filter(|it| !it.is_whitespace()).collect();
            Value::String(bare.to_ascii_lowercase())
        }
        Value::Number(number) => Value::String(number.to_string()),
        other => other.clone(),
    };
    match value {
        Value::Array(items) => Value::Array(items.iter().map(one).collect()),
        Value::String(_) | Value::Number(_) => Value::Array(vec![one(value)]),
        Value::Null | Value::Bool(_) | Value::Object(_) => value.clone(),
    }
}

/// Converts a duration: it allowed surrounding spaces, upper case, and a number of seconds.
fn duration(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.trim().to_ascii_lowercase()),
        Value::Number(seconds) if seconds.is_u64() => {
            Value::String(format!("{seconds}s"))
        }
        other => other.clone(),
    }
}

fn finalizers(value: &Value) -> Value {
    let current = |item: &Value| match item.as_str() {
        Some(name::OLDER_FINALIZER) => Value::String(name::FINALIZER.to_owned()),
        _ => item.clone(),
    };
    match value {
        Value::Array(items) => Value::Array(items.iter().map(current).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::convert;

    fn older() -> Value {
        json!({
            "apiVersion": "5spot.io/v1alpha1",
            "kind": "ScheduledMachine",
            "metadata": {
                "name": "worker",
                "labels": {"5spot.eribourg.dev/managed": "true"},
                "finalizers": ["5spot.io/scheduledmachine", "other/one"],
            },
            "spec": {
                "schedule": {
                    "daysOfWeek": "Mon - Fri",
                    "hoursOfDay": [9, "10-17"],
                    "cron": null,
                },
                "gracefulShutdownTimeout": " 5M",
                "nodeDrainTimeout": 300,
                "killIfCommands": null,
                "machineTemplate": null,
                "color": "kept",
            },
        })
    }

    #[test]
    fn older_forms_are_converted_and_the_rest_is_unchanged() {
        let mut object = older();
        let changes = convert(&mut object);
        let expected = json!({
            "apiVersion": "5spot.finos.org/v1alpha1",
            "kind": "ScheduledMachine",
            "metadata": {
                "name": "worker",
                "labels": {"5spot.eribourg.dev/managed": "true"},
                "finalizers": ["5spot.finos.org/scheduledmachine", "other/one"],
            },
            "spec": {
                "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9", "10-17"]},
                "gracefulShutdownTimeout": "5m",
                "nodeDrainTimeout": "300s",
                "color": "kept",
            },
        });
        assert_eq!(object, expected);
        assert_eq!(changes.len(), 9, "{changes:?}");
        assert_eq!(convert(&mut object), []);
    }

    #[test]
    fn objects_of_other_groups_are_unchanged() {
        for api_version in ["v1", "io/v1", "x5spot.io/v1alpha1"] {
            let mut object = older();
            object["apiVersion"] = api_version.into();
            let before = object.clone();
            assert_eq!(convert(&mut object), []);
            assert_eq!(object, before);
        }
    }

    #[test]
    fn values_that_are_not_understood_are_unchanged() {
        let odd = json!({
            "apiVersion": "capi.5spot.io/v9",
            "kind": "ScheduledMachine",
            "spec": {"schedule": {"daysOfWeek": {"a": 1}}, "nodeDrainTimeout": -1},
        });
        let mut object = odd.clone();
        assert_eq!(convert(&mut object).len(), 1);
        assert_eq!(object["spec"], odd["spec"]);
        assert_eq!(object["apiVersion"], "5spot.finos.org/v9");
    }
}

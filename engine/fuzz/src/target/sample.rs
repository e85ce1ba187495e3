//! Real manifests, from which inputs are made: the sample of the crate `kubemu-admission`.

use serde_json::{Value, json};

const DEFINITION: &str =
    include_str!("../../../crates/admission/tests/sample/definition.yaml");
const POLICIES: &str = include_str!("../../../crates/admission/tests/sample/policy.yaml");

/// The CustomResourceDefinition.
pub(super) fn definition() -> Value {
    serde_saphyr::from_str(DEFINITION).unwrap_or_default()
}

/// The policies, as YAML.
pub(super) fn policies() -> impl Iterator<Item = &'static str> {
    POLICIES.split("\n---\n")
}

/// Every expression in them.
pub(super) fn expressions() -> Vec<String> {
    let policies = policies().map(|it| serde_saphyr::from_str(it).unwrap_or_default());
    let mut found = Vec::new();
    for manifest in policies.chain([definition()]) {
        collect(&manifest, &mut found);
    }
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_str() {
                    Some(text) if name == "rule" || name == "expression" => {
                        found.push(text.to_owned());
                    }
                    _ => collect(field, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|it| collect(it, found)),
        _ => {}
    }
}

/// An object that the policies refuse.
pub(super) fn invalid_object() -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledMachine",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {
            "clusterName": "a",
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
            "gracefulShutdownTimeout": "five minutes",
        },
    })
}

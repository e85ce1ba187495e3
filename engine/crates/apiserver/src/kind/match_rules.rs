//! Defaults and cells that admission policies and their bindings share.

use serde_json::{Map, Value, json};

use crate::meta;

/// Defaults the match rules.
pub(super) fn default(rules: &mut Map<String, Value>) {
    rules
        .entry("matchPolicy")
        .or_insert_with(|| "Equivalent".into());
    for key in ["namespaceSelector", "objectSelector"] {
        rules.entry(key).or_insert_with(|| json!({}));
    }
    let lists = ["resourceRules", "excludeResourceRules"];
    for list in lists {
        let rules = rules.get_mut(list).and_then(Value::as_array_mut);
        for rule in rules.into_iter().flatten() {
            meta::fields(rule)
                .entry("scope")
                .or_insert_with(|| "*".into());
        }
    }
}

/// The cell with the kind of a policy's parameters.
pub(super) fn param_kind(value: &Value) -> Value {
    match (value["apiVersion"].as_str(), value["kind"].as_str()) {
        (Some(version), Some(kind)) => format!("{version}/{kind}").into(),
        _ => "<unset>".into(),
    }
}

/// The cell with the parameters of a binding.
pub(super) fn param_ref(value: &Value) -> Value {
    if !value.is_object() {
        return "<unset>".into();
    }
    match (value["namespace"].as_str(), value["name"].as_str()) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}").into(),
        // Whether the parameters are namespaced is not available here.
        (None, Some(name)) => format!("*/{name}").into(),
        (_, None) => value["selector"].to_string().into(),
    }
}

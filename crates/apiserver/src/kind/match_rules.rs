//! What admission policies and their bindings have in common.

use serde_json::{Map, Value, json};

use crate::meta;

/// Fills in what match rules leave out.
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

/// The cell that shows the kind of a policy's parameters.
pub(super) fn param_kind(value: &Value) -> Value {
    match (value["apiVersion"].as_str(), value["kind"].as_str()) {
        (Some(version), Some(kind)) => format!("{version}/{kind}").into(),
        _ => "<unset>".into(),
    }
}

/// The cell that shows which parameters a binding names.
pub(super) fn param_ref(value: &Value) -> Value {
    if !value.is_object() {
        return "<unset>".into();
    }
    match (value["namespace"].as_str(), value["name"].as_str()) {
        (Some(namespace), Some(name)) => format!("{namespace}/{name}").into(),
        // Whether the params are namespaced is not known here.
        (None, Some(name)) => format!("*/{name}").into(),
        (_, None) => value["selector"].to_string().into(),
    }
}

//! Match rules of admission policies and their bindings.

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

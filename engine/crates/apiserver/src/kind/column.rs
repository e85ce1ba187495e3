//! Cells that several kinds share (pkg/printers/internalversion in Kubernetes).

use jiff::Timestamp;
use serde_json::Value;

use crate::openapi::definitions;
use crate::resource::Column;
use crate::table::human_duration;

/// A column with the description of a field of a definition, such as `apps.v1.ReplicaSetSpec`.
pub(super) fn described(name: &str, kind: &str, definition: &str, field: &str) -> Column {
    let found = definitions::find(&format!("io.k8s.api.{definition}"));
    let text = found.and_then(|it| it["properties"][field]["description"].as_str());
    Column::new(name, kind, text.unwrap_or_default())
}

/// The time since the object was created.
pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    since(&object["metadata"]["creationTimestamp"], now).into()
}

/// The time since an instant; `<unknown>` if absent.
pub(super) fn since(instant: &Value, now: Timestamp) -> String {
    let since = instant.as_str().and_then(|it| it.parse().ok());
    since.map_or_else(|| "<unknown>".to_owned(), |it| human_duration(it, now))
}

/// The name of the object.
pub(super) fn name(object: &Value) -> Value {
    string(&object["metadata"]["name"])
}

/// A string; empty if absent.
pub(super) fn string(value: &Value) -> Value {
    value.as_str().unwrap_or_default().into()
}

/// The number of entries of a list or a map.
pub(super) fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The entries of a list; empty if it is not a list.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The first three strings, and the number of further ones.
pub(super) fn first_three(all: &[String]) -> String {
    const MAX_SHOWN: usize = 3;
    let shown = all.get(..MAX_SHOWN).unwrap_or(all).join(",");
    if all.len() > MAX_SHOWN {
        return format!("{shown} + {} more...", all.len() - MAX_SHOWN);
    }
    shown
}

/// Labels as `kubectl` prints them; `<none>` if empty.
pub(super) fn labels(labels: &Value) -> Value {
    let pairs = labels.as_object().into_iter().flatten();
    let mut pairs: Vec<String> = pairs
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    pairs.sort();
    if pairs.is_empty() {
        return "<none>".into();
    }
    pairs.join(",").into()
}

/// A number; zero if absent.
pub(super) fn number(value: &Value) -> Value {
    value.as_i64().unwrap_or_default().into()
}

/// A label selector; `<none>` if it selects everything.
pub(super) fn selector(selector: &Value) -> Value {
    let text = selector_text(selector);
    if text.is_empty() {
        return "<none>".into();
    }
    text.into()
}

/// A label selector, or a map of labels, as a string.
pub(crate) fn selector_text(selector: &Value) -> String {
    let is_map =
        selector["matchLabels"].is_null() && selector["matchExpressions"].is_null();
    let labels = if is_map {
        selector
    } else {
        &selector["matchLabels"]
    };
    let labels = labels.as_object().into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| {
        let value = value.as_str()?;
        Some((key.as_str(), format!("{key}={value}")))
    });
    let expressions = list(&selector["matchExpressions"]).iter();
    let expressions = expressions.filter_map(|it| {
        let key = it["key"].as_str()?;
        let values = list(&it["values"]).iter().filter_map(Value::as_str);
        let mut values: Vec<&str> = values.collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match it["operator"].as_str()? {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        };
        Some((key, text))
    });
    let mut all: Vec<(&str, String)> = labels.chain(expressions).collect();
    all.sort_by_key(|(key, _)| *key);
    let all: Vec<String> = all.into_iter().map(|(_, text)| text).collect();
    all.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_selector_is_a_string_sorted_by_key() {
        let rows = [
            (json!({"b": "1", "a": "2"}), "a=2,b=1"),
            (
                json!({"matchLabels": {"b": "1"}, "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["y", "x"]},
                    {"key": "c", "operator": "Exists"},
                    {"key": "d", "operator": "DoesNotExist"}]}),
                "a in (x,y),b=1,c,!d",
            ),
            (json!({}), ""),
        ];
        for (selector, expected) in rows {
            assert_eq!(selector_text(&selector), expected);
        }
    }
}

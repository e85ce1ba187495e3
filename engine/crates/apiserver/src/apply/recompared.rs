//! Lists that Go's comparison takes for changed although their values are equal.
//!
//! It compares the entries of atomic lists as Go structs. A quantity in them keeps the text that it
//! was parsed from, except a multiple of eight with a binary suffix, which has none until it is written
//! (`ParseQuantity` in k8s.io/apimachinery). The stored object has been written, and the new one has
//! not. Quantities in maps are copied before they are written.

use serde_json::Value;

use super::element::Element;
use crate::resource::Resource;

/// A list with quantities, in the spec of a kind.
struct List {
    kind: &'static str,
    field: &'static str,
    /// The fields of the quantities; others with the same text are in maps.
    quantities: &'static [&'static str],
}

const LISTS: [List; 2] = [
    List {
        kind: "HorizontalPodAutoscaler",
        field: "metrics",
        quantities: &["averageValue", "value"],
    },
    List {
        kind: "ResourceSlice",
        field: "devices",
        quantities: &["default", "validValues", "min", "max", "step"],
    },
];

/// The path of the list of this kind if both objects have the same one, and Go takes it for changed.
pub(super) fn path(
    resource: &Resource,
    (old, new): (&Value, &Value),
) -> Option<[Element; 2]> {
    let list = LISTS.iter().find(|it| it.kind == resource.kind)?;
    let at = |object: &Value| object["spec"].get(list.field).cloned();
    let entries = at(new).filter(|_| !resource.custom && at(old) == at(new))?;
    has_written_text(&entries, list.quantities)
        .then(|| [Element::field("spec"), Element::field(list.field)])
}

/// Whether one of the named fields in a value has a quantity that gets its text when it is written.
fn has_written_text(value: &Value, names: &[&str]) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|it| has_written_text(it, names)),
        Value::Object(fields) => fields.iter().any(|(name, it)| {
            let is_named = names.contains(&name.as_str());
            (is_named && is_multiple_of_eight(it)) || has_written_text(it, names)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether a quantity, or one in a list, is a multiple of eight with a binary suffix.
fn is_multiple_of_eight(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(is_multiple_of_eight),
        Value::String(text) => {
            let number = text
                .strip_suffix('i')
                .and_then(|it| it.strip_suffix(['K', 'M', 'G', 'T', 'P', 'E']));
            let number = number.and_then(|it| it.parse::<i64>().ok());
            number.is_some_and(|it| it % 8 == 0)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

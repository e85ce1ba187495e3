//! The allowed differences between the embedded server's responses and a real one's, and their
//! reasons.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::BoxError;
use super::pattern::Pattern;

/// A deliberate difference.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Difference {
    /// The difference, as worded in the documentation.
    pub what: String,
    /// The reason for it.
    pub why: String,
    /// Patterns of responses: `area/case/step`, where the step is its id or its number from 1.
    pub answers: Vec<String>,
    /// Patterns of places in these responses.
    pub at: Vec<String>,
    /// Whether it is not deliberate: it is not done yet.
    #[serde(default)]
    pub open: bool,
    /// Whether only the order differs, and both responses have the same contents.
    #[serde(default)]
    pub order: bool,
    /// The release to which it applies. All releases if it is absent.
    #[serde(default)]
    pub kubernetes: Option<String>,
}

/// Reads the list.
///
/// # Errors
/// The file is not a list of differences.
pub fn read(path: &Path) -> Result<Vec<Difference>, BoxError> {
    Ok(serde_saphyr::from_str(&fs::read_to_string(path)?)?)
}

impl Difference {
    /// The index of the `answers` pattern that covers this place of this response, if any.
    pub fn covers(&self, minor: &str, answer: &str, place: &[String]) -> Option<usize> {
        let parts: Vec<String> = answer.split('/').map(str::to_owned).collect();
        let about = |it: &String| Pattern::new(&format!("/{it}")).covers(&parts);
        let here = self.kubernetes.as_deref().is_none_or(|it| it == minor)
            && self.at.iter().any(|it| Pattern::new(it).covers(place));
        here.then(|| self.answers.iter().position(about))?
    }
}

/// Whether two responses differ only in the order of list entries and of the parts of sentences
/// that list them.
pub fn differ_in_order_alone(real: &Value, ours: &Value) -> bool {
    in_order(real) == in_order(ours)
}

/// A value with all lists sorted.
fn in_order(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(in_order).collect();
            items.sort_by_cached_key(Value::to_string);
            items.into()
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, it)| (key.clone(), in_order(it)));
            Value::Object(fields.collect())
        }
        Value::String(text) => {
            // Kubernetes reads the fields of an applied object in random order.
            let inner = text.replace(['[', ']', '\n'], ", ");
            let mut parts: Vec<&str> = inner.split(", ").collect();
            parts.sort_unstable();
            parts.concat().into()
        }
        other => other.clone(),
    }
}

/// A place where two responses differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The path of the place.
    pub place: Vec<String>,
    /// The real server's value. `None` if it is absent.
    pub real: Option<Value>,
    /// The embedded server's value. `None` if it is absent.
    pub ours: Option<Value>,
}

/// Every place where two responses differ, as deep as possible.
pub fn gaps(real: &Value, ours: &Value) -> Vec<Gap> {
    let mut found = Vec::new();
    let mut place = Vec::new();
    compare(Some(real), Some(ours), &mut place, &mut found);
    found
}

fn compare(
    real: Option<&Value>,
    ours: Option<&Value>,
    place: &mut Vec<String>,
    found: &mut Vec<Gap>,
) {
    match (real, ours) {
        (Some(real), Some(ours)) if real == ours => {}
        (Some(Value::Object(real)), Some(Value::Object(ours))) => {
            let only_ours = ours.keys().filter(|key| !real.contains_key(*key));
            for key in real.keys().chain(only_ours) {
                place.push(key.clone());
                compare(real.get(key), ours.get(key), place, found);
                place.pop();
            }
        }
        (Some(Value::Array(real)), Some(Value::Array(ours))) => {
            for index in 0..real.len().max(ours.len()) {
                place.push(index.to_string());
                compare(real.get(index), ours.get(index), place, found);
                place.pop();
            }
        }
        (real, ours) => found.push(Gap {
            place: place.clone(),
            real: real.cloned(),
            ours: ours.cloned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn responses_are_compared_down_to_the_deepest_common_shape() {
        let real = json!({"a": [1, {"b": 2}], "c": 3});
        let ours = json!({"a": [1, {"b": 4}, 5], "d": 6});
        let places: Vec<String> = gaps(&real, &ours)
            .iter()
            .map(|gap| gap.place.join("/"))
            .collect();
        assert_eq!(places, ["a/1/b", "a/2", "c", "d"]);
    }

    #[test]
    fn the_same_errors_in_another_order_are_distinguished_from_other_errors() {
        let real = json!({"causes": [{"field": "a"}, {"field": "b"}], "message": "no: [a: x, b: y]"});
        let ours = json!({"causes": [{"field": "b"}, {"field": "a"}], "message": "no: [b: y, a: x]"});
        assert!(differ_in_order_alone(&real, &ours));
        let other = json!({"causes": [{"field": "b"}, {"field": "a"}], "message": "no: [b: z, a: x]"});
        assert!(!differ_in_order_alone(&real, &other));
    }
}

//! The bounds of a spec: how long a text, a list and a map may be, and of which type a value is.
//!
//! An API server sends no review of an object that its schema refuses. Whoever else sends one is
//! answered before an expression runs over it: the cost of the rules is bounded only for objects
//! within these bounds.

use fivespot_api::{Resource, crd};
use kubemu_admission::FieldError;
use serde_json::Value;

/// The bounds of the spec of one kind.
#[derive(Debug)]
pub(crate) struct Bounds {
    spec: Value,
}

/// Why a value is out of bounds, and where below the spec.
struct Excess {
    path: String,
    problem: Problem,
}

enum Problem {
    /// A list or a map has too many entries.
    Entries { found: u64, most: u64 },
    /// A text has too many characters.
    Characters { most: u64 },
    /// A value is of another type.
    Type { wanted: String, found: &'static str },
}

impl Bounds {
    /// The bounds in the schema of the kind.
    pub(crate) fn of(resource: &Resource) -> Self {
        let mut crd = crd::without_rules(resource);
        let spec =
            crd.pointer_mut("/spec/versions/0/schema/openAPIV3Schema/properties/spec");
        Self {
            spec: spec.map(Value::take).unwrap_or_default(),
        }
    }

    /// The first excess of the object's spec, in the words of the schema. Its path begins with
    /// `root`.
    pub(crate) fn check(&self, root: &str, object: &Value) -> Option<FieldError> {
        let excess = excess(&self.spec, object.get("spec")?)?;
        let path = format!("{root}{}", excess.path);
        let in_body = |detail: String| format!("{path} in body {detail}");
        Some(match excess.problem {
            Problem::Entries { found, most } => FieldError::too_many(path, found, most),
            Problem::Characters { most } => FieldError::too_long(path, most),
            Problem::Type { wanted, found } => {
                let detail = in_body(format!("must be of type {wanted}: \"{found}\""));
                FieldError::type_invalid(path, found.into(), detail)
            }
        })
    }
}

impl Excess {
    fn here(problem: Problem) -> Self {
        let path = String::new();
        Self { path, problem }
    }

    /// The same below this step: `.name` or `[0]`.
    fn below(mut self, step: &str) -> Self {
        self.path.insert_str(0, step);
        self
    }
}

/// The first excess of a value. A list is measured before its items are looked at.
fn excess(schema: &Value, value: &Value) -> Option<Excess> {
    // The content of a provider's spec is not that of the object, but its hash.
    if value.is_null() || schema["x-kubernetes-preserve-unknown-fields"] == true {
        return None;
    }
    let most = |bound: &str, found: usize| {
        let most = schema[bound].as_u64()?;
        let found = u64::try_from(found).unwrap_or(u64::MAX);
        (found > most).then_some((found, most))
    };
    if let Some(wanted) = schema["type"].as_str()
        && !is_of_type(value, wanted)
    {
        let wanted = wanted.to_owned();
        let found = type_of(value);
        return Some(Excess::here(Problem::Type { wanted, found }));
    }
    match value {
        // A text never has more characters than bytes.
        Value::String(text) => {
            most("maxLength", text.len())?;
            let (_, most) = most("maxLength", text.chars().count())?;
            Some(Excess::here(Problem::Characters { most }))
        }
        Value::Array(items) => {
            if let Some((found, most)) = most("maxItems", items.len()) {
                return Some(Excess::here(Problem::Entries { found, most }));
            }
            let each = schema.get("items")?;
            items.iter().enumerate().find_map(|(at, item)| {
                excess(each, item).map(|found| found.below(&format!("[{at}]")))
            })
        }
        Value::Object(fields) => {
            if let Some((found, most)) = most("maxProperties", fields.len()) {
                return Some(Excess::here(Problem::Entries { found, most }));
            }
            let each = schema.get("additionalProperties");
            fields.iter().find_map(|(name, value)| {
                let of_field = schema["properties"].get(name).or(each)?;
                excess(of_field, value).map(|found| found.below(&format!(".{name}")))
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn is_of_type(value: &Value, wanted: &str) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        // The rules read no fraction.
        "integer" | "number" => value.is_number(),
        _ => true,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests;

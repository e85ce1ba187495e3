//! The scale subresource: the paths of its replicas, and that they are integers.

use serde_json::Value;

use crate::FieldError;
use crate::quote::Plain;

/// Paths of `subresources.scale`.
#[derive(Debug)]
pub(super) struct Scale {
    spec_replicas: String,
    status_replicas: String,
    label_selector: Option<String>,
}

impl Scale {
    pub(super) fn read(subresources: &Value) -> Option<Self> {
        let scale = subresources.get("scale").filter(|it| it.is_object())?;
        let text = |name: &str| Some(scale.get(name)?.as_str()?.to_owned());
        Some(Self {
            spec_replicas: text("specReplicasPath").unwrap_or_default(),
            status_replicas: text("statusReplicasPath").unwrap_or_default(),
            label_selector: text("labelSelectorPath").filter(|path| !path.is_empty()),
        })
    }

    /// The validation errors of the paths; `path` is that of the subresources.
    pub(super) fn errors(&self, path: &str) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut check = |name: &str, given: &str, under: &[&str], detail: &str| {
            let path = format!("{path}.scale.{name}");
            if given.is_empty() {
                errors.push(FieldError::required(path, ""));
            } else if let Some(error) = simple_path_error(path.as_str(), given) {
                errors.push(error);
            } else if !under.iter().any(|start| given.starts_with(start)) {
                errors.push(FieldError::invalid(path, given.into(), detail));
            }
        };
        check(
            "specReplicasPath",
            &self.spec_replicas,
            &[".spec."],
            "should be a json path under .spec",
        );
        check(
            "statusReplicasPath",
            &self.status_replicas,
            &[".status."],
            "should be a json path under .status",
        );
        if let Some(selector) = &self.label_selector {
            check(
                "labelSelectorPath",
                selector,
                &[".spec.", ".status."],
                "should be a json path under either .spec or .status",
            );
        }
        errors
    }

    pub(super) fn spec_error(&self, object: &Value) -> Option<FieldError> {
        replicas(object, &self.spec_replicas)
    }

    pub(super) fn status_errors(&self, object: &Value) -> Vec<FieldError> {
        let selector = self.label_selector.as_ref().and_then(|path| {
            let (found, at) = nested(object, path)?;
            let detail = wrong_type(path, at, found, "string");
            let is_right = at == usize::MAX && found.is_string();
            (!is_right).then(|| FieldError::invalid(path, "".into(), detail))
        });
        let replicas = replicas(object, &self.status_replicas);
        replicas.into_iter().chain(selector).collect()
    }
}

/// Why a text is not a path of names, each after a dot.
pub(super) fn simple_path_error(
    path: impl Into<String>,
    given: &str,
) -> Option<FieldError> {
    let detail = "must be a simple json path starting with .";
    (!given.starts_with('.')).then(|| FieldError::invalid(path, given.into(), detail))
}

/// The value at a path, with the number of segments read. `None` if a part is absent, or is
/// null with segments left. If a segment is read from a value that is not an object, that value
/// is returned.
fn nested<'a>(object: &'a Value, path: &str) -> Option<(&'a Value, usize)> {
    let mut value = object;
    for (at, name) in path.trim_start_matches('.').split('.').enumerate() {
        match value {
            Value::Object(fields) => value = fields.get(name)?,
            Value::Null => return None,
            other => return Some((other, at + 1)),
        }
    }
    Some((value, usize::MAX))
}

fn replicas(object: &Value, path: &str) -> Option<FieldError> {
    let (found, at) = nested(object, path)?;
    let Some(replicas) = found.as_i64().filter(|_| at == usize::MAX) else {
        let detail = wrong_type(path, at, found, "int64");
        return Some(FieldError::invalid(path, 0.into(), detail));
    };
    let detail = if replicas < 0 {
        "should be a non-negative integer".to_owned()
    } else if replicas > i64::from(i32::MAX) {
        format!("should be less than or equal to {}", i32::MAX)
    } else {
        return None;
    };
    Some(FieldError::invalid(path, replicas.into(), detail))
}

fn wrong_type(path: &str, at: usize, found: &Value, wanted: &str) -> String {
    let go_type = match found {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    let shown = Plain(found);
    let wanted = if at == usize::MAX {
        wanted
    } else {
        "map[string]interface{}"
    };
    let segments = path.trim_start_matches('.').split('.');
    let walked: Vec<_> = segments.take(at).collect();
    let walked = walked.join(".");
    format!(
        ".{walked} accessor error: {shown} is of the type {go_type}, expected {wanted}"
    )
}

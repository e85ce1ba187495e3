//! Embedded resources (`x-kubernetes-embedded-resource`).

use kubemu_gostd::unicode::to_lower;
use serde_json::{Map, Value};

use super::node::Node;
use crate::field::Path;
use crate::object_meta::{self, NameRule, Scope};
use crate::{FieldError, name};

/// Validates `apiVersion`, `kind` and `metadata` of every embedded resource.
pub(super) fn check(
    node: &Node,
    value: &Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !node.contents.embedded {
        return;
    }
    match value {
        Value::Object(fields) => {
            if node.embedded {
                resource(fields, path, errors);
            }
            check_fields(node, fields, path, errors);
        }
        Value::Array(items) => {
            let Some(each) = &node.items else {
                return;
            };
            for (at, item) in items.iter().enumerate() {
                check(each, item, &path.index(at), errors);
            }
        }
        _ => {}
    }
}

/// [`check`], with `node` as a resource even if its schema does not declare it as one.
pub(super) fn check_resource(
    node: &Node,
    value: &Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Value::Object(fields) = value {
        resource(fields, path, errors);
        check_fields(node, fields, path, errors);
    }
}

fn check_fields(
    node: &Node,
    fields: &Map<String, Value>,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    for (name, value) in fields {
        if let Some(property) = node.property(name) {
            check(property, value, &path.field(name), errors);
        } else if let Some(each) = node.additional.schema() {
            check(each, value, &path.key(name), errors);
        }
    }
}

fn resource(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        if !fields.contains_key(name) {
            errors.push(FieldError::required(path.field(name), ""));
        }
    }
    for (name, value) in fields {
        let path = path.field(name);
        match (name.as_str(), value.as_str()) {
            ("apiVersion" | "kind", None) => {
                errors.push(FieldError::invalid(path, value.clone(), "must be a string"));
            }
            ("apiVersion" | "kind", Some("")) => {
                errors.push(FieldError::invalid(
                    path,
                    value.clone(),
                    "must not be empty",
                ));
            }
            ("apiVersion", Some(text)) if text.matches('/').count() > 1 => {
                let detail = format!("unexpected GroupVersion string: {text}");
                errors.push(FieldError::invalid(path, value.clone(), detail));
            }
            ("kind", Some(text)) => {
                let wrong = name::dns_1035_label(&to_lower(text));
                if !wrong.is_empty() {
                    let detail = format!(
                        "may have mixed case, but should otherwise match: {}",
                        wrong.join(",")
                    );
                    errors.push(FieldError::invalid(path, value.clone(), detail));
                }
            }
            ("metadata", _) => metadata(value, &path, errors),
            _ => {}
        }
    }
}

/// The name of an embedded object is optional, and so is its namespace.
fn metadata(value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut value = value.clone();
    let scope = match value.get("namespace").and_then(Value::as_str) {
        None | Some("") => Scope::Cluster,
        Some(_) => Scope::Namespaced,
    };
    if let Value::Object(fields) = &mut value {
        let name = fields.entry("name").or_insert_with(|| "".into());
        if name.as_str() == Some("") {
            *name = "fakename".into();
        }
    }
    for mut error in object_meta::create(Some(&value), NameRule::PathSegment, scope) {
        let inner = error.path.strip_prefix("metadata").unwrap_or(&error.path);
        error.path = format!("{path}{inner}");
        errors.push(error);
    }
}

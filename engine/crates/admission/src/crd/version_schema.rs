//! The schema of one version of a definition.

use serde_json::{Map, Value};

use super::ratchet::Tolerated;
use super::{default, internal_form, open_api};
use crate::crd_rules::Rules;
use crate::field::Path;
use crate::schema::Structural;
use crate::{FieldError, KubeVersion};

/// The compiled schema of one version and its errors.
pub(super) struct CompiledSchema {
    pub(super) schema: Structural,
    pub(super) rules: Option<Rules>,
    pub(super) errors: Vec<FieldError>,
}

/// Compiles a schema; `path` is that of its parent. Without the `tolerated` errors and with those
/// that they would hide.
pub(super) fn compile(
    schema: &Value,
    path: &Path<'_>,
    has_status: bool,
    version: KubeVersion,
    tolerated: &Tolerated,
) -> CompiledSchema {
    let path = path.field("openAPIV3Schema");
    let structural = match Structural::read(schema, &path, version) {
        Ok(structural) => structural,
        Err(errors) => {
            return CompiledSchema {
                schema: Structural::empty(version),
                rules: None,
                errors,
            };
        }
    };
    let mut errors = match schema {
        Value::Object(fields) => root_errors(fields, has_status, &path),
        _ => Vec::new(),
    };
    // Errors of the root do not hide those of defaults and rules.
    let mut rules = None;
    let mut is_usable = false;
    if is_convertible(schema) {
        let mut wrong = structural.structure_errors(&path);
        if wrong.is_empty() {
            rules = Rules::of(structural.root(), true, version.dialect_of_new());
            wrong = default::check(structural.root(), rules.as_ref(), &path, version);
            wrong.retain(|it| !tolerated.has(it));
        }
        is_usable = wrong.is_empty();
        errors.append(&mut wrong);
    }
    let usable = rules.as_ref().filter(|_| is_usable);
    errors.extend(open_api::check(structural.root(), usable, &path, tolerated));
    CompiledSchema {
        schema: structural.with_checked_formats(),
        rules,
        errors,
    }
}

/// Whether the API server can convert a schema to a structural one; if not, it returns another
/// error and stops.
fn is_convertible(schema: &Value) -> bool {
    unconvertible(schema).is_none()
}

/// The API server's error if it cannot convert the schema to a structural one.
pub(super) fn unconvertible(schema: &Value) -> Option<&'static str> {
    let fields = schema.as_object()?;
    let own = fields.iter().find_map(|(name, value)| match name.as_str() {
        "id" if is_set(value) => Some("OpenAPIV3Schema 'id' is not supported"),
        "$schema" if is_set(value) => Some("OpenAPIV3Schema 'schema' is not supported"),
        "$ref" if is_set(value) => Some("OpenAPIV3Schema '$ref' is not supported"),
        "patternProperties" if is_set(value) => {
            Some("OpenAPIV3Schema 'patternProperties' is not supported")
        }
        "dependencies" if is_set(value) => {
            Some("OpenAPIV3Schema 'dependencies' is not supported")
        }
        "additionalItems" if !value.is_null() => {
            Some("OpenAPIV3Schema 'additionalItems' is not supported")
        }
        "definitions" if is_set(value) => {
            Some("OpenAPIV3Schema 'definitions' is not supported")
        }
        "items" if value.is_array() => {
            Some("OpenAPIV3Schema 'items' must be a schema, but is an array")
        }
        "x-kubernetes-preserve-unknown-fields" if value == &Value::Bool(false) => Some(
            "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or \
             undefined",
        ),
        _ => None,
    });
    let each = |value: &Value| match value {
        Value::Array(items) => items.iter().find_map(unconvertible),
        Value::Object(fields) => fields.values().find_map(unconvertible),
        _ => None,
    };
    own.or_else(|| {
        fields.iter().find_map(|(name, value)| match name.as_str() {
            "items" | "additionalProperties" | "not" => unconvertible(value),
            "properties" | "allOf" | "anyOf" | "oneOf" => each(value),
            _ => None,
        })
    })
}

/// Whether a keyword is set.
fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// With a status subresource, the root must not have keywords that would not be validated.
fn root_errors(
    fields: &Map<String, Value>,
    has_status: bool,
    path: &Path<'_>,
) -> Vec<FieldError> {
    const LOST: &[&str] = &[
        "default",
        "nullable",
        "maxProperties",
        "minProperties",
        "enum",
        "allOf",
        "oneOf",
        "anyOf",
        "not",
        "additionalProperties",
        "additionalItems",
        "patternProperties",
        "dependencies",
        "definitions",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ];
    const DETAIL: &str = "only [Description Type Format Title Maximum ExclusiveMaximum \
        Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems \
        MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields \
        XValidations] fields are allowed at the root of the schema if the status \
        subresource is enabled";
    let is_set = |name: &&&str| {
        let value = fields.get(**name);
        value.is_some_and(|value| !value.is_null() && value != &Value::Bool(false))
    };
    let mut errors = Vec::new();
    let kind = fields.get("type").and_then(Value::as_str);
    if let Some(kind) = kind.filter(|kind| has_status && !["", "object"].contains(kind)) {
        let detail = "only \"object\" is allowed as the type at the root of the schema if \
                      the status subresource is enabled";
        errors.push(FieldError::invalid(path.field("type"), kind.into(), detail));
    } else if has_status && LOST.iter().any(|name| is_set(&name)) {
        let schema = internal_form::schema(&Value::Object(fields.clone()));
        errors.push(FieldError::invalid_form(*path, &schema, DETAIL));
    }
    if fields.get("nullable") == Some(&Value::Bool(true)) {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(path.field("nullable"), detail));
    }
    errors
}

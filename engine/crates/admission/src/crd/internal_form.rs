//! Parts of a definition in Kubernetes' internal form, as errors print them: Go structs as
//! JSON, with every field in the order of declaration, set or not.

use std::fmt::Write as _;

use serde_json::Value;

use crate::quote::Json;

/// The kind of a field of a Go struct.
#[derive(Clone, Copy)]
enum Kind {
    /// Text, empty if not set.
    Text,
    /// `false` if not set.
    Flag,
    /// `null` if not set, otherwise the value unchanged.
    Any,
    /// `null` if not set or empty.
    List,
    Schema,
    Schemas,
    SchemaOrList,
    SchemaOrFlag,
    SchemasByName,
    Documents,
    Rules,
    /// 0 if not set.
    Number,
}

/// The fields of a struct: the printed name, the name in the manifest, and the kind.
type Fields = &'static [(&'static str, &'static str, Kind)];

const SCHEMA: Fields = &[
    ("ID", "id", Kind::Text),
    ("Schema", "$schema", Kind::Text),
    ("Ref", "$ref", Kind::Any),
    ("Description", "description", Kind::Text),
    ("Type", "type", Kind::Text),
    ("Nullable", "nullable", Kind::Flag),
    ("Format", "format", Kind::Text),
    ("Title", "title", Kind::Text),
    ("Default", "default", Kind::Any),
    ("Maximum", "maximum", Kind::Any),
    ("ExclusiveMaximum", "exclusiveMaximum", Kind::Flag),
    ("Minimum", "minimum", Kind::Any),
    ("ExclusiveMinimum", "exclusiveMinimum", Kind::Flag),
    ("MaxLength", "maxLength", Kind::Any),
    ("MinLength", "minLength", Kind::Any),
    ("Pattern", "pattern", Kind::Text),
    ("MaxItems", "maxItems", Kind::Any),
    ("MinItems", "minItems", Kind::Any),
    ("UniqueItems", "uniqueItems", Kind::Flag),
    ("MultipleOf", "multipleOf", Kind::Any),
    ("Enum", "enum", Kind::List),
    ("MaxProperties", "maxProperties", Kind::Any),
    ("MinProperties", "minProperties", Kind::Any),
    ("Required", "required", Kind::List),
    ("Items", "items", Kind::SchemaOrList),
    ("AllOf", "allOf", Kind::Schemas),
    ("OneOf", "oneOf", Kind::Schemas),
    ("AnyOf", "anyOf", Kind::Schemas),
    ("Not", "not", Kind::Schema),
    ("Properties", "properties", Kind::SchemasByName),
    (
        "AdditionalProperties",
        "additionalProperties",
        Kind::SchemaOrFlag,
    ),
    (
        "PatternProperties",
        "patternProperties",
        Kind::SchemasByName,
    ),
    ("Dependencies", "dependencies", Kind::Any),
    ("AdditionalItems", "additionalItems", Kind::SchemaOrFlag),
    ("Definitions", "definitions", Kind::SchemasByName),
    ("ExternalDocs", "externalDocs", Kind::Documents),
    ("Example", "example", Kind::Any),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
        Kind::Any,
    ),
    (
        "XEmbeddedResource",
        "x-kubernetes-embedded-resource",
        Kind::Flag,
    ),
    ("XIntOrString", "x-kubernetes-int-or-string", Kind::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Kind::List),
    ("XListType", "x-kubernetes-list-type", Kind::Any),
    ("XMapType", "x-kubernetes-map-type", Kind::Any),
    ("XValidations", "x-kubernetes-validations", Kind::Rules),
];

const RULE: Fields = &[
    ("Rule", "rule", Kind::Text),
    ("Message", "message", Kind::Text),
    ("MessageExpression", "messageExpression", Kind::Text),
    ("Reason", "reason", Kind::Any),
    ("FieldPath", "fieldPath", Kind::Text),
    ("OptionalOldSelf", "optionalOldSelf", Kind::Any),
];

const DOCUMENTS: Fields = &[
    ("Description", "description", Kind::Text),
    ("URL", "url", Kind::Text),
];

const COLUMN: Fields = &[
    ("Name", "name", Kind::Text),
    ("Type", "type", Kind::Text),
    ("Format", "format", Kind::Text),
    ("Description", "description", Kind::Text),
    ("Priority", "priority", Kind::Number),
    ("JSONPath", "jsonPath", Kind::Text),
];

const VALIDATION: Fields = &[("OpenAPIV3Schema", "openAPIV3Schema", Kind::Schema)];

const SELECTABLE: Fields = &[("JSONPath", "jsonPath", Kind::Text)];

/// The validation of a version, which contains its schema; `null` if there is none.
pub(super) fn validation(given: &Value) -> String {
    if given.is_null() {
        return "null".to_owned();
    }
    structure(given, VALIDATION)
}

/// A schema.
pub(super) fn schema(given: &Value) -> String {
    structure(given, SCHEMA)
}

/// Printer columns; `null` if there are none.
pub(super) fn columns(given: &Value) -> String {
    structures(given, COLUMN)
}

/// Selectable fields; `null` if there are none.
pub(super) fn selectable(given: &Value) -> String {
    structures(given, SELECTABLE)
}

fn structures(given: &Value, fields: Fields) -> String {
    list(given, |one| structure(one, fields))
}

fn list(given: &Value, print: impl Fn(&Value) -> String) -> String {
    match given.as_array().map(Vec::as_slice) {
        None | Some([]) => "null".to_owned(),
        Some(items) => {
            let items: Vec<_> = items.iter().map(print).collect();
            format!("[{}]", items.join(","))
        }
    }
}

fn structure(given: &Value, fields: Fields) -> String {
    let mut text = String::from("{");
    for (at, (name, field, kind)) in fields.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let value = given.get(field).unwrap_or(&Value::Null);
        let _ = write!(text, "{comma}\"{name}\":{}", printed(value, *kind));
    }
    text + "}"
}

fn printed(value: &Value, kind: Kind) -> String {
    let plain = || Json(value).to_string();
    let null = || "null".to_owned();
    match (kind, value) {
        (Kind::Text, Value::Null) => "\"\"".to_owned(),
        (Kind::Flag, Value::Null) => "false".to_owned(),
        (Kind::Number, Value::Null) => "0".to_owned(),
        (Kind::Rules, _) => structures(value, RULE),
        (Kind::Schemas, _) => list(value, schema),
        (Kind::List, Value::Array(items)) if items.is_empty() => null(),
        (Kind::SchemasByName, Value::Object(schemas)) if schemas.is_empty() => null(),
        (_, Value::Null) => null(),
        (Kind::Schema, _) => schema(value),
        (Kind::Documents, _) => structure(value, DOCUMENTS),
        (Kind::SchemaOrList, Value::Array(_)) => {
            format!(
                "{{\"Schema\":null,\"JSONSchemas\":{}}}",
                list(value, schema)
            )
        }
        (Kind::SchemaOrList, _) => {
            format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema(value))
        }
        (Kind::SchemaOrFlag, Value::Bool(allows)) => {
            format!("{{\"Allows\":{allows},\"Schema\":null}}")
        }
        (Kind::SchemaOrFlag, _) => {
            format!("{{\"Allows\":true,\"Schema\":{}}}", schema(value))
        }
        (Kind::SchemasByName, Value::Object(schemas)) => {
            let mut sorted: Vec<_> = schemas.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            let entries: Vec<_> = sorted
                .into_iter()
                .map(|(name, one)| format!("{}:{}", Value::from(&**name), schema(one)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
        _ => plain(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_field_is_printed_in_the_order_of_declaration() {
        let columns = columns(&json!([{"name": "A", "jsonPath": ".a"}]));
        let wanted = r#"[{"Name":"A","Type":"","Format":"","Description":"","Priority":0,"JSONPath":".a"}]"#;
        assert_eq!(columns, wanted);
        let text = schema(&json!({"type": "object", "items": {"nullable": true},
            "properties": {"b": {}, "a": {}}, "additionalProperties": false}));
        let part = |part: &str| assert!(text.contains(part), "{part} in {text}");
        part(r#"{"ID":"","Schema":"","Ref":null,"Description":"","Type":"object","#);
        part(r#""Items":{"Schema":{"ID":"","#);
        part(r#""Properties":{"a":{"ID""#);
        part(r#""AdditionalProperties":{"Allows":false,"Schema":null}"#);
        part(r#""XListType":null,"XMapType":null,"XValidations":null}"#);
    }
}

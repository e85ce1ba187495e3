//! The JSON that Go writes for a value: of the types that clients see, and of the types that
//! Kubernetes converts them to, which its errors show.

use serde_json::{Map, Value};

use super::go_type::{self, Field};
use super::shape::Shape;

/// The definitions that Kubernetes has a second type for, without names for JSON.
const CONVERTED: &str = "io.k8s.api.";

/// A value of a shape as clients see it: with Go's order of the fields, or sorted if it has no
/// schema.
pub(crate) fn json(shape: Shape<'_>, value: &Value) -> String {
    match value {
        Value::Object(_) if !shape.is_known() => sorted(value),
        Value::Object(_) if shape.opaque_struct().is_some() => plain(value),
        Value::Object(_) => braced(&json_fields(shape, value)),
        Value::Array(items) => list(items.iter().map(|it| json(shape.items(), it))),
        _ => plain(value),
    }
}

/// The text of each field of an object.
fn json_fields(shape: Shape<'_>, value: &Value) -> Vec<String> {
    let definition = shape.definition().unwrap_or_default();
    let place = |key: &str| go_type::place(definition, key).unwrap_or(usize::MAX);
    let mut fields: Vec<_> = value.as_object().into_iter().flatten().collect();
    fields.sort_by_key(|(key, _)| (place(key), *key));
    let text = |(key, it): (&String, &Value)| entry(key, &json(shape.field(key), it));
    fields.into_iter().map(text).collect()
}

/// A value of a shape as Kubernetes' own types have it: with every field, under its name in Go.
pub(crate) fn converted(shape: Shape<'_>, value: &Value) -> String {
    let definition = shape.definition().unwrap_or_default();
    let is_converted = definition.starts_with(CONVERTED);
    match value {
        Value::Object(_) if is_converted && shape.opaque_struct().is_none() => {
            let fields = go_type::fields(definition).iter();
            let texts = fields.flat_map(|field| converted_field(shape, field, value));
            braced(&texts.collect::<Vec<_>>())
        }
        Value::Array(items) => list(items.iter().map(|it| converted(shape.items(), it))),
        _ => json(shape, value),
    }
}

/// The text of a field of a struct, or of several if it is embedded.
fn converted_field(shape: Shape<'_>, field: &Field, object: &Value) -> Vec<String> {
    let inner = shape.field(field.name);
    let value = &object[field.name];
    if inner.name() == Some("ObjectMeta") {
        return json_fields(inner, value);
    }
    let text = if value.is_null() {
        zero(inner, field.is_pointer)
    } else {
        converted(inner, value)
    };
    vec![entry(&field.go_name(), &text)]
}

/// The text of a field of a converted struct that is not set, or of its value.
pub(crate) fn converted_or_zero(shape: Shape<'_>, name: &str, object: &Value) -> String {
    let fields = go_type::fields(shape.definition().unwrap_or_default());
    let field = fields.iter().find(|it| it.name == name);
    match object.get(name).filter(|it| !it.is_null()) {
        Some(value) => converted(shape.field(name), value),
        None => zero(shape.field(name), field.is_none_or(|it| it.is_pointer)),
    }
}

/// The text of a value that is not set.
fn zero(shape: Shape<'_>, is_pointer: bool) -> String {
    let is_nil = is_pointer || shape.is_map() || shape.opaque_struct().is_some();
    let text = match (shape.kind(), shape.format()) {
        _ if is_nil => "null",
        (Some("object"), _) => {
            return converted(shape, &Value::Object(Map::default()));
        }
        (Some("boolean"), _) => "false",
        (Some("integer" | "number"), _) | (None, Some("int-or-string")) => "0",
        (Some("string"), Some("date-time" | "byte")) => "null",
        (Some("string"), _) => "\"\"",
        _ => "null",
    };
    text.to_owned()
}

/// A value with sorted keys, as Go writes its maps.
pub(crate) fn sorted(value: &Value) -> String {
    match value {
        Value::Object(fields) => in_order(fields, |_, it| sorted(it)),
        Value::Array(items) => list(items.iter().map(sorted)),
        _ => plain(value),
    }
}

/// A value in its own order.
pub(crate) fn plain(value: &Value) -> String {
    // Go escapes HTML characters.
    let json = value.to_string();
    json.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
}

/// The text of an object with sorted keys.
pub(crate) fn in_order(
    fields: &Map<String, Value>,
    text: impl Fn(&str, &Value) -> String,
) -> String {
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_by_key(|(key, _)| *key);
    let texts = fields
        .into_iter()
        .map(|(key, it)| entry(key, &text(key, it)));
    braced(&texts.collect::<Vec<_>>())
}

/// The text of a list of texts.
pub(crate) fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn entry(key: &str, text: &str) -> String {
    format!("{}:{text}", plain(&key.into()))
}

fn braced(entries: &[String]) -> String {
    format!("{{{}}}", entries.join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_converted_struct_has_every_field_under_its_go_name() {
        let shape = |name: &str| Shape::defined(&format!("io.k8s.api.{name}"));
        let reference = json!({"name": "p", "kind": "Pod", "uid": "u"});
        assert_eq!(
            converted(shape("core.v1.ObjectReference"), &reference),
            r#"{"Kind":"Pod","Namespace":"","Name":"p","UID":"u","APIVersion":"","ResourceVersion":"","FieldPath":""}"#
        );
        let template = json!({"metadata": {"labels": {"b": "1", "a": "2"}},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly":
                {"deviceClassName": "c", "selectors": [{"cel": {"expression": "a<b"}}]}}]}}});
        assert_eq!(
            converted(shape("resource.v1.ResourceClaimTemplateSpec"), &template),
            "{\"labels\":{\"a\":\"2\",\"b\":\"1\"},\"Spec\":{\"Devices\":{\"Requests\":[{\"Name\":\"gpu\",\
             \"Exactly\":{\"DeviceClassName\":\"c\",\"Selectors\":[{\"CEL\":{\"Expression\":\"a\\u003cb\"}}],\
             \"AllocationMode\":\"\",\"Count\":0,\"AdminAccess\":null,\"Tolerations\":null,\
             \"Capacity\":null},\"FirstAvailable\":null}],\"Constraints\":null,\"Config\":null}}}"
        );
    }

    #[test]
    fn a_field_that_is_not_set_has_the_zero_of_its_type() {
        let event = Shape::defined("io.k8s.api.events.v1.Event");
        let zero = |name: &str| converted_or_zero(event, name, &json!({}));
        assert_eq!(zero("type"), "\"\"");
        assert_eq!(zero("deprecatedCount"), "0");
        assert_eq!(zero("related"), "null");
        assert_eq!(zero("eventTime"), "null");
        assert_eq!(zero("deprecatedSource"), r#"{"Component":"","Host":""}"#);
    }
}

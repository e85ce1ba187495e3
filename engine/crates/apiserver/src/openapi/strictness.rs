//! Checks objects of built-in kinds for unknown fields and wrong types.

use std::fmt;

use serde_json::{Number, Value};

use super::format;
use super::go_type;
use super::shape::Shape;
use crate::json_type::go_kind;
use crate::path::Path;
use crate::resource::Resource;

/// The format of a field that is either a number or a string.
const NUMBER_OR_TEXT: &str = "int-or-string";

/// The paths of all fields of `object` that the schema of its built-in kind does not have, in
/// document order, as Kubernetes' strict decoder prints them: `spec.containers[0].imagee`.
///
/// ```
/// use kubemu_apiserver::{Registry, openapi::unknown_fields};
/// use serde_json::json;
///
/// let registry = Registry::builtin();
/// let nodes = registry.find("", "v1", "nodes").unwrap();
/// let node = json!({"apiVersion": "v1", "kind": "Node", "spec": {"cordoned": true}});
/// assert_eq!(unknown_fields(nodes, &node), ["spec.cordoned"]);
/// ```
pub fn unknown_fields(resource: &Resource, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_unknown(Shape::of(resource), object, Path::Root, &mut found);
    found
}

fn collect_unknown(
    shape: Shape<'_>,
    value: &Value,
    path: Path<'_>,
    found: &mut Vec<String>,
) {
    if !shape.is_known() {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let inner = Path::Field(&path, key);
                if shape.knows(key) {
                    collect_unknown(shape.field(key), value, inner, found);
                } else {
                    found.push(inner.to_string());
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect_unknown(shape.items(), item, Path::Item(&path, at), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The error of Go's JSON decoder for the first value of `object` whose type differs from the
/// schema of its built-in kind; `None` if all types are correct. A text that a type decodes itself,
/// such as a quantity, ends the decoder, so that its error comes before all others.
///
/// ```
/// use kubemu_apiserver::{Registry, openapi::type_error};
/// use serde_json::json;
///
/// let registry = Registry::builtin();
/// let maps = registry.find("", "v1", "configmaps").unwrap();
/// assert_eq!(
///     type_error(maps, &json!({"data": {"port": 80}})).unwrap(),
///     "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
/// );
/// ```
pub fn type_error(resource: &Resource, object: &Value) -> Option<String> {
    value_error(Shape::of(resource), object)
}

/// Same as [`type_error`], for a single value of a shape.
pub(crate) fn value_error(shape: Shape<'_>, value: &Value) -> Option<String> {
    let first = find_fault(shape, value, Search::All)?;
    let last = find_fault(shape, value, Search::Last);
    Some(last.unwrap_or(first).to_string())
}

/// Same as [`type_error`], for the metadata of a custom object.
pub(crate) fn metadata_error(metadata: &Value) -> Option<String> {
    value_error(Shape::metadata(), metadata)
}

/// Same as [`type_error`], for a `DeleteOptions` object.
pub(crate) fn deletion_type_error(options: &Value) -> Option<String> {
    value_error(Shape::delete_options(), options)
}

/// Which errors are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    All,
    /// Those that end the decoder: of types that decode themselves.
    Last,
}

/// An error of Go's decoder.
#[derive(Debug)]
enum Fault {
    /// An error of a text.
    Text(String),
    /// A value of another JSON type.
    Type(Box<Misfit>),
}

/// A value of another JSON type, and its place, which is collected from the inside.
#[derive(Debug)]
struct Misfit {
    found: String,
    expected: String,
    /// The innermost struct, and the fields without map keys and list indices, the innermost first.
    structure: Option<String>,
    fields: Vec<String>,
    /// The number of lists and maps between the value and the field of the innermost struct.
    depth: usize,
}

impl Misfit {
    fn new(shape: Shape<'_>, found: String) -> Self {
        Self {
            found,
            expected: go_type(shape),
            structure: None,
            fields: Vec::new(),
            depth: 0,
        }
    }

    /// The misfit within the value of a key of an object.
    fn within_key(mut self, shape: Shape<'_>, key: &str) -> Self {
        if shape.is_map() {
            return self.within_element();
        }
        let definition = shape.definition().unwrap_or_default();
        if self.structure.is_none() {
            if let Some(named) = go_type::named(definition, key, self.depth) {
                named.clone_into(&mut self.expected);
            }
            self.structure = shape.name().map(str::to_owned);
        }
        self.fields.push(key.to_owned());
        let embedded_by = go_type::embedding(definition, key);
        self.fields.extend(embedded_by.map(str::to_owned));
        self
    }

    /// The misfit within a value of a list or map.
    fn within_element(mut self) -> Self {
        if self.structure.is_none() {
            self.depth += 1;
        }
        self
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "json: cannot unmarshal {} into Go ", self.found)?;
        if self.fields.is_empty() {
            return write!(f, "value of type {}", self.expected);
        }
        let structure = self.structure.as_deref().unwrap_or_default();
        write!(f, "struct field {structure}")?;
        for field in self.fields.iter().rev() {
            write!(f, ".{field}")?;
        }
        write!(f, " of type {}", self.expected)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Type(misfit) => misfit.fmt(f),
        }
    }
}

fn find_fault(shape: Shape<'_>, value: &Value, search: Search) -> Option<Fault> {
    if shape.name() == Some("Quantity") {
        return quantity_error(value).map(Fault::Text);
    }
    if let Value::Array(items) = value
        && shape.format() == Some("byte")
    {
        let fault = || items.iter().find_map(|it| byte_fault(shape, it));
        return (search == Search::All).then(fault).flatten();
    }
    if let Some(found) = mismatch(shape, value) {
        let misfit = || Fault::Type(Box::new(Misfit::new(shape, found)));
        return (search == Search::All).then(misfit);
    }
    if let Some(mut alternatives) = shape.alternatives() {
        return match alternatives.find(|it| mismatch(*it, value).is_none()) {
            Some(shape) => find_fault(shape, value, search),
            None if shape.name() == Some("JSONSchemaPropsOrBool") => {
                Some(Fault::Text("boolean or JSON schema expected".to_owned()))
            }
            // Go's decoders of the other types ignore any other value.
            None => None,
        };
    }
    match value {
        // Bytes are no type that decodes itself.
        Value::String(_) if search == Search::Last && shape.format() == Some("byte") => {
            None
        }
        Value::String(text) => format::error(shape, text).map(Fault::Text),
        Value::Object(all) => all.iter().find_map(|(key, value)| {
            let fault = find_fault(shape.field(key), value, search)?;
            Some(match fault {
                Fault::Type(misfit) => {
                    Fault::Type(Box::new(misfit.within_key(shape, key)))
                }
                text @ Fault::Text(_) => text,
            })
        }),
        Value::Array(items) => items.iter().find_map(|it| {
            let fault = find_fault(shape.items(), it, search)?;
            Some(match fault {
                Fault::Type(misfit) => Fault::Type(Box::new(misfit.within_element())),
                text @ Fault::Text(_) => text,
            })
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The error of a quantity (`Quantity.UnmarshalJSON` in k8s.io/apimachinery): a string, or the
/// JSON text of any other value.
fn quantity_error(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    kubemu_admission::quantity_error(text.trim()).map(str::to_owned)
}

/// The type name of the value in Go's decoder, if the shape has another type.
fn mismatch(shape: Shape<'_>, value: &Value) -> Option<String> {
    let Some(expected) = shape.kind() else {
        return number_or_text(shape, value);
    };
    let found = match (value, expected) {
        (Value::Null, _)
        | (Value::Bool(_), "boolean")
        | (Value::String(_), "string")
        | (Value::Number(_), "number")
        | (Value::Array(_), "array")
        | (Value::Object(_), "object") => return None,
        (Value::Number(number), "integer") => {
            return (!fits(number, shape.format())).then(|| format!("number {number}"));
        }
        (Value::Bool(_), _) => "bool",
        (Value::Number(_), _) => "number",
        (Value::String(_), _) => "string",
        (Value::Array(_), _) => "array",
        (Value::Object(_), _) => "object",
    };
    Some(found.to_owned())
}

/// The bytes of a list of numbers, which Go's decoder also accepts as bytes; a null is a zero there.
pub(crate) fn bytes(items: &[Value]) -> Option<Vec<u8>> {
    items.iter().map(byte).collect()
}

fn byte(value: &Value) -> Option<u8> {
    match value {
        Value::Null => Some(0),
        _ => u8::try_from(value.as_u64()?).ok(),
    }
}

/// The error of a value in a list of bytes; `shape` is that of the bytes.
fn byte_fault(shape: Shape<'_>, value: &Value) -> Option<Fault> {
    if byte(value).is_some() {
        return None;
    }
    let found = match value {
        Value::Number(number) => format!("number {number}"),
        other => go_kind(other).to_owned(),
    };
    let misfit = Misfit {
        expected: "uint8".to_owned(),
        ..Misfit::new(shape, found)
    };
    Some(Fault::Type(Box::new(misfit.within_element())))
}

/// Whether a number fits into the Go type of the format.
fn fits(number: &Number, format: Option<&str>) -> bool {
    let whole = number.as_i64();
    match format {
        Some("int32") => whole.is_some_and(|it| i32::try_from(it).is_ok()),
        _ => whole.is_some(),
    }
}

/// The type error of a field that is either a number or a string; Go parses the number as 32
/// bits.
fn number_or_text(shape: Shape<'_>, value: &Value) -> Option<String> {
    if shape.format() != Some(NUMBER_OR_TEXT) {
        return None;
    }
    match value {
        Value::Null | Value::String(_) => None,
        Value::Number(number) if fits(number, Some("int32")) => None,
        Value::Number(number) => Some(format!("number {number}")),
        other => Some(go_kind(other).to_owned()),
    }
}

/// The approximate Go type of a shape; the package name is the version.
fn go_type(shape: Shape<'_>) -> String {
    if let Some(name) = shape.name().filter(|_| shape.kind() == Some("object")) {
        let version = shape.definition().and_then(|it| it.rsplit('.').nth(1));
        return format!("{}.{name}", version.unwrap_or("v1"));
    }
    match (shape.kind(), shape.format()) {
        (None, Some(NUMBER_OR_TEXT)) => "int32".to_owned(),
        (Some("boolean"), _) => "bool".to_owned(),
        (Some("integer"), format) => format.unwrap_or("int64").to_owned(),
        (Some("number"), _) => "float64".to_owned(),
        (Some("array"), _) => format!("[]{}", go_type(shape.items())),
        (Some("object"), _) => format!("map[string]{}", go_type(shape.values())),
        (Some(other), _) => other.to_owned(),
        (None, _) => match shape.name() {
            Some("JSON") => "v1.JSON".to_owned(),
            _ => "interface {}".to_owned(),
        },
    }
}

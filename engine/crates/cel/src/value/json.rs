//! Reads JSON with a declared type, and writes values as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubemu_gostd::base64::decode_url;
use serde_json::{Number, Value as Json};

use super::{List, Map, Text, Value};
use crate::name::Name;
use crate::time::{Timestamp, read_duration};
use crate::{ListKind, ListType, RunError, Type};

/// The type for JSON without a declared type.
pub(super) static DYN: Type = Type::Dyn;
pub(super) static DYN_LIST: ListType = ListType {
    item: Type::Dyn,
    kind: ListKind::Atomic,
};

/// Objects of at most this number of fields are searched linearly, which is faster than
/// hashing.
const SEARCHED: usize = 12;

/// The value of a field of a JSON object, the same as [`serde_json::Map::get`].
pub fn field<'v>(
    object: &'v serde_json::Map<String, Json>,
    name: &str,
) -> Option<&'v Json> {
    if object.len() > SEARCHED {
        return object.get(name);
    }
    let mut fields = object.iter();
    fields.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// [`field`], which first checks the index where the name was last found.
pub(crate) fn named<'v>(
    object: &'v serde_json::Map<String, Json>,
    name: &Name,
) -> Option<&'v Json> {
    if object.len() > SEARCHED {
        return object.get(name.text());
    }
    if let Some((key, value)) = object.iter().nth(name.last_index())
        && key == name.text()
    {
        return Some(value);
    }
    let mut fields = object.iter().enumerate();
    let (at, (_, value)) = fields.find(|(_, (key, _))| *key == name.text())?;
    name.set_last_index(at);
    Some(value)
}

/// Reads `json` with the type `ty`.
pub(super) fn read<'v>(json: &'v Json, ty: &'v Type) -> Result<Value<'v>, RunError> {
    match ty {
        Type::Dyn | Type::Any => Ok(read_untyped(json)),
        ty => read_typed(json, ty),
    }
}

pub(crate) fn read_untyped(json: &Json) -> Value<'_> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => untyped(number),
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => Value::List(List::Json(items, &DYN_LIST)),
        Json::Object(fields) => Value::Map(Map::Json(fields, &DYN)),
    }
}

fn read_typed<'v>(json: &'v Json, ty: &'v Type) -> Result<Value<'v>, RunError> {
    match (ty, json) {
        (Type::Null | Type::Nullable(_), Json::Null) => Ok(Value::Null),
        (Type::Nullable(inner), json) => read(json, inner),
        (Type::Optional(inner), json) => read(json, inner).map(Value::some),
        (_, Json::Null) => Err(no_null()),
        (Type::IntOrString, Json::Number(number)) if !number.is_i64() => {
            Err(no_int_or_string())
        }
        (Type::Bool, Json::Bool(value)) => Ok(Value::Bool(*value)),
        (Type::Int, Json::Number(number)) => number
            .as_i64()
            .map(Value::Int)
            .ok_or_else(|| mismatch("int", go_type(json))),
        (Type::Uint, Json::Number(number)) => number
            .as_u64()
            .map(Value::Uint)
            .ok_or_else(|| mismatch("uint", go_type(json))),
        (Type::Double, Json::Number(number)) => number
            .as_f64()
            .map(Value::Double)
            .ok_or_else(|| mismatch("float", go_type(json))),
        (Type::IntOrString, Json::Number(number)) => Ok(untyped(number)),
        (Type::String | Type::IntOrString, Json::String(text)) => {
            Ok(Value::String(Text::Borrowed(text)))
        }
        (
            Type::Bytes | Type::Timestamp | Type::Date | Type::Duration,
            Json::String(text),
        ) => read_text(text, ty),
        (Type::List(list), Json::Array(items)) => {
            Ok(Value::List(List::Json(items, list)))
        }
        (Type::Map(_) | Type::Object(_), Json::Object(entries)) => {
            Ok(Value::Map(Map::Json(entries, ty)))
        }
        (Type::IntOrString, _) => Err(no_int_or_string()),
        _ => Err(mismatch(wanted(ty), go_type(json))),
    }
}

/// Parses a JSON string for a type that is not a string.
pub(super) fn read_text<'v>(text: &str, ty: &Type) -> Result<Value<'v>, RunError> {
    match ty {
        Type::Bytes => {
            let bytes = decode_url(text).map_err(|why| {
                RunError::text(format!("Invalid byte formatted string {text}: {why}"))
            })?;
            Ok(Value::Bytes(bytes.into()))
        }
        Type::Timestamp => Timestamp::parse_lenient(text)
            .map(Value::Timestamp)
            .map_err(|why| malformed("date-time", text, &why)),
        Type::Date => Timestamp::parse_date(text)
            .map(Value::Timestamp)
            .map_err(|why| malformed("date", text, &why)),
        _ => read_duration(text)
            .map(Value::Duration)
            .map_err(|why| RunError::text(format!("Invalid duration {text}: {why}"))),
    }
}

fn malformed(format: &str, text: &str, why: &str) -> RunError {
    RunError::text(format!("Invalid {format} formatted string {text}: {why}"))
}

pub(super) fn no_int_or_string() -> RunError {
    RunError::text(
        "invalid data, expected XIntOrString value to be either a string or integer",
    )
}

pub(super) fn no_null() -> RunError {
    RunError::text("invalid data, got null for schema with nullable=false")
}

fn untyped(number: &Number) -> Value<'static> {
    match (number.as_i64(), number.as_f64()) {
        (Some(int), _) => Value::Int(int),
        (None, Some(double)) => Value::Double(double),
        (None, None) => Value::Null,
    }
}

pub(super) fn wanted(ty: &Type) -> &'static str {
    match ty {
        Type::Bool => "bool",
        Type::Int => "int",
        Type::Double => "float",
        Type::List(_) => "array",
        Type::Map(_) | Type::Object(_) => "map",
        _ => "string",
    }
}

/// The Go type of a JSON value.
fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}

/// The API server's messages contain Go types, so these do too.
pub(super) fn mismatch(wanted: &str, found: &str) -> RunError {
    RunError::text(match wanted {
        "array" => {
            "invalid data, expected an array for the provided schema with type=array"
                .to_owned()
        }
        "map" => "invalid data, expected a map for the provided schema with type=object"
            .to_owned(),
        wanted => format!("invalid data, expected {wanted}, got {found}"),
    })
}

impl Value<'_> {
    /// The value as JSON; values without a JSON form are written as text.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Null | Self::Optional(None) => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(value) => Json::from(*value),
            Self::Uint(value) => Json::from(*value),
            Self::Double(value) => Json::from(*value),
            Self::List(list) => list
                .iter()
                .map(|item| item.map_or(Json::Null, |item| item.to_json()))
                .collect(),
            Self::Map(map) => {
                let entries = map.entries().unwrap_or_default();
                let entries = entries
                    .iter()
                    .map(|(key, value)| (key.to_text(), value.to_json()));
                Json::Object(entries.collect())
            }
            Self::Struct(it) => {
                let fields = it.fields();
                let fields =
                    fields.map(|(name, value)| (name.to_owned(), value.to_json()));
                Json::Object(fields.collect())
            }
            Self::Optional(Some(value)) => value.to_json(),
            Self::Bytes(bytes) => Json::String(STANDARD.encode(bytes)),
            other => Json::String(other.to_text()),
        }
    }
}

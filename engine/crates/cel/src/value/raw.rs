//! The storage of a list of a custom resource. When items are added to such a list, the API
//! server converts them to Go values, loses their schema, and reads every item with the schema
//! of the list when it is used.

use std::sync::Arc;

use serde_json::Value as Json;

use super::{LibraryValue, List, Map, Text, Value, json};
use crate::{RunError, Type};

/// A value as it is stored: text for a timestamp, JSON for an object.
pub(super) fn of_json(json: &Json) -> Value<'_> {
    json::read_untyped(json)
}

/// The stored form of an item that is added to a list with items of this type; an error if the
/// API server cannot read it back.
pub(super) fn to_stored<'v>(
    item: Result<Value<'v>, RunError>,
    ty: &'v Type,
) -> Value<'v> {
    let Ok(item) = item else {
        return unreadable(&mismatch(ty, "*errors.errorString"));
    };
    if item.is_null() {
        return unreadable(&mismatch(ty, "structpb.NullValue"));
    }
    let plain = plain(item);
    match read(&plain, ty) {
        Ok(_) => plain,
        Err(error) => unreadable(&error),
    }
}

/// An error that replaces a value.
pub(crate) fn unreadable<'v>(error: &RunError) -> Value<'v> {
    Value::Library(LibraryValue::unconvertible(error))
}

/// The value without the schema that it was read with.
pub(crate) fn plain(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Map(Map::Json(fields, _)) => Value::Map(Map::Json(fields, &json::DYN)),
        Value::List(List::Json(items, _)) => {
            Value::List(List::Json(items, &json::DYN_LIST))
        }
        Value::List(List::Merged(items, ty)) if matches!(ty.item, Type::Dyn) => {
            let items = items.iter().cloned().map(plain).collect();
            Value::List(List::Merged(Arc::new(items), &json::DYN_LIST))
        }
        Value::List(List::Merged(items, _)) => {
            Value::List(List::Merged(items, &json::DYN_LIST))
        }
        Value::Optional(Some(inner)) => plain(Arc::unwrap_or_clone(inner)),
        Value::Optional(None) => Value::Null,
        other => other,
    }
}

/// Reads a stored value.
pub(super) fn read<'v>(stored: &Value<'v>, ty: &'v Type) -> Result<Value<'v>, RunError> {
    match (ty, stored) {
        (_, Value::Library(_)) => stored.clone().or_conversion_error(),
        (Type::Dyn | Type::Any, _)
        | (Type::Nullable(_), Value::Null)
        | (Type::IntOrString, Value::Int(_) | Value::String(_))
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_)) => Ok(stored.clone()),
        (Type::Nullable(inner), _) => read(stored, inner),
        (_, Value::Null) => Err(json::no_null()),
        (Type::Double, Value::Int(value)) => {
            Ok(Value::Double(super::convert::nearest(*value)))
        }
        (
            Type::Bytes | Type::Timestamp | Type::Date | Type::Duration,
            Value::String(text),
        ) => json::read_text(text, ty),
        (Type::List(list), Value::List(List::Json(items, _))) => {
            Ok(Value::List(List::Json(items, list)))
        }
        (Type::List(list), Value::List(List::Merged(items, _))) => {
            Ok(Value::List(List::Merged(Arc::clone(items), list)))
        }
        (Type::Map(_) | Type::Object(_), Value::Map(Map::Json(fields, _))) => {
            Ok(Value::Map(Map::Json(fields, ty)))
        }
        _ => Err(mismatch(ty, go_type(stored))),
    }
}

fn mismatch(ty: &Type, found: &str) -> RunError {
    match ty {
        Type::Nullable(inner) => mismatch(inner, found),
        Type::IntOrString => json::no_int_or_string(),
        ty => json::mismatch(json::wanted(ty), found),
    }
}

impl Value<'_> {
    /// The name of the Go type of the value's underlying value.
    pub(super) fn go_value_type(&self) -> &'static str {
        go_type(self)
    }
}

/// The name of the Go type of the value.
fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::String(_) | Value::Type(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::Timestamp(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::List(List::Owned(_)) => "[]ref.Val",
        Value::List(_) => "[]interface {}",
        Value::Map(Map::Owned(_)) => "map[ref.Val]ref.Val",
        Value::Map(Map::Json(..)) => "map[string]interface {}",
        Value::Struct(it) => it.go_type(),
        Value::Optional(_) => "*types.Optional",
        Value::Library(value) => value.go_type(),
        Value::Abstract(_) => "library.authorizerVal",
    }
}

/// The key by which the API server finds an item of a set, or of a keyed list: the Go value,
/// for which an integer and a float are never equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Identity<'v> {
    None,
    Bool(bool),
    Int(i64),
    /// The bits of a float; both zeros have the same bits.
    Double(u64),
    String(Text<'v>),
    /// The API server's text for four or more keys.
    Several(String),
}

impl<'v> Identity<'v> {
    /// The identity of a stored value. `None` if it equals no other value.
    ///
    /// # Errors
    /// If the value is not hashable in Go, such as a list.
    pub(crate) fn of(stored: &Value<'v>) -> Result<Option<Self>, RunError> {
        Ok(Some(match stored {
            Value::Null => Self::None,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Double(value) => Self::Double((value + 0.0).to_bits()),
            Value::String(text) => Self::String(text.clone()),
            Value::Bytes(_) => return unhashable("[]uint8"),
            Value::List(_) => return unhashable("[]interface {}"),
            Value::Map(_) => return unhashable("map[string]interface {}"),
            _ => return Ok(None),
        }))
    }

    /// The identity of an item of any list.
    ///
    /// # Errors
    /// As [`Identity::of`].
    pub(crate) fn of_item(item: Value<'v>) -> Result<Option<Self>, RunError> {
        match plain(item) {
            // A null that was read is no longer Go's nil.
            Value::Null => Ok(None),
            plain => Self::of(&plain),
        }
    }

    /// The identity of an item of a keyed list, by the names of its keys. `None` if it is not
    /// an object from the input.
    ///
    /// # Errors
    /// As [`Identity::of`].
    pub(crate) fn by_keys(
        stored: &Value<'v>,
        keys: &[String],
    ) -> Result<Option<Vec<Self>>, RunError> {
        let Value::Map(Map::Json(fields, _)) = stored else {
            return Ok(None);
        };
        let mut parts = Vec::with_capacity(keys.len());
        for key in keys {
            // The API server looks up the escaped name.
            let name = crate::escape(key);
            let value = json::field(fields, name.as_deref().unwrap_or(key));
            let value = value.map_or(Value::Null, of_json);
            match &value {
                // With several keys it uses their text, which every value has.
                _ if keys.len() > 3 => parts.push(Self::Several(value.to_text())),
                value => parts.extend(Self::of(value)?),
            }
        }
        if keys.len() > 3 {
            let texts = parts.into_iter().map(|part| match part {
                Self::Several(text) => text,
                _ => String::new(),
            });
            let all: Vec<String> = texts.collect();
            return Ok(Some(vec![Self::Several(all.join(" "))]));
        }
        Ok(Some(parts))
    }
}

fn unhashable<T>(go_type: &'static str) -> Result<T, RunError> {
    Err(RunError::Internal(match go_type {
        "[]uint8" => "runtime error: hash of unhashable type []uint8",
        "[]interface {}" => "runtime error: hash of unhashable type []interface {}",
        _ => "runtime error: hash of unhashable type map[string]interface {}",
    }))
}

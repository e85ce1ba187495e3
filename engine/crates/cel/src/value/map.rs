//! Maps and objects: borrowed JSON or computed.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map as JsonMap, Value as Json};

use super::{Value, json};
use crate::escape::unescaped;
use crate::name::Name;
use crate::ty::Declared;
use crate::{ObjectType, RunError, Type};

/// A map, or an object with declared fields.
#[derive(Clone, Debug)]
pub enum Map<'v> {
    /// A JSON object, read with a [`Type::Dyn`], [`Type::Map`] or [`Type::Object`].
    Json(&'v JsonMap<String, Json>, &'v Type),
    /// A computed map.
    Owned(Arc<Entries<'v>>),
}

/// The entries of a computed map, in insertion order.
#[derive(Clone, Debug, Default)]
pub struct Entries<'v> {
    entries: Vec<(Value<'v>, Value<'v>)>,
    index: HashMap<Key, usize>,
}

/// A key; numbers of equal value are the same key. The specification allows only booleans,
/// integers and text; the API server also accepts timestamps and durations. (It also accepts
/// fractions and null, which the specification's tests expect to be rejected.)
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Bool(bool),
    Int(i64),
    /// Above the greatest signed integer.
    Large(u64),
    String(Arc<str>),
    Timestamp(i64, u32),
    Duration(i64),
}

impl Key {
    fn of(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Uint(value) => {
                i64::try_from(*value).map_or(Self::Large(*value), Self::Int)
            }
            Value::Double(value) => Self::of(&super::convert::lossless_integer(*value)?)?,
            Value::Timestamp(instant) => {
                Self::Timestamp(instant.seconds(), instant.subsecond_nanos())
            }
            Value::Duration(duration) => Self::Duration(duration.nanos()),
            Value::String(text) => Self::String(Arc::from(&**text)),
            _ => return None,
        })
    }
}

impl<'v> Entries<'v> {
    /// Adds an entry.
    ///
    /// # Errors
    /// If the key's type is not allowed, or the key exists already.
    pub(crate) fn insert(
        &mut self,
        key: Value<'v>,
        value: Value<'v>,
    ) -> Result<(), RunError> {
        // The API server compares these by memory address, so none equals another.
        if matches!(
            key,
            Value::List(_) | Value::Map(_) | Value::Optional(_) | Value::Library(_)
        ) {
            self.entries.push((key, value));
            return Ok(());
        }
        if let Value::Bytes(_) = key {
            let words = "runtime error: hash of unhashable type types.Bytes";
            return Err(RunError::Internal(words));
        }
        let Some(hashed) = Key::of(&key) else {
            return Err(RunError::text(format!(
                "unsupported key type: {}",
                key.type_name()
            )));
        };
        if self.index.contains_key(&hashed) {
            let key = key.to_text();
            return Err(RunError::text(format!(
                "insert failed: key {key} already exists"
            )));
        }
        self.index.insert(hashed, self.entries.len());
        self.entries.push((key, value));
        Ok(())
    }

    /// Adds an entry, or replaces the one with the same key: in a literal the last one is kept.
    ///
    /// # Errors
    /// If the key's type is not allowed.
    pub(crate) fn set(
        &mut self,
        key: Value<'v>,
        value: Value<'v>,
    ) -> Result<(), RunError> {
        let place = Key::of(&key).and_then(|key| self.index.get(&key).copied());
        match place.and_then(|at| self.entries.get_mut(at)) {
            Some(entry) => {
                *entry = (key, value);
                Ok(())
            }
            None => self.insert(key, value),
        }
    }

    fn get(&self, key: &Value<'_>) -> Option<&Value<'v>> {
        let index = self.index.get(&Key::of(key)?)?;
        self.entries.get(*index).map(|(_, value)| value)
    }
}

/// A property as `==` of two objects reads it.
pub(super) enum Property<'v> {
    /// A value of the declared type.
    Value(Result<Value<'v>, RunError>),
    /// JSON that expressions cannot see.
    Untyped(&'v Json),
}

impl<'v> Map<'v> {
    /// The number of entries; fields of an object without a declaration are included.
    pub fn len(&self) -> usize {
        match self {
            Self::Json(entries, _) => entries.len(),
            Self::Owned(entries) => entries.entries.len(),
        }
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the API server stores it with a custom resource's schema. (Its own objects, such
    /// as the request of a policy, have no schema.)
    pub(crate) fn is_unstructured(&self) -> bool {
        match self {
            Self::Json(_, Type::Object(object)) => {
                !object.name().starts_with("kubernetes.")
            }
            Self::Json(_, ty) => !ty.is_dynamic(),
            Self::Owned(_) => false,
        }
    }

    /// The value of a key, `None` if the key does not exist.
    ///
    /// # Errors
    /// If the JSON value is not of the declared type.
    pub fn get(&self, key: &Value<'_>) -> Option<Result<Value<'v>, RunError>> {
        match self {
            Self::Json(..) => self.field(key.as_str()?),
            Self::Owned(entries) => entries.get(key).cloned().map(Ok),
        }
    }

    /// The value of a text key; for an object, of the field with this escaped name.
    ///
    /// # Errors
    /// If the JSON value is not of the declared type.
    pub fn field(&self, name: &str) -> Option<Result<Value<'v>, RunError>> {
        match self {
            Self::Json(fields, ty) => {
                let (json, ty) = match ty {
                    Type::Object(object) => Self::field_of(fields, object, name)?,
                    Type::Map(map) => (json::field(fields, name)?, &map.value),
                    _ => (json::field(fields, name)?, &json::DYN),
                };
                Some(json::read(json, ty))
            }
            Self::Owned(entries) => {
                entries.get(&Value::String(name.into())).cloned().map(Ok)
            }
        }
    }

    /// The field of this name in an object of this type, and the field's type.
    pub(crate) fn declared(
        fields: &'v JsonMap<String, Json>,
        ty: &'v Type,
        name: &Name,
    ) -> Option<(&'v Json, &'v Type)> {
        match ty {
            Type::Object(object) => Self::field_of(fields, object, name.text()),
            Type::Map(map) => Some((json::named(fields, name)?, &map.value)),
            _ => Some((json::named(fields, name)?, &json::DYN)),
        }
    }

    /// The value and the JSON of the property that `==` finds under this JSON name, `None` also
    /// if it is null. Kubernetes looks it up as if the name were escaped.
    pub(super) fn property(&self, name: &str) -> Option<Property<'v>> {
        let Self::Json(fields, Type::Object(object)) = self else {
            return self.field(name).map(Property::Value);
        };
        let name = unescaped(name)?;
        let declared = object.by_json(&name)?;
        let json = json::field(fields, &name).filter(|it| !it.is_null())?;
        Some(match declared {
            Declared::Typed(ty) => Property::Value(json::read(json, ty)),
            Declared::Untyped => Property::Untyped(json),
        })
    }

    fn field_of(
        fields: &'v JsonMap<String, Json>,
        object: &'v ObjectType,
        name: &str,
    ) -> Option<(&'v Json, &'v Type)> {
        let field = object.field(name)?;
        let json = json::field(fields, &field.json)?;
        // A field that is null is treated as absent.
        (!json.is_null()).then_some((json, &field.ty))
    }

    /// All keys, in input order.
    pub fn keys(&self) -> Vec<Value<'v>> {
        match self {
            Self::Json(entries, Type::Object(object)) => object
                .fields()
                .filter(|(_, field)| json::field(entries, &field.json).is_some())
                .map(|(name, _)| Value::String(name.into()))
                .collect(),
            Self::Json(entries, _) => entries
                .keys()
                .map(|key| Value::String(key.as_str().into()))
                .collect(),
            Self::Owned(entries) => {
                entries.entries.iter().map(|(key, _)| key.clone()).collect()
            }
        }
    }

    /// All entries, in input order.
    ///
    /// # Errors
    /// If any value's JSON is not of the declared type.
    pub fn entries(&self) -> Result<Vec<(Value<'v>, Value<'v>)>, RunError> {
        if let Self::Owned(entries) = self {
            return Ok(entries.entries.clone());
        }
        let entry = |key: Value<'v>| {
            let value = self.get(&key).unwrap_or(Ok(Value::Null))?;
            Ok((key, value))
        };
        self.keys().into_iter().map(entry).collect()
    }

    pub(crate) fn type_name(&self) -> &'v str {
        match self {
            Self::Json(_, Type::Object(object)) => object.name(),
            _ => "map",
        }
    }
}

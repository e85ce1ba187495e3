//! The values that expressions compute with.

mod convert;
mod equality;
mod json;
mod library_value;
mod list;
mod map;
mod may_be;
mod quantity;
mod raw;
mod semver;
mod structure;
mod text;

use std::fmt;
use std::sync::Arc;

use crate::time::{Duration, Timestamp};
use crate::{RunError, Type};

pub(crate) use convert::lossless_integer;
pub(crate) use equality::{order, same};
pub use json::field as json_field;
pub(crate) use json::{named, read_untyped as untyped};
pub use library_value::LibraryValue;
pub(crate) use library_value::{Cidr, Format, LibraryValueKind};
pub use list::List;
pub use map::{Entries, Map};
pub use quantity::{Quantity, quantity_error};
pub(crate) use raw::{plain, unreadable};
pub(crate) use semver::Semver;
pub use structure::Struct;
pub use text::Text;
pub(crate) use text::characters;

/// A value. Values read from JSON borrow from it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value<'v> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A float.
    Double(f64),
    /// Text.
    String(Text<'v>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A timestamp.
    Timestamp(Timestamp),
    /// A duration.
    Duration(Duration),
    /// A list.
    List(List<'v>),
    /// A map or an object.
    Map(Map<'v>),
    /// A value of a type with a name and fields, such as `JSONPatch{op: 'remove'}`.
    Struct(Arc<Struct<'v>>),
    /// An optional value.
    Optional(Option<Arc<Value<'v>>>),
    /// A type, such as `type(1)`.
    Type(Arc<str>),
    /// A value of one of Kubernetes' libraries, such as an IP address.
    Library(LibraryValue),
    /// An object of the host, such as an authorizer.
    Abstract(Arc<dyn Abstract>),
}

/// An object of the host. A library declares its functions and the host implements them.
pub trait Abstract: fmt::Debug + Send + Sync {
    /// The name of the object's type, such as `kubernetes.authorization.Authorizer`.
    fn type_name(&self) -> &str;

    /// Calls the function `name` on this object.
    ///
    /// # Errors
    /// Evaluation errors of the host.
    fn call<'v>(
        &self,
        name: &str,
        arguments: &[Value<'v>],
    ) -> Result<Value<'v>, RunError>;
}

impl<'v> Value<'v> {
    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The text, if it is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Reads JSON with a declared type.
    ///
    /// # Errors
    /// If the JSON is of another type, such as `5.0` where an integer is declared.
    pub fn from_json(
        json: &'v serde_json::Value,
        ty: &'v Type,
    ) -> Result<Self, RunError> {
        json::read(json, ty)
    }

    /// A string owned by the value.
    pub fn text(text: impl Into<String>) -> Self {
        Self::String(Text::from(text.into()))
    }

    /// An optional that has this value.
    pub fn some(value: Value<'v>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// The value, unless reading it back from an optional variable made it an error.
    pub(crate) fn or_conversion_error(self) -> Result<Self, RunError> {
        match &self {
            Self::Library(value) => value.conversion_error().map_or(Ok(self), Err),
            _ => Ok(self),
        }
    }

    /// The same value, with its text borrowed.
    pub(crate) fn borrowed(&'v self) -> Self {
        match self {
            Self::String(text) => Self::String(Text::Borrowed(text)),
            other => other.clone(),
        }
    }

    /// The value of an optional variable, as the API server reads it: values of libraries and
    /// the schema are lost, and a nested optional value is unwrapped.
    pub(crate) fn read_back(self) -> Self {
        match self {
            Self::Library(value) => Self::Library(value.read_back()),
            Self::Optional(Some(inner)) => Arc::unwrap_or_clone(inner).read_back(),
            Self::Optional(None) => Self::Null,
            other => plain(other),
        }
    }

    /// Rejects values that the API server does not look up in a list, map or object, with its
    /// message.
    pub(crate) fn as_qualifier(&self) -> Result<(), RunError> {
        match self {
            Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::String(_) => Ok(()),
            _ => self.go_type().map_or(Ok(()), |name| {
                Err(RunError::text(format!("invalid qualifier type: {name}")))
            }),
        }
    }

    /// The name of the Go type in which the API server stores the value; `None` for objects of
    /// the host.
    pub(crate) fn go_type(&self) -> Option<&'static str> {
        Some(match self {
            Self::Null => "types.Null",
            Self::Bool(_) => "types.Bool",
            Self::Int(_) => "types.Int",
            Self::Uint(_) => "types.Uint",
            Self::Double(_) => "types.Double",
            Self::String(_) => "types.String",
            Self::Bytes(_) => "types.Bytes",
            Self::Timestamp(_) => "types.Timestamp",
            Self::Duration(_) => "types.Duration",
            Self::List(List::Json(..)) => "[]interface {}",
            Self::List(List::Merged(_, ty)) if ty.item.is_dynamic() => {
                "*types.concatList"
            }
            Self::List(_) => "*types.baseList",
            Self::Map(Map::Json(..)) => "map[string]interface {}",
            Self::Map(Map::Owned(_)) => "*types.baseMap",
            Self::Struct(it) => it.go_type(),
            Self::Optional(_) => "*types.Optional",
            Self::Type(_) => "*types.Type",
            Self::Library(value) => value.go_type(),
            Self::Abstract(_) => return None,
        })
    }

    /// A list of these items.
    pub fn list(items: Vec<Value<'v>>) -> Self {
        Self::List(List::Owned(Arc::new(items)))
    }

    /// A map of these entries.
    ///
    /// # Errors
    /// If a key is of a type that cannot be one, or is there twice.
    pub fn map(entries: Vec<(Value<'v>, Value<'v>)>) -> Result<Self, RunError> {
        let mut created = Entries::default();
        for (key, value) in entries {
            created.insert(key, value)?;
        }
        Ok(Self::Map(Map::Owned(Arc::new(created))))
    }

    /// The name of the value's type at run time, as `type(x)` returns it.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::List(_) => "list",
            Self::Map(map) => map.type_name(),
            Self::Struct(it) => it.name(),
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Library(value) => value.type_name(),
            Self::Abstract(value) => value.type_name(),
        }
    }

    /// The size that the cost uses: 1 for values without a size.
    pub(crate) fn cost_size(&self) -> u64 {
        let size = match self {
            Self::String(text) => text::characters(text),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(list) => list.len(),
            Self::Map(map) => map.len(),
            Self::Library(value) => value.cost_size(),
            Self::Optional(Some(value)) => return value.cost_size(),
            _ => 1,
        };
        size as u64
    }
}

impl From<&str> for Value<'static> {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// `==` of the language, with an error as `false`.
impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        equality::equal(self, other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_small_because_each_evaluation_step_moves_it() {
        assert!(size_of::<Value<'_>>() <= 32);
        assert!(size_of::<Result<Value<'_>, RunError>>() <= 32);
    }
}

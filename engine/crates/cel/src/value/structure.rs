//! Values of types with a name and fields.

use std::mem::discriminant;
use std::sync::Arc;

use super::{Entries, List, Map, Value, equality};
use crate::RunError;

/// The type of a JSON patch's operation; all other types are of objects.
const JSON_PATCH: &str = "JSONPatch";

/// The maximum number of values in a field that is read from an object.
const MAX_READ_SIZE: usize = 100_000;

/// A value written with its type: `Object.spec{replicas: 1}`.
#[derive(Clone, Debug)]
pub struct Struct<'v> {
    name: Arc<str>,
    /// Fields in order of first appearance, each name once.
    fields: Vec<(Arc<str>, Value<'v>)>,
}

impl<'v> Struct<'v> {
    /// A value of the type without fields.
    pub(crate) fn new(name: &Arc<str>) -> Self {
        Self {
            name: Arc::clone(name),
            fields: Vec::new(),
        }
    }

    /// The name of the type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The field as written.
    pub fn field(&self, name: &str) -> Option<&Value<'v>> {
        let mut fields = self.fields.iter();
        let found = fields.find(|(known, _)| **known == *name);
        found.map(|(_, value)| value)
    }

    /// All fields as written.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value<'v>)> {
        self.fields.iter().map(|(name, value)| (&**name, value))
    }

    /// Sets a field; a later value replaces an earlier one.
    pub(crate) fn set(&mut self, name: &Arc<str>, value: Value<'v>) {
        match self.fields.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => self.fields.push((Arc::clone(name), value)),
        }
    }

    /// Removes a field.
    pub(crate) fn unset(&mut self, name: &str) {
        self.fields.retain(|(known, _)| **known != *name);
    }

    fn is_patch(&self) -> bool {
        *self.name == *JSON_PATCH
    }

    /// The same value, if its fields are of their declared types.
    ///
    /// # Errors
    /// If a field is declared as text and has another value, which the checker could not see.
    pub(crate) fn checked(self) -> Result<Self, RunError> {
        let mut texts = self.fields.iter().filter(|(name, _)| **name != *"value");
        let wrong = texts.find(|(_, value)| !matches!(value, Value::String(_)));
        match wrong {
            Some((name, value)) if self.is_patch() => Err(RunError::text(format!(
                "unexpected type {} for JSONPatchType '{name}' field",
                value.go_value_type()
            ))),
            _ => Ok(self),
        }
    }

    /// A field as expressions read it. An object returns the field's JSON form, and null for a
    /// field that is not set; an operation returns empty text.
    ///
    /// # Errors
    /// If the field contains more values than can be read at once.
    pub(crate) fn read(&self, name: &str) -> Result<Value<'v>, RunError> {
        match self.field(name) {
            Some(value) if self.is_patch() => Ok(value.clone()),
            Some(value) => structs_to_maps(value, &mut { MAX_READ_SIZE }),
            None if self.is_patch() && name != "value" => Ok(Value::text("")),
            None => Ok(Value::Null),
        }
    }

    /// Whether the field is set. Empty text of an operation is treated as not set.
    pub(crate) fn has(&self, name: &str) -> bool {
        let is_empty = |value: &Value<'v>| value.as_str().is_some_and(str::is_empty);
        self.field(name)
            .is_some_and(|value| name == "value" || !self.is_patch() || !is_empty(value))
    }

    /// Whether both are of one type with equal fields; numbers of different types are not equal
    /// here.
    pub(super) fn same(&self, other: &Self) -> bool {
        let is_same = |value: &Value<'v>, it: &Value<'v>| {
            discriminant(value) == discriminant(it) && equality::equal(value, it)
        };
        self.name == other.name
            && self.fields.len() == other.fields.len()
            && self.fields.iter().all(|(name, value)| {
                other.field(name).is_some_and(|it| is_same(value, it))
            })
    }

    /// Whether it has no fields.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    pub(super) fn go_type(&self) -> &'static str {
        if self.is_patch() {
            "*mutation.JSONPatchVal"
        } else {
            "*dynamic.ObjectVal"
        }
    }
}

impl<'v> From<Struct<'v>> for Value<'v> {
    fn from(made: Struct<'v>) -> Self {
        Self::Struct(Arc::new(made))
    }
}

/// The value with maps in place of objects that were written with their types.
fn structs_to_maps<'v>(
    value: &Value<'v>,
    left: &mut usize,
) -> Result<Value<'v>, RunError> {
    *left = left.checked_sub(1).ok_or_else(|| {
        RunError::text(format!(
            "field is too large: the maximum is {MAX_READ_SIZE}"
        ))
    })?;
    match value {
        Value::Struct(it) => {
            let mut entries = Entries::default();
            for (name, value) in it.fields() {
                entries.set(Value::text(name), structs_to_maps(value, left)?)?;
            }
            Ok(Value::Map(Map::Owned(entries.into())))
        }
        Value::List(List::Owned(items)) => {
            let items: Result<_, _> = items
                .iter()
                .map(|item| structs_to_maps(item, left))
                .collect();
            Ok(Value::list(items?))
        }
        Value::Map(map @ Map::Owned(_)) => {
            let mut entries = Entries::default();
            for (key, value) in map.entries()? {
                entries.set(key, structs_to_maps(&value, left)?)?;
            }
            Ok(Value::Map(Map::Owned(entries.into())))
        }
        Value::Optional(Some(value)) => structs_to_maps(value, left),
        Value::Optional(None) => Ok(Value::Null),
        other => Ok(other.clone()),
    }
}

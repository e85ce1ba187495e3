//! The fields of one manager, which stay as they are stored until a write changes them.

use std::borrow::Cow;
use std::mem;

use serde_json::{Map, Value};

use super::element::Element;
use super::fields;
use super::set::FieldSet;

/// The fields that a manager owns.
#[derive(Clone, Debug)]
pub(super) enum OwnedFields<'v> {
    /// As `fieldsV1`, which is what [`fields::encode`] makes of their set: most writes change the
    /// fields of one manager at most.
    Encoded(Cow<'v, Map<String, Value>>),
    /// As a set.
    Set(FieldSet),
}

impl Default for OwnedFields<'_> {
    fn default() -> Self {
        Self::Set(FieldSet::default())
    }
}

impl PartialEq for OwnedFields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.set() == other.set()
    }
}

impl<'v> OwnedFields<'v> {
    /// Parses a `fieldsV1` object; `None` if the value is not one.
    pub(super) fn decode(value: Cow<'v, Value>) -> Option<Self> {
        if !fields::is_encoded(&value) {
            return fields::decode(&value).map(Self::Set);
        }
        match value {
            Cow::Borrowed(value) => value.as_object().map(Cow::Borrowed),
            Cow::Owned(Value::Object(encoded)) => Some(Cow::Owned(encoded)),
            Cow::Owned(_) => None,
        }
        .map(Self::Encoded)
    }

    pub(super) fn encode(self) -> Value {
        match self {
            Self::Encoded(encoded) => Value::Object(encoded.into_owned()),
            Self::Set(set) => fields::encode(&set),
        }
    }

    pub(super) fn set(&self) -> Cow<'_, FieldSet> {
        match self {
            Self::Encoded(encoded) => {
                Cow::Owned(fields::decode_map(encoded).unwrap_or_default())
            }
            Self::Set(set) => Cow::Borrowed(set),
        }
    }

    pub(super) fn into_set(self) -> FieldSet {
        match self {
            Self::Encoded(encoded) => fields::decode_map(&encoded).unwrap_or_default(),
            Self::Set(set) => set,
        }
    }

    fn change(&mut self, change: impl FnOnce(&mut FieldSet)) {
        let mut set = mem::take(self).into_set();
        change(&mut set);
        *self = Self::Set(set);
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Encoded(encoded) => encoded.is_empty(),
            Self::Set(set) => set.is_empty(),
        }
    }

    pub(super) fn has_path(&self, path: &[Element]) -> bool {
        match self {
            Self::Encoded(encoded) => fields::has_path(encoded, path),
            Self::Set(set) => set.has_path(path),
        }
    }

    /// Whether one of the paths of `set` may be among them.
    pub(super) fn may_have_any(&self, set: &FieldSet) -> bool {
        match self {
            Self::Encoded(encoded) => fields::may_have_any(encoded, set),
            Self::Set(own) => !own.intersection(set).is_empty(),
        }
    }

    /// Removes the paths of `gone`; paths below them stay.
    pub(super) fn remove(&mut self, gone: &FieldSet) {
        match self {
            Self::Encoded(encoded) if !fields::may_have_any(encoded, gone) => {}
            _ => self.change(|own| own.remove(gone)),
        }
    }

    /// Adds every path of `more`.
    pub(super) fn extend(&mut self, more: FieldSet) {
        match self {
            Self::Encoded(encoded) if fields::has_all(encoded, &more) => {}
            _ => self.change(|own| own.extend(more)),
        }
    }
}

//! A field of an object during validation: its path and its value.

use std::fmt;
use std::rc::Rc;

use kubemu_admission::FieldError;
use serde_json::Value;

/// The errors found so far, in the order of Kubernetes' checks.
pub(super) type Errors = Vec<FieldError>;

static ABSENT: Value = Value::Null;

/// A field. The value of an absent field is null.
#[derive(Clone, Debug)]
pub(super) struct Field<'a> {
    /// Its path in error messages; empty for the object itself.
    pub(super) path: Path<'a>,
    /// Its value.
    pub(super) value: &'a Value,
}

/// The path of a field. It is formatted only for error messages: most fields are valid.
#[derive(Clone, Debug)]
pub(super) struct Path<'a>(Rc<Step<'a>>);

#[derive(Debug)]
enum Step<'a> {
    /// A whole path.
    Written(String),
    /// A field of an object.
    Field(Path<'a>, &'a str),
    /// An item of a list.
    Item(Path<'a>, usize),
    /// An entry of a map.
    Entry(Path<'a>, &'a str),
}

impl<'a> Path<'a> {
    fn field(&self, name: &'a str) -> Self {
        Self(Rc::new(Step::Field(self.clone(), name)))
    }

    fn item(&self, index: usize) -> Self {
        Self(Rc::new(Step::Item(self.clone(), index)))
    }

    fn entry(&self, key: &'a str) -> Self {
        Self(Rc::new(Step::Entry(self.clone(), key)))
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Step::Written(path) => f.write_str(path),
            Step::Field(parent, name) => write!(f, "{parent}.{name}"),
            Step::Item(parent, index) => write!(f, "{parent}[{index}]"),
            Step::Entry(parent, key) => write!(f, "{parent}[{key}]"),
        }
    }
}

impl From<String> for Path<'_> {
    fn from(path: String) -> Self {
        Self(Rc::new(Step::Written(path)))
    }
}

impl From<&str> for Path<'_> {
    fn from(path: &str) -> Self {
        path.to_owned().into()
    }
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> Self {
        path.to_string()
    }
}

impl From<&Path<'_>> for String {
    fn from(path: &Path<'_>) -> Self {
        path.to_string()
    }
}

impl<'a> Field<'a> {
    /// A field of an object by its name.
    pub(super) fn of(object: &'a Value, name: &str) -> Self {
        Self {
            path: name.into(),
            value: &object[name],
        }
    }

    /// The same value under another path.
    pub(super) fn at(&self, path: impl Into<Path<'a>>) -> Self {
        Self {
            path: path.into(),
            value: self.value,
        }
    }

    /// The path of a field in it.
    pub(super) fn path_of(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    /// A field in it, by name or by names that are separated by dots.
    pub(super) fn child(&self, name: &'a str) -> Self {
        let found = name
            .split('.')
            .try_fold(self.value, |at, name| at.get(name));
        Self {
            path: self.path.field(name),
            value: found.unwrap_or(&ABSENT),
        }
    }

    /// The items of a list.
    pub(super) fn items(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let all = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        let path = self.path.clone();
        all.iter().enumerate().map(move |(index, value)| Field {
            path: path.item(index),
            value,
        })
    }

    /// The entries of a map with their keys.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, Field<'a>)> + use<'a> {
        let path = self.path.clone();
        let all = self.value.as_object().into_iter().flatten();
        all.map(move |(key, value)| {
            let path = path.entry(key);
            (key.as_str(), Field { path, value })
        })
    }

    /// How many items or entries it has.
    pub(super) fn len(&self) -> usize {
        match self.value {
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        }
    }

    /// Whether it is present.
    pub(super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether it is `true`.
    pub(super) fn is_true(&self) -> bool {
        *self.value == true
    }

    /// Its string; empty if absent.
    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// Its number, if it is one.
    pub(super) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Its number; 0 if absent.
    pub(super) fn count(&self) -> i64 {
        self.number().unwrap_or_default()
    }

    /// The error for a value that is malformed or out of bounds.
    pub(super) fn invalid(&self, why: impl Into<String>) -> FieldError {
        FieldError::invalid(self.path.clone(), self.value.clone(), why)
    }

    /// As [`invalid`](Self::invalid), for a string; an absent one is shown as empty.
    pub(super) fn invalid_text(&self, why: impl Into<String>) -> FieldError {
        FieldError::invalid(self.path.clone(), self.text().into(), why)
    }

    /// The error for a missing value.
    pub(super) fn required(&self, why: &str) -> FieldError {
        FieldError::required(self.path.clone(), why)
    }

    /// The error for a field that must not be set.
    pub(super) fn forbidden(&self, why: impl Into<String>) -> FieldError {
        FieldError::forbidden(self.path.clone(), why)
    }

    /// The error for a duplicate value.
    pub(super) fn duplicate(&self) -> FieldError {
        FieldError::duplicate(self.path.clone(), self.value.clone())
    }

    /// The error for a value that is not in `known`.
    pub(super) fn not_supported(&self, known: &[&str]) -> FieldError {
        let value = self.text().into();
        FieldError::not_supported(self.path.clone(), value, known.iter().copied())
    }
}

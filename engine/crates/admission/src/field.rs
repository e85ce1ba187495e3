//! Field errors, with Kubernetes' error texts.

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::quote::{BadValue, Json, Quoted};

/// The kind of a field error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A referenced object does not exist.
    NotFound,
    /// A value is missing.
    Required,
    /// A value that must be unique is not.
    Duplicate,
    /// A value is malformed or out of range.
    Invalid,
    /// A value is not one of an enumeration.
    NotSupported,
    /// A value that is valid elsewhere is not allowed here.
    Forbidden,
    /// A value is too long; the value itself is not repeated.
    TooLong,
    /// A list or map has too many entries.
    TooMany,
    /// A list or map has too few entries.
    TooFew,
    /// The check itself failed.
    Internal,
    /// A value is not of the type declared in the schema.
    TypeInvalid,
}

impl ErrorKind {
    /// The machine-readable reason of a Status cause.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::Internal => "Internal error",
        }
    }

    /// Whether validation rules do not run after such an error: they may only read values whose
    /// type, size and presence have been validated.
    pub(crate) const fn blocks_rules(self) -> bool {
        matches!(
            self,
            Self::NotSupported
                | Self::Required
                | Self::TooLong
                | Self::TooMany
                | Self::TypeInvalid
        )
    }
}

/// One error of one field. Displayed as `<path>: <what>: <value>: <detail>`.
///
/// ```
/// use kubemu_admission::FieldError;
/// use serde_json::json;
///
/// let error = FieldError::invalid("spec.name", json!("a b"), "must not contain spaces");
/// assert_eq!(
///     error.to_string(),
///     r#"spec.name: Invalid value: "a b": must not contain spaces"#
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{path}: {}", self.body())]
#[non_exhaustive]
pub struct FieldError {
    /// The path, such as `spec.items[0].name` or `spec.labels[a.b]`; `<nil>` for the object
    /// itself.
    pub path: String,
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The invalid value, if the message contains it. Ignored by kinds that never print one.
    pub value: Option<Value>,
    /// The expected value; may be empty.
    pub detail: String,
}

/// The path that Kubernetes prints for errors of the object itself.
pub const ROOT: &str = "<nil>";

impl FieldError {
    fn with(
        path: impl Into<String>,
        kind: ErrorKind,
        value: Option<Value>,
        detail: String,
    ) -> Self {
        Self {
            path: path.into(),
            kind,
            value,
            detail,
        }
    }

    /// The value is malformed or out of range.
    pub fn invalid(
        path: impl Into<String>,
        value: Value,
        detail: impl Into<String>,
    ) -> Self {
        Self::with(path, ErrorKind::Invalid, Some(value), detail.into())
    }

    /// The value is malformed, and Kubernetes prints its internal form, `shown`.
    pub(crate) fn invalid_form(
        path: impl Into<String>,
        shown: &str,
        detail: impl std::fmt::Display,
    ) -> Self {
        let detail = format!("{shown}: {detail}");
        Self::with(path, ErrorKind::Invalid, None, detail)
    }

    /// The value is not of the declared type.
    pub fn type_invalid(
        path: impl Into<String>,
        value: Value,
        detail: impl Into<String>,
    ) -> Self {
        Self::with(path, ErrorKind::TypeInvalid, Some(value), detail.into())
    }

    /// A value is missing.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::with(path, ErrorKind::Required, None, detail.into())
    }

    /// The value occurs twice but must be unique.
    pub fn duplicate(path: impl Into<String>, value: Value) -> Self {
        Self::with(path, ErrorKind::Duplicate, Some(value), String::new())
    }

    /// The object that the value refers to does not exist.
    pub fn not_found(path: impl Into<String>, value: Value) -> Self {
        Self::with(path, ErrorKind::NotFound, Some(value), String::new())
    }

    /// The value is not allowed here.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::with(path, ErrorKind::Forbidden, None, detail.into())
    }

    /// The value is not one of `supported`.
    pub fn not_supported<'a>(
        path: impl Into<String>,
        value: Value,
        supported: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let quoted: Vec<_> = supported
            .into_iter()
            .map(|one| Quoted(one).to_string())
            .collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::with(path, ErrorKind::NotSupported, Some(value), detail)
    }

    /// The value is longer than `most`; Kubernetes' message says bytes even if the limit is in
    /// characters.
    pub fn too_long(path: impl Into<String>, most: u64) -> Self {
        let unit = if most == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {most} {unit}");
        Self::with(path, ErrorKind::TooLong, None, detail)
    }

    /// There are `found` entries, more than `most`.
    pub fn too_many(path: impl Into<String>, found: u64, most: u64) -> Self {
        let unit = if most == 1 { "item" } else { "items" };
        let detail = format!("must have at most {most} {unit}");
        Self::with(path, ErrorKind::TooMany, Some(found.into()), detail)
    }

    /// The check itself failed.
    pub fn internal(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::with(path, ErrorKind::Internal, None, detail.into())
    }

    /// The same error with this detail.
    #[must_use]
    pub fn because(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// The same error without its value.
    #[must_use]
    pub fn without_value(mut self) -> Self {
        self.value = None;
        self
    }

    /// The same error for a value whose Go type is a named type in Kubernetes, such as an
    /// enumeration value: it is printed as JSON, with other escapes than plain text.
    #[must_use]
    pub(crate) fn of_named_type(mut self) -> Self {
        if let Some(value) = self.value.take() {
            let shown = Json(&value).to_string();
            self.detail = if self.detail.is_empty() {
                shown
            } else {
                format!("{shown}: {}", self.detail)
            };
        }
        self
    }

    /// The message without the path, as in a Status cause.
    pub fn body(&self) -> String {
        let mut body = self.kind.text().to_owned();
        if let Some(value) = &self.value {
            body.push_str(": ");
            body.push_str(&BadValue(value).to_string());
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }

    /// The entry of a Status' `details.causes` for this error.
    pub fn cause(&self) -> Cause {
        Cause {
            reason: Some(self.kind.reason().to_owned()),
            message: self.body(),
            field: Some(self.path.clone()),
        }
    }
}

/// One entry of `details.causes` of a `metav1.Status`; serialises to its JSON form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cause {
    /// The machine-readable reason; absent in the causes of a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The error message.
    pub message: String,
    /// The field path; absent in the causes of a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// Several errors as one text: a single error as it is, more as `[first, second]`, with
/// duplicate texts removed.
///
/// ```
/// use kubemu_admission::{FieldError, field};
///
/// let errors = [FieldError::required("spec.a", ""), FieldError::required("spec.b", "")];
/// assert_eq!(
///     field::aggregate(&errors),
///     "[spec.a: Required value, spec.b: Required value]"
/// );
/// ```
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut seen = HashSet::new();
    let texts: Vec<String> = errors
        .iter()
        .map(ToString::to_string)
        .filter(|text| seen.insert(text.clone()))
        .collect();
    match texts.as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// A place inside an object during its validation; the text is only built for errors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'a> {
    /// The object itself.
    Root,
    /// A field of an object.
    Field(&'a Path<'a>, &'a str),
    /// An entry of a map.
    Key(&'a Path<'a>, &'a str),
    /// An item of a list.
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(crate) const fn field(&'a self, name: &'a str) -> Self {
        Path::Field(self, name)
    }

    pub(crate) const fn key(&'a self, name: &'a str) -> Self {
        Path::Key(self, name)
    }

    pub(crate) const fn index(&'a self, at: usize) -> Self {
        Path::Index(self, at)
    }

    const fn is_root(&self) -> bool {
        matches!(self, Path::Root)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root => Ok(()),
            Path::Field(parent, name) => {
                parent.write(f)?;
                if !parent.is_root() {
                    f.write_str(".")?;
                }
                f.write_str(name)
            }
            Path::Key(parent, name) => {
                parent.write(f)?;
                f.write_str("[")?;
                f.write_str(name)?;
                f.write_str("]")
            }
            Path::Index(parent, at) => {
                parent.write(f)?;
                write!(f, "[{at}]")
            }
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            f.write_str(ROOT)
        } else {
            self.write(f)
        }
    }
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> Self {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_kind_of_error_is_printed_as_in_kubernetes() {
        let rows = [
            (
                FieldError::invalid("a", json!({"b": 1}), "no"),
                r#"a: Invalid value: {"b":1}: no"#,
            ),
            (
                FieldError::invalid("a", Value::Null, "no"),
                "a: Invalid value: null: no",
            ),
            (
                FieldError::invalid("a", json!(1), "no").without_value(),
                "a: Invalid value: no",
            ),
            (FieldError::required("a", ""), "a: Required value"),
            (
                FieldError::not_found("a", json!("x")),
                r#"a: Not found: "x""#,
            ),
            (
                FieldError::duplicate("a[1]", json!("x")),
                r#"a[1]: Duplicate value: "x""#,
            ),
            (
                FieldError::not_supported("a", json!("x"), ["b", "c"]),
                r#"a: Unsupported value: "x": supported values: "b", "c""#,
            ),
            (
                FieldError::too_long("a", 1),
                "a: Too long: may not be more than 1 byte",
            ),
            (
                FieldError::too_many("a", 3, 2),
                "a: Too many: 3: must have at most 2 items",
            ),
            (FieldError::forbidden("a", "no"), "a: Forbidden: no"),
            (FieldError::internal("a", "no"), "a: Internal error: no"),
        ];
        for (error, text) in rows {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn a_path_joins_fields_with_dots_and_puts_keys_and_indices_in_brackets() {
        let root = Path::Root;
        let spec = root.field("spec");
        let labels = spec.field("labels");
        assert_eq!(labels.key("a.b").to_string(), "spec.labels[a.b]");
        let items = spec.field("items");
        assert_eq!(
            items.index(2).field("name").to_string(),
            "spec.items[2].name"
        );
        assert_eq!(root.to_string(), "<nil>");
    }

    #[test]
    fn duplicate_texts_are_removed() {
        let error = FieldError::required("a", "");
        assert_eq!(aggregate(&[error.clone(), error]), "a: Required value");
    }
}

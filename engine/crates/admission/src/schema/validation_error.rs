//! The errors of the validator, and their places.

use serde_json::Value;

use crate::FieldError;
use crate::field::{Path, ROOT};
use crate::quote::{Json, Quoted};

/// One error.
#[derive(Clone, Debug)]
pub(super) struct ValidationError {
    pub(super) field_error: FieldError,
    /// The validator's message; duplicate messages are reported once.
    sentence: String,
}

/// The result of one node for one value.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) errors: Vec<ValidationError>,
    /// The number of checks counted as matches; it selects the best failing branch.
    pub(super) matches: usize,
}

impl Outcome {
    pub(super) fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    pub(super) fn add(&mut self, error: ValidationError) {
        let is_duplicate = self.errors.iter().any(|one| one.sentence == error.sentence);
        if !is_duplicate {
            self.errors.push(error);
        }
    }

    pub(super) fn extend(&mut self, error: Option<ValidationError>) {
        if let Some(error) = error {
            self.add(error);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        if self.errors.is_empty() {
            self.errors = other.errors;
        } else {
            other.errors.into_iter().for_each(|error| self.add(error));
        }
    }
}

/// A place in the object, relative to the validator's root.
#[derive(Clone, Copy)]
pub(super) struct Location<'a> {
    pub(super) path: &'a Path<'a>,
    /// A prefix for paths, but not for messages: `status`, if only the status is validated.
    pub(super) prefix: &'a str,
    /// Whether the path starts with an entry of a map: messages then start with a dot.
    pub(super) dotted: bool,
}

impl<'a> Location<'a> {
    pub(super) const fn at<'b>(self, path: &'b Path<'b>) -> Location<'b>
    where
        'a: 'b,
    {
        Location {
            path,
            prefix: self.prefix,
            dotted: self.dotted,
        }
    }

    /// As [`Location::at`], for the entry of a map.
    pub(super) const fn entry<'b>(self, path: &'b Path<'b>) -> Location<'b>
    where
        'a: 'b,
    {
        let mut location = self.at(path);
        location.dotted |= matches!(self.path, Path::Root);
        location
    }

    /// The place in messages; empty for the root.
    fn name(self) -> String {
        let dot = if self.dotted { "." } else { "" };
        format!("{dot}{}", self.plain_name())
    }

    fn plain_name(self) -> String {
        match self.path {
            Path::Root => String::new(),
            path => path.to_string(),
        }
    }

    /// The place in the error's path.
    fn field(self) -> String {
        match (self.prefix, self.plain_name().as_str()) {
            ("", "") => ROOT.to_owned(),
            (prefix, "") => prefix.to_owned(),
            ("", name) => name.to_owned(),
            (prefix, name) => format!("{prefix}.{name}"),
        }
    }

    fn sentence(self, detail: &str) -> String {
        format!("{} in body {detail}", self.name())
    }

    fn error(
        self,
        detail: &str,
        error: impl FnOnce(String, String) -> FieldError,
    ) -> ValidationError {
        let sentence = self.sentence(detail);
        ValidationError {
            field_error: error(self.field(), sentence.clone()),
            sentence,
        }
    }

    pub(super) fn invalid(self, value: &Value, detail: &str) -> ValidationError {
        self.error(detail, |path, sentence| {
            FieldError::invalid(path, value.clone(), sentence)
        })
    }

    pub(super) fn wrong_type(self, wanted: &str, found: &str) -> ValidationError {
        let detail = format!("must be of type {wanted}: {}", Quoted(found));
        self.error(&detail, |path, sentence| {
            FieldError::type_invalid(path, found.into(), sentence)
        })
    }

    pub(super) fn required(self) -> ValidationError {
        self.error("is required", |path, _| FieldError::required(path, ""))
    }

    pub(super) fn too_long(self, most: i64) -> ValidationError {
        let detail = format!("should be at most {most} chars long");
        self.error(&detail, |path, _| match u64::try_from(most) {
            Ok(most) => FieldError::too_long(path, most),
            Err(_) => FieldError::too_long(path, 0).because("value is too long"),
        })
    }

    pub(super) fn too_many(self, found: i64, most: i64, what: &str) -> ValidationError {
        let detail = format!("should have at most {most} {what}");
        let unsigned = |number| u64::try_from(number).unwrap_or(0);
        self.error(&detail, |path, _| {
            let mut error = FieldError::too_many(path, unsigned(found), unsigned(most));
            if most < 0 {
                "has too many items".clone_into(&mut error.detail);
            }
            error
        })
    }

    pub(super) fn not_supported(
        self,
        value: &Value,
        allowed: &[Value],
    ) -> ValidationError {
        let texts: Vec<String> = allowed
            .iter()
            .map(|one| match one {
                Value::String(text) => text.clone(),
                other => Json(other).to_string(),
            })
            .collect();
        let detail = format!("should be one of {texts:?}");
        self.error(&detail, |path, _| {
            let supported = texts.iter().map(String::as_str);
            FieldError::not_supported(path, value.clone(), supported)
        })
    }

    pub(super) fn forbidden_property(self, name: &str) -> ValidationError {
        let sentence = format!("{}.{name} in body is a forbidden property", self.name());
        ValidationError {
            field_error: FieldError::invalid(self.field(), name.into(), sentence.clone()),
            sentence,
        }
    }

    /// An error about the value as a whole; the validator has the place only in the message,
    /// not in the path.
    pub(super) fn whole(self, detail: &str) -> ValidationError {
        self.plain(format!("{} {detail}", Quoted(&self.name())))
    }

    /// An error without a path.
    pub(super) fn plain(self, sentence: String) -> ValidationError {
        let path = if self.prefix.is_empty() {
            ROOT
        } else {
            self.prefix
        };
        ValidationError {
            field_error: FieldError::invalid(path, "".into(), sentence.clone()),
            sentence,
        }
    }

    /// An error with its own message about a value.
    pub(super) fn about(self, value: Value, sentence: String) -> ValidationError {
        ValidationError {
            field_error: FieldError::invalid(self.field(), value, sentence.clone()),
            sentence,
        }
    }

    /// The place in messages without "in body".
    pub(super) fn text(self) -> String {
        self.name()
    }
}

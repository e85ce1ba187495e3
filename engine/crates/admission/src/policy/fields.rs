//! Reads the JSON of policies: absent and null are the same, another type is an error.

use kubemu_cel::json_field;
use serde_json::Value;

use crate::FieldError;
use crate::field::Path;

/// One object of a manifest and its path.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a> {
    value: &'a Value,
    pub(super) path: &'a Path<'a>,
}

impl<'a> Fields<'a> {
    pub(super) const fn new(value: &'a Value, path: &'a Path<'a>) -> Self {
        Self { value, path }
    }

    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        let value = json_field(self.value.as_object()?, name);
        value.filter(|value| !value.is_null())
    }

    pub(super) fn text(self, name: &str, errors: &mut Vec<FieldError>) -> &'a str {
        match self.get(name) {
            None => "",
            Some(Value::String(text)) => text,
            Some(other) => {
                errors.push(self.wrong(name, other, "must be a string"));
                ""
            }
        }
    }

    /// An enumeration value; `None` if it is absent. Empty text is not absent and is an error.
    pub(super) fn word<const N: usize>(
        self,
        name: &str,
        known: [&'static str; N],
        errors: &mut Vec<FieldError>,
    ) -> Option<&'static str> {
        self.get(name)?;
        let mut wrong = Vec::new();
        let given = self.text(name, &mut wrong);
        let found = known.iter().find(|word| **word == given);
        if found.is_none() && wrong.is_empty() {
            let path = self.path.field(name);
            let error = FieldError::not_supported(path, given.into(), known);
            wrong.push(error.of_named_type());
        }
        errors.extend(wrong);
        found.copied()
    }

    pub(super) fn list(self, name: &str, errors: &mut Vec<FieldError>) -> &'a [Value] {
        match self.get(name) {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(other) => {
                errors.push(self.wrong(name, other, "must be an array"));
                &[]
            }
        }
    }

    /// The texts of a list. A null is an empty text, as for Go's decoder.
    pub(super) fn texts(self, name: &str, errors: &mut Vec<FieldError>) -> Vec<String> {
        let list = self.list(name, errors);
        let mut texts = Vec::with_capacity(list.len());
        let path = self.path.field(name);
        for (at, item) in list.iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text.clone()),
                Value::Null => texts.push(String::new()),
                other => {
                    let path = path.index(at);
                    let detail = "must be a string";
                    errors.push(FieldError::invalid(path, other.clone(), detail));
                }
            }
        }
        texts
    }

    fn wrong(self, name: &str, value: &Value, detail: &str) -> FieldError {
        FieldError::invalid(self.path.field(name), value.clone(), detail)
    }
}

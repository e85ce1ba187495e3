//! `additionalPrinterColumns`: the columns of a table of objects.

use serde_json::Value;

use super::definition::text;
use super::scale::simple_path_error;
use crate::FieldError;
use crate::field::Path;

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = [
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
];

/// The validation errors of the columns of `owner`, which is at `path`.
pub(super) fn errors(columns: &Value, path: &Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = path.field("additionalPrinterColumns");
    for (at, column) in columns.as_array().into_iter().flatten().enumerate() {
        check(column, &path.index(at), &mut errors);
    }
    errors
}

fn check(column: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if text(column, "name").is_empty() {
        errors.push(FieldError::required(path.field("name"), ""));
    }
    let given = text(column, "type");
    let detail = || format!("must be one of {}", TYPES.join(","));
    if given.is_empty() {
        errors.push(FieldError::required(path.field("type"), detail()));
    } else if !TYPES.contains(&given) {
        errors.push(FieldError::invalid(
            path.field("type"),
            given.into(),
            detail(),
        ));
    }
    let format = text(column, "format");
    if !format.is_empty() && !FORMATS.contains(&format) {
        let detail = format!("must be one of {}", FORMATS.join(","));
        errors.push(FieldError::invalid(
            path.field("format"),
            format.into(),
            detail,
        ));
    }
    let given = text(column, "jsonPath");
    let path = path.field("JSONPath");
    if given.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else {
        errors.extend(simple_path_error(path, given));
    }
}

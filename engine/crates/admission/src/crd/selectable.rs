//! `selectableFields`: the fields that a field selector may use.

use serde_json::Value;

use super::definition::text;
use crate::FieldError;
use crate::crd_rules::field_path;
use crate::field::Path;
use crate::schema::node::Node;

const MAX_SELECTABLE_FIELDS: usize = 8;

/// The validation errors of the fields, which are at `path`, for a schema.
pub(super) fn errors(fields: &Value, root: &Node, path: Path<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut known: Vec<String> = Vec::new();
    for (at, field) in fields.as_array().into_iter().flatten().enumerate() {
        let path = path.index(at);
        let path = path.field("jsonPath");
        let given = text(field, "jsonPath");
        if given.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        let mut refuse = |detail: &str| {
            errors.push(FieldError::invalid(path, given.into(), detail));
        };
        let (printed, node) = match follow(given, root) {
            Ok(found) => found,
            Err(why) => {
                refuse(&format!("is an invalid path: {why}"));
                continue;
            }
        };
        if printed == "metadata" || printed.starts_with("metadata.") {
            refuse("must not point to fields in metadata");
        }
        if !matches!(node.kind.as_str(), "string" | "boolean" | "integer") {
            refuse(
                "must point to a field of type string, boolean or integer. Enum string \
                 fields and strings with formats are allowed.",
            );
        }
        if known.contains(&printed) {
            errors.push(FieldError::duplicate(path, given.into()));
        } else {
            known.push(printed);
        }
    }
    if known.len() > MAX_SELECTABLE_FIELDS {
        let (found, most) = (known.len() as u64, MAX_SELECTABLE_FIELDS as u64);
        errors.push(FieldError::too_many(path, found, most));
    }
    errors
}

/// Follows a path of names; lists and quoted keys are not allowed in selectable fields.
fn follow<'a>(path: &str, root: &'a Node) -> Result<(String, &'a Node), String> {
    match path.find('[') {
        None => field_path::parse(path, root),
        Some(at) => {
            let before = path.get(..at).unwrap_or_default();
            field_path::parse(before, root)?;
            Err("array notation is not allowed".to_owned())
        }
    }
}

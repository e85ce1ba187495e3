//! The options of a write, which are query parameters.

pub(crate) mod delete;

use http::Method;
use kubemu_admission::FieldError;
use serde_json::{Value, json};

use crate::call::Call;
use crate::status::{Cause, Details, Reason, Status};

/// Maximum length of a field manager's name, in bytes.
const MANAGER_LIMIT: u64 = 128;

/// Validates the options of a write like Kubernetes' `ValidateCreateOptions` and its siblings
/// (k8s.io/apimachinery/pkg/apis/meta/v1/validation). Reads have no such options.
///
/// # Errors
/// 422 with a cause for each invalid option.
pub(crate) fn check(call: &Call) -> Result<(), Status> {
    call.query.check()?;
    let kind = match call.method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        Method::DELETE => "DeleteOptions",
        _ => return Ok(()),
    };
    let mut errors = Vec::new();
    if call.method == Method::PATCH {
        errors.extend(patch_errors(call));
    }
    if call.method != Method::DELETE {
        errors.extend(manager_errors(&call.query.field_manager));
    }
    let values = &call.query.dry_run_values;
    if values.iter().any(|it| it != "All") {
        errors.push(FieldError::not_supported("dryRun", json!(values), ["All"]));
    }
    let value = &call.query.field_validation_value;
    if call.method != Method::DELETE && !is_field_validation(value) {
        let known = ["", "Ignore", "Strict", "Warn"];
        errors.push(FieldError::not_supported(
            "fieldValidation",
            json!(value),
            known,
        ));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(invalid(kind, &errors))
    }
}

fn is_field_validation(value: &str) -> bool {
    matches!(value, "" | "Ignore" | "Strict" | "Warn")
}

fn patch_errors(call: &Call) -> Option<FieldError> {
    let applies = call.media_type() == "application/apply-patch+yaml";
    if !applies && call.query.has_force {
        let why = "may not be specified for non-apply patch";
        return Some(FieldError::forbidden("force", why));
    }
    let is_missing = applies && call.query.field_manager.is_empty();
    is_missing
        .then(|| FieldError::required("fieldManager", "is required for apply patch"))
}

fn manager_errors(name: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if u64::try_from(name.len()).is_ok_and(|it| it > MANAGER_LIMIT) {
        errors.push(FieldError::too_long("fieldManager", MANAGER_LIMIT));
    }
    let unprintable = name.char_indices().filter(|(_, it)| it.is_control());
    errors.extend(unprintable.map(|(at, it)| {
        let code = u32::from(it);
        let why = format!("invalid character U+{code:04X} (at position {at})");
        FieldError::invalid("fieldManager", Value::from(name), why)
    }));
    errors
}

/// 422 for invalid options of a kind.
pub(crate) fn invalid(kind: &str, errors: &[FieldError]) -> Status {
    let list = kubemu_admission::field::aggregate(errors);
    let text = format!("{kind}.meta.k8s.io \"\" is invalid: {list}");
    let causes = errors.iter().map(|it| Cause::from(it.cause()));
    Status::new(422, Reason::Invalid, text).with_details(Details {
        group: "meta.k8s.io".to_owned(),
        kind: kind.to_owned(),
        causes: causes.collect(),
        ..Details::default()
    })
}

//! Validation that config maps and secrets share: keys must be file names, limits, immutability
//! (pkg/apis/core/validation).

use kubemu_admission::FieldError;
use serde_json::Value;

/// The entries of a map.
pub(super) fn entries<'a>(
    object: &'a Value,
    field: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object[field].as_object().into_iter().flatten()
}

/// The errors for keys that are not file names, and for changes of immutable data.
pub(super) fn errors(
    object: &Value,
    old: Option<&Value>,
    fields: &[&str],
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in fields {
        for (key, _) in entries(object, field) {
            let path = format!("{field}[{key}]");
            let wrong = key_errors(key).into_iter();
            errors
                .extend(wrong.map(|it| {
                    FieldError::invalid(path.clone(), key.as_str().into(), it)
                }));
            if *field == "data" && object["binaryData"].get(key).is_some() {
                let why = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(path, key.as_str().into(), why));
            }
        }
    }
    let Some(old) = old.filter(|old| old["immutable"] == true) else {
        return errors;
    };
    let why = "field is immutable when `immutable` is set";
    if object["immutable"] != true {
        errors.push(FieldError::forbidden("immutable", why));
    }
    let changed = fields.iter().filter(|it| object[**it] != old[**it]);
    errors.extend(changed.map(|it| FieldError::forbidden(*it, why)));
    errors
}

/// The errors of a key of a config map or a secret.
pub(super) fn key_errors(key: &str) -> Vec<String> {
    const MAX_KEY_LENGTH: usize = 253;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let mut wrong = Vec::new();
    if key.len() > MAX_KEY_LENGTH {
        wrong.push(format!("must be no more than {MAX_KEY_LENGTH} characters"));
    }
    if key.is_empty() || !key.chars().all(allowed) {
        wrong.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' \
             (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
             '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    if key == "." || key == ".." {
        wrong.push(format!("must not be '{key}'"));
    } else if key.starts_with("..") {
        wrong.push("must not start with '..'".to_owned());
    }
    wrong
}

/// The maximum size of the data of a config map or a secret in bytes (`MaxSecretSize`).
const MAX_DATA_SIZE: usize = 1024 * 1024;

/// The error if the data is too large.
pub(super) fn size_error(path: &str, size: usize) -> Option<FieldError> {
    (size > MAX_DATA_SIZE).then(|| FieldError::too_long(path, MAX_DATA_SIZE as u64))
}

/// The number of bytes that a base64 string encodes.
pub(super) fn decoded_size(text: &Value) -> usize {
    let text = text.as_str().unwrap_or_default().bytes();
    text.filter(|it| !b"=\r\n".contains(it)).count() * 3 / 4
}

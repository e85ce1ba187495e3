//! Cells and validation that persistent volumes and claims share.

use kubemu_admission::FieldError;
use serde_json::Value;

use super::{column, items, resource_name};

/// The access modes, in the order in which they are shown, with their abbreviations.
const MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

/// Access modes as a table shows them.
pub(super) fn modes(modes: &Value) -> Value {
    let all = column::list(modes);
    let shown = MODES
        .iter()
        .filter(|(mode, _)| all.iter().any(|it| it == mode));
    let shown: Vec<&str> = shown.map(|(_, short)| *short).collect();
    shown.join(",").into()
}

/// A string, or `<unset>`.
pub(super) fn or_unset(value: &Value) -> Value {
    value.as_str().unwrap_or("<unset>").into()
}

/// The amount of storage in a list; empty if absent.
pub(super) fn storage(list: &Value) -> Value {
    let amount = resource_name::quantity(&list["storage"]);
    amount.map(|it| it.to_string()).unwrap_or_default().into()
}

/// The errors of the access modes of a spec.
pub(super) fn mode_errors(spec: &Value) -> Vec<FieldError> {
    let path = "spec.accessModes";
    let modes: Vec<&str> = items(spec, "accessModes")
        .filter_map(|(_, it)| it.as_str())
        .collect();
    let mut errors = Vec::new();
    if modes.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    let mut known = MODES.map(|(mode, _)| mode);
    known.sort_unstable();
    for mode in modes.iter().filter(|it| !known.contains(it)) {
        errors.push(FieldError::not_supported(path, (*mode).into(), known));
    }
    let alone = "ReadWriteOncePod";
    let others = modes.iter().any(|it| *it != alone && known.contains(it));
    if modes.contains(&alone) && others {
        let why = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(path, why));
    }
    errors
}

/// The error of the volume mode.
pub(super) fn volume_mode_errors(spec: &Value) -> Option<FieldError> {
    let value = spec["volumeMode"].as_str()?;
    let known = ["Block", "Filesystem"];
    let path = "spec.volumeMode";
    (!known.contains(&value))
        .then(|| FieldError::not_supported(path, value.into(), known))
}

//! Validation of user and group IDs against the ranges of a policy.

use kubemu_admission::FieldError;
use serde_json::{Value, json};

use crate::plugin::pod::{list, text};

/// The minimum of the first range, which is the default for a pod without an ID.
pub(super) fn least(strategy: &Value) -> Option<Value> {
    if text(strategy, "rule") != "MustRunAs" {
        return None;
    }
    let first = list(strategy, "ranges").first()?;
    Some(first["min"].as_i64().unwrap_or_default().into())
}

fn is_in_range(strategy: &Value, id: i64) -> bool {
    list(strategy, "ranges").iter().any(|range| {
        let end = |name: &str| range[name].as_i64().unwrap_or_default();
        (end("min")..=end("max")).contains(&id)
    })
}

/// The ranges in Go's format.
fn ranges_text(strategy: &Value) -> String {
    let ranges = list(strategy, "ranges").iter().map(|range| {
        let end = |name: &str| range[name].as_i64().unwrap_or_default();
        format!("{{{} {}}}", end("min"), end("max"))
    });
    format!("[{}]", ranges.collect::<Vec<_>>().join(" "))
}

/// The errors of the groups at `path`.
pub(super) fn group_errors(
    strategy: &Value,
    path: &str,
    groups: &[i64],
) -> Vec<FieldError> {
    let rule = text(strategy, "rule");
    if !matches!(rule, "MustRunAs" | "MayRunAs") {
        return Vec::new();
    }
    let ranges = ranges_text(strategy);
    if groups.is_empty() && rule == "MustRunAs" {
        let why = "unable to validate empty groups against required ranges";
        return vec![FieldError::invalid(path, json!([]), why)];
    }
    let wrong = groups.iter().filter(|it| !is_in_range(strategy, **it));
    wrong
        .map(|group| {
            let why = format!("group {group} must be in the ranges: {ranges}");
            FieldError::invalid(path, json!(groups), why)
        })
        .collect()
}

/// The errors of a container's user; `path` is that of its security context.
pub(super) fn user_errors(
    strategy: &Value,
    path: &str,
    user: &Value,
    non_root: &Value,
) -> Vec<FieldError> {
    let of_user = format!("{path}.runAsUser");
    let number = user.as_i64();
    let mut errors = Vec::new();
    match text(strategy, "rule") {
        "MustRunAs" => match number {
            None => errors.push(FieldError::required(of_user, "")),
            Some(id) if !is_in_range(strategy, id) => {
                let why = format!("must be in the ranges: {}", ranges_text(strategy));
                errors.push(FieldError::invalid(of_user, user.clone(), why));
            }
            Some(_) => {}
        },
        "MustRunAsNonRoot" => {
            let of_root = format!("{path}.runAsNonRoot");
            if non_root.is_null() && number.is_none() {
                errors.push(FieldError::required(of_root.clone(), "must be true"));
            }
            if *non_root == false {
                let value = non_root.clone();
                errors.push(FieldError::invalid(of_root, value, "must be true"));
            }
            if number == Some(0) {
                let why = "running with the root UID is forbidden";
                errors.push(FieldError::invalid(of_user, user.clone(), why));
            }
        }
        _ => {}
    }
    errors
}

/// The errors of the SELinux options at `path`.
pub(super) fn selinux_errors(
    strategy: &Value,
    path: &str,
    options: &Value,
) -> Vec<FieldError> {
    if text(strategy, "rule") != "MustRunAs" {
        return Vec::new();
    }
    if !options.is_object() {
        return vec![FieldError::required(path, "")];
    }
    let required = &strategy["seLinuxOptions"];
    let fields = ["level", "role", "type", "user"].into_iter();
    let wrong = fields.filter(|it| text(required, it) != text(options, it));
    wrong
        .map(|field| {
            let why = format!("must be {}", text(required, field));
            let value = text(options, field).into();
            FieldError::invalid(format!("{path}.{field}"), value, why)
        })
        .collect()
}

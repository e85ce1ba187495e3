//! Validation rules that many kinds share (pkg/apis/core/validation and
//! k8s.io/apimachinery/pkg/util/validation).

mod address;
mod condition;
mod selector;

use std::ops::RangeInclusive;

use kubemu_admission::{FieldError, name};
use serde_json::Value;

use super::field::{Errors, Field};

pub(super) use address::{
    address, canonical_address, canonical_network, interface_address, network, reachable,
};
pub(super) use condition::conditions;
pub(super) use selector::{is_readable, labels, matches_template, mismatch, selector};

/// Validates that a number is not negative. An absent number is zero.
pub(super) fn non_negative(field: &Field<'_>, errors: &mut Errors) {
    if field.count() < 0 {
        errors.push(field.invalid("must be greater than or equal to 0"));
    }
}

/// Validates that a number is greater than zero. An absent number is zero.
pub(super) fn positive(field: &Field<'_>, errors: &mut Errors) {
    if field.count() <= 0 {
        errors.push(invalid_number(field, "must be greater than 0"));
    }
}

/// The same as [`positive`], with the other of Kubernetes' two messages.
pub(super) fn above_zero(field: &Field<'_>, errors: &mut Errors) {
    if field.count() <= 0 {
        errors.push(invalid_number(field, "must be greater than zero"));
    }
}

/// Validates that a number is within bounds. An absent number is zero.
pub(super) fn between(
    field: &Field<'_>,
    bounds: RangeInclusive<i64>,
    errors: &mut Errors,
) {
    if !bounds.contains(&field.count()) {
        let (least, most) = (bounds.start(), bounds.end());
        let why = format!("must be between {least} and {most}, inclusive");
        errors.push(invalid_number(field, &why));
    }
}

/// The error of a number; an absent one is shown as zero.
fn invalid_number(field: &Field<'_>, why: &str) -> FieldError {
    FieldError::invalid(field.path.clone(), field.count().into(), why)
}

/// Validates a user or group ID, if set.
pub(super) fn id(field: &Field<'_>, errors: &mut Errors) {
    if field.is_set() {
        between(field, 0..=i64::from(i32::MAX), errors);
    }
}

/// Validates a port number.
pub(super) fn port(field: &Field<'_>, errors: &mut Errors) {
    between(field, 1..=65535, errors);
}

/// Validates a port number or port name.
pub(super) fn port_or_name(field: &Field<'_>, errors: &mut Errors) {
    if field.value.is_string() {
        for wrong in port_name(field.text()) {
            errors.push(field.invalid(wrong));
        }
    } else {
        port(field, errors);
    }
}

/// The errors of a port name.
pub(super) fn port_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 15 {
        wrong.push("must be no more than 15 characters");
    }
    let plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    if text.is_empty() || !text.bytes().all(plain) {
        wrong.push(
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        );
    }
    if !text.bytes().any(|it| it.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)");
    }
    if text.contains("--") {
        wrong.push("must not contain consecutive hyphens");
    }
    if text.starts_with('-') || text.ends_with('-') {
        wrong.push("must not begin or end with a hyphen");
    }
    wrong.into_iter().map(str::to_owned).collect()
}

/// Protocols of ports.
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// Validates the protocol of a port.
pub(super) fn protocol(field: &Field<'_>, errors: &mut Errors) {
    one_of(field, PROTOCOLS, errors);
}

/// Validates that a string is one of the known values; an empty one is missing.
pub(super) fn one_of(field: &Field<'_>, known: &[&str], errors: &mut Errors) {
    let value = field.text();
    if value.is_empty() {
        errors.push(field.required(""));
    } else if !known.contains(&value) {
        errors.push(field.not_supported(known));
    }
}

/// Validates that a string is one of the known values, if set.
pub(super) fn one_of_if_set(field: &Field<'_>, known: &[&str], errors: &mut Errors) {
    if field.is_set() && !known.contains(&field.text()) {
        errors.push(field.not_supported(known));
    }
}

/// Validates a string with `check`.
pub(super) fn text(
    field: &Field<'_>,
    check: impl Fn(&str) -> Vec<String>,
    errors: &mut Errors,
) {
    let wrong = check(field.text()).into_iter();
    errors.extend(wrong.map(|it| field.invalid_text(it)));
}

/// As [`text`], if the string is not empty.
pub(super) fn text_if_set(
    field: &Field<'_>,
    check: impl Fn(&str) -> Vec<String>,
    errors: &mut Errors,
) {
    if !field.text().is_empty() {
        text(field, check, errors);
    }
}

/// Validates a DNS label.
pub(super) fn dns_label(field: &Field<'_>, errors: &mut Errors) {
    text(field, name::dns_label, errors);
}

/// Validates a DNS subdomain.
pub(super) fn dns_subdomain(field: &Field<'_>, errors: &mut Errors) {
    text(field, name::dns_subdomain, errors);
}

/// Validates a qualified name, such as a label key.
pub(super) fn qualified_name(field: &Field<'_>, errors: &mut Errors) {
    text(field, name::label_key, errors);
}

/// Validates that a field has not changed.
pub(super) fn immutable(field: &Field<'_>, old: &Field<'_>, errors: &mut Errors) {
    if field.value != old.value {
        errors.push(field.invalid("field is immutable"));
    }
}

/// Validates an int-or-percentage that is not negative.
pub(super) fn int_or_percent(field: &Field<'_>, errors: &mut Errors) {
    match field.value {
        Value::String(text) if percent(text).is_none() => errors.push(field.invalid(
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. \
             '1%',  or '93%', regex used for validation is '[0-9]+%')",
        )),
        Value::String(_) => {}
        _ => non_negative(field, errors),
    }
}

/// Validates that a percentage is at most 100%.
pub(super) fn at_most_100_percent(field: &Field<'_>, errors: &mut Errors) {
    if field
        .value
        .as_str()
        .and_then(percent)
        .is_some_and(|it| it > 100)
    {
        errors.push(field.invalid("must not be greater than 100%"));
    }
}

/// The number of a percentage; `None` if the string is not a percentage.
fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// The number of an int-or-percentage; zero if it is neither.
pub(super) fn int_or_percent_value(value: &Value) -> i64 {
    let text = || value.as_str();
    let number = value.as_i64().or_else(|| text()?.parse().ok());
    let share = text()
        .and_then(percent)
        .map(|it| i64::try_from(it).unwrap_or(i64::MAX));
    share.or(number).unwrap_or_default()
}

/// Validates a path within a directory: relative and without `..`.
pub(super) fn local_path(field: &Field<'_>, errors: &mut Errors) {
    if field.text().starts_with('/') {
        errors.push(field.invalid("must be a relative path"));
    }
    path_without_parent(field, errors);
}

/// Validates a path without `..`.
pub(super) fn path_without_parent(field: &Field<'_>, errors: &mut Errors) {
    if has_parent_step(field.text()) {
        errors.push(field.invalid("must not contain '..'"));
    }
}

/// Whether a path contains `..`.
pub(super) fn has_parent_step(path: &str) -> bool {
    path.split('/').any(|it| it == "..")
}

/// Validates a path within a directory that does not start with `..`.
pub(super) fn local_file(field: &Field<'_>, errors: &mut Errors) {
    local_path(field, errors);
    let text = field.text();
    if text.starts_with("..") && !text.starts_with("../") {
        errors.push(field.invalid("must not start with '..'"));
    }
}

/// Validates the mode of a file, if set.
pub(super) fn file_mode(field: &Field<'_>, errors: &mut Errors) {
    if field.number().is_some_and(|it| !(0..=0o777).contains(&it)) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(field.invalid(why));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_percentage_has_its_number_as_value() {
        let rows = [
            (json!(3), 3),
            (json!("25%"), 25),
            (json!("4"), 4),
            (json!("some"), 0),
            (json!(null), 0),
        ];
        for (value, expected) in rows {
            assert_eq!(int_or_percent_value(&value), expected, "{value}");
        }
    }

    #[test]
    fn a_port_name_contains_a_letter() {
        assert_eq!(port_name("web-1"), Vec::<String>::new());
        assert_eq!(port_name("80"), ["must contain at least one letter (a-z)"]);
        assert_eq!(port_name("-a").len(), 1);
    }
}

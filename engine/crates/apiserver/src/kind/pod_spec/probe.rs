//! Probes and lifecycle hooks of a container.

use kubemu_admission::FieldError;

use crate::kind::field::{Errors, Field};
use crate::kind::rule;

/// Validates the lifecycle hooks.
pub(super) fn lifecycle(field: &Field<'_>, grace: Option<i64>, errors: &mut Errors) {
    for name in ["postStart", "preStop"] {
        let hook = field.child(name);
        if hook.is_set() {
            handler(&hook, grace, errors);
        }
    }
}

/// Validates a liveness or startup probe, whose success threshold must be 1.
pub(super) fn liveness(field: &Field<'_>, grace: Option<i64>, errors: &mut Errors) {
    if !field.is_set() {
        return;
    }
    probe(field, grace, errors);
    let threshold = field.child("successThreshold");
    if threshold.count() != 1 {
        errors.push(threshold.invalid("must be 1"));
    }
}

/// Validates a readiness probe.
pub(super) fn readiness(field: &Field<'_>, grace: Option<i64>, errors: &mut Errors) {
    if !field.is_set() {
        return;
    }
    probe(field, grace, errors);
    let own = field.child("terminationGracePeriodSeconds");
    if own.is_set() {
        errors.push(own.invalid("must not be set for readinessProbes"));
    }
}

fn probe(field: &Field<'_>, grace: Option<i64>, errors: &mut Errors) {
    handler(field, grace, errors);
    for number in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        rule::non_negative(&field.child(number), errors);
    }
    let own = field.child("terminationGracePeriodSeconds");
    if own.is_set() {
        rule::positive(&own, errors);
    }
}

/// Validates a handler, which must have one action.
fn handler(field: &Field<'_>, grace: Option<i64>, errors: &mut Errors) {
    let mut count = 0;
    for name in ["exec", "httpGet", "tcpSocket", "grpc", "sleep"] {
        let action = field.child(name);
        if !action.is_set() {
            continue;
        }
        count += 1;
        if count > 1 {
            let why = "may not specify more than 1 handler type";
            errors.push(action.forbidden(why));
            continue;
        }
        match name {
            "exec" => {
                let command = action.child("command");
                errors.extend((command.len() == 0).then(|| command.required("")));
            }
            "httpGet" => http_get(&action, errors),
            "tcpSocket" => rule::port_or_name(&action.child("port"), errors),
            "grpc" => rule::port(&action.child("port"), errors),
            _ => sleep(&action, grace, errors),
        }
    }
    if count == 0 {
        errors.push(field.required("must specify a handler type"));
    }
}

fn http_get(action: &Field<'_>, errors: &mut Errors) {
    let path = action.child("path");
    if path.text().is_empty() {
        errors.push(path.required(""));
    }
    rule::port_or_name(&action.child("port"), errors);
    let scheme = action.child("scheme");
    if !["HTTP", "HTTPS"].contains(&scheme.text()) {
        errors.push(scheme.not_supported(&["HTTP", "HTTPS"]));
    }
    let headers = action.child("httpHeaders");
    for header in headers.items() {
        let name = header.child("name").text();
        let is_plain = |it: u8| it.is_ascii_alphanumeric() || it == b'-';
        if name.is_empty() || !name.bytes().all(is_plain) {
            let why = "a valid HTTP header must consist of alphanumeric characters or '-' \
                 (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
            let path = headers.path.clone();
            errors.push(FieldError::invalid(path, name.into(), why));
        }
    }
}

fn sleep(action: &Field<'_>, grace: Option<i64>, errors: &mut Errors) {
    let seconds = action.child("seconds").count();
    let Some(grace) = grace.filter(|most| !(0..=*most).contains(&seconds)) else {
        return;
    };
    let why = format!(
        "must be non-negative and less than terminationGracePeriodSeconds ({grace})"
    );
    let path = action.path.clone();
    errors.push(FieldError::invalid(path, seconds.into(), why));
}

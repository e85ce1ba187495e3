//! Container ports and host ports.

use std::collections::BTreeSet;

use kubemu_admission::FieldError;

use super::Spec;
use crate::kind::field::{Errors, Field};
use crate::kind::rule;

/// Validates the ports of a container.
pub(super) fn ports(list: &Field<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for port in list.items() {
        let name = port.child("name");
        if !name.text().is_empty() {
            let wrong = rule::port_name(name.text());
            if wrong.is_empty() && !names.insert(name.text()) {
                errors.push(name.duplicate());
            }
            errors.extend(wrong.into_iter().map(|it| name.invalid(it)));
        }
        let number = port.child("containerPort");
        if number.count() == 0 {
            errors.push(number.required(""));
        } else {
            rule::port(&number, errors);
        }
        let host = port.child("hostPort");
        if host.count() != 0 {
            rule::port(&host, errors);
        }
        rule::protocol(&port.child("protocol"), errors);
    }
}

/// The errors for duplicate host ports.
pub(super) fn unique_host_ports<'a>(
    containers: impl Iterator<Item = Field<'a>>,
    errors: &mut Errors,
) {
    let mut seen = BTreeSet::new();
    for container in containers {
        for port in container.child("ports").items() {
            let host = port.child("hostPort");
            if host.count() == 0 {
                continue;
            }
            let protocol = port.child("protocol").text();
            let address = port.child("hostIP").text();
            let key = format!("{protocol}/{address}/{}", host.count());
            if !seen.insert(key.clone()) {
                errors.push(FieldError::duplicate(host.path, key.into()));
            }
        }
    }
}

/// Validates that host ports equal the container ports in the host network.
pub(super) fn host_ports(spec: &Spec<'_>, errors: &mut Errors) {
    if !spec.shares_host_network() {
        return;
    }
    for container in spec.child("containers").items() {
        for port in container.child("ports").items() {
            let host = port.child("hostPort");
            let required = spec.owner.is_pod() || host.count() != 0;
            if required && host.count() != port.child("containerPort").count() {
                let value = host.count().into();
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(host.path, value, why));
            }
        }
    }
}

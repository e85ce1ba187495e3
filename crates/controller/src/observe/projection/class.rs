//! The index terms about classes: who uses them, and who has which of their hosts.

use serde_json::Value;

use fivespot_runtime::Key;

/// The index term of the ScheduledMachines that name a class.
pub(crate) fn class_term(class: &str) -> String {
    format!("class {class}")
}

/// The index term of the ScheduledMachines in whose status a host of a class is recorded.
pub(crate) fn host_term(class: &str, host: &str) -> String {
    format!("host {host} of {class}")
}

/// The index term of the claims of a ScheduledMachine.
pub(crate) fn claims_term(holder: &Key) -> String {
    format!("claims of {holder}")
}

/// The index term of the ScheduledMachines of a namespace that name any class.
pub(super) fn used_in(namespace: &str) -> String {
    format!("classes in {namespace}")
}

/// The index term of the ScheduledMachines of a namespace that name a class.
pub(crate) fn limited_term(class: &str, namespace: &str) -> String {
    format!("class {class} in {namespace}")
}

/// The class of a ScheduledMachine and the host that is recorded in its status.
pub(super) fn recorded_host(object: &Value) -> Option<(&str, &str)> {
    let class = object["spec"]["classRef"]["name"].as_str()?;
    Some((class, object["status"]["host"].as_str()?))
}

/// The index terms of a ScheduledMachine with a class.
pub(super) fn terms(object: &Value, own: &Key) -> Vec<String> {
    let Some(class) = object["spec"]["classRef"]["name"].as_str() else {
        return Vec::new();
    };
    let host = recorded_host(object).map(|(class, host)| host_term(class, host));
    let namespace = &own.namespace;
    let terms = [
        class_term(class),
        used_in(namespace),
        limited_term(class, namespace),
    ];
    terms.into_iter().chain(host).collect()
}

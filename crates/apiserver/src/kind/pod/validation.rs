//! What is wrong with a pod (pkg/apis/core/validation).
//!
//! Checked is what a client that makes pods gets wrong: containers with their names, images,
//! ports and policies, and the pod's own policies. The sources of volumes, probes, affinity
//! and security contexts are taken as the schema allows them.

use std::collections::BTreeSet;

use fivespot_admission::{FieldError, name};
use serde_json::Value;

use super::change;
use crate::kind::{items, text};

/// The rules that a pod breaks.
pub(super) fn errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &object["spec"];
    let mut errors = Vec::new();
    if spec["containers"].as_array().is_none_or(Vec::is_empty) {
        errors.push(FieldError::required("spec.containers", ""));
    }
    for list in ["containers", "initContainers"] {
        let mut names = BTreeSet::new();
        for (index, container) in items(spec, list) {
            let path = format!("spec.{list}[{index}]");
            container_errors(container, &path, &mut errors);
            let named = text(container, "name");
            if !names.insert(named) {
                let at = format!("{path}.name");
                errors.push(FieldError::duplicate(at, named.into()));
            }
        }
    }
    let policies = ["Always", "OnFailure", "Never"];
    errors.extend(one_of(spec, "spec", "restartPolicy", &policies));
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    errors.extend(one_of(spec, "spec", "dnsPolicy", &policies));
    for field in ["serviceAccountName", "nodeName"] {
        let said = text(spec, field);
        let wrong = name::dns_subdomain(said).into_iter();
        errors.extend(wrong.filter(|_| !said.is_empty()).map(|wrong| {
            FieldError::invalid(format!("spec.{field}"), said.into(), wrong)
        }));
    }
    if let Some(seconds) = spec["activeDeadlineSeconds"].as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let why = "must be between 1 and 2147483647, inclusive";
        let path = "spec.activeDeadlineSeconds";
        errors.push(FieldError::invalid(path, seconds.into(), why));
    }
    if let Some(old) = old {
        errors.extend(change::errors(spec, &old["spec"]));
    }
    errors
}

/// The error of a field that has none of the known values.
fn one_of(object: &Value, path: &str, field: &str, known: &[&str]) -> Option<FieldError> {
    let value = text(object, field);
    let error = || {
        let path = format!("{path}.{field}");
        FieldError::not_supported(path, value.into(), known.iter().copied())
    };
    (!known.contains(&value)).then(error)
}

fn container_errors(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let at = format!("{path}.name");
    let named = text(container, "name");
    if named.is_empty() {
        errors.push(FieldError::required(at, ""));
    } else {
        let wrong = name::dns_label(named).into_iter();
        errors.extend(wrong.map(|it| FieldError::invalid(at.clone(), named.into(), it)));
    }
    if text(container, "image").is_empty() {
        errors.push(FieldError::required(format!("{path}.image"), ""));
    }
    let messages = ["File", "FallbackToLogsOnError"];
    let field = "terminationMessagePolicy";
    errors.extend(one_of(container, path, field, &messages));
    for (index, port) in items(container, "ports") {
        port_errors(port, &format!("{path}.ports[{index}]"), errors);
    }
    for (index, variable) in items(container, "env") {
        if text(variable, "name").is_empty() {
            let at = format!("{path}.env[{index}].name");
            errors.push(FieldError::required(at, ""));
        }
    }
    let policies = ["Always", "IfNotPresent", "Never"];
    errors.extend(one_of(container, path, "imagePullPolicy", &policies));
}

fn port_errors(port: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for field in ["containerPort", "hostPort"] {
        let number = port[field].as_i64().unwrap_or_default();
        let at = format!("{path}.{field}");
        if number == 0 && field == "containerPort" {
            errors.push(FieldError::required(at, ""));
        } else if number != 0 && !(1..=65535).contains(&number) {
            let why = "must be between 1 and 65535, inclusive";
            errors.push(FieldError::invalid(at, number.into(), why));
        }
    }
    errors.extend(one_of(port, path, "protocol", &["SCTP", "TCP", "UDP"]));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::default::fill_in;
    use super::*;

    #[test]
    fn what_is_wrong_with_a_container_is_said_by_field() {
        let mut pod = json!({"spec": {"containers": [{"name": "A B"},
            {"name": "c", "image": "c", "ports": [{"containerPort": 70000}]},
            {"name": "c", "image": "c", "imagePullPolicy": "Often"}]}});
        fill_in(&mut pod);
        let found: Vec<_> = errors(&pod, None).into_iter().map(|it| it.path).collect();
        let expected = [
            "spec.containers[0].name",
            "spec.containers[0].image",
            "spec.containers[1].ports[0].containerPort",
            "spec.containers[2].imagePullPolicy",
            "spec.containers[2].name",
        ];
        assert_eq!(found, expected);
    }
}

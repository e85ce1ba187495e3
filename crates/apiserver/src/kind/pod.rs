//! Pods: what is filled in, and what is checked.
//!
//! Checked is what a client that makes pods gets wrong: containers with their names, images,
//! ports and policies, and the pod's own policies. The sources of volumes, probes, affinity
//! and security contexts are taken as the schema allows them.

mod change;

use std::collections::BTreeSet;

use fivespot_admission::{FieldError, name};
use serde_json::{Map, Value, json};

use super::{items, text};
use crate::meta;

type Fields = Map<String, Value>;

fn fill(fields: &mut Fields, name: &str, value: impl Into<Value>) {
    fields.entry(name).or_insert_with(|| value.into());
}

fn each<'a>(fields: &'a mut Fields, list: &str) -> impl Iterator<Item = &'a mut Fields> {
    let items = fields.get_mut(list).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn part<'a>(fields: &'a mut Fields, name: &str) -> Option<&'a mut Fields> {
    fields.get_mut(name)?.as_object_mut()
}

/// Fills in what a pod leaves unsaid (pkg/apis/core/v1/defaults.go).
pub(super) fn default(object: &mut Value) {
    let fields = meta::fields(object);
    let spec = meta::field(fields, "spec");
    same_account(spec);
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill(spec, "schedulerName", "default-scheduler");
    fill(spec, "enableServiceLinks", true);
    for list in ["initContainers", "containers"] {
        each(spec, list).for_each(default_container);
    }
    each(spec, "volumes").for_each(default_volume);
    same_address(meta::field(fields, "status"));
}

/// Both fields that name the service account say the same.
fn same_account(spec: &mut Fields) {
    let said = ["serviceAccountName", "serviceAccount"]
        .into_iter()
        .find_map(|key| spec.get(key).cloned());
    if let Some(account) = said {
        spec.insert("serviceAccountName".to_owned(), account.clone());
        spec.insert("serviceAccount".to_owned(), account);
    }
}

/// The address is the first of the addresses.
fn same_address(status: &mut Fields) {
    let first = status
        .get("podIPs")
        .and_then(|all| all.get(0)?.get("ip"))
        .cloned();
    match (status.get("podIP").cloned(), first) {
        (Some(one), first) if first.as_ref() != Some(&one) => {
            status.insert("podIPs".to_owned(), json!([{"ip": one}]));
        }
        (None, Some(first)) => {
            status.insert("podIP".to_owned(), first);
        }
        _ => {}
    }
}

fn default_container(container: &mut Fields) {
    let image = container.get("image").and_then(Value::as_str);
    let policy = if tag(image.unwrap_or_default()) == Some("latest") {
        "Always"
    } else {
        "IfNotPresent"
    };
    fill(container, "imagePullPolicy", policy);
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    for port in each(container, "ports") {
        fill(port, "protocol", "TCP");
    }
    for variable in each(container, "env") {
        if let Some(source) =
            part(variable, "valueFrom").and_then(|it| part(it, "fieldRef"))
        {
            fill(source, "apiVersion", "v1");
        }
    }
    if let Some(resources) = part(container, "resources") {
        let limits = resources.get("limits").and_then(Value::as_object).cloned();
        for (name, limit) in limits.into_iter().flatten() {
            fill(meta::field(resources, "requests"), &name, limit);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = part(container, probe) {
            fill(probe, "timeoutSeconds", 1);
            fill(probe, "periodSeconds", 10);
            fill(probe, "successThreshold", 1);
            fill(probe, "failureThreshold", 3);
            if let Some(request) = part(probe, "httpGet") {
                fill(request, "path", "/");
                fill(request, "scheme", "HTTP");
            }
        }
    }
}

/// The tag of an image; `latest` for one that says neither tag nor digest.
fn tag(image: &str) -> Option<&str> {
    if image.is_empty() || image.contains('@') {
        return None;
    }
    let last = image.rsplit('/').next().unwrap_or_default();
    Some(last.split_once(':').map_or("latest", |(_, tag)| tag))
}

fn default_volume(volume: &mut Fields) {
    if volume.keys().all(|it| it == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = part(volume, source) {
            fill(source, "defaultMode", 0o644);
        }
    }
    if let Some(path) = part(volume, "hostPath") {
        fill(path, "type", "");
    }
}

/// How a new pod is ranked when a node runs out of memory.
pub(super) fn quality(object: &Value) -> &'static str {
    let spec = &object["spec"];
    let all = || {
        let lists = ["initContainers", "containers"];
        lists.into_iter().flat_map(|list| items(spec, list))
    };
    let counted = |of: &Value| {
        let named = of.as_object().into_iter().flatten();
        named
            .filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"))
            .count()
    };
    let asks = |it: &Value| {
        counted(&it["resources"]["requests"]) + counted(&it["resources"]["limits"]) > 0
    };
    let is_guaranteed = |it: &Value| {
        let (limits, requests) =
            (&it["resources"]["limits"], &it["resources"]["requests"]);
        counted(limits) == 2
            && ["cpu", "memory"]
                .iter()
                .all(|it| limits[it] == requests[it])
    };
    if !all().any(|(_, it)| asks(it)) {
        "BestEffort"
    } else if all().all(|(_, it)| is_guaranteed(it)) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// What is wrong with a pod (pkg/apis/core/validation).
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
    one_of(
        spec,
        ("spec", "restartPolicy"),
        &["Always", "OnFailure", "Never"],
        &mut errors,
    );
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(spec, ("spec", "dnsPolicy"), &policies, &mut errors);
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

fn one_of(
    object: &Value,
    (path, field): (&str, &str),
    known: &[&str],
    errors: &mut Vec<FieldError>,
) {
    let said = text(object, field);
    if !known.contains(&said) {
        let path = format!("{path}.{field}");
        let known = known.iter().copied();
        errors.push(FieldError::not_supported(path, said.into(), known));
    }
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
    let place = (path, "terminationMessagePolicy");
    one_of(container, place, &messages, errors);
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
    one_of(container, (path, "imagePullPolicy"), &policies, errors);
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
    one_of(port, (path, "protocol"), &["SCTP", "TCP", "UDP"], errors);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_tag_is_the_latest() {
        let rows = [
            ("example.com/c", Some("latest")),
            ("example.com:5000/c", Some("latest")),
            ("example.com:5000/c:v1", Some("v1")),
            ("c@sha256:0123", None),
            ("", None),
        ];
        for (image, expected) in rows {
            assert_eq!(tag(image), expected, "{image}");
        }
    }

    #[test]
    fn a_pod_is_ranked_by_what_its_containers_ask_for() {
        let ranked = |resources: Value| {
            let container = json!({"name": "c", "resources": resources});
            quality(&json!({"spec": {"containers": [container]}}))
        };
        let all = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(ranked(json!({})), "BestEffort");
        assert_eq!(ranked(json!({"requests": {"cpu": "1"}})), "Burstable");
        let guaranteed = json!({"limits": all, "requests": all});
        assert_eq!(ranked(guaranteed), "Guaranteed");
    }

    #[test]
    fn what_is_wrong_with_a_container_is_said_by_field() {
        let mut pod = json!({"spec": {"containers": [{"name": "A B"},
            {"name": "c", "image": "c", "ports": [{"containerPort": 70000}]},
            {"name": "c", "image": "c", "imagePullPolicy": "Often"}]}});
        default(&mut pod);
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

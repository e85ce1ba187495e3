//! Defaulting of the spec of pods and pod templates (pkg/apis/core/v1/defaults.go).

use serde_json::{Map, Value, json};

use super::image;
use crate::kind::resource_name;
use crate::meta;

/// The fields of a JSON object.
pub(in crate::kind) type Fields = Map<String, Value>;

/// Sets a field that is absent. An empty string that is left was sent for a field that Kubernetes
/// distinguishes from an absent one.
pub(in crate::kind) fn fill(fields: &mut Fields, name: &str, value: impl Into<Value>) {
    if fields.get(name).is_none_or(Value::is_null) {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Sets a number that is absent or zero.
pub(in crate::kind) fn fill_number(fields: &mut Fields, name: &str, number: i64) {
    if fields.get(name).and_then(Value::as_i64).unwrap_or_default() == 0 {
        fields.insert(name.to_owned(), number.into());
    }
}

/// The objects of a list.
pub(in crate::kind) fn each<'a>(
    fields: &'a mut Fields,
    list: &str,
) -> impl Iterator<Item = &'a mut Fields> {
    let items = fields.get_mut(list).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// The object in a field, if there is one.
pub(in crate::kind) fn part<'a>(
    fields: &'a mut Fields,
    name: &str,
) -> Option<&'a mut Fields> {
    fields.get_mut(name)?.as_object_mut()
}

/// Defaults a pod template.
pub(in crate::kind) fn template(template: &mut Fields) {
    meta::field(template, "metadata");
    spec(meta::field(template, "spec"));
}

/// Defaults the parts of a spec that a preset adds to pods.
pub(in crate::kind) fn preset(spec: &mut Fields) {
    variables(spec);
    each(spec, "volumes").for_each(volume);
}

/// Defaults a spec.
pub(in crate::kind) fn spec(spec: &mut Fields) {
    same_account(spec);
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "restartPolicy", "Always");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill(spec, "schedulerName", "default-scheduler");
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, list).for_each(container);
    }
    each(spec, "volumes").for_each(volume);
    if let Some(overhead) = part(spec, "overhead") {
        resource_name::canonical(overhead);
    }
    if let Some(resources) = part(spec, "resources") {
        amounts(resources);
    }
}

/// Sets both fields with the service account's name to the same value.
fn same_account(spec: &mut Fields) {
    let value = ["serviceAccountName", "serviceAccount"]
        .into_iter()
        .find_map(|key| spec.get(key).cloned());
    if let Some(account) = value {
        spec.insert("serviceAccountName".to_owned(), account.clone());
        spec.insert("serviceAccount".to_owned(), account);
    }
}

fn amounts(resources: &mut Fields) {
    for list in ["limits", "requests"] {
        if let Some(list) = part(resources, list) {
            resource_name::canonical(list);
        }
    }
}

/// Defaults the environment variables of a container.
fn variables(container: &mut Fields) {
    for variable in each(container, "env") {
        if let Some(source) = part(variable, "valueFrom") {
            reference(source);
        }
    }
}

fn container(container: &mut Fields) {
    fill_pull_policy(container, "image", "imagePullPolicy");
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    for port in each(container, "ports") {
        fill(port, "protocol", "TCP");
    }
    variables(container);
    if let Some(resources) = part(container, "resources") {
        amounts(resources);
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = part(container, probe) {
            fill_number(probe, "timeoutSeconds", 1);
            fill_number(probe, "periodSeconds", 10);
            fill_number(probe, "successThreshold", 1);
            fill_number(probe, "failureThreshold", 3);
            handler(probe);
        }
    }
    if let Some(lifecycle) = part(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            part(lifecycle, hook).map(handler);
        }
    }
}

fn handler(handler: &mut Fields) {
    if let Some(request) = part(handler, "httpGet") {
        fill(request, "path", "/");
        fill(request, "scheme", "HTTP");
    }
    if let Some(call) = part(handler, "grpc") {
        fill(call, "service", "");
    }
}

/// Defaults a reference to a field or a resource of the pod.
fn reference(source: &mut Fields) {
    if let Some(field) = part(source, "fieldRef") {
        fill(field, "apiVersion", "v1");
    }
    if let Some(resource) = part(source, "resourceFieldRef") {
        fill(resource, "divisor", "0");
        if let Some(divisor) = resource_name::quantity(&resource["divisor"]) {
            resource.insert("divisor".to_owned(), divisor.to_string().into());
        }
    }
}

fn fill_pull_policy(fields: &mut Fields, image: &str, policy: &str) {
    let image = fields.get(image).and_then(Value::as_str);
    let is_latest = image::tag(image.unwrap_or_default()) == Some("latest");
    let word = if is_latest { "Always" } else { "IfNotPresent" };
    fill(fields, policy, word);
}

fn volume(volume: &mut Fields) {
    if volume.keys().all(|it| it == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = part(volume, source) {
            fill(source, "defaultMode", 0o644);
            each(source, "items").for_each(reference);
        }
    }
    if let Some(projected) = part(volume, "projected") {
        for source in each(projected, "sources") {
            if let Some(token) = part(source, "serviceAccountToken") {
                fill(token, "expirationSeconds", 3600);
            }
            if let Some(downward) = part(source, "downwardAPI") {
                each(downward, "items").for_each(reference);
            }
        }
    }
    if let Some(path) = part(volume, "hostPath") {
        fill(path, "type", "");
    }
    if let Some(image) = part(volume, "image") {
        fill_pull_policy(image, "reference", "pullPolicy");
    }
    if let Some(disk) = part(volume, "iscsi") {
        fill(disk, "iscsiInterface", "default");
    }
    let template =
        part(volume, "ephemeral").and_then(|it| part(it, "volumeClaimTemplate"));
    if let Some(template) = template {
        claim(meta::field(template, "spec"));
    }
}

/// Defaults the spec of a persistent volume claim.
pub(in crate::kind) fn claim(spec: &mut Fields) {
    fill(spec, "volumeMode", "Filesystem");
    if let Some(resources) = part(spec, "resources") {
        amounts(resources);
    }
}

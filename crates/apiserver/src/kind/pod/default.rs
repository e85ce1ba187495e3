//! What a pod leaves out is filled in (pkg/apis/core/v1/defaults.go).

use serde_json::{Map, Value, json};

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

/// Fills in what a pod leaves out.
pub(super) fn fill_in(object: &mut Value) {
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
}

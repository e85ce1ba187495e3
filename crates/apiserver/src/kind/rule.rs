//! What Kubernetes checks of single built-in kinds, where a schema cannot say it
//! (pkg/apis/*/validation).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fivespot_admission::{FieldError, name};
use serde_json::{Value, json};

use super::{event, items, node, text, webhook};
use crate::intake;
use crate::resource::Resource;
use crate::syntax;

const RBAC: &str = "rbac.authorization.k8s.io";

/// The rules that an object breaks; none for a kind that has none here.
pub(super) fn errors(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    match resource.storage.resource.as_str() {
        "configmaps" => config_map(object, old),
        "secrets" => secret(object, old),
        "nodes" => node::errors(object, old),
        "leases" => lease(object),
        "roles" | "clusterroles" => role(resource, object),
        "rolebindings" | "clusterrolebindings" => role_binding(resource, object, old),
        "events" => event::errors(resource, object, old),
        "validatingwebhookconfigurations" | "mutatingwebhookconfigurations" => {
            webhook::errors(object)
        }
        _ => Vec::new(),
    }
}

fn entries<'a>(
    object: &'a Value,
    field: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object[field].as_object().into_iter().flatten()
}

/// Keys are file names; what was fixed once stays.
fn data(object: &Value, old: Option<&Value>, fields: &[&str]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in fields {
        for (key, _) in entries(object, field) {
            let path = format!("{field}[{key}]");
            if let Some(wrong) = config_key(key) {
                errors.push(FieldError::invalid(path, key.as_str().into(), wrong));
            } else if *field == "data" && object["binaryData"].get(key).is_some() {
                let why = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(path, key.as_str().into(), why));
            }
        }
    }
    let Some(old) = old.filter(|old| old["immutable"] == true) else {
        return errors;
    };
    let why = "field is immutable when `immutable` is set";
    if object["immutable"] != true {
        errors.push(FieldError::forbidden("immutable", why));
    }
    let changed = fields.iter().filter(|it| object[**it] != old[**it]);
    errors.extend(changed.map(|it| FieldError::forbidden(*it, why)));
    errors
}

fn config_key(key: &str) -> Option<&'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let well_formed = !key.is_empty() && key.chars().all(allowed);
    (!well_formed).then_some(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
         'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
         '[-._a-zA-Z0-9]+')",
    )
}

fn config_map(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = data(object, old, &["data", "binaryData"]);
    let plain = entries(object, "data").map(|(_, it)| it.as_str().map_or(0, str::len));
    let binary = entries(object, "binaryData").map(|(_, it)| decoded_size(it));
    // Kubernetes writes the whole object as an index without a name.
    errors.extend(size_error("[]", plain.chain(binary).sum()));
    errors
}

/// Most bytes that the data of a config map or of a secret may have (`MaxSecretSize`).
const MOST_DATA: usize = 1024 * 1024;

fn size_error(path: &str, size: usize) -> Option<FieldError> {
    (size > MOST_DATA).then(|| FieldError::too_long(path, MOST_DATA as u64))
}

/// How many bytes a text of base 64 stands for.
fn decoded_size(text: &Value) -> usize {
    let text = text.as_str().unwrap_or_default().bytes();
    text.filter(|it| !b"=\r\n".contains(it)).count() * 3 / 4
}

fn secret(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if old.is_some_and(|old| old["type"] != object["type"]) {
        let why = "field is immutable";
        errors.push(FieldError::invalid("type", object["type"].clone(), why));
    }
    errors.extend(data(object, old, &["data"]));
    let sizes = entries(object, "data").map(|(_, it)| decoded_size(it));
    errors.extend(size_error("data", sizes.sum()));
    let has = |key: &str| object["data"].get(key).is_some();
    let needed: &[&str] = match text(object, "type") {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            &["username", "password"]
        }
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        _ => &[],
    };
    let missing = needed.iter().filter(|key| !has(key));
    errors.extend(missing.map(|key| FieldError::required(format!("data[{key}]"), "")));
    errors.extend(docker_config(object));
    if text(object, "type") == "kubernetes.io/service-account-token" {
        let key = "kubernetes.io/service-account.name";
        if text(&object["metadata"]["annotations"], key).is_empty() {
            let path = format!("metadata.annotations[{key}]");
            errors.push(FieldError::required(path, ""));
        }
    }
    errors
}

/// Where a registry's credentials are no JSON; they themselves are not told.
fn docker_config(object: &Value) -> Option<FieldError> {
    let key = match text(object, "type") {
        "kubernetes.io/dockerconfigjson" => ".dockerconfigjson",
        "kubernetes.io/dockercfg" => ".dockercfg",
        _ => return None,
    };
    let config = STANDARD.decode(object["data"].get(key)?.as_str()?).ok()?;
    let why = match serde_json::from_slice::<Value>(&config) {
        Ok(Value::Object(_) | Value::Null) => return None,
        Ok(other) => {
            let kind = intake::go_kind(&other);
            format!(
                "json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            )
        }
        Err(error) => syntax::error(&config).unwrap_or_else(|| error.to_string()),
    };
    let path = format!("data[{key}]");
    Some(FieldError::invalid(
        path,
        "<secret contents redacted>".into(),
        why,
    ))
}

fn lease(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    if spec["leaseDurationSeconds"]
        .as_i64()
        .is_some_and(|it| it <= 0)
    {
        let value = spec["leaseDurationSeconds"].clone();
        let path = "spec.leaseDurationSeconds";
        errors.push(FieldError::invalid(path, value, "must be greater than 0"));
    }
    if spec["leaseTransitions"].as_i64().is_some_and(|it| it < 0) {
        let value = spec["leaseTransitions"].clone();
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("spec.leaseTransitions", value, why));
    }
    errors
}

fn role(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, rule) in items(object, "rules") {
        let path = |field: &str| format!("rules[{index}].{field}");
        let none = |field: &str| rule[field].as_array().is_none_or(Vec::is_empty);
        if none("verbs") {
            let why = "verbs must contain at least one value";
            errors.push(FieldError::required(path("verbs"), why));
        }
        if !none("nonResourceURLs") {
            let value = rule["nonResourceURLs"].clone();
            let at = path("nonResourceURLs");
            if resource.namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(at, value, why));
            } else if !none("apiGroups") || !none("resources") || !none("resourceNames") {
                let why =
                    "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(at, value, why));
            }
            continue;
        }
        if none("apiGroups") {
            let why = "resource rules must supply at least one api group";
            errors.push(FieldError::required(path("apiGroups"), why));
        }
        if none("resources") {
            let why = "resource rules must supply at least one resource";
            errors.push(FieldError::required(path("resources"), why));
        }
    }
    errors
}

fn role_binding(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let role = &object["roleRef"];
    let word = |key: &str| text(role, key);
    // One that is left out is filled in, and one that is empty is not said.
    if !matches!(word("apiGroup"), "" | RBAC) {
        let group = word("apiGroup").into();
        errors.push(FieldError::not_supported("roleRef.apiGroup", group, [RBAC]));
    }
    let kinds: &[&str] = if resource.namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    if !kinds.contains(&word("kind")) {
        let kind = word("kind").into();
        let known = kinds.iter().copied();
        errors.push(FieldError::not_supported("roleRef.kind", kind, known));
    }
    if word("name").is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    for (index, one) in items(object, "subjects") {
        errors.extend(subject(one, &format!("subjects[{index}]")));
    }
    if old.is_some_and(|old| old["roleRef"] != *role) {
        let shown = json!({
            "APIGroup": word("apiGroup"), "Kind": word("kind"), "Name": word("name"),
        });
        errors.push(FieldError::invalid(
            "roleRef",
            shown,
            "cannot change roleRef",
        ));
    }
    errors
}

fn subject(subject: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (kind, named) = (text(subject, "kind"), text(subject, "name"));
    if named.is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    let group = if kind == "ServiceAccount" { "" } else { RBAC };
    match kind {
        "ServiceAccount" if !named.is_empty() => {
            for wrong in name::dns_subdomain(named) {
                let at = format!("{path}.name");
                errors.push(FieldError::invalid(at, named.into(), wrong));
            }
        }
        "ServiceAccount" | "User" | "Group" => {}
        _ => {
            let known = ["ServiceAccount", "User", "Group"];
            let at = format!("{path}.kind");
            errors.push(FieldError::not_supported(at, kind.into(), known));
            return errors;
        }
    }
    if text(subject, "apiGroup") != group {
        let said = subject["apiGroup"].clone();
        let at = format!("{path}.apiGroup");
        errors.push(FieldError::not_supported(at, said, [group]));
    }
    errors
}

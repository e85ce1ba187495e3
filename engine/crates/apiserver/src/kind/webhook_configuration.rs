//! Code that both kinds of webhook configurations share (pkg/apis/admissionregistration).

use std::collections::BTreeSet;

use jiff::Timestamp;
use kubemu_admission::policy::Webhook;
use kubemu_admission::selector::Selector;
use kubemu_admission::{FieldError, name};
use serde_json::{Map, Value, json};

use super::{Write, column, items, text};
use crate::resource::{Column, Resource};

const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The resource of a configuration.
pub(super) fn resource(kind: &str, plural: &str) -> Resource {
    Resource::new("admissionregistration.k8s.io", "v1", kind, plural)
        .cluster_scoped()
        .with_category("api-extensions")
        .require_resource_version()
        .with_columns(vec![Column::new("Webhooks", "integer", ""), Column::age()])
}

/// The cells of a configuration.
pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        column::name(object),
        column::count(&object["webhooks"]).into(),
        column::age(object, now),
    ]
}

/// Defaults the fields of a configuration.
pub(super) fn default(object: &mut Value) {
    let mutating = object["kind"] == "MutatingWebhookConfiguration";
    let hooks = object.get_mut("webhooks").and_then(Value::as_array_mut);
    for hook in hooks.into_iter().flatten() {
        let Some(hook) = hook.as_object_mut() else {
            continue;
        };
        let mut unsaid = vec![
            ("failurePolicy", json!("Fail")),
            ("matchPolicy", json!("Equivalent")),
            ("namespaceSelector", json!({})),
            ("objectSelector", json!({})),
            ("timeoutSeconds", json!(10)),
        ];
        if mutating {
            unsaid.push(("reinvocationPolicy", json!("Never")));
        }
        for (field, value) in unsaid {
            hook.entry(field).or_insert(value);
        }
        let rules = hook.get_mut("rules").and_then(Value::as_array_mut);
        let rules = rules.into_iter().flatten().filter_map(Value::as_object_mut);
        rules.for_each(|it| fill(it, "scope", json!("*")));
        let service = hook
            .get_mut("clientConfig")
            .and_then(|it| it.get_mut("service")?.as_object_mut());
        if let Some(service) = service {
            fill(service, "port", json!(443));
        }
    }
}

fn fill(fields: &mut Map<String, Value>, name: &str, value: Value) {
    fields.entry(name).or_insert(value);
}

/// The validation errors of a configuration.
pub(super) fn errors(write: &Write<'_>) -> Vec<FieldError> {
    let object = write.object;
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for (index, hook) in items(object, "webhooks") {
        let path = format!("webhooks[{index}]");
        hook_errors(hook, &path, &mut errors);
        review_versions(hook, &path, &mut errors);
        errors.extend(Webhook::condition_errors(hook, &path, write.kube));
        let named = text(hook, "name");
        if !named.is_empty() && !names.insert(named) {
            let at = format!("{path}.name");
            errors.push(FieldError::duplicate(at, named.into()));
        }
    }
    errors
}

fn hook_errors(hook: &Value, path: &str, errors: &mut Vec<FieldError>) {
    qualified_name(text(hook, "name"), format!("{path}.name"), errors);
    for (index, rule) in items(hook, "rules") {
        rule_errors(rule, &format!("{path}.rules[{index}]"), errors);
    }
    errors.extend(one_of(hook, path, "failurePolicy", &["Fail", "Ignore"]));
    let policies = ["Equivalent", "Exact"];
    errors.extend(one_of(hook, path, "matchPolicy", &policies));
    if hook["sideEffects"].is_string() {
        let known = ["None", "NoneOnDryRun"];
        errors.extend(one_of(hook, path, "sideEffects", &known));
    } else {
        let why = "must specify one of None, NoneOnDryRun";
        errors.push(FieldError::required(format!("{path}.sideEffects"), why));
    }
    if let Some(seconds) = hook["timeoutSeconds"].as_i64()
        && !(1..=30).contains(&seconds)
    {
        let why = "the timeout value must be between 1 and 30 seconds";
        let at = format!("{path}.timeoutSeconds");
        errors.push(FieldError::invalid(at, seconds.into(), why));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        let wrong = Selector::compile(hook.get(field), &format!("{path}.{field}"));
        errors.extend(wrong.err().unwrap_or_default());
    }
    let known = ["IfNeeded", "Never"];
    errors.extend(one_of(hook, path, "reinvocationPolicy", &known));
    client_errors(
        &hook["clientConfig"],
        &format!("{path}.clientConfig"),
        errors,
    );
}

/// The error of a field that is set and has an unknown value.
fn one_of(object: &Value, path: &str, field: &str, known: &[&str]) -> Option<FieldError> {
    let value = object[field].as_str().filter(|it| !known.contains(it))?;
    let path = format!("{path}.{field}");
    let known = known.iter().copied();
    Some(FieldError::not_supported(path, value.into(), known))
}

fn qualified_name(named: &str, path: String, errors: &mut Vec<FieldError>) {
    if named.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let wrong = name::dns_subdomain(named);
    if !wrong.is_empty() {
        let wrong = wrong.join(",");
        errors.push(FieldError::invalid(path, named.into(), wrong));
    } else if named.split('.').count() < 3 {
        let why = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(path, named.into(), why));
    }
}

fn rule_errors(rule: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let lists = [
        ("operations", "operations"),
        ("apiGroups", "API groups"),
        ("apiVersions", "API versions"),
    ];
    for (field, others) in lists {
        let value: Vec<&str> = items(rule, field)
            .filter_map(|(_, it)| it.as_str())
            .collect();
        let at = format!("{path}.{field}");
        if value.is_empty() {
            errors.push(FieldError::required(at.clone(), ""));
        }
        if value.len() > 1 && value.contains(&"*") {
            let why = format!("if '*' is present, must not specify other {others}");
            errors.push(FieldError::invalid(at.clone(), json!(value), why));
        }
        for (index, one) in value.into_iter().enumerate() {
            let at = format!("{at}[{index}]");
            let known = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
            if field == "operations" && !known.contains(&one) {
                errors.push(FieldError::not_supported(at, one.into(), known));
            } else if field == "apiVersions" && one.is_empty() {
                errors.push(FieldError::required(at, ""));
            }
        }
    }
    let at = format!("{path}.resources");
    if items(rule, "resources").next().is_none() {
        errors.push(FieldError::required(at.clone(), ""));
    }
    for (index, resource) in items(rule, "resources") {
        if resource == "" {
            errors.push(FieldError::required(format!("{at}[{index}]"), ""));
        }
    }
    let scopes = ["*", "Cluster", "Namespaced"];
    errors.extend(one_of(rule, path, "scope", &scopes));
}

/// Validates the path of a service: DNS names separated by slashes.
fn path_errors(value: &str, path: &str, errors: &mut Vec<FieldError>) {
    if matches!(value, "" | "/") {
        return;
    }
    let mut refuse =
        |why: String| errors.push(FieldError::invalid(path, value.into(), why));
    if value == "//" {
        refuse("segment[0] may not be empty".to_owned());
        return;
    }
    if !value.starts_with('/') {
        refuse("must start with a '/'".to_owned());
    }
    // Kubernetes drops the first byte, whatever it is.
    let steps = String::from_utf8_lossy(value.as_bytes().get(1..).unwrap_or_default());
    let steps = steps.strip_suffix('/').unwrap_or(&steps);
    for (at, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            refuse(format!("segment[{at}] may not be empty"));
            continue;
        }
        for wrong in name::dns_subdomain(step) {
            refuse(format!("segment[{at}]: {wrong}"));
        }
    }
}

fn client_errors(client: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (url, service) = (client["url"].as_str(), &client["service"]);
    match (url, service.is_object()) {
        (Some(url), false) => url_errors(url, &format!("{path}.url"), errors),
        (None, true) => {
            // Kubernetes exchanges the two: an error about one names the other.
            for (field, named) in [("namespace", "name"), ("name", "namespace")] {
                if text(service, field).is_empty() {
                    let at = format!("{path}.service.{named}");
                    errors.push(FieldError::required(at, ""));
                }
            }
            let port = service["port"].as_i64().unwrap_or_default();
            if !(1..=65535).contains(&port) {
                let why = "port is not valid: must be between 1 and 65535, inclusive";
                let at = format!("{path}.service.port");
                errors.push(FieldError::invalid(at, port.into(), why));
            }
            path_errors(
                text(service, "path"),
                &format!("{path}.service.path"),
                errors,
            );
        }
        _ => {
            let why = "exactly one of url or service is required";
            errors.push(FieldError::required(path, why));
        }
    }
}

fn url_errors(url: &str, path: &str, errors: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let mut refuse = |value: &str, why: &str| {
        errors.push(FieldError::invalid(path, value.into(), why));
    };
    if scheme != "https" {
        let why = format!("'https' is the only allowed URL scheme{FORM}");
        refuse(scheme, &why);
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if host.is_empty() || scheme.is_empty() {
        refuse("", &format!("host must be specified{FORM}"));
    }
    let parts = [
        (user, "user information is not permitted in the URL"),
        (fragment, "fragments are not permitted in the URL"),
        (query, "query parameters are not permitted in the URL"),
    ];
    for (found, why) in parts {
        if !found.is_empty() {
            refuse(found, why);
        }
    }
}

fn review_versions(hook: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let path = format!("{path}.admissionReviewVersions");
    let value: Vec<&str> = items(hook, "admissionReviewVersions")
        .filter_map(|(_, it)| it.as_str())
        .collect();
    if value.is_empty() {
        let why = format!("must specify one of {}", VERSIONS.join(", "));
        errors.push(FieldError::required(path, why));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, version) in value.iter().enumerate() {
        let at = format!("{path}[{index}]");
        if !seen.insert(version) {
            let why = "duplicate version";
            errors.push(FieldError::invalid(at, (*version).into(), why));
            continue;
        }
        let wrong = name::dns_1035_label(version).into_iter();
        errors.extend(
            wrong.map(|it| FieldError::invalid(at.clone(), (*version).into(), it)),
        );
    }
    if !value.iter().any(|it| VERSIONS.contains(it)) {
        let why = format!("must include at least one of {}", VERSIONS.join(", "));
        errors.push(FieldError::invalid(path, json!(value), why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_only_https_a_host_and_a_path() {
        let found = |url: &str| {
            let mut errors = Vec::new();
            url_errors(url, "url", &mut errors);
            errors.into_iter().map(|it| it.detail).collect::<Vec<_>>()
        };
        assert!(found("https://example.com:8443/path").is_empty());
        let form = "; desired format: https://host[/path]";
        assert_eq!(
            found("http://u:p@/x?a=b#c"),
            [
                format!("'https' is the only allowed URL scheme{form}"),
                format!("host must be specified{form}"),
                "user information is not permitted in the URL".to_owned(),
                "fragments are not permitted in the URL".to_owned(),
                "query parameters are not permitted in the URL".to_owned(),
            ]
        );
    }

    #[test]
    fn a_rule_requires_operations_groups_versions_and_resources() {
        let mut errors = Vec::new();
        let rule = json!({"operations": ["*", "CREATE", "LOOK"], "resources": [""]});
        rule_errors(&rule, "r", &mut errors);
        let paths: Vec<_> = errors.iter().map(|it| it.path.as_str()).collect();
        let expected = [
            "r.operations",
            "r.operations[2]",
            "r.apiGroups",
            "r.apiVersions",
            "r.resources[0]",
        ];
        assert_eq!(paths, expected);
    }
}

//! Environment variables, and the downward API fields for variables and files.

use kubemu_admission::{FieldError, Quantity, name};

use crate::kind::data;
use crate::kind::field::{Errors, Field};
use crate::kind::{resource_name, rule};

const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

/// Fields of a pod that a variable may reference.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

/// The errors of a variable's name.
fn variable_name(text: &str) -> Vec<String> {
    let is_plain = |it: char| (' '..='~').contains(&it) && it != '=';
    let why = "a valid environment variable name must consist only of printable ASCII \
         characters other than '='";
    let wrong = !text.chars().all(is_plain);
    wrong.then(|| why.to_owned()).into_iter().collect()
}

/// Validates the variables of a container.
pub(super) fn variables(list: &Field<'_>, errors: &mut Errors) {
    for variable in list.items() {
        let name = variable.child("name");
        if name.text().is_empty() {
            errors.push(name.required(""));
        } else {
            rule::text(&name, variable_name, errors);
        }
        source(&variable, errors);
    }
}

/// Validates the source of a variable's value.
fn source(variable: &Field<'_>, errors: &mut Errors) {
    let from = variable.child("valueFrom");
    if !from.is_set() {
        return;
    }
    let mut sources = 0;
    let mut next = |name| {
        let found = from.child(name);
        sources += u32::from(found.is_set());
        found.is_set().then_some(found)
    };
    if let Some(field) = next("fieldRef") {
        field_reference(&field, FIELDS, errors);
    }
    if let Some(resource) = next("resourceFieldRef") {
        resource_reference(&resource, errors);
    }
    for name in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(key) = next(name) {
            key_reference(&key, errors);
        }
    }
    next("fileKeyRef");
    let invalid = |why: &str| FieldError::invalid(from.path.clone(), "".into(), why);
    if sources == 0 {
        errors.push(invalid(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`",
        ));
    } else if !variable.child("value").text().is_empty() {
        errors.push(invalid("may not be specified when `value` is not empty"));
    } else if sources > 1 {
        errors.push(invalid(
            "may not have more than one field specified at a time",
        ));
    }
}

/// Validates a reference to a field of the pod (`validateObjectFieldSelector`).
pub(super) fn field_reference(field: &Field<'_>, known: &[&str], errors: &mut Errors) {
    let (version, path) = (field.child("apiVersion"), field.child("fieldPath"));
    if version.text().is_empty() {
        errors.push(version.required(""));
        return;
    }
    if path.text().is_empty() {
        errors.push(path.required(""));
        return;
    }
    if let Some(why) = conversion_error(version.text(), path.text()) {
        errors.push(path.invalid(format!("error converting fieldPath: {why}")));
        return;
    }
    let Some((map, key)) = subscript(path.text()) else {
        if !known.contains(&path.text()) {
            errors.push(path.not_supported(known));
        }
        return;
    };
    let invalid =
        |value: &str, why| FieldError::invalid(field.path.clone(), value.into(), why);
    match map {
        "metadata.annotations" => {
            let key = key.to_lowercase();
            let wrong = name::label_key(&key).into_iter();
            errors.extend(wrong.map(|it| invalid(&key, it)));
        }
        "metadata.labels" => {
            let wrong = name::label_key(key).into_iter();
            errors.extend(wrong.map(|it| invalid(key, it)));
        }
        _ => errors.push(invalid(map, "does not support subscript".to_owned())),
    }
}

/// Why a reference to a field of a pod is invalid (`ConvertDownwardAPIFieldLabel`).
fn conversion_error(version: &str, path: &str) -> Option<String> {
    const MORE: &[&str] = &[
        "metadata.annotations",
        "metadata.labels",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.phase",
        "spec.host",
    ];
    if version != "v1" {
        return Some(format!("unsupported pod version: {version}"));
    }
    if let Some((map, _)) = subscript(path) {
        let known = ["metadata.annotations", "metadata.labels"].contains(&map);
        return (!known)
            .then(|| format!("field label does not support subscript: {path}"));
    }
    let known = FIELDS.contains(&path) || MORE.contains(&path);
    (!known).then(|| format!("field label not supported: {path}"))
}

/// The two parts of `map['key']`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['")
}

/// Validates a reference to a resource of the variable's container.
fn resource_reference(field: &Field<'_>, errors: &mut Errors) {
    resource(&field.child("resource"), errors);
    divisor(field, errors);
}

/// Validates a reference to a resource of a named container.
pub(super) fn resource_of_container(field: &Field<'_>, errors: &mut Errors) {
    let container = field.child("containerName");
    if container.text().is_empty() {
        errors.push(container.required(""));
    } else {
        resource(&field.child("resource"), errors);
    }
    divisor(field, errors);
}

fn resource(field: &Field<'_>, errors: &mut Errors) {
    let named = field.text();
    let prefixes = ["limits.hugepages-", "requests.hugepages-"];
    let is_huge_page = prefixes.iter().any(|it| named.starts_with(it));
    if !is_huge_page {
        rule::one_of(field, RESOURCES, errors);
    }
}

/// Validates the divisor of a resource reference.
fn divisor(field: &Field<'_>, errors: &mut Errors) {
    const BYTES: &[&str] = &[
        "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
    ];
    let divisor = field.child("divisor");
    let found = resource_name::quantity(divisor.value);
    let Some(found) = found.filter(|it| it.signum() != 0) else {
        return;
    };
    let named = field.child("resource").text();
    let (known, what): (&[&str], _) = match named.split_once('.').map(|it| it.1) {
        Some("cpu") => (&["1m", "1"], "1m and 1 are supported with the cpu resource"),
        Some("memory") => (
            BYTES,
            "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the \
             memory resource",
        ),
        Some("ephemeral-storage") => (
            BYTES,
            "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the \
             local ephemeral storage resource",
        ),
        Some(it) if it.starts_with("hugepages-") => (
            BYTES,
            "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the \
             hugepages resource",
        ),
        _ => return,
    };
    if !known.contains(&Quantity::to_string(&found).as_str()) {
        let why = format!("only divisor's values {what}");
        errors.push(FieldError::invalid(divisor.path, named.into(), why));
    }
}

/// Validates a reference to a key of a config map or a secret.
fn key_reference(field: &Field<'_>, errors: &mut Errors) {
    rule::dns_subdomain(&field.child("name"), errors);
    let key = field.child("key");
    if key.text().is_empty() {
        errors.push(key.required(""));
    } else {
        rule::text(&key, data::key_errors, errors);
    }
}

/// Validates `envFrom`. Some errors have the path of the list.
pub(super) fn sources(list: &Field<'_>, errors: &mut Errors) {
    for item in list.items() {
        rule::text_if_set(&item.child("prefix"), variable_name, errors);
        let mut sources = 0;
        for name in ["configMapRef", "secretRef"] {
            let source = item.child(name);
            if source.is_set() {
                sources += 1;
                let name = source.child("name");
                if name.text().is_empty() {
                    errors.push(name.required(""));
                } else {
                    rule::dns_subdomain(&name, errors);
                }
            }
        }
        let why = match sources {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(FieldError::invalid(list.path.clone(), "".into(), why));
    }
}

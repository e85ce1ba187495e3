//! Names and amounts of compute resources, which several kinds list (pkg/apis/core/helper and
//! pkg/apis/core/validation in Kubernetes).

use kubemu_admission::{FieldError, Quantity, name};
use serde_json::{Map, Value};

const STANDARD: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

const COUNTED: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Whether it is a standard resource of Kubernetes.
pub(crate) fn is_standard(resource: &str) -> bool {
    STANDARD.contains(&resource) || is_huge_page_of_quota(resource)
}

/// Whether it is a standard resource of quotas, without object counts.
pub(crate) fn is_standard_of_quota(resource: &str) -> bool {
    resource != "storage" && is_standard(resource)
}

fn is_huge_page_of_quota(resource: &str) -> bool {
    resource.starts_with("hugepages-") || resource.starts_with("requests.hugepages-")
}

/// Whether it is a native resource of Kubernetes.
pub(crate) fn is_native(resource: &str) -> bool {
    !resource.contains('/') || resource.contains("kubernetes.io/")
}

/// Whether it is an extended resource, such as `example.com/gpu`.
pub(crate) fn is_extended(resource: &str) -> bool {
    !is_native(resource)
        && !resource.starts_with("requests.")
        && name::label_key(&format!("requests.{resource}")).is_empty()
}

/// Whether overcommit of the resource is allowed.
pub(crate) fn is_overcommit_allowed(resource: &str) -> bool {
    is_native(resource) && !resource.starts_with("hugepages-")
}

/// The errors of a resource's name.
pub(super) fn name_errors(resource: &str, path: &str) -> Vec<FieldError> {
    let wrong = name::label_key(resource);
    if !wrong.is_empty() {
        let wrong = wrong.into_iter();
        let each = |it| FieldError::invalid(path, resource.into(), it);
        return wrong.map(each).collect();
    }
    if resource.contains('/') || is_standard(resource) {
        return Vec::new();
    }
    let why = "must be a standard resource type or fully qualified";
    vec![FieldError::invalid(path, resource.into(), why)]
}

/// The errors of the name of a container's resource.
pub(super) fn container_name_errors(resource: &str, path: &str) -> Vec<FieldError> {
    let mut errors = name_errors(resource, path);
    let known = ["cpu", "memory", "ephemeral-storage"].contains(&resource);
    if !resource.contains('/') {
        if !known && !resource.starts_with("hugepages-") {
            let why = "must be a standard resource for containers";
            errors.push(FieldError::invalid(path, resource.into(), why));
        }
    } else if !is_native(resource) && !is_extended(resource) {
        let why = "doesn't follow extended resource name standard";
        errors.push(FieldError::invalid(path, resource.into(), why));
    }
    errors
}

/// The errors of an amount of a resource.
pub(super) fn amount_errors(
    resource: &str,
    amount: &Quantity,
    path: &str,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let text = || Value::from(amount.to_string());
    if amount.signum() < 0 {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path, text(), why));
    }
    let counted = COUNTED.contains(&resource) || is_extended(resource);
    if counted && amount.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(path, text(), "must be an integer"));
    }
    errors
}

/// The resources of a list with their amounts. Decoding has already rejected invalid quantities.
pub(crate) fn amounts(list: &Value) -> impl Iterator<Item = (&str, Quantity)> {
    let all = list.as_object().into_iter().flatten();
    all.filter_map(|(resource, amount)| Some((resource.as_str(), quantity(amount)?)))
}

/// A quantity, which is a JSON string or number.
pub(crate) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text.trim()).ok(),
        Value::Number(number) => Quantity::parse(&number.to_string()).ok(),
        _ => None,
    }
}

/// Writes the amounts of a list as Kubernetes stores them, rounded up to thousandths.
pub(crate) fn canonical(list: &mut Map<String, Value>) {
    for amount in list.values_mut() {
        if let Some(found) = quantity(amount) {
            *amount = found.rounded_up_to_milli().to_string().into();
        }
    }
}

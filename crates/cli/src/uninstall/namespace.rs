//! The namespaces that the manifests create, and whether they contain objects that stay.

use fivespot_api::{RESOURCES, name};
use kube::Resource as _;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::discovery::{ApiGroup, Discovery, Scope, verbs};
use serde_json::Value;

use super::RemovalOptions;
use crate::cluster::error_message;
use crate::plain;
use crate::reader::Reader;

/// The namespaces that the manifests create. Others exist before 5-Spot and may be shared.
const CREATED: [&str; 3] = [
    name::SYSTEM_NAMESPACE,
    name::AGENT_NAMESPACE,
    name::PARAMETER_NAMESPACE,
];

/// The largest number of objects that are named.
const MAX_NAMED: usize = 3;

/// Whether the manifests create a namespace with this name.
pub(super) fn is_created(namespace: &str) -> bool {
    CREATED.contains(&namespace)
}

/// What stays in a namespace that the manifests create, such as `it contains Deployment web`.
/// `None` if it can be deleted.
pub(super) async fn why_kept(
    reader: &Reader,
    namespace: &str,
    options: RemovalOptions,
) -> Option<String> {
    match retained(reader, namespace, options).await {
        Ok(found) if found.is_empty() => None,
        Ok(found) => {
            let named: Vec<&str> =
                found.iter().take(MAX_NAMED).map(String::as_str).collect();
            let more = match found.len().saturating_sub(MAX_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            Some(format!("it contains {}{more}", named.join(", ")))
        }
        Err(why) => Some(format!(
            "its objects cannot be listed: {}",
            plain::line(&why)
        )),
    }
}

/// The objects in a namespace that exist after the removal, by kind and name.
///
/// # Errors
/// A kind cannot be listed. The error is the message.
async fn retained(
    reader: &Reader,
    namespace: &str,
    options: RemovalOptions,
) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for resource in resources(reader).await? {
        let path = DynamicObject::url_path(&resource, Some(namespace));
        for object in reader.requests.list(&path).await? {
            if is_retained(&resource, &object, options) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                found.push(format!("{} {name}", resource.kind));
            }
        }
    }
    Ok(found)
}

/// Whether an object exists after the removal. Objects that Kubernetes or a running operator
/// creates by itself do not count.
fn is_retained(resource: &ApiResource, object: &Value, options: RemovalOptions) -> bool {
    let metadata = &object["metadata"];
    let owners = metadata["ownerReferences"].as_array();
    let mut owners = owners.into_iter().flatten();
    let is_created_by_itself = match resource.kind.as_str() {
        "Event" | "Lease" => true,
        "ConfigMap" => metadata["name"] == "kube-root-ca.crt",
        "ServiceAccount" => metadata["name"] == "default",
        "Secret" => {
            object["type"] == "kubernetes.io/service-account-token"
                || metadata["annotations"]["cert-manager.io/certificate-name"]
                    == name::WEBHOOK
        }
        _ => false,
    };
    let is_installed = metadata["labels"]["app.kubernetes.io/name"] == "5spot"
        && metadata["annotations"]["meta.helm.sh/release-name"].is_null();
    let is_parameter = resource.kind == "ConfigMap"
        && metadata["namespace"] == name::PARAMETER_NAMESPACE
        && metadata["name"] == name::PROVIDERS;
    if is_created_by_itself || is_installed || is_parameter {
        return false;
    }
    let mut groups = RESOURCES.iter().map(|ours| ours.group);
    if groups.any(|group| group == resource.group) {
        return options.keeps_machines && !options.deletes_crds;
    }
    // An owner is in the same namespace and counts itself. Machines are kept without it.
    match owners.next() {
        None => true,
        Some(first) => {
            let mut all = std::iter::once(first).chain(owners);
            options.releases_machines() && all.any(|it| it["kind"] == name::KIND)
        }
    }
}

/// Every namespaced resource whose objects can be listed and deleted, in the most stable version that
/// serves it: not every kind of a group is served in the version that the server prefers.
///
/// # Errors
/// A version cannot be read. The error is the message.
async fn resources(reader: &Reader) -> Result<Vec<ApiResource>, String> {
    let discovery = Discovery::new(reader.requests.0.clone()).run().await;
    let discovery = discovery.map_err(error_message)?;
    let groups = discovery.groups_alphabetical().into_iter();
    let all = groups.flat_map(ApiGroup::resources_by_stability);
    let kept = all.filter(|(_, capabilities)| {
        let can = |verb| capabilities.supports_operation(verb);
        capabilities.scope == Scope::Namespaced && can(verbs::LIST) && can(verbs::DELETE)
    });
    let mut kept: Vec<ApiResource> = kept.map(|(resource, _)| resource).collect();
    kept.sort_by(|one, other| (&one.group, &one.kind).cmp(&(&other.group, &other.kind)));
    Ok(kept)
}

//! The namespaces that the manifests create, and whether they contain objects that stay.

use std::collections::BTreeSet;

use fivespot_api::{RESOURCES, name};
use serde_json::Value;

use super::RemovalOptions;
use crate::plain;
use crate::reader::Reader;
use crate::requests::Response;

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
        let Resource { root, plural, kind } = &resource;
        let path = format!("{root}/namespaces/{namespace}/{plural}");
        for object in reader.requests.list(&path).await? {
            if is_retained(&resource, &object, options) {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                found.push(format!("{kind} {name}"));
            }
        }
    }
    Ok(found)
}

/// Whether an object exists after the removal. Objects that Kubernetes or a running operator
/// creates by itself do not count.
fn is_retained(resource: &Resource, object: &Value, options: RemovalOptions) -> bool {
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
    if groups.any(|group| resource.root.starts_with(&format!("/apis/{group}/"))) {
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

/// A namespaced resource of the API server.
struct Resource {
    root: String,
    plural: String,
    kind: String,
}

/// Every namespaced resource whose objects can be listed and deleted, in the first version that
/// serves it: not every kind of a group is served in the version that the server prefers.
///
/// # Errors
/// A version cannot be read. The error is the message.
async fn resources(reader: &Reader) -> Result<Vec<Resource>, String> {
    let groups = document(reader, "/apis").await?;
    let groups = groups["groups"].as_array();
    let versions = groups.into_iter().flatten().flat_map(|group| {
        let versions = group["versions"].as_array();
        let versions = versions.into_iter().flatten();
        versions.filter_map(|it| it["groupVersion"].as_str())
    });
    let roots = versions.map(|version| format!("/apis/{version}"));
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    for root in std::iter::once("/api/v1".to_owned()).chain(roots) {
        let served = document(reader, &root).await?;
        let group = root.rsplit_once('/').map_or("", |(group, _)| group);
        for resource in served["resources"].as_array().into_iter().flatten() {
            let can = |verb: &str| {
                let verbs = resource["verbs"].as_array();
                verbs.is_some_and(|verbs| verbs.iter().any(|it| it == verb))
            };
            let (Some(plural), Some(kind)) =
                (resource["name"].as_str(), resource["kind"].as_str())
            else {
                continue;
            };
            if resource["namespaced"] == true
                && can("list")
                && can("delete")
                && seen.insert((group.to_owned(), plural.to_owned()))
            {
                all.push(Resource {
                    root: root.clone(),
                    plural: plural.to_owned(),
                    kind: kind.to_owned(),
                });
            }
        }
    }
    Ok(all)
}

async fn document(reader: &Reader, path: &str) -> Result<Value, String> {
    match reader.requests.get(path).await {
        Response::Found(found) => Ok(found),
        Response::NotFound => Err(format!("{path} is not served")),
        Response::Failed(why) => Err(why),
    }
}

//! Discovery: `/api`, `/apis` and below.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::registry::Registry;
use crate::resource::{Resource, Subresource, Verb};

/// The format of the response to `/api` or `/apis`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All groups in one document, `apidiscovery.k8s.io/v2`.
    AggregatedV2,
    /// All groups in one document, `apidiscovery.k8s.io/v2beta1`.
    AggregatedV2Beta1,
    /// Unaggregated: names of groups and versions only; clients then request each.
    Plain,
}

impl Form {
    /// The first served format in an `Accept` header; [`Form::Plain`] if there is none.
    ///
    /// ```
    /// use kubemu_apiserver::discovery::Form;
    ///
    /// let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    ///               application/json";
    /// assert_eq!(Form::accepted(accept), Form::AggregatedV2);
    /// assert_eq!(Form::accepted("*/*"), Form::Plain);
    /// ```
    pub fn accepted(accept: &str) -> Self {
        accept
            .split(',')
            .find_map(Self::of_media_type)
            .unwrap_or(Self::Plain)
    }

    fn of_media_type(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next()?;
        if !matches!(media, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let parameter = |name: &str| {
            text.split(';')
                .filter_map(|it| it.trim().split_once('='))
                .find(|it| it.0 == name)
                .map(|it| it.1)
        };
        match (parameter("g"), parameter("v"), parameter("as")) {
            (None, None, None) => Some(Self::Plain),
            (
                Some("apidiscovery.k8s.io"),
                Some(version),
                Some("APIGroupDiscoveryList"),
            ) => match version {
                "v2" => Some(Self::AggregatedV2),
                "v2beta1" => Some(Self::AggregatedV2Beta1),
                _ => None,
            },
            _ => None,
        }
    }

    /// The `Content-Type` of a response in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::AggregatedV2 => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
            Self::AggregatedV2Beta1 => {
                "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
            }
            Self::Plain => "application/json",
        }
    }

    fn api_version(self) -> Option<&'static str> {
        match self {
            Self::AggregatedV2 => Some("apidiscovery.k8s.io/v2"),
            Self::AggregatedV2Beta1 => Some("apidiscovery.k8s.io/v2beta1"),
            Self::Plain => None,
        }
    }
}

/// The response to `/api`; `address` is host and port of the server.
pub fn api(registry: &Registry, form: Form, address: &str) -> Value {
    match form.api_version() {
        Some(api_version) => {
            let has_core = registry.groups().any(str::is_empty);
            aggregated(registry, api_version, has_core.then_some("").into_iter())
        }
        None => json!({
            "kind": "APIVersions",
            "versions": registry.versions("").collect::<Vec<_>>(),
            "serverAddressByClientCIDRs": [
                {"clientCIDR": "0.0.0.0/0", "serverAddress": address},
            ],
        }),
    }
}

/// The response to `/apis`.
pub fn apis(registry: &Registry, form: Form) -> Value {
    let mut groups: Vec<&str> = registry.groups().filter(|it| !it.is_empty()).collect();
    groups.sort_by_key(|it| rank(it));
    let groups = groups.into_iter();
    match form.api_version() {
        Some(api_version) => aggregated(registry, api_version, groups),
        None => json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": groups.map(|it| group_versions(registry, it)).collect::<Vec<_>>(),
        }),
    }
}

/// Kubernetes' own groups with the minimum priority that each is registered with, in the order of
/// discovery.
const PRIORITIES: [(&str, i64); 19] = [
    ("apps", 17_800),
    ("events.k8s.io", 17_750),
    ("authentication.k8s.io", 17_700),
    ("authorization.k8s.io", 17_600),
    ("autoscaling", 17_500),
    ("batch", 17_400),
    ("certificates.k8s.io", 17_300),
    ("networking.k8s.io", 17_200),
    ("policy", 17_100),
    ("rbac.authorization.k8s.io", 17_000),
    ("storage.k8s.io", 16_800),
    ("admissionregistration.k8s.io", 16_700),
    ("apiextensions.k8s.io", 16_700),
    ("scheduling.k8s.io", 16_600),
    ("coordination.k8s.io", 16_500),
    ("node.k8s.io", 16_300),
    ("discovery.k8s.io", 16_200),
    ("resource.k8s.io", 16_200),
    ("flowcontrol.apiserver.k8s.io", 16_100),
];

/// The minimum priority that a group is registered with. `None` for those of CRDs, and for that of
/// APIServices, which is not registered.
pub(crate) fn priority(group: &str) -> Option<i64> {
    if group.is_empty() {
        return Some(18_000);
    }
    let found = PRIORITIES.iter().find(|it| it.0 == group);
    found.map(|it| it.1)
}

/// The position of a group among the others: Kubernetes' own in order of priority, that of
/// APIServices first, then the others by name.
fn rank(group: &str) -> usize {
    if group == "apiregistration.k8s.io" {
        return 0;
    }
    let found = PRIORITIES.iter().position(|it| it.0 == group);
    found.map_or(usize::MAX, |it| it + 1)
}

/// The response to `/apis/<group>`; `None` for a group that is not served.
pub fn group(registry: &Registry, group: &str) -> Option<Value> {
    if group.is_empty() {
        return None;
    }
    registry.versions(group).next()?;
    let mut found = json!({"kind": "APIGroup", "apiVersion": "v1"});
    if let (Some(all), Value::Object(parts)) =
        (found.as_object_mut(), group_versions(registry, group))
    {
        all.extend(parts);
    }
    Some(found)
}

/// The response to `/apis/<group>/<version>`, and with an empty group to `/api/<version>`;
/// `None` if it is not served.
pub fn version(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut resources = Vec::new();
    for resource in registry.resources(group, version) {
        resources.push(main_entry(resource));
        resources.extend(
            resource
                .subresources
                .iter()
                .map(|it| subresource_entry(resource, it)),
        );
    }
    if resources.is_empty() {
        return None;
    }
    let group_version = crate::resource::api_version(group, version);
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }))
}

fn group_versions(registry: &Registry, group: &str) -> Value {
    let versions: Vec<_> = registry
        .versions(group)
        .map(|it| json!({"groupVersion": format!("{group}/{it}"), "version": it}))
        .collect();
    let preferred = versions.first().cloned();
    json!({"name": group, "versions": versions, "preferredVersion": preferred})
}

fn main_entry(resource: &Resource) -> Value {
    let mut entry = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": verb_names(&resource.verbs),
    });
    names(resource, &mut entry);
    // What is stored can be watched.
    if resource.verbs.contains(&Verb::Watch) {
        entry["storageVersionHash"] = storage_version_hash(resource).into();
    }
    entry
}

/// The kinds that Kubernetes still stores in `v1beta1` of their group, for servers of the release before.
const STORED_OLDER: [(&str, &str); 3] = [
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicyBinding",
    ),
];

/// The hash by which clients tell that objects are stored in another version than before.
fn storage_version_hash(resource: &Resource) -> String {
    let kind = resource.kind.as_str();
    let stored = resource.stored_as.as_str();
    let (group, version) = stored.rsplit_once('/').unwrap_or(("", stored));
    let version = if STORED_OLDER.contains(&(group, kind)) {
        "v1beta1"
    } else {
        version
    };
    let hash = Sha256::digest(format!("{group}/{version}/{kind}"));
    BASE64.encode(hash.get(..8).unwrap_or_default())
}

fn subresource_entry(resource: &Resource, subresource: &Subresource) -> Value {
    let (group, version, kind) = response_kind(resource, subresource);
    let mut entry = json!({
        "name": format!("{}/{}", resource.plural, subresource.name()),
        "singularName": "",
        "namespaced": resource.namespaced,
    });
    if (group, version) != (resource.group.as_str(), resource.version.as_str()) {
        entry["group"] = group.into();
        entry["version"] = version.into();
    }
    entry["kind"] = kind.into();
    entry["verbs"] = verb_names(subresource.verbs()).into();
    entry
}

/// Adds short names and categories, if any.
fn names(resource: &Resource, entry: &mut Value) {
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
}

fn aggregated<'a>(
    registry: &Registry,
    api_version: &str,
    groups: impl Iterator<Item = &'a str>,
) -> Value {
    let items: Vec<_> = groups
        .map(|group| {
            let versions: Vec<_> = registry
                .versions(group)
                .map(|version| {
                    let resources: Vec<_> = registry
                        .resources(group, version)
                        .map(|it| aggregated_entry(it))
                        .collect();
                    json!({"version": version, "resources": resources,
                        "freshness": "Current"})
                })
                .collect();
            let mut metadata = json!({"creationTimestamp": null});
            if !group.is_empty() {
                metadata["name"] = group.into();
            }
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": api_version,
        "metadata": {},
        "items": items,
    })
}

fn aggregated_entry(resource: &Resource) -> Value {
    let scope = if resource.namespaced {
        "Namespaced"
    } else {
        "Cluster"
    };
    let mut entry = json!({
        "resource": resource.plural,
        "responseKind": shown_kind(
            resource,
            (&resource.group, &resource.version, &resource.kind),
        ),
        "scope": scope,
        "singularResource": resource.singular,
        "verbs": verb_names(&resource.verbs),
    });
    names(resource, &mut entry);
    if !resource.subresources.is_empty() {
        let all = resource.subresources.iter().map(|it| {
            let kind = shown_kind(resource, response_kind(resource, it));
            json!({"subresource": it.name(), "verbs": verb_names(it.verbs()),
                "responseKind": kind})
        });
        entry["subresources"] = all.collect();
    }
    entry
}

/// The response kind in the aggregated format: a built-in resource does not repeat its own
/// group and version.
fn shown_kind(resource: &Resource, (group, version, kind): (&str, &str, &str)) -> Value {
    let own = (group, version) == (resource.group.as_str(), resource.version.as_str());
    if own && !resource.custom {
        json!({"group": "", "version": "", "kind": kind})
    } else {
        json!({"group": group, "version": version, "kind": kind})
    }
}

/// Group, version and kind of the request or response of a subresource.
pub(crate) fn response_kind<'a>(
    resource: &'a Resource,
    subresource: &Subresource,
) -> (&'a str, &'a str, &'a str) {
    let own = (
        resource.group.as_str(),
        resource.version.as_str(),
        resource.kind.as_str(),
    );
    subresource.kind().unwrap_or(own)
}

fn verb_names(verbs: &[Verb]) -> Vec<&'static str> {
    verbs.iter().map(|it| it.as_str()).collect()
}

#[cfg(test)]
mod tests;

//! The request that policies and webhooks match.

use std::sync::Arc;

use kubemu_admission::policy::{GroupVersionKind, GroupVersionResource, Request, User};
use serde_json::Value;

use super::Attributes;
use crate::resource::{Resource, Subresource};
use crate::state::State;
use crate::store::Key;

/// Calls `then` with the request.
pub(super) fn with_request<T>(
    cluster: &State,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
    then: impl FnOnce(&Request<'_>) -> T,
) -> T {
    let resource = attributes.resource();
    let user = attributes.user();
    let user = User {
        name: user.name.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: user.extra.clone(),
    };
    let others = equivalents(cluster, resource);
    let equivalents = others.iter().map(|it| names(it, attributes.subresource()));
    let equivalents: Vec<_> = equivalents.collect();
    let options = attributes.options();
    // The namespace selector of a Namespace object matches its own labels.
    let namespace = if resource.plural == "namespaces" && resource.group.is_empty() {
        attributes.name()
    } else {
        attributes.namespace()
    };
    let namespace_object =
        cluster.get(cluster.buckets.namespaces, &Key::new("", namespace));
    let (resource_names, kind_names) = names(resource, attributes.subresource());
    let mut request = Request::new(attributes.operation(), kind_names, &resource.plural);
    request.resource = resource_names;
    request.equivalents = &equivalents;
    request.subresource = attributes.subresource();
    request.namespace = namespace;
    request.name = attributes.name();
    request.object = object;
    request.old_object = attributes.old_object();
    request.options = Some(&options).filter(|it| !it.is_null());
    request.user = &user;
    request.dry_run = options.get("dryRun").is_some();
    request.namespace_object = namespace_object.map(|it| &**it);
    then(&request)
}

/// The resource, and the kind of the object that the request writes to it or its subresource.
fn names<'a>(
    resource: &'a Resource,
    subresource: &str,
) -> (GroupVersionResource<'a>, GroupVersionKind<'a>) {
    let (group, version) = (resource.group.as_str(), resource.version.as_str());
    let mut all = resource.subresources.iter();
    let written = all.find(|it| it.name() == subresource);
    let own = (group, version, resource.kind.as_str());
    let kind = written.and_then(Subresource::kind).unwrap_or(own);
    (
        GroupVersionResource {
            group,
            version,
            resource: &resource.plural,
        },
        GroupVersionKind {
            group: kind.0,
            version: kind.1,
            kind: kind.2,
        },
    )
}

/// The other served versions of the resource.
fn equivalents(cluster: &State, own: &Resource) -> Vec<Arc<Resource>> {
    let others = cluster.registry.all().filter(|it| {
        it.storage == own.storage && (it.group != own.group || it.version != own.version)
    });
    others.cloned().collect()
}

//! ValidatingAdmissionPolicy: asks the policies that are bound.

mod environment;
mod source;

use std::sync::Arc;

use fivespot_admission::policy::{
    Decision, Denial, GroupVersionKind, GroupVersionResource, Request, User,
};
use serde_json::Value;

use super::{Attributes, Plugin};
use crate::resource::{Resource, Subresource};
use crate::state::State;
use crate::status::{Cause, Details, Reason, Status};
use crate::store::Key;
use environment::Environment;

pub(crate) use source::PolicySource;

/// The plugin. The policies in force are a part of the state.
#[derive(Debug)]
pub(super) struct ValidatingAdmissionPolicy;

impl Plugin for ValidatingAdmissionPolicy {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionPolicy"
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let decision = decide(cluster, attributes, object);
        for warning in &decision.warnings {
            attributes.warn(warning.clone());
        }
        if let Some(denial) = decision.denied() {
            return Err(refusal(attributes, denial));
        }
        for (key, value) in decision.audit_annotations {
            attributes.annotate(key, value);
        }
        Ok(())
    }
}

fn decide(
    cluster: &State,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Decision {
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
    // A namespace is selected by its own labels, as what is in it is.
    let namespace = if resource.plural == "namespaces" && resource.group.is_empty() {
        attributes.name()
    } else {
        attributes.namespace()
    };
    let namespace_object =
        cluster.get(cluster.buckets.namespaces, &Key::new("", namespace));
    let (resource_names, kind_names) = names(resource, attributes.subresource());
    let request = Request {
        operation: attributes.operation(),
        kind: kind_names,
        resource: resource_names,
        equivalents: &equivalents,
        subresource: attributes.subresource(),
        namespace,
        name: attributes.name(),
        object,
        old_object: attributes.old_object(),
        options: Some(&options),
        user: &user,
        dry_run: options.get("dryRun").is_some(),
        namespace_object: namespace_object.map(|it| &**it),
    };
    let policies = &cluster.policies.compiled;
    policies.decide(&request, &Environment(cluster))
}

fn refusal(attributes: &Attributes<'_>, denial: &Denial) -> Status {
    let causes = denial.causes.iter().cloned().map(Cause::from);
    // A collection that is deleted has no name.
    let name = match attributes.name() {
        "" => "Unknown",
        name => name,
    };
    Status::new(
        denial.code,
        Reason::parse(&denial.reason),
        denial.message.clone(),
    )
    .with_details(Details {
        name: name.to_owned(),
        group: attributes.resource().group.clone(),
        kind: attributes.resource().plural.clone(),
        causes: causes.collect(),
        ..Details::default()
    })
}

/// The resource, and the kind of what is written through it or its subresource.
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

/// The other served shapes of what a request is about.
fn equivalents(cluster: &State, own: &Resource) -> Vec<Arc<Resource>> {
    let others = cluster.registry.all().filter(|it| {
        it.storage == own.storage && (it.group != own.group || it.version != own.version)
    });
    others.cloned().collect()
}

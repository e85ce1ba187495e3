//! The Kubernetes kinds that are served without a CustomResourceDefinition.

mod event;
mod heading;

use std::sync::Arc;

use serde_json::json;

use crate::openapi::definitions;
use crate::resource::{Column, GroupResource, Resource, Subresource, Verb};

pub use event::convert as convert_event;

const CREATION: &str = "CreationTimestamp is a timestamp representing the server time when \
     this object was created. It is not guaranteed to be set in happens-before order \
     across separate operations. Clients may not set this value. It is represented in \
     RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. \
     More info: https://git.k8s.io/community/contributors/devel/sig-architecture/\
     api-conventions.md#metadata";

/// The description that Kubernetes gives to columns of `metadata.creationTimestamp`.
pub(crate) fn creation_description() -> &'static str {
    CREATION
}

/// Every built-in resource, in no particular order.
///
/// What is not listed here and not registered by a CustomResourceDefinition is not
/// served. The two `Event` shapes share one storage; [`convert_event`] turns one into the
/// other.
pub fn resources() -> Vec<Resource> {
    let mut all = nodes_and_pods();
    all.extend(core());
    all.extend(coordination_and_policy());
    all.extend(installed());
    all.extend(rbac());
    all.extend(admission());
    all.extend(reviews());
    all
}

fn nodes_and_pods() -> Vec<Resource> {
    vec![
        Row::of("", "Node", "nodes")
            .cluster()
            .short(&["no"])
            .sub(&[Subresource::Status])
            .columns(&[
                ("Status", "string", 0),
                ("Roles", "string", 0),
                AGE,
                ("Version", "string", 0),
                ("Internal-IP", "string", 1),
                ("External-IP", "string", 1),
                ("OS-Image", "string", 1),
                ("Kernel-Version", "string", 1),
                ("Container-Runtime", "string", 1),
            ]),
        Row::of("", "Pod", "pods")
            .short(&["po"])
            .category("all")
            .counted()
            .sub(&[
                Subresource::Binding,
                Subresource::Eviction,
                Subresource::Status,
            ])
            .columns(&[
                ("Ready", "string", 0),
                ("Status", "string", 0),
                ("Restarts", "string", 0),
                AGE,
                ("IP", "string", 1),
                ("Node", "string", 1),
                ("Nominated Node", "string", 1),
                ("Readiness Gates", "string", 1),
            ]),
    ]
    .into_iter()
    .map(Row::done)
    .collect()
}

fn core() -> Vec<Resource> {
    vec![
        Row::of("", "Namespace", "namespaces")
            .cluster()
            .short(&["ns"])
            .without(Verb::DeleteCollection)
            .sub(&[Subresource::Finalize, Subresource::Status])
            .columns(&[("Status", "string", 0), AGE]),
        Row::of("", "ConfigMap", "configmaps")
            .short(&["cm"])
            .columns(&[("Data", "string", 0), AGE]),
        Row::of("", "Secret", "secrets").columns(&[
            ("Type", "string", 0),
            ("Data", "string", 0),
            AGE,
        ]),
        Row::of("", "ServiceAccount", "serviceaccounts")
            .short(&["sa"])
            .sub(&[Subresource::Token])
            .columns(&[AGE]),
        Row::of("", "Event", "events")
            .short(&["ev"])
            .made_by_update()
            .columns(&EVENT),
        Row::of("events.k8s.io", "Event", "events")
            .short(&["ev"])
            .made_by_update()
            .kept_as("", "events", "v1")
            .columns(&EVENT),
    ]
    .into_iter()
    .map(Row::done)
    .collect()
}

/// What an operator is installed from, besides the others: kept as it is, with nobody who runs it.
fn installed() -> Vec<Resource> {
    vec![
        Row::of("apps", "Deployment", "deployments")
            .short(&["deploy"])
            .category("all")
            .counted()
            .sub(&[Subresource::Status])
            .columns(&[
                ("Ready", "string", 0),
                ("Up-to-date", "string", 0),
                ("Available", "string", 0),
                AGE,
                ("Containers", "string", 1),
                ("Images", "string", 1),
                ("Selector", "string", 1),
            ]),
        Row::of("apps", "StatefulSet", "statefulsets")
            .short(&["sts"])
            .category("all")
            .counted()
            .sub(&[Subresource::Status])
            .columns(&[
                ("Ready", "string", 0),
                AGE,
                ("Containers", "string", 1),
                ("Images", "string", 1),
            ]),
        Row::of("", "Service", "services")
            .short(&["svc"])
            .category("all")
            .made_by_update()
            .sub(&[Subresource::Status])
            .columns(&[
                ("Type", "string", 0),
                ("Cluster-IP", "string", 0),
                ("External-IP", "string", 0),
                ("Port(s)", "string", 0),
                AGE,
                ("Selector", "string", 1),
            ]),
        Row::of("networking.k8s.io", "NetworkPolicy", "networkpolicies")
            .short(&["netpol"])
            .counted()
            .columns(&[("Pod-Selector", "string", 0), AGE]),
    ]
    .into_iter()
    .map(Row::done)
    .collect()
}

fn coordination_and_policy() -> Vec<Resource> {
    vec![
        Row::of("coordination.k8s.io", "Lease", "leases")
            .made_by_update()
            .replaced_at_a_version()
            .columns(&[("Holder", "string", 0), AGE]),
        Row::of("policy", "PodDisruptionBudget", "poddisruptionbudgets")
            .short(&["pdb"])
            .counted()
            .replaced_at_a_version()
            .sub(&[Subresource::Status])
            .columns(&[
                ("Min Available", "string", 0),
                ("Max Unavailable", "string", 0),
                ("Allowed Disruptions", "integer", 0),
                AGE,
            ]),
        Row::of(
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        )
        .cluster()
        .short(&["crd", "crds"])
        .category("api-extensions")
        .counted()
        .replaced_at_a_version()
        .sub(&[Subresource::Status])
        .columns(&[("Created At", "date", 0)]),
    ]
    .into_iter()
    .map(Row::done)
    .collect()
}

fn rbac() -> Vec<Resource> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    const ROLE: [Heading; 1] = [("Created At", "date", 0)];
    const BINDING: [Heading; 5] = [
        ("Role", "string", 0),
        AGE,
        ("Users", "string", 1),
        ("Groups", "string", 1),
        ("ServiceAccounts", "string", 1),
    ];
    vec![
        Row::of(GROUP, "Role", "roles").columns(&ROLE),
        Row::of(GROUP, "ClusterRole", "clusterroles")
            .cluster()
            .columns(&ROLE),
        Row::of(GROUP, "RoleBinding", "rolebindings").columns(&BINDING),
        Row::of(GROUP, "ClusterRoleBinding", "clusterrolebindings")
            .cluster()
            .columns(&BINDING),
    ]
    .into_iter()
    .map(|it| it.made_by_update().done())
    .collect()
}

fn admission() -> Vec<Resource> {
    let row = |kind, plural| {
        Row::of("admissionregistration.k8s.io", kind, plural)
            .cluster()
            .category("api-extensions")
            .counted()
            .replaced_at_a_version()
    };
    let webhooks = [("Webhooks", "integer", 0), AGE];
    vec![
        row("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
            .sub(&[Subresource::Status])
            .columns(&[
                ("Validations", "integer", 0),
                ("ParamKind", "string", 0),
                AGE,
            ]),
        row(
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
        )
        .columns(&[("PolicyName", "string", 0), ("ParamRef", "string", 0), AGE]),
        row(
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
        )
        .columns(&webhooks),
        row(
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
        )
        .columns(&webhooks),
    ]
    .into_iter()
    .map(Row::done)
    .collect()
}

fn reviews() -> Vec<Resource> {
    const RIGHTS: &str = "authorization.k8s.io";
    const IDENTITY: &str = "authentication.k8s.io";
    [
        (RIGHTS, "LocalSubjectAccessReview"),
        (RIGHTS, "SelfSubjectAccessReview"),
        (RIGHTS, "SelfSubjectRulesReview"),
        (RIGHTS, "SubjectAccessReview"),
        (IDENTITY, "SelfSubjectReview"),
        (IDENTITY, "TokenReview"),
    ]
    .into_iter()
    .map(|(group, kind)| {
        let mut row = Row::of(group, kind, &format!("{}s", kind.to_lowercase()));
        row.0.verbs = vec![Verb::Create];
        row.0.namespaced = kind.starts_with("Local");
        row.done()
    })
    .collect()
}

/// A heading: its text, type and priority. The cells are computed by the table.
type Heading = (&'static str, &'static str, i32);

const AGE: Heading = ("Age", "string", 0);

const EVENT: [Heading; 10] = [
    ("Last Seen", "string", 0),
    ("Type", "string", 0),
    ("Reason", "string", 0),
    ("Object", "string", 0),
    ("Subobject", "string", 1),
    ("Source", "string", 1),
    ("Message", "string", 0),
    ("First Seen", "string", 1),
    ("Count", "string", 1),
    ("Name", "string", 1),
];

/// A resource under construction: namespaced, in `v1`, its generation not counted.
struct Row(Resource);

impl Row {
    fn of(group: &str, kind: &str, plural: &str) -> Self {
        let mut resource = Resource::new(group, "v1", kind, plural);
        resource.generation = false;
        Self(resource)
    }

    fn cluster(mut self) -> Self {
        self.0.namespaced = false;
        self
    }

    fn counted(mut self) -> Self {
        self.0.generation = true;
        self
    }

    /// `AllowCreateOnUpdate` of the kind's strategy.
    fn made_by_update(mut self) -> Self {
        self.0.create_on_update = true;
        self
    }

    /// Without `AllowUnconditionalUpdate` of the kind's strategy.
    fn replaced_at_a_version(mut self) -> Self {
        self.0.unconditional_update = false;
        self
    }

    fn short(mut self, names: &[&str]) -> Self {
        self.0.short_names = names.iter().map(|&it| it.to_owned()).collect();
        self
    }

    fn category(mut self, name: &str) -> Self {
        self.0.categories.push(name.to_owned());
        self
    }

    fn without(mut self, verb: Verb) -> Self {
        self.0.verbs.retain(|it| *it != verb);
        self
    }

    fn sub(mut self, all: &[Subresource]) -> Self {
        self.0.subresources = all.to_vec();
        self
    }

    fn kept_as(mut self, group: &str, plural: &str, api_version: &str) -> Self {
        self.0.storage = GroupResource::new(group, plural);
        api_version.clone_into(&mut self.0.stored_as);
        self
    }

    fn columns(mut self, headings: &[Heading]) -> Self {
        self.0.columns = headings
            .iter()
            .map(|&(name, kind, priority)| Column {
                name: name.to_owned(),
                kind: kind.to_owned(),
                priority,
                description: match name {
                    "Age" | "Created At" => CREATION.to_owned(),
                    _ => heading::of(&self.0.kind, name).to_owned(),
                },
                ..Column::default()
            })
            .collect();
        self
    }

    fn done(mut self) -> Resource {
        let name = definitions::name_of(&self.0.group, &self.0.version, &self.0.kind);
        self.0.schema = name
            .map(|it| Arc::new(json!({"$ref": format!("{}{it}", definitions::PREFIX)})));
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_kind_has_a_schema() {
        for resource in resources() {
            let (kind, group) = (&resource.kind, &resource.group);
            assert!(resource.schema.is_some(), "{kind} of {group:?}");
        }
    }

    #[test]
    fn both_event_shapes_are_kept_in_one_place() {
        let all = resources();
        let kept: Vec<_> = all.iter().filter(|it| it.kind == "Event").collect();
        assert_eq!(kept.len(), 2);
        assert_eq!(kept[0].storage, kept[1].storage);
        assert_eq!(kept[0].stored_as, kept[1].stored_as);
    }
}

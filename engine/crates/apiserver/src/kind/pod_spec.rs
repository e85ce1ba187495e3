//! The spec of pods and of pod templates (`ValidatePodSpec` in pkg/apis/core/validation).
//!
//! Volume fields that only a cloud provider's driver reads, resource claims, and deprecated
//! annotations that became fields are not checked.

mod affinity;
mod container;
pub(super) mod default;
mod dns;
mod env;
mod image;
mod mount;
mod network;
mod probe;
mod resources;
mod security;
mod spread;
mod toleration;
mod volume;
pub(super) mod warning;
mod windows;

use kubemu_admission::{FieldError, name};

use super::field::{Errors, Field};
use super::rule;

pub(in crate::kind) use affinity::node_selector;
pub(in crate::kind) use container::only_for_pods;
pub(in crate::kind) use resources::overhead;
pub(in crate::kind) use toleration::all as tolerations;
pub(in crate::kind) use volume::{
    claim_errors, source as volume_source, storage_network,
};

/// The object that contains the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A pod.
    Pod,
    /// A pod template.
    Template,
}

/// A spec with the values that the validation of its parts needs.
#[derive(Debug)]
struct Spec<'a> {
    field: Field<'a>,
    owner: Owner,
    volumes: volume::Volumes<'a>,
}

impl<'a> Spec<'a> {
    fn child(&self, name: &'a str) -> Field<'a> {
        self.field.child(name)
    }

    /// The containers of every list, each with its path.
    fn containers(&self) -> impl Iterator<Item = Field<'a>> {
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        let lists = lists.map(|it| self.child(it).items());
        lists.into_iter().flatten()
    }

    fn shares_host_network(&self) -> bool {
        self.child("hostNetwork").is_true()
    }

    /// Whether the containers share the user namespace of the host.
    fn shares_host_users(&self) -> bool {
        *self.child("hostUsers").value != false
    }
}

/// The validation errors of a spec.
pub(super) fn errors(field: &Field<'_>, owner: Owner) -> Errors {
    let mut errors = Errors::new();
    if !field.child("terminationGracePeriodSeconds").is_set() {
        errors.push(field.child("terminationGracePeriodSeconds").required(""));
    }
    let volumes = volume::volumes(&field.child("volumes"), owner, &mut errors);
    let spec = Spec {
        field: field.clone(),
        owner,
        volumes,
    };
    container::all(&spec, &mut errors);
    resources::of_pod(&spec.child("resources"), &mut errors);
    network::host_ports(&spec, &mut errors);
    policies(&spec, &mut errors);
    rule::labels(&spec.child("nodeSelector"), &mut errors);
    security::of_pod(&spec, &mut errors);
    affinity::affinity(&spec.child("affinity"), &mut errors);
    dns::dns(&spec, &mut errors);
    for gate in spec.child("readinessGates").items() {
        rule::qualified_name(&gate.child("conditionType"), &mut errors);
    }
    gates(&spec.child("schedulingGates"), &mut errors);
    spread::constraints(&spec.child("topologySpreadConstraints"), &mut errors);
    windows::host_processes(&spec, &mut errors);
    security::host_users(&spec, &mut errors);
    names(&spec, &mut errors);
    toleration::all(&spec.child("tolerations"), &mut errors);
    dns::aliases(&spec.child("hostAliases"), &mut errors);
    classes(&spec, &mut errors);
    windows::operating_system(&spec, &mut errors);
    errors
}

/// The validation errors of a preset's spec (`ValidatePodPresetSpec` in Kubernetes 1.19).
pub(super) fn preset_errors(field: &Field<'_>) -> Errors {
    let mut errors = Errors::new();
    rule::selector(&field.child("selector"), &mut errors);
    let lists = ["volumes", "env", "envFrom", "volumeMounts"];
    if !lists.iter().any(|it| field.child(it).is_set()) {
        let all = field.at(field.path_of(&lists.join(".")));
        errors.push(all.required("must specify at least one"));
    }
    let owner = Owner::Template;
    let volumes = volume::volumes(&field.child("volumes"), owner, &mut errors);
    env::variables(&field.child("env"), &mut errors);
    env::sources(&field.child("envFrom"), &mut errors);
    let spec = Spec {
        field: field.clone(),
        owner,
        volumes,
    };
    mount::mounts(&spec, field, &mut errors);
    errors
}

fn policies(spec: &Spec<'_>, errors: &mut Errors) {
    let known = ["Always", "OnFailure", "Never"];
    rule::one_of(&spec.child("restartPolicy"), &known, errors);
    let known = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    rule::one_of(&spec.child("dnsPolicy"), &known, errors);
}

fn gates(gates: &Field<'_>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for gate in gates.items() {
        let name = gate.child("name").at(gate.path.clone());
        rule::qualified_name(&name, errors);
        if seen.contains(&name.text()) {
            errors.push(name.duplicate());
        }
        seen.push(name.text());
    }
}

fn names(spec: &Spec<'_>, errors: &mut Errors) {
    dns::host_name_override(spec, errors);
    for field in ["serviceAccountName", "nodeName"] {
        rule::text_if_set(&spec.child(field), name::dns_subdomain, errors);
    }
    let deadline = spec.child("activeDeadlineSeconds");
    if deadline.is_set() {
        rule::between(&deadline, 1..=i64::from(i32::MAX), errors);
    }
    for field in ["hostname", "subdomain"] {
        rule::text_if_set(&spec.child(field), name::dns_label, errors);
    }
}

fn classes(spec: &Spec<'_>, errors: &mut Errors) {
    let class = spec.child("priorityClassName");
    rule::text_if_set(&class, name::dns_subdomain, errors);
    let class = spec.child("runtimeClassName");
    if class.is_set() {
        rule::dns_subdomain(&class, errors);
    }
    let policy = spec.child("preemptionPolicy");
    if policy.is_set() {
        rule::one_of(&policy, &["PreemptLowerPriority", "Never"], errors);
    }
    resources::overhead(&spec.child("overhead"), errors);
}

/// The validation errors of a pod template (`ValidatePodTemplateSpec`).
pub(super) fn template_errors(template: &Field<'_>) -> Errors {
    let mut errors = template_metadata_errors(template);
    let spec = template.child("spec");
    errors.extend(self::errors(&spec, Owner::Template));
    let ephemeral = spec.child("ephemeralContainers");
    if ephemeral.len() > 0 {
        let why = "ephemeral containers not allowed in pod template";
        errors.push(ephemeral.forbidden(why));
    }
    errors
}

/// Validates the labels and annotations of a template. Their paths do not contain `metadata`, as in
/// Kubernetes.
pub(super) fn template_metadata_errors(template: &Field<'_>) -> Errors {
    let mut errors = Errors::new();
    let metadata = template.child("metadata");
    let labels = metadata.child("labels").at(template.path_of("labels"));
    rule::labels(&labels, &mut errors);
    annotations(template, &mut errors);
    errors
}

/// Validates the keys of a template's annotations. Uppercase letters are valid.
fn annotations(template: &Field<'_>, errors: &mut Errors) {
    let path = template.path_of("annotations");
    for (key, _) in template.child("metadata.annotations").entries() {
        for wrong in name::label_key(&key.to_lowercase()) {
            let path = path.clone();
            errors.push(FieldError::invalid(path, key.into(), wrong));
        }
    }
}

//! Containers of a pod, init containers and ephemeral containers.

use std::collections::BTreeSet;

use kubemu_admission::FieldError;

use super::{Owner, Spec, env, mount, network, probe, resources, security};
use crate::kind::field::{Errors, Field};
use crate::kind::rule;

/// Validates all containers of a spec.
pub(super) fn all(spec: &Spec<'_>, errors: &mut Errors) {
    regular(spec, errors);
    initial(spec, errors);
    ephemeral(spec, errors);
}

/// The fields that an ephemeral container does not have.
const NOT_EPHEMERAL: [&str; 7] = [
    "ports",
    "resources",
    "resizePolicy",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Validates the ephemeral containers, which have names of their own and a target that has not.
fn ephemeral(spec: &Spec<'_>, errors: &mut Errors) {
    let lists = ["initContainers", "containers"].map(|it| spec.child(it).items());
    let others: BTreeSet<&str> = lists
        .into_iter()
        .flatten()
        .map(|it| it.child("name").text())
        .collect();
    let mut names = others.clone();
    for container in spec.child("ephemeralContainers").items() {
        common(spec, &container, errors);
        let name = container.child("name");
        if !names.insert(name.text()) {
            errors.push(FieldError::duplicate(&name.path, name.text().into()));
        }
        let target = container.child("targetContainerName");
        if !target.text().is_empty() && !others.contains(target.text()) {
            errors.push(FieldError::not_found(&target.path, target.value.clone()));
        }
        let is_given = |it: &Field<'_>| match it.value {
            serde_json::Value::Null => false,
            _ => it.len() > 0 || it.value.is_string(),
        };
        for field in NOT_EPHEMERAL.map(|it| container.child(it)) {
            if is_given(&field) {
                errors.push(field.forbidden("cannot be set for an Ephemeral Container"));
            }
        }
    }
}

fn regular(spec: &Spec<'_>, errors: &mut Errors) {
    let list = spec.child("containers");
    if list.len() == 0 {
        errors.push(list.required(""));
        return;
    }
    let mut names = BTreeSet::new();
    for container in list.items() {
        common(spec, &container, errors);
        let name = container.child("name");
        if !names.insert(name.text()) {
            errors.push(FieldError::duplicate(name.path.clone(), name.text().into()));
        }
        handlers(spec, &container, errors);
        restart_policy(&container, errors);
    }
    network::unique_host_ports(list.items(), errors);
}

fn initial(spec: &Spec<'_>, errors: &mut Errors) {
    let regular = spec.child("containers");
    let mut names: BTreeSet<&str> =
        regular.items().map(|it| it.child("name").text()).collect();
    for container in spec.child("initContainers").items() {
        common(spec, &container, errors);
        restart_policy(&container, errors);
        let name = container.child("name");
        if names.contains(name.text()) {
            errors.push(FieldError::duplicate(name.path.clone(), name.text().into()));
        } else if !name.text().is_empty() {
            names.insert(name.text());
        }
        network::unique_host_ports(std::iter::once(container.clone()), errors);
        if container.child("restartPolicy").text() == "Always" {
            handlers(spec, &container, errors);
            continue;
        }
        let why = "may not be set for init containers without restartPolicy=Always";
        for field in [
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
        ] {
            let field = container.child(field);
            errors.extend(field.is_set().then(|| field.forbidden(why)));
        }
    }
}

/// Validates the fields that every container has (`validateContainerCommon`).
fn common(spec: &Spec<'_>, container: &Field<'_>, errors: &mut Errors) {
    let name = container.child("name");
    if name.text().is_empty() {
        errors.push(name.required(""));
    } else {
        rule::dns_label(&name, errors);
    }
    let image = container.child("image");
    if image.text().is_empty() {
        errors.push(image.required(""));
    }
    let policy = container.child("terminationMessagePolicy");
    rule::one_of(&policy, &["File", "FallbackToLogsOnError"], errors);
    network::ports(&container.child("ports"), errors);
    env::variables(&container.child("env"), errors);
    env::sources(&container.child("envFrom"), errors);
    mount::mounts(spec, container, errors);
    mount::devices(spec, container, errors);
    pull_policy(&container.child("imagePullPolicy"), errors);
    let claims = spec.child("resourceClaims");
    resources::of_container(&container.child("resources"), &claims, errors);
    resize_policy(spec, &container.child("resizePolicy"), errors);
    let context = container.child("securityContext");
    security::of_container(&context, spec.shares_host_users(), errors);
}

/// Validates the image pull policy.
pub(super) fn pull_policy(policy: &Field<'_>, errors: &mut Errors) {
    rule::one_of(policy, &["Always", "IfNotPresent", "Never"], errors);
}

fn handlers(spec: &Spec<'_>, container: &Field<'_>, errors: &mut Errors) {
    let grace = spec.child("terminationGracePeriodSeconds").number();
    probe::lifecycle(&container.child("lifecycle"), grace, errors);
    probe::liveness(&container.child("livenessProbe"), grace, errors);
    probe::readiness(&container.child("readinessProbe"), grace, errors);
    probe::liveness(&container.child("startupProbe"), grace, errors);
}

/// Validates the restart policy of a container, and its restart rules.
fn restart_policy(container: &Field<'_>, errors: &mut Errors) {
    let policy = container.child("restartPolicy");
    let rules = container.child("restartPolicyRules");
    if policy.is_set() {
        rule::one_of_if_set(&policy, &["Always", "Never", "OnFailure"], errors);
    } else if rules.len() > 0 {
        let why = "must specify restartPolicy when restart rules are used";
        errors.push(policy.required(why));
    }
    for each in rules.items() {
        rule::one_of_if_set(&each.child("action"), &["Restart"], errors);
        let codes = each.child("exitCodes");
        if codes.is_set() {
            rule::one_of_if_set(&codes.child("operator"), &["In", "NotIn"], errors);
        } else {
            errors.push(codes.required("must be specified"));
        }
    }
}

/// Validates the resize policy. Errors have the path of the list.
fn resize_policy(spec: &Spec<'_>, list: &Field<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    let never = spec.child("restartPolicy").text() == "Never";
    for item in list.items() {
        let resource = item.child("resourceName");
        if !seen.insert(resource.text()) {
            errors.push(resource.at(item.path.clone()).duplicate());
        }
        let at_list = list.path.clone();
        rule::one_of(&resource.at(at_list.clone()), &["cpu", "memory"], errors);
        let policy = item.child("restartPolicy").at(at_list);
        let known = ["NotRequired", "RestartContainer"];
        rule::one_of(&policy, &known, errors);
        if never && policy.text() != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(policy.invalid(why));
        }
    }
}

/// Validates what applies to the containers of pods, but not of templates
/// (`validateContainersOnlyForPod`).
pub(in crate::kind) fn only_for_pods(spec: &Field<'_>, errors: &mut Errors) {
    for list in ["containers", "initContainers"] {
        for container in spec.child(list).items() {
            let image = container.child("image");
            if image.text().trim().len() != image.text().len() {
                let why = "must not have leading or trailing whitespace";
                errors.push(image.invalid(why));
            }
        }
    }
}

impl Owner {
    /// Whether it is a pod.
    pub(super) fn is_pod(self) -> bool {
        self == Self::Pod
    }
}

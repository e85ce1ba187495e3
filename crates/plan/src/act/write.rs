//! The requests, each with the guard that makes it safe to send twice.

mod agent_config;

use fivespot_api::host_claim::HostClaim;
use fivespot_api::{MachineTemplate, OverrideMode, name};
use fivespot_capi::{
    Machine, MachineDraft, MachinePatch, Owner, Provider, Reference, key, one_line,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::decide::case::Case;
use crate::decide::resolve::ProviderDraft;
use crate::decide::taint::change::Change;
use crate::observed::owned::ProviderRole;
use crate::observed::subject::Subject;
use crate::{
    Action, Call, Node, Pod, ReclaimStop, Request, Side, Step, StoredClaim, Taint, Target,
};

pub(crate) use agent_config::{
    create_agent_config, delete_agent_config, update_agent_config,
};

/// The value that distinguishes our exclude annotations from those of other clients.
pub(crate) const OUR_MARK: &str = name::FIELD_MANAGER;

/// Adds our finalizer to the observed ones.
pub(crate) fn add_finalizer(subject: &Subject) -> Action {
    let mut finalizers = subject.finalizers.clone();
    finalizers.push(name::FINALIZER.to_owned());
    patch_finalizers(subject, Step::AddFinalizer, &finalizers)
}

/// Removes our finalizer from the observed ones.
pub(crate) fn remove_finalizer(subject: &Subject) -> Action {
    let mut finalizers = subject.finalizers.clone();
    finalizers.retain(|finalizer| finalizer != name::FINALIZER);
    patch_finalizers(subject, Step::RemoveFinalizer, &finalizers)
}

fn patch_finalizers(subject: &Subject, step: Step, finalizers: &[String]) -> Action {
    let object = Reference::new(name::API_VERSION, name::KIND, &subject.name);
    let patch = json!({ "metadata": {
        "uid": subject.uid,
        "resourceVersion": subject.resource_version,
        "finalizers": finalizers,
    } });
    management(step, object, &subject.namespace, Call::Patch(patch))
}

/// Creates a bootstrap or infrastructure object.
///
/// It gets a plain owner reference: the controller reference is for the Machine, which cannot be
/// provisioned while the object has another controller.
pub(crate) fn create_provider(case: &Case<'_>, role: ProviderRole) -> Action {
    let (step, draft) = match role {
        ProviderRole::Bootstrap => (Step::CreateBootstrap, &case.desired.bootstrap),
        ProviderRole::Infrastructure => {
            (Step::CreateInfrastructure, &case.desired.infrastructure)
        }
    };
    let ProviderDraft {
        api_version,
        reference,
        metadata,
        spec,
    } = draft;
    let subject = case.subject;
    let mut labels = metadata.labels.clone();
    labels.extend(name::child_labels(
        &subject.name,
        &subject.uid,
        &case.desired.cluster,
    ));
    let mut annotations = metadata.annotations.clone();
    annotations.insert(
        name::SPEC_HASH_ANNOTATION.to_owned(),
        case.desired.hash.clone(),
    );
    annotations.extend(host_annotation(case));
    let mut object = json!({
        "apiVersion": api_version,
        "kind": reference.kind,
        "metadata": {
            "name": reference.name,
            "namespace": subject.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner(subject, false).json()],
        },
    });
    if let Some(spec) = spec {
        object["spec"] = json!(spec);
    }
    management(
        step,
        reference.clone(),
        &subject.namespace,
        Call::Create(object),
    )
}

fn host_annotation(case: &Case<'_>) -> Option<(String, String)> {
    let host = case.subject.status.host.clone()?;
    Some((name::HOST_ANNOTATION.to_owned(), host))
}

/// The purpose of creating a Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To serve: it gets the fields of the spec's machineTemplate.
    Service,
    /// To be deleted at once, together with the objects that it refers to. It gets nothing of the
    /// machineTemplate: admission policies do not check edits of an object that is being deleted.
    Removal,
}

/// The inputs for creating a Machine.
pub(crate) struct MachineParts<'a> {
    pub(crate) bootstrap: Reference,
    pub(crate) infrastructure: Reference,
    /// The spec hash that the Machine gets.
    pub(crate) hash: &'a str,
}

/// Creates the Machine for these two objects, in the Cluster API version that the server offers;
/// `None` if it offers none.
pub(crate) fn create_machine(
    case: &Case<'_>,
    parts: MachineParts<'_>,
    purpose: Purpose,
) -> Option<Action> {
    let contract = *case.observed.contract.known()?;
    let (subject, desired) = (case.subject, case.desired);
    let template = match purpose {
        Purpose::Service => desired.template.clone(),
        Purpose::Removal => MachineTemplate::default(),
    };
    let mut labels = template.labels;
    labels.extend(name::child_labels(
        &subject.name,
        &subject.uid,
        &desired.cluster,
    ));
    let mut annotations = template.annotations;
    annotations.insert(name::SPEC_HASH_ANNOTATION.to_owned(), parts.hash.to_owned());
    annotations.extend(host_annotation(case));
    // A Cluster that is deleted waits for all its Machines, but deletes only those that it owns.
    // The reference is a plain one, so that it requires no permission on the Cluster's
    // finalizers.
    let cluster = case.cluster().map(|cluster| Owner {
        api_version: cluster.contract.api_version().to_owned(),
        kind: "Cluster".to_owned(),
        name: cluster.meta.name.clone(),
        uid: cluster.meta.uid.clone(),
        is_controller: false,
    });
    let draft = MachineDraft {
        name: subject.child().to_owned(),
        namespace: subject.namespace.clone(),
        labels,
        annotations,
        owners: [owner(subject, true)].into_iter().chain(cluster).collect(),
        cluster_name: desired.cluster.clone(),
        bootstrap: parts.bootstrap,
        infrastructure: parts.infrastructure,
        drain_timeout: desired
            .drain_timeout
            .unwrap_or(desired.shutdown_timeout)
            .unsigned_abs(),
        version: template.version,
        failure_domain: template.failure_domain,
    };
    let object = Reference::new(contract.api_version(), "Machine", &draft.name);
    let call = Call::Create(draft.json(contract));
    Some(management(
        Step::CreateMachine,
        object,
        &subject.namespace,
        call,
    ))
}

/// Puts our uid on the label of a Machine that is ours by its owner reference.
pub(crate) fn relabel_machine(machine: &Machine, subject: &Subject) -> Action {
    let mut patch = MachinePatch::default().json(machine);
    patch["metadata"]["labels"] = json!({
        name::SCHEDULED_MACHINE_UID_LABEL: subject.uid,
    });
    on_machine(machine, Step::RelabelMachine, Call::Patch(patch))
}

/// Changes our Machine; `None` if there is nothing to change.
pub(crate) fn patch_machine(machine: &Machine, patch: &MachinePatch) -> Option<Action> {
    if patch.is_empty() {
        return None;
    }
    let is_exclusion = patch.annotations.values().any(Option::is_some);
    let step = if is_exclusion {
        Step::ExcludeDrain
    } else {
        Step::UpdateMachine
    };
    Some(on_machine(machine, step, Call::Patch(patch.json(machine))))
}

/// Deletes our Machine.
pub(crate) fn delete_machine(machine: &Machine) -> Action {
    on_machine(
        machine,
        Step::DeleteMachine,
        Call::Delete {
            uid: machine.meta.uid.clone(),
        },
    )
}

fn on_machine(machine: &Machine, step: Step, call: Call) -> Action {
    let api_version = machine.contract.api_version();
    let object = Reference::new(api_version, "Machine", &machine.meta.name);
    management(step, object, &machine.meta.namespace, call)
}

/// Deletes a bootstrap or infrastructure object that no Machine of ours needs.
pub(crate) fn delete_provider(role: ProviderRole, provider: &Provider) -> Action {
    let step = match role {
        ProviderRole::Bootstrap => Step::DeleteBootstrap,
        ProviderRole::Infrastructure => Step::DeleteInfrastructure,
    };
    let call = Call::Delete {
        uid: provider.meta.uid.clone(),
    };
    management(step, provider.reference(), &provider.meta.namespace, call)
}

/// Cordons the Node and puts our marker on it.
pub(crate) fn cordon(node: &Node, subject: &Subject) -> Action {
    patch_node(
        node,
        Step::CordonNode,
        &json!({ name::CORDONED_ANNOTATION: subject.uid }),
        &json!({ "unschedulable": true }),
    )
}

/// Removes our marker from the Node and uncordons it.
pub(crate) fn uncordon(node: &Node) -> Action {
    patch_node(
        node,
        Step::UncordonNode,
        &json!({ name::CORDONED_ANNOTATION: null }),
        &json!({ "unschedulable": null }),
    )
}

/// Writes the taints, their record and the end of the need in one patch. The list is atomic, so
/// all its entries are written back as they were read, and the resourceVersion guards against
/// concurrent writes.
pub(crate) fn taint(node: &Node, change: &Change, leaves_at: Option<&str>) -> Action {
    let (annotations, spec) = tainted(node, change, leaves_at);
    patch_node(node, Step::TaintNode, &annotations, &spec)
}

/// Cordons the Node and removes the last call in the same patch: `change` does not contain it.
pub(crate) fn cordon_without_last_call(
    node: &Node,
    subject: &Subject,
    change: &Change,
) -> Action {
    let (mut annotations, mut spec) = tainted(node, change, None);
    annotations[name::CORDONED_ANNOTATION] = json!(subject.uid);
    spec["unschedulable"] = json!(true);
    patch_node(node, Step::CordonNode, &annotations, &spec)
}

/// The annotations and the spec of a Node with these taints.
fn tainted(node: &Node, change: &Change, leaves_at: Option<&str>) -> (Value, Value) {
    let taints: Vec<Value> = change.taints.iter().map(taint_json).collect();
    let record = if change.record.is_empty() {
        Value::Null
    } else {
        json!(json!(change.record).to_string())
    };
    let mut annotations = json!({ name::APPLIED_TAINTS_ANNOTATION: record });
    if node.leaves_at.as_deref() != leaves_at {
        annotations[name::LEAVES_AT_ANNOTATION] = json!(leaves_at);
    }
    (annotations, json!({ "taints": taints }))
}

fn taint_json(taint: &Taint) -> Value {
    let mut object = json!({ "key": taint.key, "effect": taint.effect });
    if !taint.value.is_empty() {
        object["value"] = json!(taint.value);
    }
    if let Some(time) = &taint.time_added {
        object["timeAdded"] = json!(time);
    }
    object
}

fn patch_node(node: &Node, step: Step, annotations: &Value, spec: &Value) -> Action {
    let mut patch = json!({ "metadata": {
        "uid": node.uid,
        "resourceVersion": node.resource_version,
        "annotations": annotations,
    } });
    if !spec.is_null() {
        patch["spec"] = spec.clone();
    }
    workload(step, of_node(node), Call::Patch(patch))
}

/// Evicts a pod.
pub(crate) fn evict(pod: &Pod) -> Action {
    workload(
        Step::EvictPod,
        of_pod(pod),
        Call::Evict {
            uid: pod.uid.clone(),
        },
    )
}

/// Records the reclaim on the Machine, as `<time> <reason>`.
pub(crate) fn record_reclaim(machine: &Machine, value: String) -> Action {
    annotate(
        machine,
        Step::RecordReclaim,
        name::RECLAIM_ANNOTATION,
        value,
    )
}

/// Records that the schedule has been disabled for the reclaim of this Machine.
pub(crate) fn record_disabled(machine: &Machine) -> Action {
    let key = name::RECLAIM_DISABLED_ANNOTATION;
    annotate(machine, Step::RecordDisabled, key, "true".to_owned())
}

fn annotate(machine: &Machine, step: Step, key: &str, value: String) -> Action {
    let patch = MachinePatch {
        annotations: [(key.to_owned(), Some(value))].into(),
        ..MachinePatch::default()
    };
    on_machine(machine, step, Call::Patch(patch.json(machine)))
}

/// Disables the schedule.
pub(crate) fn disable_schedule(case: &Case<'_>) -> Action {
    let subject = case.subject;
    let object = Reference::new(name::API_VERSION, name::KIND, &subject.name);
    let patch = json!({
        "metadata": {
            "uid": subject.uid,
            "resourceVersion": subject.resource_version,
        },
        "spec": case.desired.enabled_field.disabling(),
    });
    let step = Step::DisableSchedule;
    management(step, object, &subject.namespace, Call::Patch(patch))
}

/// The end and the reason of an override that stops a machine whose host is reclaimed.
#[derive(Clone, Debug)]
pub(crate) struct StopOverride {
    pub(crate) begun: Timestamp,
    pub(crate) end: Timestamp,
    pub(crate) reason: String,
}

/// Creates an override of mode Stop for the machine, named after the Machine with that uid.
pub(crate) fn stop_with_override(
    subject: &Subject,
    machine_uid: &str,
    stop: StopOverride,
) -> Action {
    let name = name::reclaim_override(&subject.name, machine_uid);
    let object = json!({
        "apiVersion": name::API_VERSION,
        "kind": name::OVERRIDE_KIND,
        "metadata": {
            "name": name,
            "namespace": subject.namespace,
            "annotations": { name::RECLAIMED_AT_ANNOTATION: stop.begun.to_string() },
        },
        "spec": {
            "targetRef": { "name": subject.name },
            "mode": OverrideMode::Stop.as_str(),
            "endTime": stop.end.to_string(),
            "reason": one_line(&stop.reason),
        },
    });
    let place = Reference::new(name::API_VERSION, name::OVERRIDE_KIND, &name);
    let step = Step::CreateOverride;
    management(step, place, &subject.namespace, Call::Create(object))
}

/// Ends the override of a reclaim.
pub(crate) fn end_override(subject: &Subject, stop: &ReclaimStop) -> Action {
    let place = Reference::new(name::API_VERSION, name::OVERRIDE_KIND, &stop.name);
    let uid = stop.uid.clone();
    let call = Call::Delete { uid };
    management(Step::EndOverride, place, &subject.namespace, call)
}

/// Claims a host with a Lease in that namespace.
pub(crate) fn claim_host(claim: &HostClaim, namespace: &str) -> Action {
    let call = Call::Create(claim.lease(namespace));
    management(Step::ClaimHost, lease_of(claim), namespace, call)
}

/// Deletes such a Lease.
pub(crate) fn release_host(stored: &StoredClaim, namespace: &str) -> Action {
    let uid = stored.uid.clone();
    let place = lease_of(&stored.claim);
    management(Step::ReleaseHost, place, namespace, Call::Delete { uid })
}

fn lease_of(claim: &HostClaim) -> Reference {
    let name = name::host_claim(&claim.class, &claim.host);
    Reference::new("coordination.k8s.io/v1", "Lease", &name)
}

/// Removes the reclaim request from the Node.
pub(crate) fn clear_request(node: &Node) -> Action {
    let cleared: serde_json::Map<String, Value> = name::RECLAIM_REQUEST
        .into_iter()
        .map(|key| (key.to_owned(), Value::Null))
        .collect();
    patch_node(node, Step::ClearRequest, &json!(cleared), &Value::Null)
}

/// Deletes a pod of a reclaimed host with the shortest grace period that the kubelet still waits
/// for.
pub(crate) fn delete_pod(pod: &Pod) -> Action {
    let call = Call::DeletePod {
        uid: pod.uid.clone(),
        grace: 1,
    };
    workload(Step::DeletePod, of_pod(pod), call)
}

fn of_pod(pod: &Pod) -> Target {
    Target {
        object: Reference::new("v1", "Pod", &pod.name),
        namespace: Some(pod.namespace.clone()),
    }
}

/// Adds or removes the label on the Node that schedules the agent there.
pub(crate) fn label_node(node: &Node, is_on: bool) -> Action {
    let value = is_on.then_some(name::RECLAIM_AGENT_ENABLED);
    let patch = json!({ "metadata": {
        "uid": node.uid,
        "resourceVersion": node.resource_version,
        "labels": { name::RECLAIM_AGENT_KEY: value },
    } });
    workload(Step::LabelNode, of_node(node), Call::Patch(patch))
}

fn of_node(node: &Node) -> Target {
    Target {
        object: Reference::new("v1", "Node", &node.name),
        namespace: None,
    }
}

/// The ScheduledMachine as an owner.
fn owner(subject: &Subject, is_controller: bool) -> Owner {
    Owner {
        api_version: name::API_VERSION.to_owned(),
        kind: name::KIND.to_owned(),
        name: subject.name.clone(),
        uid: subject.uid.clone(),
        is_controller,
    }
}

/// The missing annotations that make Cluster API skip its own drain, and, if `volumes`, also its
/// wait for volumes.
pub(crate) fn exclusions(machine: &Machine, volumes: bool) -> MachinePatch {
    let volumes = volumes.then_some(key::EXCLUDE_VOLUME_DETACH);
    let mut patch = MachinePatch::default();
    for annotation in [key::EXCLUDE_NODE_DRAINING].into_iter().chain(volumes) {
        if !machine.meta.annotations.contains_key(annotation) {
            patch
                .annotations
                .insert(annotation.to_owned(), Some(OUR_MARK.to_owned()));
        }
    }
    patch
}

/// Removes the exclusions that we added.
pub(crate) fn no_exclusions(machine: &Machine) -> MachinePatch {
    let mut patch = MachinePatch::default();
    for annotation in [key::EXCLUDE_NODE_DRAINING, key::EXCLUDE_VOLUME_DETACH] {
        if machine
            .meta
            .annotations
            .get(annotation)
            .is_some_and(|value| value == OUR_MARK)
        {
            patch.annotations.insert(annotation.to_owned(), None);
        }
    }
    patch
}

fn management(step: Step, object: Reference, namespace: &str, call: Call) -> Action {
    let target = Target {
        object,
        namespace: Some(namespace.to_owned()),
    };
    Action {
        step,
        request: Request {
            side: Side::Management,
            target,
            call,
        },
    }
}

fn workload(step: Step, target: Target, call: Call) -> Action {
    Action {
        step,
        request: Request {
            side: Side::Workload,
            target,
            call,
        },
    }
}

//! The Machine controller for a Machine that is being deleted: hooks, drain, infrastructure,
//! bootstrap, Node, finalizer, in the order that Cluster API has used since 1.5.

use fivespot_capi::Contract;
use fivespot_capi::key::{EXCLUDE_NODE_DRAINING, MACHINE_FINALIZER};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::cluster::without;
use crate::contract::{Condition, seconds};
use crate::crd::CapiResources;
use crate::machine::{MachineInput, status};
use crate::object::{
    annotation, controller, instant, is_deleting, is_true, map, name, namespace, text,
};
use crate::write::{NODES, Resource, Step, Write};

const PRE_DRAIN: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io";
const PRE_TERMINATE: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io";
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The interval at which the pods of a Node that is being drained are evicted again.
const DRAIN_RETRY: SignedDuration = SignedDuration::from_secs(20);

/// The progress of a removal: the reason of the `Deleting` condition, and its message.
struct DeletingReason<'a> {
    reason: &'a str,
    message: &'a str,
}

impl<'a> DeletingReason<'a> {
    const fn new(reason: &'a str) -> Self {
        Self {
            reason,
            message: "",
        }
    }
}

pub(crate) fn step(
    capi: CapiResources,
    input: &MachineInput<'_>,
    now: Timestamp,
) -> Step {
    let machine = input.machine;
    if is_hooked(machine, PRE_DRAIN) {
        return patch(
            capi,
            input,
            &DeletingReason::new("WaitingForPreDrainHook"),
            now,
        );
    }
    if let Some(step) = drain(capi, input, now) {
        return step;
    }
    if is_hooked(machine, PRE_TERMINATE) {
        return patch(
            capi,
            input,
            &DeletingReason::new("WaitingForPreTerminateHook"),
            now,
        );
    }
    for (object, reason) in [
        (input.infrastructure, "WaitingForInfrastructureDeletion"),
        (input.bootstrap, "WaitingForBootstrapDeletion"),
    ] {
        let Some((resource, object)) = object else {
            continue;
        };
        let mut step = patch(capi, input, &DeletingReason::new(reason), now);
        if !is_deleting(object) && step.writes.is_empty() {
            step = Step::delete(resource, object);
        }
        return step;
    }
    match input.own_node() {
        Some(node) if is_node_deletion_allowed(input) && !is_deleting(node) => {
            Step::delete(NODES, node)
        }
        _ => drop_finalizer(capi.machines(), machine),
    }
}

fn drop_finalizer(machines: Resource, machine: &Value) -> Step {
    let body = json!({"metadata": {"finalizers": without(machine, MACHINE_FINALIZER)}});
    Step::patch(machines, machine, body)
}

/// Whether there is an annotation with this key, or with this key as a prefix before a slash.
fn is_hooked(machine: &Value, hook: &str) -> bool {
    map(machine, "/metadata/annotations").keys().any(|key| {
        key.strip_prefix(hook)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Whether the Node may be drained and deleted: Cluster API does neither if the Cluster is also
/// being deleted.
fn is_node_deletion_allowed(input: &MachineInput<'_>) -> bool {
    text(input.machine, "/status/nodeRef/name").is_some()
        && input.cluster.is_some_and(|cluster| !is_deleting(cluster))
}

/// Cordons the Node and evicts its pods; `None` if there is nothing left to drain.
fn drain(capi: CapiResources, input: &MachineInput<'_>, now: Timestamp) -> Option<Step> {
    let machine = input.machine;
    let node = input
        .own_node()
        .filter(|_| is_node_deletion_allowed(input))?;
    let infrastructure_goes = input
        .infrastructure
        .is_none_or(|(_, object)| is_deleting(object));
    if annotation(machine, EXCLUDE_NODE_DRAINING).is_some() || infrastructure_goes {
        return None;
    }
    let Some(started) = instant(machine, "/status/deletion/nodeDrainStartTime") else {
        let mut status =
            deleting_status(capi, input, &DeletingReason::new("DrainingNode"), now);
        status["deletion"] = json!({"nodeDrainStartTime": seconds(now)});
        return Some(Step::patch_status(capi.machines(), machine, status));
    };
    let deadline = capi
        .drain_timeout(machine)
        .and_then(|limit| started.checked_add(limit).ok());
    if deadline.is_some_and(|deadline| deadline <= now) {
        return None;
    }
    if !is_true(node, "/spec/unschedulable") {
        return Some(Step::patch(
            NODES,
            node,
            json!({"spec": {"unschedulable": true}}),
        ));
    }
    let pods: Vec<&Value> = input
        .pods
        .iter()
        .map(|pod| &**pod)
        .filter(|pod| is_drained(pod))
        .collect();
    if pods.is_empty() {
        return None;
    }
    let names: Vec<&str> = pods.iter().map(|pod| name(pod)).collect();
    let message = format!("Pods pending eviction or deletion: {}", names.join(", "));
    let deleting = DeletingReason {
        reason: "DrainingNode",
        message: &message,
    };
    let mut step = patch(capi, input, &deleting, now);
    if step.writes.is_empty() {
        step.writes = pods
            .iter()
            .filter(|pod| !is_deleting(pod))
            .map(|pod| evict(pod))
            .collect();
        let requeue_at = now + DRAIN_RETRY;
        step.requeue_at =
            Some(deadline.map_or(requeue_at, |deadline| deadline.min(requeue_at)));
    }
    Some(step)
}

/// Whether a drain waits for the pod.
fn is_drained(pod: &Value) -> bool {
    let finished = matches!(text(pod, "/status/phase"), Some("Succeeded" | "Failed"));
    let of_daemon_set =
        controller(pod).is_some_and(|owner| text(owner, "/kind") == Some("DaemonSet"));
    !finished && !of_daemon_set && annotation(pod, MIRROR).is_none()
}

fn evict(pod: &Value) -> Write {
    Write::Evict {
        namespace: namespace(pod).to_owned(),
        pod: name(pod).to_owned(),
    }
}

/// Patches the status with the progress of the removal, if it differs.
fn patch(
    capi: CapiResources,
    input: &MachineInput<'_>,
    deleting: &DeletingReason<'_>,
    now: Timestamp,
) -> Step {
    let status = deleting_status(capi, input, deleting, now);
    if input.machine.get("status") == Some(&status) {
        return Step::idle();
    }
    Step::patch_status(capi.machines(), input.machine, status)
}

fn deleting_status(
    capi: CapiResources,
    input: &MachineInput<'_>,
    deleting: &DeletingReason<'_>,
    now: Timestamp,
) -> Value {
    let mut status = status(capi, input, now);
    if capi.contract == Contract::V1Beta2 {
        let (reason, message) = (deleting.reason, deleting.message);
        let condition = Condition {
            kind: "Deleting",
            holds: true,
            reason,
            message,
        };
        let observed = json!({"status": status});
        status["conditions"] = capi.conditions(&observed, &[condition], now);
    }
    status
}

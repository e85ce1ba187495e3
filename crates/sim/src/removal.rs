//! The Machine controller for a Machine that is being deleted: hooks, drain, infrastructure,
//! bootstrap, Node, finalizer, in the order that Cluster API has used since 1.5.

use fivespot_capi::key::{EXCLUDE_NODE_DRAINING, MACHINE_FINALIZER};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::cluster::without;
use crate::contract::{Condition, Contract, seconds};
use crate::crd::Served;
use crate::machine::{Seen, status};
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
struct Waiting<'a> {
    reason: &'a str,
    message: &'a str,
}

impl<'a> Waiting<'a> {
    const fn for_(reason: &'a str) -> Self {
        Self {
            reason,
            message: "",
        }
    }
}

pub(crate) fn step(served: Served, seen: &Seen<'_>, now: Timestamp) -> Step {
    let machine = seen.machine;
    if is_hooked(machine, PRE_DRAIN) {
        return patch(served, seen, &Waiting::for_("WaitingForPreDrainHook"), now);
    }
    if let Some(step) = drain(served, seen, now) {
        return step;
    }
    if is_hooked(machine, PRE_TERMINATE) {
        return patch(
            served,
            seen,
            &Waiting::for_("WaitingForPreTerminateHook"),
            now,
        );
    }
    for (object, reason) in [
        (seen.infrastructure, "WaitingForInfrastructureDeletion"),
        (seen.bootstrap, "WaitingForBootstrapDeletion"),
    ] {
        let Some((resource, object)) = object else {
            continue;
        };
        let mut step = patch(served, seen, &Waiting::for_(reason), now);
        if !is_deleting(object) && step.writes.is_empty() {
            step = Step::delete(resource, object);
        }
        return step;
    }
    match seen.own_node() {
        Some(node) if is_node_deletion_allowed(seen) && !is_deleting(node) => {
            Step::delete(NODES, node)
        }
        _ => drop_finalizer(served.machines(), machine),
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
fn is_node_deletion_allowed(seen: &Seen<'_>) -> bool {
    text(seen.machine, "/status/nodeRef/name").is_some()
        && seen.cluster.is_some_and(|cluster| !is_deleting(cluster))
}

/// Cordons the Node and evicts its pods; `None` if there is nothing left to drain.
fn drain(served: Served, seen: &Seen<'_>, now: Timestamp) -> Option<Step> {
    let machine = seen.machine;
    let node = seen.own_node().filter(|_| is_node_deletion_allowed(seen))?;
    let infrastructure_goes = seen
        .infrastructure
        .is_none_or(|(_, object)| is_deleting(object));
    if annotation(machine, EXCLUDE_NODE_DRAINING).is_some() || infrastructure_goes {
        return None;
    }
    let Some(started) = instant(machine, "/status/deletion/nodeDrainStartTime") else {
        let mut status =
            deleting_status(served, seen, &Waiting::for_("DrainingNode"), now);
        status["deletion"] = json!({"nodeDrainStartTime": seconds(now)});
        return Some(Step::patch_status(served.machines(), machine, status));
    };
    let deadline = served
        .contract
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
    let pods: Vec<&Value> = seen
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
    let waiting = Waiting {
        reason: "DrainingNode",
        message: &message,
    };
    let mut step = patch(served, seen, &waiting, now);
    if step.writes.is_empty() {
        step.writes = pods
            .iter()
            .filter(|pod| !is_deleting(pod))
            .map(|pod| evict(pod))
            .collect();
        let again = now + DRAIN_RETRY;
        step.look_again = Some(deadline.map_or(again, |deadline| deadline.min(again)));
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
fn patch(served: Served, seen: &Seen<'_>, waiting: &Waiting<'_>, now: Timestamp) -> Step {
    let status = deleting_status(served, seen, waiting, now);
    if seen.machine.get("status") == Some(&status) {
        return Step::idle();
    }
    Step::patch_status(served.machines(), seen.machine, status)
}

fn deleting_status(
    served: Served,
    seen: &Seen<'_>,
    waiting: &Waiting<'_>,
    now: Timestamp,
) -> Value {
    let mut status = status(served.contract, seen, now);
    if served.contract == Contract::V1Beta2 {
        let (reason, message) = (waiting.reason, waiting.message);
        let condition = Condition {
            kind: "Deleting",
            holds: true,
            reason,
            message,
        };
        let seen_so_far = json!({"status": status});
        status["conditions"] =
            served.contract.conditions(&seen_so_far, &[condition], now);
    }
    status
}

//! The kubelet's part for pods: they start when their Node is ready and end some time after
//! their deletion is requested.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::contract::seconds;
use crate::node::{self, PERMANENT_NODE};
use crate::object::{
    annotation, instant, is_deleting, list, map, name, namespace, text, uid,
};
use crate::write::{PODS, Step, Write};

/// How long after the request to delete a pod its replacement starts: `60s`.
const REPLACE_AFTER: &str = "sim.5spot.finos.org/replace-after";

/// A pod with this annotation does not start before the given time.
const NOT_BEFORE: &str = "sim.5spot.finos.org/not-before";

/// The time from a Node's readiness (or a pod's creation, if later) until the pod runs.
const POD_START_TIME: SignedDuration = SignedDuration::from_secs(2);

/// How long a pod takes to end, unless its grace period is shorter.
const POD_END_TIME: SignedDuration = SignedDuration::from_secs(2);

/// The next step of a pod, given the Node that it is bound to.
pub(crate) fn step(pod: &Value, node: Option<&Value>, now: Timestamp) -> Step {
    if is_deleting(pod) {
        return terminate(pod, now);
    }
    let Some(node) = node.filter(|node| node::is_ready(node)) else {
        return Step::idle();
    };
    if !matches!(text(pod, "/status/phase"), None | Some("Pending")) {
        return Step::idle();
    }
    let Some(due) = starts_at(pod, node) else {
        return Step::idle();
    };
    if due > now {
        return Step::at(due);
    }
    Step::patch_status(PODS, pod, running(pod, now))
}

fn starts_at(pod: &Value, node: &Value) -> Option<Timestamp> {
    let created = instant(pod, "/metadata/creationTimestamp")?;
    let ready = list(node, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == Some("Ready"))
        .and_then(|condition| instant(condition, "/lastTransitionTime"));
    let started = created
        .max(ready.unwrap_or(created))
        .checked_add(POD_START_TIME)
        .ok()?;
    let not_before = annotation(pod, NOT_BEFORE).and_then(|at| at.parse().ok());
    Some(not_before.map_or(started, |at: Timestamp| started.max(at)))
}

fn running(pod: &Value, now: Timestamp) -> Value {
    let now = seconds(now);
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": now});
    let containers: Vec<Value> = list(pod, "/spec/containers")
        .iter()
        .map(|container| {
            json!({
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": true,
                "restartCount": 0,
                "started": true,
                "state": {"running": {"startedAt": now}},
            })
        })
        .collect();
    json!({
        "phase": "Running",
        "startTime": now,
        "conditions": [
            condition("PodScheduled"),
            condition("Initialized"),
            condition("ContainersReady"),
            condition("Ready"),
        ],
        "containerStatuses": containers,
    })
}

/// Ends a pod when it is due, after its replacement was created.
fn terminate(pod: &Value, now: Timestamp) -> Step {
    let Some(due) = ends_at(pod) else {
        return Step::idle();
    };
    let mut step = Step {
        writes: replacement(pod).into_iter().collect(),
        requeue_at: None,
    };
    if due > now {
        step.requeue_at = Some(due);
        return step;
    }
    let path = PODS.object(namespace(pod), name(pod));
    let uid = uid(pod).to_owned();
    step.writes.push(Write::Delete {
        path,
        uid,
        grace_seconds: Some(0),
    });
    step
}

/// When the deletion was requested. `deletionTimestamp` is later by the grace period.
fn deletion_requested_at(pod: &Value) -> Option<(Timestamp, SignedDuration)> {
    let deadline = instant(pod, "/metadata/deletionTimestamp")?;
    let grace = pod
        .pointer("/metadata/deletionGracePeriodSeconds")
        .and_then(Value::as_i64);
    let grace = SignedDuration::from_secs(grace.unwrap_or(0));
    Some((deadline.checked_sub(grace).ok()?, grace))
}

fn ends_at(pod: &Value) -> Option<Timestamp> {
    let (requested, grace) = deletion_requested_at(pod)?;
    requested.checked_add(grace.min(POD_END_TIME)).ok()
}

/// The pod that replaces one that is ending. It is created at once and starts when the wait is
/// over.
fn replacement(pod: &Value) -> Option<Write> {
    let (requested, _) = deletion_requested_at(pod)?;
    let after: SignedDuration = annotation(pod, REPLACE_AFTER)?.parse().ok()?;
    let start = requested.checked_add(after).ok()?;
    let mut spec = pod.get("spec")?.clone();
    spec["nodeName"] = json!(PERMANENT_NODE);
    let object = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{}-replacement", name(pod)),
            "namespace": namespace(pod),
            "labels": map(pod, "/metadata/labels"),
            "annotations": {NOT_BEFORE: seconds(start)},
        },
        "spec": spec,
    });
    Some(Write::Create {
        collection: PODS.collection(namespace(pod)),
        object,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn evicted() -> Value {
        json!({
            "metadata": {
                "name": "shop-0",
                "namespace": "default",
                "uid": "u",
                "annotations": {REPLACE_AFTER: "60s"},
                "deletionTimestamp": "2026-03-06T23:00:30Z",
                "deletionGracePeriodSeconds": 30,
            },
            "spec": {"nodeName": "worker", "containers": []},
        })
    }

    #[test]
    fn an_evicted_pod_ends_two_seconds_after_the_request() {
        let early = step(&evicted(), None, at("2026-03-06T23:00:01Z"));
        assert_eq!(early.requeue_at, Some(at("2026-03-06T23:00:02Z")));
        let due = step(&evicted(), None, at("2026-03-06T23:00:02Z"));
        assert!(matches!(due.writes.last(), Some(Write::Delete { .. })));
    }

    #[test]
    fn a_replacement_waits_on_the_permanent_node() {
        let Some(Write::Create { object, .. }) = replacement(&evicted()) else {
            panic!("no replacement")
        };
        assert_eq!(object["spec"]["nodeName"], PERMANENT_NODE);
        let mut pod = object;
        pod["metadata"]["creationTimestamp"] = json!("2026-03-06T23:00:00Z");
        let permanent_node = node::permanent_node(at("2026-03-06T20:00:00Z"));
        let early = step(&pod, Some(&permanent_node), at("2026-03-06T23:00:30Z"));
        assert_eq!(early, Step::at(at("2026-03-06T23:01:00Z")));
        let due = step(&pod, Some(&permanent_node), at("2026-03-06T23:01:00Z"));
        assert!(matches!(&due.writes[..], [Write::Patch { .. }]));
    }
}

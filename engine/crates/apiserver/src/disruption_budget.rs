//! The status of PodDisruptionBudgets, from the pods that exist (pkg/controller/disruption).
//!
//! The expected pods are the replicas of the pods' controllers. In contrast to Kubernetes, a pod without
//! such a controller is expected too: no workload controllers run here.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::condition::is_ready;
use crate::meta;
use crate::selector::matches_label_selector;
use crate::state::State;
use crate::store::{Key, Object, Range};

/// How long an evicted pod that still exists counts as deleted.
const EVICTED_COUNTS_AS_GONE: SignedDuration = SignedDuration::from_mins(2);

/// The budgets of a namespace.
pub(crate) fn budgets<'a>(
    state: &'a State,
    namespace: &str,
) -> impl Iterator<Item = (&'a Key, &'a Object)> + use<'a> {
    let range = Range {
        namespace: Some(namespace),
        after: None,
    };
    let found = state.store.list(state.buckets.budgets, &range, None);
    found.into_iter().flatten()
}

/// The status of a budget for the pods that exist.
pub(crate) fn status_of(state: &State, budget: &Value) -> Value {
    let now = state.clock.now();
    let range = Range {
        namespace: Some(meta::namespace(budget)),
        after: None,
    };
    let selector = &budget["spec"]["selector"];
    let pods = state.store.list(state.buckets.pods, &range, None);
    let pods: Vec<&Object> = pods
        .into_iter()
        .flatten()
        .map(|(_, it)| it)
        .filter(|it| matches_label_selector(selector, it) && !is_finished(it))
        .collect();
    let disrupted = still_disrupted(budget, &pods, now);
    let (expected, desired) = match budget["spec"]["minAvailable"].as_i64() {
        Some(least) => (count(pods.len()), least),
        None => expected_and_desired(&budget["spec"], replicas(state, &pods)),
    };
    let healthy = pods.iter().filter(|pod| {
        is_ready(pod)
            && !meta::is_deleting(pod)
            && !disrupted.contains_key(meta::name(pod))
    });
    let healthy = count(healthy.count());
    let allowed = if expected > 0 {
        (healthy - desired).max(0)
    } else {
        0
    };
    let mut status = json!({
        "observedGeneration": meta::generation(budget),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
    });
    if !disrupted.is_empty() {
        status["disruptedPods"] = Value::Object(disrupted);
    }
    status["conditions"] = json!([condition(budget, allowed, now)]);
    status
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// How many pods there should be: the replicas of the controllers of these pods, and the pods without
/// a controller.
fn replicas(state: &State, pods: &[&Object]) -> i64 {
    let mut of_controllers = BTreeMap::new();
    let mut alone: i64 = 0;
    for pod in pods {
        match scale(state, pod) {
            Some((uid, replicas)) => {
                of_controllers.insert(uid, replicas);
            }
            None => alone += 1,
        }
    }
    let sum = of_controllers.into_values();
    sum.fold(alone, i64::saturating_add)
}

/// The reference to an object's controller.
fn controller(object: &Value) -> Option<&Value> {
    meta::owners(object)
        .iter()
        .find(|it| it["controller"] == true)
}

/// The uid and the replicas of an object's controller, or of the Deployment that controls that.
fn scale(state: &State, object: &Value) -> Option<(String, i64)> {
    let owner = controller(object)?;
    let (group, version) = meta::group_and_version(owner);
    let [kind, name] = ["kind", "name"].map(|it| owner[it].as_str().unwrap_or_default());
    let is_known = match group {
        "" => kind == "ReplicationController",
        "apps" => matches!(kind, "ReplicaSet" | "StatefulSet" | "Deployment"),
        _ => false,
    };
    if !is_known {
        return None;
    }
    let resource = state.registry.of_kind(group, version, kind)?;
    let bucket = state.store.known_bucket(&resource.storage)?;
    let found = state.get(bucket, &Key::new(meta::namespace(object), name))?;
    if owner["uid"] != meta::uid(found) {
        return None;
    }
    // A ReplicaSet of another one, which users may write, counts for itself.
    let is_deployed = controller(found).is_some_and(|it| it["kind"] == "Deployment");
    if kind == "ReplicaSet" && is_deployed {
        let of_deployment = scale(state, found);
        if of_deployment.is_some() {
            return of_deployment;
        }
    }
    let replicas = found["spec"]["replicas"].as_i64().unwrap_or(1);
    Some((meta::uid(found).to_owned(), replicas))
}

/// The number of expected pods, and of those that must stay healthy. A budget without
/// `minAvailable` and `maxUnavailable` expects none, and so allows no disruption.
fn expected_and_desired(spec: &Value, there: i64) -> (i64, i64) {
    if let Some(max) = scaled_value(&spec["maxUnavailable"], there) {
        return (there, (there - max).max(0));
    }
    match scaled_value(&spec["minAvailable"], there) {
        Some(least) => (there, least),
        None => (0, 0),
    }
}

/// An int-or-percentage of `expected`, rounded up; `None` when absent or malformed.
fn scaled_value(value: &Value, expected: i64) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let percent: i64 = value.as_str()?.strip_suffix('%')?.parse().ok()?;
    let scaled = expected.checked_mul(percent)?.checked_add(99)?;
    Some(scaled.div_euclid(100))
}

/// The `disruptedPods` that exist, are not being deleted and were evicted recently.
fn still_disrupted(
    budget: &Value,
    pods: &[&Object],
    now: Timestamp,
) -> Map<String, Value> {
    let mut all = budget["status"]["disruptedPods"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    all.retain(|name, since| {
        let pod = pods.iter().find(|it| meta::name(it) == name);
        is_recent(since, now) && pod.is_some_and(|it| !meta::is_deleting(it))
    });
    all
}

/// Whether a pod that was evicted at `since` still counts as deleted.
fn is_recent(since: &Value, now: Timestamp) -> bool {
    let since: Option<Timestamp> = since.as_str().and_then(|it| it.parse().ok());
    since.is_some_and(|it| now.duration_since(it) < EVICTED_COUNTS_AS_GONE)
}

/// Whether a budget still counts disruptions of pods that should be gone. No timer counts its pods
/// again, because that would keep an idle server busy: who needs the budget does.
pub(crate) fn is_stale(budget: &Value, now: Timestamp) -> bool {
    let disrupted = budget["status"]["disruptedPods"].as_object();
    let mut disrupted = disrupted.into_iter().flatten();
    disrupted.any(|(_, since)| !is_recent(since, now))
}

fn condition(budget: &Value, allowed: i64, now: Timestamp) -> Value {
    let (status, reason) = if allowed > 0 {
        ("True", "SufficientPods")
    } else {
        ("False", "InsufficientPods")
    };
    let previous = budget["status"]["conditions"].as_array();
    let previous = previous
        .into_iter()
        .flatten()
        .find(|it| it["type"] == "DisruptionAllowed");
    let since = match previous {
        Some(previous) if previous["status"] == status => {
            previous["lastTransitionTime"].clone()
        }
        _ => meta::time(now).into(),
    };
    json!({
        "type": "DisruptionAllowed",
        "status": status,
        "observedGeneration": meta::generation(budget),
        "lastTransitionTime": since,
        "reason": reason,
        "message": "",
    })
}

fn is_finished(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed")
}

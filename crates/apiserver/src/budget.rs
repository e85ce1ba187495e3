//! PodDisruptionBudgets: how many pods may go, counted and spent.
//!
//! The counting follows Kubernetes' disruption controller (pkg/controller/disruption), the
//! spending its eviction subresource (pkg/registry/core/pod/storage/eviction.go). There are
//! no workload controllers here whose replica counts could be asked: the pods that are
//! there are the pods that are expected.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::apply::{self, Writer};
use crate::chore::Chore;
use crate::meta;
use crate::selector::matches_label_selector;
use crate::state::State;
use crate::status::{Cause, Details, Reason, Status};
use crate::store::{Change, Key, Object, Range};

/// How long an evicted pod counts as gone although it is not.
const EVICTED_COUNTS_AS_GONE: SignedDuration = SignedDuration::from_mins(2);

/// Notes the budgets that a written pod counts for, or counted for.
pub(crate) fn note_pod(state: &mut State, change: &Arc<Change>) {
    let namespace = change.key.namespace.to_string();
    let pods: Vec<&Object> = change.before.iter().chain(&change.after).collect();
    let concerned: Vec<Key> = budgets(state, &namespace)
        .filter(|(_, budget)| {
            pods.iter()
                .any(|pod| matches_label_selector(&budget["spec"]["selector"], pod))
        })
        .map(|(key, _)| key.clone())
        .collect();
    for key in concerned {
        state.chores.note(Chore::Budget(key));
    }
}

fn budgets<'a>(
    state: &'a State,
    namespace: &str,
) -> impl Iterator<Item = (&'a Key, &'a Object)> + use<'a> {
    let range = Range {
        namespace: Some(namespace),
        after: None,
    };
    let found = state.store.list(state.shelves.budgets, &range, None);
    found.into_iter().flatten()
}

/// Counts a budget's pods and writes the result into its status.
pub(crate) fn count(state: &mut State, key: &Key) {
    let shelf = state.shelves.budgets;
    let Some(budget) = state.get(shelf, key).cloned() else {
        return;
    };
    let now = state.clock.now();
    let range = Range {
        namespace: Some(&key.namespace),
        after: None,
    };
    let Ok(pods) = state.store.list(state.shelves.pods, &range, None) else {
        return;
    };
    let selector = &budget["spec"]["selector"];
    let pods: Vec<&Object> = pods
        .map(|(_, it)| it)
        .filter(|it| matches_label_selector(selector, it))
        .collect();
    let pods: Vec<&Object> = pods.into_iter().filter(|it| !is_finished(it)).collect();
    let disrupted = still_disrupted(&budget, &pods, now);
    let there = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let (expected, desired) = demand(&budget["spec"], there);
    let healthy = pods.iter().filter(|pod| {
        is_ready(pod)
            && !meta::is_deleting(pod)
            && !disrupted.contains_key(meta::name(pod))
    });
    let healthy = i64::try_from(healthy.count()).unwrap_or(i64::MAX);
    let allowed = if expected > 0 {
        (healthy - desired).max(0)
    } else {
        0
    };
    let mut status = json!({
        "observedGeneration": meta::generation(&budget),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
    });
    if !disrupted.is_empty() {
        status["disruptedPods"] = Value::Object(disrupted);
    }
    status["conditions"] = json!([condition(&budget, allowed, now)]);
    let mut counted = Value::clone(&budget);
    meta::fields(&mut counted).insert("status".to_owned(), status);
    if let Some(resource) = state.kept(shelf).cloned() {
        let writer = Writer {
            manager: "kube-controller-manager",
            subresource: "status",
            now,
        };
        apply::tracked(&resource, Some(&budget), &mut counted, &writer);
    }
    state.put(shelf, counted);
}

/// How many pods are expected, and how many of them have to stay healthy. A budget without a
/// bound expects none, and so lets none go.
fn demand(spec: &Value, there: i64) -> (i64, i64) {
    if let Some(max) = share(&spec["maxUnavailable"], there) {
        return (there, (there - max).max(0));
    }
    match share(&spec["minAvailable"], there) {
        Some(least) => (there, least),
        None => (0, 0),
    }
}

/// An int-or-percentage of `expected`, rounded up; `None` when absent or malformed.
fn share(value: &Value, expected: i64) -> Option<i64> {
    if let Some(number) = value.as_i64() {
        return Some(number);
    }
    let percent: i64 = value.as_str()?.strip_suffix('%')?.parse().ok()?;
    let scaled = expected.checked_mul(percent)?.checked_add(99)?;
    Some(scaled.div_euclid(100))
}

/// Evicted pods that are neither gone nor on their way and not yet forgotten.
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

/// Whether a pod that was evicted `since` then still counts as gone.
fn is_recent(since: &Value, now: Timestamp) -> bool {
    let since: Option<Timestamp> = since.as_str().and_then(|it| it.parse().ok());
    since.is_some_and(|it| now.duration_since(it) < EVICTED_COUNTS_AS_GONE)
}

/// Whether a budget holds back disruptions for pods that should have gone by now. Nobody
/// counts it anew for that; no timer holds a quiet server awake.
fn is_stale(budget: &Value, now: Timestamp) -> bool {
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
    let had = budget["status"]["conditions"].as_array();
    let had = had
        .into_iter()
        .flatten()
        .find(|it| it["type"] == "DisruptionAllowed");
    let since = match had {
        Some(had) if had["status"] == status => had["lastTransitionTime"].clone(),
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

/// Whether a pod's eviction needs no budget: it does not run, or is on its way out.
pub(crate) fn may_ignore(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Pending") || meta::is_deleting(pod)
}

/// Takes one disruption from the budget of a pod that is about to be evicted.
///
/// # Errors
/// 429 when there is none left, or the budget has not been counted since it changed.
pub(crate) fn spend(
    state: &mut State,
    pod: &Object,
    rehearsal: bool,
) -> Result<(), Status> {
    let namespace = meta::namespace(pod);
    let own: Vec<Key> = budgets(state, namespace)
        .filter(|(_, it)| matches_label_selector(&it["spec"]["selector"], pod))
        .map(|(key, _)| key.clone())
        .collect();
    let key = match own.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction \
                       subresource does not support.";
            return Err(Status::new(500, Reason::Unknown, why));
        }
    };
    let Some(budget) = current(state, key) else {
        return Ok(());
    };
    let status = &budget["status"];
    let number = |key: &str| status[key].as_i64().unwrap_or_default();
    let policy = budget["spec"]["unhealthyPodEvictionPolicy"].as_str();
    let (healthy, desired) = (number("currentHealthy"), number("desiredHealthy"));
    let healthy_budget = healthy >= desired && desired > 0;
    if !is_ready(pod) && (policy == Some("AlwaysAllow") || healthy_budget) {
        return Ok(());
    }
    if number("observedGeneration") < meta::generation(&budget) {
        let message = format!(
            "The disruption budget {} is still being processed by the server.",
            key.name
        );
        return Err(refused(message, 10));
    }
    if number("disruptionsAllowed") <= 0 {
        let name = &key.name;
        let why = if healthy <= desired {
            format!("needs {desired} healthy pods and has {healthy} currently")
        } else {
            "does not allow evicting pods currently".to_owned()
        };
        return Err(refused(format!("The disruption budget {name} {why}"), 0));
    }
    if rehearsal {
        return Ok(());
    }
    take_one(state, &budget, pod);
    Ok(())
}

/// A budget as it stands now.
fn current(state: &mut State, key: &Key) -> Option<Object> {
    let shelf = state.shelves.budgets;
    let now = state.clock.now();
    if state.get(shelf, key).is_some_and(|it| is_stale(it, now)) {
        count(state, key);
    }
    state.get(shelf, key).cloned()
}

/// Notes in a budget that a pod of its goes.
fn take_one(state: &mut State, budget: &Object, pod: &Value) {
    let left = budget["status"]["disruptionsAllowed"].as_i64();
    let left = left.unwrap_or_default() - 1;
    let mut budget = Value::clone(budget);
    let now = state.now();
    let status = meta::field(meta::fields(&mut budget), "status");
    status.insert("disruptionsAllowed".to_owned(), left.into());
    let disrupted = meta::field(status, "disruptedPods");
    disrupted.insert(meta::name(pod).to_owned(), now.into());
    let shelf = state.shelves.budgets;
    state.put(shelf, budget);
}

fn refused(why: String, retry_after_seconds: u32) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    Status::new(429, Reason::TooManyRequests, message).with_details(Details {
        causes: vec![Cause::new("DisruptionBudget", "", why)],
        retry_after_seconds,
        ..Details::default()
    })
}

fn is_finished(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed")
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|it| it["type"] == "Ready" && it["status"] == "True")
}

//! The use of a pod's PodDisruptionBudget by an eviction
//! (pkg/registry/core/pod/storage/eviction.go).

use jiff::Timestamp;
use serde_json::Value;

use crate::condition::is_ready;
use crate::controller::disruption::{self, is_recent};
use crate::meta;
use crate::selector::matches_label_selector;
use crate::state::State;
use crate::status::{Cause, Details, Reason, Status};
use crate::store::{Key, Object};
use crate::trigger::disruption::budgets;

/// Whether a pod's eviction needs no budget: the pod is not running, or is being deleted.
pub(super) fn may_ignore(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Pending") || meta::is_deleting(pod)
}

/// Takes one disruption from the budget of a pod that is about to be evicted.
///
/// # Errors
/// 429 if the budget allows no disruption, or has not been reconciled since it changed.
pub(super) fn check_and_decrement(
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
    record_disruption(state, &budget, pod);
    Ok(())
}

/// The current state of a budget; it is reconciled first if it is stale.
fn current(state: &mut State, key: &Key) -> Option<Object> {
    let bucket = state.buckets.budgets;
    let now = state.clock.now();
    if state.get(bucket, key).is_some_and(|it| is_stale(it, now)) {
        disruption::reconcile(state, key);
    }
    state.get(bucket, key).cloned()
}

/// Records the eviction of a pod in its budget.
fn record_disruption(state: &mut State, budget: &Object, pod: &Value) {
    let remaining = budget["status"]["disruptionsAllowed"].as_i64();
    let remaining = remaining.unwrap_or_default() - 1;
    let mut budget = Value::clone(budget);
    let now = state.now();
    let status = meta::field(meta::fields(&mut budget), "status");
    status.insert("disruptionsAllowed".to_owned(), remaining.into());
    let disrupted = meta::field(status, "disruptedPods");
    disrupted.insert(meta::name(pod).to_owned(), now.into());
    let bucket = state.buckets.budgets;
    state.put(bucket, budget);
}

fn refused(why: String, retry_after_seconds: u32) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    Status::new(429, Reason::TooManyRequests, message).with_details(Details {
        causes: vec![Cause::new("DisruptionBudget", "", why)],
        retry_after_seconds,
        ..Details::default()
    })
}

/// Whether a budget still counts disruptions of pods that should be gone. Such a budget is
/// only reconciled on demand, because a timer would keep an idle server busy.
fn is_stale(budget: &Value, now: Timestamp) -> bool {
    let disrupted = budget["status"]["disruptedPods"].as_object();
    let mut disrupted = disrupted.into_iter().flatten();
    disrupted.any(|(_, since)| !is_recent(since, now))
}

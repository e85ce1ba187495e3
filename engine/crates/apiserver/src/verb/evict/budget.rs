//! The use of a pod's PodDisruptionBudget by an eviction
//! (pkg/registry/core/pod/storage/eviction.go).

use serde_json::Value;

use crate::condition::is_ready;
use crate::disruption_budget::{budgets, is_stale, status_of};
use crate::meta;
use crate::selector::matches_label_selector;
use crate::state::State;
use crate::status::{Cause, Details, Reason, Status};
use crate::store::{Key, Object};
use crate::work_queue::WorkItem;

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
    record_disruption(state, budget, pod);
    Ok(())
}

/// A budget with its current status. If the stored one is stale, the controller is told so.
fn current(state: &mut State, key: &Key) -> Option<Value> {
    let stored = state.get(state.buckets.budgets, key)?;
    let mut budget = Value::clone(stored);
    if is_stale(&budget, state.clock.now()) {
        let status = status_of(state, &budget);
        meta::fields(&mut budget).insert("status".to_owned(), status);
        state.queue.add(WorkItem::Budget(key.clone()));
    }
    Some(budget)
}

/// Records the eviction of a pod in its budget.
fn record_disruption(state: &mut State, mut budget: Value, pod: &Value) {
    let remaining = budget["status"]["disruptionsAllowed"].as_i64();
    let remaining = remaining.unwrap_or_default() - 1;
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

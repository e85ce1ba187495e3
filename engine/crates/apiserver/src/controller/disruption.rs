//! Keeps the status of PodDisruptionBudgets.

use serde_json::Value;

use super::Controller;
use crate::disruption_budget::status_of;
use crate::meta;
use crate::state::State;
use crate::status::Status;
use crate::store::Key;
use crate::work_queue::WorkItem;

/// Counts a budget's pods and writes the result into its status. A rejected update is retried after
/// a write that may change the outcome.
pub(super) fn reconcile(state: &mut State, key: &Key) {
    let bucket = state.buckets.budgets;
    let Some(budget) = state.get(bucket, key).cloned() else {
        return;
    };
    let status = status_of(state, &budget);
    if budget["status"] == status {
        return;
    }
    if let Err(refused) = write(state, &budget, status) {
        tracing::debug!(%refused, name = %key.name, "disruption budget status not updated");
        state.queue.retry_later(WorkItem::Budget(key.clone()));
    }
}

/// Replaces the status of a budget.
fn write(state: &mut State, budget: &Value, status: Value) -> Result<(), Status> {
    let mut budget = budget.clone();
    meta::fields(&mut budget).insert("status".to_owned(), status);
    let bucket = state.buckets.budgets;
    Controller::Disruption.update_status(state, bucket, budget)
}

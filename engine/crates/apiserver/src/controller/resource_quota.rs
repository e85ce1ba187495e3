//! Counts the usage that ResourceQuotas limit (pkg/controller/resourcequota).

use serde_json::{Value, json};

use super::Controller;
use crate::meta;
use crate::plugin::resource_quota::{amounts_value, used};
use crate::state::State;
use crate::status::Status;
use crate::trigger::resource_quota::quotas;
use crate::work_queue::WorkItem;

/// Writes the usage into the status of each quota of a namespace. A rejected update is retried
/// after a write that may change the outcome.
pub(super) fn reconcile(state: &mut State, namespace: &str) {
    for quota in quotas(state, namespace) {
        let hard = quota["spec"].get("hard").cloned().unwrap_or(json!({}));
        let used = amounts_value(&used(state, &quota));
        let status = json!({"hard": hard, "used": used});
        if meta::is_deleting(&quota) || same(&quota["status"], &status) {
            continue;
        }
        if let Err(refused) = write(state, &quota, status) {
            tracing::debug!(%refused, namespace, "quota status not updated");
            let item = WorkItem::Quotas(namespace.to_owned());
            state.queue.retry_later(item);
        }
    }
}

/// Whether two statuses are equal; an absent field is empty.
fn same(previous: &Value, now: &Value) -> bool {
    let is_same = |field: &str| {
        let empty = json!({});
        let of = |status: &Value| status.get(field).unwrap_or(&empty).clone();
        of(previous) == of(now)
    };
    is_same("hard") && is_same("used")
}

fn write(state: &mut State, quota: &Value, status: Value) -> Result<(), Status> {
    let mut quota = quota.clone();
    meta::fields(&mut quota).insert("status".to_owned(), status);
    let bucket = state.buckets.quotas;
    Controller::Quotas.update_status(state, bucket, quota)
}

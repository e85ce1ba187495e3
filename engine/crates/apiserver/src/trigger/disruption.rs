//! The writes after which the pods of disruption budgets are counted.

use crate::disruption_budget::budgets;
use crate::selector::matches_label_selector;
use crate::state::State;
use crate::store::{Change, Key, Object};
use crate::work_queue::WorkItem;

/// Enqueues a budget that is written, and the budgets whose selectors match a written pod before or
/// after the write.
pub(super) fn enqueue(state: &mut State, change: &Change) {
    let buckets = state.buckets;
    if change.bucket == buckets.budgets && change.after.is_some() {
        state.queue.add(WorkItem::Budget(change.key.clone()));
    } else if change.bucket == buckets.pods {
        let pods: Vec<&Object> = change.before.iter().chain(&change.after).collect();
        let affected: Vec<Key> = budgets(state, &change.key.namespace)
            .filter(|(_, budget)| {
                pods.iter()
                    .any(|pod| matches_label_selector(&budget["spec"]["selector"], pod))
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in affected {
            state.queue.add(WorkItem::Budget(key));
        }
    }
}

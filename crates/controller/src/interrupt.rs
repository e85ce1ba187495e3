//! What a reconcile is busy with may not be wanted any more by the time that it is done.

use std::sync::Arc;

use fivespot_api::ShutdownReason;
use fivespot_plan::Freshness;

use crate::context::Context;
use crate::observe::live_reads::LiveReads;
use crate::observe::{Observation, observe};
use fivespot_runtime::Key;

/// Ready once something has happened to `key`, whose reconcile is under way, by which the machine leaves
/// for another reason than the last plan's, as caches show it: a kill switch, a reclaim, a deletion,
/// or a window that has opened again. Sends no request of its own but discovery.
pub(crate) async fn superseded(context: &Arc<Context>, key: &Key) {
    let mut calls = 0;
    loop {
        calls = context.queue.called_again(key, calls).await;
        let Some(now) = removal(context, key).await else {
            continue;
        };
        let before =
            context.state(key, |state| std::mem::replace(&mut state.removal, now));
        if before != now {
            tracing::info!(?before, ?now, "interrupted");
            return;
        }
    }
}

/// Why the machine leaves, if it does; none where caches do not say.
async fn removal(context: &Arc<Context>, key: &Key) -> Option<Option<ShutdownReason>> {
    let reads = LiveReads::default();
    let observation = Box::pin(observe(context, key, Freshness::Cached, &reads)).await;
    let Observation::Snapshot(snapshot) = observation else {
        return None;
    };
    let memory = context.state(key, |state| state.memory.clone());
    let plan =
        fivespot_plan::plan(&snapshot.object, &snapshot.observed, &memory, snapshot.now);
    Some(plan.removal)
}

//! Interrupts a reconcile whose current work has become obsolete.

use std::sync::Arc;

use fivespot_api::ShutdownReason;
use fivespot_plan::Freshness;

use crate::context::Context;
use crate::observe::live_reads::LiveReads;
use crate::observe::{Observation, observe};
use fivespot_runtime::Key;

/// Ready once an event for `key`, whose reconcile is under way, changes why the machine is
/// terminated, according to the caches: a kill switch, a reclaim, a deletion, or a window that has
/// opened again. Sends no requests except discovery.
pub(crate) async fn superseded(context: &Arc<Context>, key: &Key) {
    let mut enqueues = 0;
    loop {
        enqueues = context.queue.enqueued_again(key, enqueues).await;
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

/// The reason to terminate the machine, if any. The outer `None`: the caches do not have all
/// objects.
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

//! Reads once the objects that a reconcile would plan from, for display.

use std::pin::pin;
use std::sync::Arc;

use fivespot_api::ScheduledMachine;
use fivespot_plan::{Freshness, Observed};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc::unbounded_channel;

use crate::context::Context;
use crate::observe::live_reads::LiveReads;
use crate::observe::workload::Link;
use crate::observe::{Observation, observe};
use crate::{Key, Options};
use fivespot_runtime::queue::ReconcileResult;

/// How long a workload cluster may take to respond.
const WORKLOAD_TIMEOUT: SignedDuration = SignedDuration::from_secs(10);

/// The objects that a reconcile would plan from.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// When the objects were read.
    pub now: Timestamp,
    /// The ScheduledMachine.
    pub object: ScheduledMachine,
    /// All other objects, read live.
    pub observed: Observed,
}

/// Observes one ScheduledMachine as the controller does, and changes nothing. `None` if there is
/// no such object.
///
/// Waits at most ten seconds for a workload cluster.
///
/// # Errors
/// The ScheduledMachine cannot be read; the API server's message.
pub async fn inspect(options: Options, key: &Key) -> Result<Option<Inspection>, String> {
    let (tasks, mut started) = unbounded_channel();
    let context = Arc::new(Context::new(options, tasks));
    let mut inspecting = pin!(inspect_until_link_known(&context, key));
    let mut running_tasks = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            inspection = &mut inspecting => return inspection,
            Some(task) = started.recv() => running_tasks.push(task),
            Some(()) = running_tasks.next(), if !running_tasks.is_empty() => {}
        }
    }
}

/// Observes again until the workload cluster has responded, or the timeout has passed.
async fn inspect_until_link_known(
    context: &Arc<Context>,
    key: &Key,
) -> Result<Option<Inspection>, String> {
    let mut timeout = pin!(context.clock.sleep(WORKLOAD_TIMEOUT));
    let mut may_wait = true;
    loop {
        // If the cluster responds only during this observation, its Node has not been read.
        let before = is_link_known(context, key);
        let reads = LiveReads::default();
        let inspection = match observe(context, key, Freshness::Live, &reads).await {
            Observation::Snapshot(snapshot) => Inspection {
                now: snapshot.now,
                object: snapshot.object,
                observed: snapshot.observed,
            },
            Observation::Gone => return Ok(None),
            Observation::Failed(error)
            | Observation::Unreadable { message: error, .. } => {
                return Err(error);
            }
            // A live observation waits for nothing, and needs no cache.
            Observation::Incomplete(_) => continue,
        };
        if !may_wait || before == Some(true) || is_link_known(context, key).is_none() {
            return Ok(Some(inspection));
        }
        while may_wait && is_link_known(context, key) == Some(false) {
            tokio::select! {
                biased;
                (key, _busy) = context.queue.next() => {
                    context.queue.finish(&key, ReconcileResult::Succeeded { requeue_at: None });
                }
                () = &mut timeout => may_wait = false,
            }
        }
    }
}

/// Whether the workload cluster has responded or was found unreachable. `None` if the
/// ScheduledMachine uses none.
fn is_link_known(context: &Context, key: &Key) -> Option<bool> {
    let workload = context.used_by(key)?;
    Some(!matches!(workload.link(), Link::Connecting))
}

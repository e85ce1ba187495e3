//! One look at the world, for people: what a reconcile would decide from at this moment.

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

/// How long a workload cluster may take to answer.
const EVENT_TIMEOUT: SignedDuration = SignedDuration::from_secs(10);

/// What a reconcile would decide from.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// When it was read.
    pub now: Timestamp,
    /// The ScheduledMachine.
    pub object: ScheduledMachine,
    /// Everything else, read live.
    pub observed: Observed,
}

/// Looks at one ScheduledMachine as the controller does, and changes nothing. None where there
/// is no such object.
///
/// A workload cluster is waited for at most ten seconds.
///
/// # Errors
/// The ScheduledMachine cannot be read; in the API server's message.
pub async fn inspect(options: Options, key: &Key) -> Result<Option<Inspection>, String> {
    let (tasks, mut started) = unbounded_channel();
    let context = Arc::new(Context::new(options, tasks));
    let mut inspecting = pin!(answered(&context, key));
    let mut beside = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            look = &mut inspecting => return look,
            Some(task) = started.recv() => beside.push(task),
            Some(()) = beside.next(), if !beside.is_empty() => {}
        }
    }
}

/// Looks again until the workload cluster has answered, or could have.
async fn answered(
    context: &Arc<Context>,
    key: &Key,
) -> Result<Option<Inspection>, String> {
    let mut patience = pin!(context.clock.sleep(EVENT_TIMEOUT));
    let mut is_patient = true;
    loop {
        // One that answers meanwhile has not been asked for its Node.
        let before = has_answered(context, key);
        let reads = LiveReads::default();
        let look = match observe(context, key, Freshness::Live, &reads).await {
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
            // A live look waits for nothing, and needs no cache.
            Observation::Incomplete(_) => continue,
        };
        if !is_patient || before == Some(true) || has_answered(context, key).is_none() {
            return Ok(Some(look));
        }
        while is_patient && has_answered(context, key) == Some(false) {
            tokio::select! {
                biased;
                (woken, _busy) = context.queue.next() => {
                    context.queue.finish(&woken, ReconcileResult::Done { wake: None });
                }
                () = &mut patience => is_patient = false,
            }
        }
    }
}

/// Whether the workload cluster has answered, or has been found not to; none where the
/// ScheduledMachine makes use of none.
fn has_answered(context: &Context, key: &Key) -> Option<bool> {
    let workload = context.used_by(key)?;
    Some(!matches!(workload.link(), Link::Connecting))
}

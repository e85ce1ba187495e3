//! One look at the world, for people: what a pass would decide from at this moment.

use std::pin::pin;
use std::sync::Arc;

use fivespot_api::ScheduledMachine;
use fivespot_plan::{Freshness, Seen};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc::unbounded_channel;

use crate::gather::{Gathered, gather};
use crate::memo::Memo;
use crate::shell::Shell;
use crate::workload::Link;
use crate::{Key, Options};
use fivespot_runtime::queue::Outcome;

/// How long a workload cluster may take to answer.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// What a pass would decide from.
#[derive(Clone, Debug)]
pub struct Look {
    /// When it was read.
    pub now: Timestamp,
    /// The ScheduledMachine.
    pub object: ScheduledMachine,
    /// Everything else, read live.
    pub seen: Seen,
}

/// Looks at one ScheduledMachine as the controller does, and changes nothing. None where there
/// is no such object.
///
/// A workload cluster is waited for at most ten seconds.
///
/// # Errors
/// The ScheduledMachine cannot be read; in the API server's words.
pub async fn look(options: Options, key: &Key) -> Result<Option<Look>, String> {
    let (tasks, mut started) = unbounded_channel();
    let shell = Arc::new(Shell::new(options, tasks));
    let mut looking = pin!(answered(&shell, key));
    let mut beside = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            look = &mut looking => return look,
            Some(task) = started.recv() => beside.push(task),
            Some(()) = beside.next(), if !beside.is_empty() => {}
        }
    }
}

/// Looks again until the workload cluster has answered, or could have.
async fn answered(shell: &Arc<Shell>, key: &Key) -> Result<Option<Look>, String> {
    let mut patience = pin!(shell.clock.sleep(PATIENCE));
    let mut is_patient = true;
    loop {
        // One that answers meanwhile has not been asked for its Node.
        let before = has_answered(shell, key);
        let memo = Memo::default();
        let look = match gather(shell, key, Freshness::Live, &memo).await {
            Gathered::View(view) => Look {
                now: view.now,
                object: view.object,
                seen: view.seen,
            },
            Gathered::Gone => return Ok(None),
            Gathered::Failed(error) | Gathered::Unreadable { message: error, .. } => {
                return Err(error);
            }
            // A live look waits for nothing, and needs no cache.
            Gathered::Short(_) => continue,
        };
        if !is_patient || before == Some(true) || has_answered(shell, key).is_none() {
            return Ok(Some(look));
        }
        while is_patient && has_answered(shell, key) == Some(false) {
            tokio::select! {
                biased;
                (woken, _busy) = shell.work.next() => {
                    shell.work.finish(&woken, Outcome::Done { wake: None });
                }
                () = &mut patience => is_patient = false,
            }
        }
    }
}

/// Whether the workload cluster has answered, or has been found not to; none where the
/// ScheduledMachine makes use of none.
fn has_answered(shell: &Shell, key: &Key) -> Option<bool> {
    let workload = shell.used_by(key)?;
    Some(!matches!(workload.link(), Link::Connecting))
}

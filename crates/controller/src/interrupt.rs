//! What a pass is busy with may not be wanted any more by the time that it is done.

use std::sync::Arc;

use fivespot_api::ShutdownReason;
use fivespot_plan::Freshness;

use crate::gather::{Gathered, gather};
use crate::memo::Memo;
use crate::shell::Shell;
use fivespot_runtime::Key;

/// Ready once something has happened to `key`, whose pass is under way, by which the machine leaves
/// for another reason than the last plan's, as caches show it: a kill switch, a reclaim, a deletion,
/// or a window that has opened again. Sends no request of its own but discovery.
pub(crate) async fn superseded(shell: &Arc<Shell>, key: &Key) {
    let mut calls = 0;
    loop {
        calls = shell.work.called_again(key, calls).await;
        let Some(now) = removal(shell, key).await else {
            continue;
        };
        let before = shell.desk(key, |desk| std::mem::replace(&mut desk.removal, now));
        if before != now {
            tracing::info!(?before, ?now, "interrupted");
            return;
        }
    }
}

/// Why the machine leaves, if it does; none where caches do not say.
async fn removal(shell: &Arc<Shell>, key: &Key) -> Option<Option<ShutdownReason>> {
    let memo = Memo::default();
    let gathered = Box::pin(gather(shell, key, Freshness::Cached, &memo)).await;
    let Gathered::View(view) = gathered else {
        return None;
    };
    let memory = shell.desk(key, |desk| desk.memory.clone());
    let plan = fivespot_plan::plan(&view.object, &view.seen, &memory, view.now);
    Some(plan.removal)
}

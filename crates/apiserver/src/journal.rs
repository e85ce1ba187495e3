//! Sees to it that writes are on disk before anybody sees them.

use std::sync::Arc;

use crate::meta;
use crate::state::State;
use crate::status::Status;
use crate::storage::{Entry, Storage, place};
use crate::store::Change;

/// The writes since the last time that they were written to disk.
#[derive(Debug)]
pub(crate) struct Journal {
    storage: Storage,
    waiting: Vec<Arc<Change>>,
    /// Why nothing can be written any longer.
    broken: Option<String>,
}

impl Journal {
    pub(crate) fn new(storage: Storage) -> Self {
        Self {
            storage,
            waiting: Vec::new(),
            broken: None,
        }
    }

    /// Notes a write that is to be written to disk, and published then.
    pub(crate) fn note(&mut self, change: &Arc<Change>) {
        self.waiting.push(change.clone());
    }

    /// Whether writes are refused.
    ///
    /// # Errors
    /// 500 that says why, once the disk has failed.
    pub(crate) fn check(&self) -> Result<(), Status> {
        match &self.broken {
            None => Ok(()),
            Some(why) => Err(Status::internal(format!(
                "the data directory cannot be written any longer: {why}; make room and start \
                 again"
            ))),
        }
    }
}

/// Keeps what was written since the last call, and sends it to the watches.
///
/// # Errors
/// 500 when it cannot be written; no watcher sees it then, and later writes are refused.
pub(crate) fn flush(state: &mut State) -> Result<(), Status> {
    let Some(journal) = &mut state.journal else {
        return Ok(());
    };
    if journal.waiting.is_empty() {
        return Ok(());
    }
    let waiting = std::mem::take(&mut journal.waiting);
    journal.check()?;
    let entries: Vec<Entry> = waiting
        .iter()
        .filter_map(|change| {
            let resource = state.store.resource(change.bucket)?;
            let object = change.after.as_deref().map(|it| meta::json(it).to_vec());
            Some((place(resource, &change.key), object))
        })
        .collect();
    if let Err(error) = journal.storage.keep(state.store.version(), &entries) {
        journal.broken = Some(error.to_string());
        return journal.check();
    }
    for change in waiting {
        state.broadcaster.publish(&change);
    }
    Ok(())
}

//! Ensures that writes are on disk before they are visible to clients.

use std::sync::Arc;

use crate::meta;
use crate::status::Status;
use crate::storage::{Entry, Storage, storage_key};
use crate::store::{Change, Store};

/// The writes that are not on disk yet.
#[derive(Debug)]
pub(crate) struct Journal {
    storage: Storage,
    pending: Vec<Arc<Change>>,
    /// Why writes to disk fail.
    failure: Option<String>,
}

impl Journal {
    pub(crate) fn new(storage: Storage) -> Self {
        Self {
            storage,
            pending: Vec::new(),
            failure: None,
        }
    }

    /// Adds a write, which is to be written to disk and then published.
    pub(crate) fn add(&mut self, change: &Arc<Change>) {
        self.pending.push(change.clone());
    }

    /// Whether requests are possible. After a failure reads are not either: the state has writes
    /// that a restart loses.
    ///
    /// # Errors
    /// 500 with the reason after the disk has failed.
    pub(crate) fn check(&self) -> Result<(), Status> {
        match &self.failure {
            None => Ok(()),
            Some(why) => Err(Status::internal(format!(
                "the data directory cannot be written: {why}; free disk space and restart \
                 the server"
            ))),
        }
    }

    /// Writes the pending changes to disk, and returns them.
    ///
    /// # Errors
    /// 500 if they cannot be written; later writes are rejected then.
    pub(crate) fn flush(&mut self, store: &Store) -> Result<Vec<Arc<Change>>, Status> {
        if self.pending.is_empty() {
            return Ok(Vec::new());
        }
        let pending = std::mem::take(&mut self.pending);
        self.check()?;
        let entries: Vec<Entry> = pending
            .iter()
            .filter_map(|change| {
                let resource = store.resource(change.bucket)?;
                let object = change.after.as_deref().map(|it| meta::json(it).to_vec());
                Some((storage_key(resource, &change.key), object))
            })
            .collect();
        if let Err(error) = self.storage.write(store.version(), &entries) {
            self.failure = Some(error.to_string());
            self.check()?;
        }
        Ok(pending)
    }
}

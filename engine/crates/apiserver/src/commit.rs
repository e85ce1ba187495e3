//! Writes to the state. A write applies at once as far as later requests depend on it.

use std::sync::Arc;

use serde_json::Value;

use crate::journal::Journal;
use crate::meta;
use crate::random::Random;
use crate::state::State;
use crate::status::Status;
use crate::storage::{Storage, StoredState};
use crate::store::{Bucket, Change, Key, Object};
use crate::trigger;

impl State {
    /// Stores an object, which is in its storage version, under the name in its metadata.
    ///
    /// If the stored object is equal, nothing is written and the stored object is returned.
    pub(crate) fn put(&mut self, bucket: Bucket, object: Value) -> Object {
        let key = Key::new(meta::namespace(&object), meta::name(&object));
        if let Some(old) = self.store.get(bucket, &key)
            && **old == object
        {
            return old.clone();
        }
        let change = self.store.put(bucket, key, object);
        self.committed(&change);
        change.object.clone()
    }

    /// Removes an object; returns its last state, or `None` if it did not exist.
    pub(crate) fn remove(&mut self, bucket: Bucket, key: &Key) -> Option<Object> {
        let change = self.store.remove(bucket, key)?;
        self.committed(&change);
        Some(change.object.clone())
    }

    /// Stores an object from which finalizers may have been removed. If it is being deleted
    /// and nothing keeps it any longer, it is removed instead. Returns the given object.
    pub(crate) fn put_or_remove(&mut self, bucket: Bucket, object: Value) -> Object {
        let key = Key::new(meta::namespace(&object), meta::name(&object));
        if is_finished(&object) {
            self.remove(bucket, &key);
            return Arc::new(object);
        }
        self.put(bucket, object)
    }

    /// Loads the state from `storage`, and writes all later changes to it.
    pub(crate) fn restore(&mut self, storage: Storage) {
        let StoredState { version, objects } = storage.load();
        self.journal = Some(Journal::new(storage));
        if version == 0 {
            return;
        }
        self.store.resume_at(version);
        // The first values of the seed were used by the previous run of the server.
        self.random = Random::new(self.seed.wrapping_add(version));
        let mut loaded = Vec::with_capacity(objects.len());
        for (resource, key, object) in objects {
            let bucket = self.store.bucket(&resource);
            let change = self.store.load(bucket, key, object);
            self.index.update(&change);
            loaded.push(change);
        }
        // What follows from an object may depend on others, such as which of two definitions has a
        // name, and the order of the last writes is not that of the decisions.
        for change in loaded {
            trigger::enqueue(self, &change);
        }
    }

    /// Writes the changes to disk, if there is a storage, and sends them to the watches.
    ///
    /// # Errors
    /// 500 if they cannot be written; no watcher receives them then, later requests are rejected,
    /// and no controller acts on them.
    pub(crate) fn flush(&mut self) -> Result<(), Status> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let written = journal.flush(&self.store);
        let written = written.inspect_err(|_| self.queue.clear())?;
        for change in written {
            self.broadcaster.publish(&change);
        }
        Ok(())
    }

    fn committed(&mut self, change: &Arc<Change>) {
        // A write stays even if the attempt is abandoned, so its numbers are used up.
        self.webhook_calls.lock().random = Some(self.random.clone());
        self.index.update(change);
        match &mut self.journal {
            Some(journal) => journal.add(change),
            None => self.broadcaster.publish(change),
        }
        trigger::enqueue(self, change);
    }
}

/// Whether nothing keeps a deleted object any longer: no finalizers, no grace period, and for
/// a namespace no finalizers in its spec.
pub(crate) fn is_finished(object: &Value) -> bool {
    let grace = object["metadata"]["deletionGracePeriodSeconds"]
        .as_i64()
        .unwrap_or(0);
    let namespace = object["kind"] == "Namespace" && object["apiVersion"] == "v1";
    let contents = namespace
        && object["spec"]["finalizers"]
            .as_array()
            .is_some_and(|it| !it.is_empty());
    meta::is_deleting(object)
        && grace == 0
        && meta::finalizers(object).next().is_none()
        && !contents
}

//! Whose turn it is to create an object with a large spec.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many large objects are in memory at a time, each with up to half a megabyte of specs.
const MAX_AT_A_TIME: usize = 4;

/// Whose turn it is to create a large object: one of each namespace at a time, because the request may
/// take as long as a webhook of the tenant does, and the namespaces take turns.
#[derive(Debug)]
pub(crate) struct LargeCreates {
    /// By namespace, of those that have the turn or wait for it.
    of_namespaces: Mutex<BTreeMap<String, Arc<Semaphore>>>,
    /// The turn among the namespaces.
    all: Arc<Semaphore>,
}

impl Default for LargeCreates {
    fn default() -> Self {
        Self {
            of_namespaces: Mutex::default(),
            all: Arc::new(Semaphore::new(MAX_AT_A_TIME)),
        }
    }
}

impl LargeCreates {
    /// Waits until an object of the namespace may be created, for as long as the result is held.
    pub(crate) async fn turn(
        &self,
        namespace: &str,
    ) -> [Option<OwnedSemaphorePermit>; 2] {
        let own = self.turn_of(namespace).acquire_owned().await;
        let all = self.all.clone().acquire_owned().await;
        // Neither is ever closed.
        [own.ok(), all.ok()]
    }

    fn turn_of(&self, namespace: &str) -> Arc<Semaphore> {
        let turns = self.of_namespaces.lock();
        let mut turns = turns.unwrap_or_else(PoisonError::into_inner);
        // A permit, and who waits for one, has another reference.
        turns.retain(|_, of| Arc::strong_count(of) > 1);
        let own = turns.entry(namespace.to_owned());
        own.or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
    }
}

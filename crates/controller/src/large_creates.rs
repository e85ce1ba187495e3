//! Whose turn it is to create an object with a large spec.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many large objects are in memory at a time, each with up to half a megabyte of specs.
const MAX_AT_A_TIME: usize = 4;

/// Whose turn it is to create a large object: one of each namespace at a time, because the request may
/// take as long as a webhook of the tenant does, and the namespaces take turns. By namespace who has
/// the turn or waits for it; without a name the turn among the namespaces.
#[derive(Debug, Default)]
pub(crate) struct LargeCreates(Mutex<BTreeMap<String, Arc<Semaphore>>>);

impl LargeCreates {
    /// Waits until an object of the namespace may be created, for as long as the result is held.
    pub(crate) async fn turn(
        &self,
        namespace: &str,
    ) -> [Option<OwnedSemaphorePermit>; 2] {
        let own = self.turns(namespace, 1).acquire_owned().await;
        let all = self.turns("", MAX_AT_A_TIME).acquire_owned().await;
        // Neither is ever closed.
        [own.ok(), all.ok()]
    }

    fn turns(&self, namespace: &str, at_a_time: usize) -> Arc<Semaphore> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A permit, and who waits for one, has another reference.
        turns.retain(|_, of| Arc::strong_count(of) > 1);
        let own = turns.entry(namespace.to_owned());
        own.or_insert_with(|| Arc::new(Semaphore::new(at_a_time)))
            .clone()
    }
}

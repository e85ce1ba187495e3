//! The limit on machines of a namespace that are being created at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fivespot_clock::Clock;
use jiff::SignedDuration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many machines of a namespace are created at a time.
///
/// Requests of all reconciles share a few connections in the order in which they are sent. If all
/// of many new machines are reconciled at once, the finalizers of all are written before the first
/// Machine exists, and the median machine waits nearly as long as the last. So only as many are in
/// progress as keep the connections busy.
const MAX_OPENINGS: usize = 16;

/// How long a machine waits for its turn at most: others of its namespace keep theirs for the
/// timeout of a request if the webhook of their provider does not respond.
const MAX_WAIT: SignedDuration = SignedDuration::from_secs(10);

/// Gives the machines of each namespace their turn to be created.
#[derive(Default)]
pub(crate) struct Openings(Mutex<BTreeMap<String, Arc<Semaphore>>>);

/// A machine's turn to be created. Dropping it ends the turn.
pub(crate) struct Turn {
    /// `None` if the machine is created out of turn.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Openings {
    /// Waits for the turn of a machine of `namespace`, in the order of the calls, and for at most
    /// [`MAX_WAIT`]: then the machine is created out of turn.
    pub(crate) async fn turn(&self, namespace: &str, clock: &Clock) -> Turn {
        let own = self.of(namespace);
        let permit = tokio::select! {
            biased;
            permit = own.acquire_owned() => permit.ok(),
            () = clock.sleep(MAX_WAIT) => None,
        };
        Turn { _permit: permit }
    }

    fn of(&self, namespace: &str) -> Arc<Semaphore> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Only a turn, or who waits for one, holds a second reference.
        all.retain(|_, own| Arc::strong_count(own) > 1);
        all.entry(namespace.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(MAX_OPENINGS)))
            .clone()
    }
}

//! Live reads that concurrent reconciles share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};

use tokio::sync::Mutex;

use crate::Key;

/// Reads of objects that many reconciles need at the same time. One request serves all that wait.
///
/// At most one request is under way for each object. A caller that comes meanwhile needs the
/// response to a later request, and waits for the next one.
#[derive(Debug)]
pub struct SharedReads<T>(StdMutex<BTreeMap<ObjectId, Arc<ObjectReads<T>>>>);

/// A cache's name, and the object.
type ObjectId = (String, Key);

#[derive(Debug)]
struct ObjectReads<T> {
    /// How many requests have been sent.
    sent: AtomicU64,
    /// Held while a request is under way.
    in_flight: Mutex<()>,
    last_response: StdMutex<Option<NumberedResponse<T>>>,
}

/// The last response.
#[derive(Clone, Debug)]
struct NumberedResponse<T> {
    /// The number of its request.
    number: u64,
    response: T,
}

impl<T> Default for SharedReads<T> {
    fn default() -> Self {
        Self(StdMutex::default())
    }
}

impl<T: Clone> SharedReads<T> {
    /// The response to `request`, or to a request that another caller sends from now on.
    /// `request` is sent at most once, when it is first polled.
    pub async fn read(
        &self,
        cache: &str,
        object: &Key,
        request: impl Future<Output = T>,
    ) -> T {
        let id = (cache.to_owned(), object.clone());
        let reads = self
            .reads_by_object()
            .entry(id.clone())
            .or_default()
            .clone();
        let response = reads.fetch(request).await;
        self.remove_if_unused(&id, reads);
        response
    }

    fn reads_by_object(&self) -> MutexGuard<'_, BTreeMap<ObjectId, Arc<ObjectReads<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last caller removes the entry, so that nothing is kept for objects that are gone.
    fn remove_if_unused(&self, id: &ObjectId, reads: Arc<ObjectReads<T>>) {
        let mut reads_by_object = self.reads_by_object();
        drop(reads);
        if reads_by_object
            .get(id)
            .is_some_and(|remaining| Arc::strong_count(remaining) == 1)
        {
            reads_by_object.remove(id);
        }
    }
}

impl<T> Default for ObjectReads<T> {
    fn default() -> Self {
        Self {
            sent: AtomicU64::new(0),
            in_flight: Mutex::default(),
            last_response: StdMutex::new(None),
        }
    }
}

impl<T: Clone> ObjectReads<T> {
    async fn fetch(&self, request: impl Future<Output = T>) -> T {
        let before = self.sent.load(Ordering::Relaxed);
        let _lock = self.in_flight.lock().await;
        let later = |last: &NumberedResponse<T>| last.number > before;
        if let Some(last) = self.last_response().filter(later) {
            return last.response;
        }
        let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let response = request.await;
        let last = NumberedResponse {
            number,
            response: response.clone(),
        };
        *self.lock_last_response() = Some(last);
        response
    }

    fn lock_last_response(&self) -> MutexGuard<'_, Option<NumberedResponse<T>>> {
        self.last_response
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn last_response(&self) -> Option<NumberedResponse<T>> {
        self.lock_last_response().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    fn cluster() -> Key {
        Key::new("default", "production")
    }

    #[tokio::test]
    async fn callers_during_a_read_wait_for_the_next_one_and_share_it() {
        let shared = SharedReads::default();
        let (sent, gate) = (Cell::new(0), Semaphore::new(0));
        let key = cluster();
        let read = || {
            shared.read("clusters", &key, async {
                sent.set(sent.get() + 1);
                let number = sent.get();
                gate.acquire().await.unwrap().forget();
                number
            })
        };
        let reconciles = join_all((0..10).map(|_| read()));
        let late = async {
            // All ten have called, and the first has sent its request.
            assert_eq!(sent.get(), 1);
            gate.add_permits(10);
            read().await
        };
        let (answers, late) = futures::join!(reconciles, late);
        assert_eq!(answers, [1, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!((late, sent.get()), (2, 2));
    }

    #[tokio::test]
    async fn no_caller_gets_the_response_to_an_earlier_request() {
        let shared = SharedReads::default();
        let (sent, key) = (Cell::new(0), cluster());
        let read = || {
            shared.read("clusters", &key, async {
                sent.set(sent.get() + 1);
                sent.get()
            })
        };
        assert_eq!([read().await, read().await, read().await], [1, 2, 3]);
        assert!(shared.reads_by_object().is_empty(), "nothing is kept");
    }

    #[tokio::test]
    async fn a_read_that_is_given_up_is_sent_again_by_a_waiting_caller() {
        let shared = SharedReads::default();
        let key = cluster();
        let mut given_up =
            Box::pin(shared.read("clusters", &key, std::future::pending()));
        assert!(futures::poll!(&mut given_up).is_pending());
        let waiting = shared.read("clusters", &key, async { 2 });
        let given_up = async { drop(given_up) };
        assert_eq!(futures::join!(waiting, given_up).0, 2);
    }
}

//! Live reads that several passes wait for together.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};

use tokio::sync::Mutex;

use crate::Key;

/// Reads of objects that many look at at the same time, sent once for all who wait.
///
/// Whoever asks is given the answer to a request that was sent after it asked: as good as to one
/// of its own. So at most one request is under way for each object, and whoever comes meanwhile
/// waits for the next.
#[derive(Debug)]
pub(crate) struct Shared<T>(StdMutex<BTreeMap<Place, Arc<Flights<T>>>>);

/// A cache's name, and the object.
type Place = (String, Key);

#[derive(Debug)]
struct Flights<T> {
    /// How many requests have been sent.
    sent: AtomicU64,
    /// The last that was answered, and its answer. Held while one is under way.
    last: Mutex<Option<(u64, T)>>,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(StdMutex::default())
    }
}

impl<T: Clone> Shared<T> {
    /// The answer to `ask`, or to what somebody else has asked since this was called. `ask` is
    /// sent at most once, when it is polled first.
    pub(crate) async fn read(
        &self,
        cache: &str,
        object: &Key,
        ask: impl Future<Output = T>,
    ) -> T {
        let place = (cache.to_owned(), object.clone());
        let flights = self.places().entry(place.clone()).or_default().clone();
        let before = flights.sent.load(Ordering::Relaxed);
        let answer = flights.after(before, ask).await;
        self.leave(&place, flights);
        answer
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<Place, Arc<Flights<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever leaves last clears the place: nobody who comes later may have that answer.
    fn leave(&self, place: &Place, flights: Arc<Flights<T>>) {
        let mut places = self.places();
        drop(flights);
        if places
            .get(place)
            .is_some_and(|left| Arc::strong_count(left) == 1)
        {
            places.remove(place);
        }
    }
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self {
            sent: AtomicU64::new(0),
            last: Mutex::new(None),
        }
    }
}

impl<T: Clone> Flights<T> {
    /// The answer to a request that was sent when more than `before` had been.
    async fn after(&self, before: u64, ask: impl Future<Output = T>) -> T {
        let mut last = self.last.lock().await;
        if let Some((number, answer)) = &*last
            && *number > before
        {
            return answer.clone();
        }
        let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let answer = ask.await;
        *last = Some((number, answer.clone()));
        answer
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
    async fn whoever_asks_while_a_read_is_under_way_waits_for_the_next_and_shares_it() {
        let shared = Shared::default();
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
        let passes = join_all((0..10).map(|_| read()));
        let late = async {
            // The ten have asked, and the first of them has sent its request.
            assert_eq!(sent.get(), 1);
            gate.add_permits(10);
            read().await
        };
        let (answers, late) = futures::join!(passes, late);
        assert_eq!(answers, [1, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!((late, sent.get()), (2, 2));
    }

    #[tokio::test]
    async fn nobody_is_given_an_answer_to_what_was_sent_before_it_asked() {
        let shared = Shared::default();
        let (sent, key) = (Cell::new(0), cluster());
        let read = || {
            shared.read("clusters", &key, async {
                sent.set(sent.get() + 1);
                sent.get()
            })
        };
        assert_eq!([read().await, read().await, read().await], [1, 2, 3]);
        assert!(shared.places().is_empty(), "nothing is kept");
    }

    #[tokio::test]
    async fn a_read_that_is_given_up_is_sent_again_by_whoever_waits() {
        let shared = Shared::default();
        let key = cluster();
        let mut given_up =
            Box::pin(shared.read("clusters", &key, std::future::pending()));
        assert!(futures::poll!(&mut given_up).is_pending());
        let waiting = shared.read("clusters", &key, async { 2 });
        let given_up = async { drop(given_up) };
        assert_eq!(futures::join!(waiting, given_up).0, 2);
    }
}

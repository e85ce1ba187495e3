//! Live reads that several passes wait for together.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};

use fivespot_clock::Clock;
use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::Key;

/// Reads of objects that many look at at the same time, sent once for all who wait.
///
/// At most one request is under way for each object; whoever comes meanwhile and needs an answer
/// to a later one waits for the next.
#[derive(Debug)]
pub struct Shared<T>(StdMutex<BTreeMap<Place, Arc<Flights<T>>>>);

/// A cache's name, and the object.
type Place = (String, Key);

#[derive(Debug)]
struct Flights<T> {
    /// How many requests have been sent.
    sent: AtomicU64,
    /// Held while one is under way.
    under_way: Mutex<()>,
    answered: StdMutex<Option<Answered<T>>>,
}

/// The last answer.
#[derive(Clone, Debug)]
struct Answered<T> {
    /// To which request.
    number: u64,
    /// When that was sent.
    at: Timestamp,
    answer: T,
}

/// Which answers will do.
pub enum Wanted<'a, T> {
    /// To a request that is sent from now on: as good as to one's own.
    Fresh,
    /// Also to an earlier one.
    Recent(Recent<'a, T>),
}

/// Which answers to earlier requests will do.
pub struct Recent<'a, T> {
    /// Those to requests that were sent then or later. One sends the next before that is needed,
    /// so that the others need not wait.
    pub since: Timestamp,
    /// From when on an answer is new enough for nobody to send the next.
    pub renewed: Timestamp,
    /// Those that pass this.
    pub passes: &'a (dyn Fn(&T) -> bool + Sync),
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(StdMutex::default())
    }
}

impl<T: Clone> Shared<T> {
    /// The answer to `ask`, or to what somebody else has asked, if that will do. `ask` is sent at
    /// most once, when it is polled first.
    pub async fn read(
        &self,
        (cache, object): (&str, &Key),
        (clock, wanted): (&Clock, Wanted<'_, T>),
        ask: impl Future<Output = T>,
    ) -> T {
        let place = (cache.to_owned(), object.clone());
        let flights = self.places().entry(place.clone()).or_default().clone();
        let answer = flights.answer(clock, &wanted, ask).await;
        self.leave(&place, flights);
        answer
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<Place, Arc<Flights<T>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever leaves last clears the place, so that nothing is kept of objects that are gone.
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

impl<T> Wanted<'_, T> {
    fn takes(&self, given: &Answered<T>) -> bool {
        match self {
            Self::Fresh => false,
            Self::Recent(recent) => {
                given.at >= recent.since && (recent.passes)(&given.answer)
            }
        }
    }

    fn renews(&self, given: &Answered<T>) -> bool {
        match self {
            Self::Fresh => true,
            Self::Recent(recent) => given.at < recent.renewed,
        }
    }
}

impl<T> Default for Flights<T> {
    fn default() -> Self {
        Self {
            sent: AtomicU64::new(0),
            under_way: Mutex::default(),
            answered: StdMutex::new(None),
        }
    }
}

impl<T: Clone> Flights<T> {
    async fn answer(
        &self,
        clock: &Clock,
        wanted: &Wanted<'_, T>,
        ask: impl Future<Output = T>,
    ) -> T {
        let before = self.sent.load(Ordering::Relaxed);
        let _alone = match self.answered().filter(|given| wanted.takes(given)) {
            Some(given) if !wanted.renews(&given) => return given.answer,
            Some(given) => match self.under_way.try_lock() {
                Ok(alone) => alone,
                Err(_) => return given.answer,
            },
            None => {
                let alone = self.under_way.lock().await;
                let will_do =
                    |given: &Answered<T>| given.number > before || wanted.takes(given);
                if let Some(given) = self.answered().filter(will_do) {
                    return given.answer;
                }
                alone
            }
        };
        let number = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        let at = clock.now();
        let answer = ask.await;
        let given = Answered {
            number,
            at,
            answer: answer.clone(),
        };
        *self.last() = Some(given);
        answer
    }

    fn last(&self) -> MutexGuard<'_, Option<Answered<T>>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self) -> Option<Answered<T>> {
        self.last().clone()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    fn stopped() -> Clock {
        Clock::stopped_at(Timestamp::UNIX_EPOCH)
    }

    fn fresh<T>(clock: &Clock) -> (&Clock, Wanted<'static, T>) {
        (clock, Wanted::Fresh)
    }

    fn cluster() -> Key {
        Key::new("default", "production")
    }

    #[tokio::test]
    async fn whoever_asks_while_a_read_is_under_way_waits_for_the_next_and_shares_it() {
        let shared = Shared::default();
        let (sent, gate) = (Cell::new(0), Semaphore::new(0));
        let (key, clock) = (cluster(), stopped());
        let read = || {
            shared.read(("clusters", &key), fresh(&clock), async {
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
        let (sent, key, clock) = (Cell::new(0), cluster(), stopped());
        let read = || {
            shared.read(("clusters", &key), fresh(&clock), async {
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
        let (key, clock) = (cluster(), stopped());
        let mut given_up = Box::pin(shared.read(
            ("clusters", &key),
            fresh(&clock),
            std::future::pending(),
        ));
        assert!(futures::poll!(&mut given_up).is_pending());
        let waiting = shared.read(("clusters", &key), fresh(&clock), async { 2 });
        let given_up = async { drop(given_up) };
        assert_eq!(futures::join!(waiting, given_up).0, 2);
    }

    #[tokio::test]
    async fn an_answer_of_a_moment_ago_will_do_for_whoever_says_so_if_it_passes() {
        let shared = Shared::default();
        let (key, clock) = (cluster(), stopped());
        let begun = clock.now();
        let gate = Semaphore::new(0);
        // Somebody is there all the time, so that the place is not cleared.
        let next = shared.read(("clusters", &key), fresh(&clock), async {
            gate.acquire().await.unwrap().forget();
            2
        });
        let rest = async {
            let recent = |answer: &i32| *answer == 1;
            let since = |since| {
                let recent = Recent {
                    since,
                    renewed: since,
                    passes: &recent,
                };
                (&clock, Wanted::Recent(recent))
            };
            let ask = |number| async move { number };
            let flights = shared.places().values().next().unwrap().clone();
            *flights.last() = Some(Answered {
                number: 0,
                at: begun,
                answer: 1,
            });
            let shared_answer =
                shared.read(("clusters", &key), since(begun), ask(3)).await;
            gate.add_permits(1);
            let later = begun + jiff::SignedDuration::from_secs(1);
            let too_old = shared.read(("clusters", &key), since(later), ask(4)).await;
            // The last answer is another one by now, which does not pass.
            let refused = shared.read(("clusters", &key), since(begun), ask(5)).await;
            (shared_answer, too_old, refused)
        };
        assert_eq!(futures::join!(next, rest), (2, (1, 4, 5)));
    }

    #[tokio::test]
    async fn one_renews_an_answer_that_ages_and_the_others_do_not_wait_for_it() {
        let shared = Shared::default();
        let (key, clock, gate) = (cluster(), stopped(), Semaphore::new(0));
        let now = clock.now();
        let flights = Arc::<Flights<i32>>::default();
        *flights.last() = Some(Answered {
            number: 0,
            at: now,
            answer: 1,
        });
        shared
            .places()
            .insert(("clusters".to_owned(), key.clone()), flights);
        let ages = || {
            let recent = Recent {
                since: now,
                renewed: now + jiff::SignedDuration::from_secs(1),
                passes: &|_| true,
            };
            (&clock, Wanted::Recent(recent))
        };
        let renewing = shared.read(("clusters", &key), ages(), async {
            gate.acquire().await.unwrap().forget();
            2
        });
        let others = async {
            let other = shared.read(("clusters", &key), ages(), async { 3 }).await;
            gate.add_permits(1);
            other
        };
        assert_eq!(futures::join!(renewing, others), (2, 1));
    }
}

//! The work queue on a clock.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use kubemu_clock::{Busy, Clock};
use tokio::sync::Notify;

use super::{Backoff, Monotonic, Queue, ReconcileResult};
use crate::Key;

/// The work queue of a controller; every event enqueues a key here.
///
/// While a key is due that may begin, and until its reconcile has ended, a virtual clock is stopped.
#[derive(Debug)]
pub struct WorkQueue {
    /// Whether its keys are reconciled by this process.
    is_enabled: bool,
    clock: Clock,
    monotonic: Monotonic,
    queue: Mutex<Queue<Busy>>,
    changed: Notify,
    /// Reconciles that wait until their key is enqueued again.
    listeners: Mutex<BTreeMap<Key, Arc<Notify>>>,
}

impl WorkQueue {
    /// An empty queue, of whose keys at most so many are reconciled at a time.
    pub fn new(clock: Clock, backoff: Backoff, max_concurrent: NonZeroUsize) -> Self {
        Self {
            is_enabled: true,
            clock,
            monotonic: Monotonic::default(),
            queue: Mutex::new(Queue::new(backoff, max_concurrent)),
            changed: Notify::new(),
            listeners: Mutex::default(),
        }
    }

    /// The queue, which takes no keys and stays empty: what another process reconciles may be
    /// followed here, because what is reconciled here depends on it.
    #[must_use]
    pub fn disabled(self) -> Self {
        Self {
            is_enabled: false,
            ..self
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue<Busy>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The instant that a reconcile uses as now.
    pub fn now(&self) -> Timestamp {
        self.monotonic.at(self.clock.now())
    }

    /// Enqueues `key` after an event.
    pub fn enqueue(&self, key: &Key) {
        if !self.is_enabled {
            return;
        }
        let busy = self.clock.busy();
        self.queue().enqueue(key, self.clock.now(), busy);
        self.notify(key);
    }

    /// Enqueues `key` with low priority after an event that can wait, if the work that its last
    /// reconcile left can wait too.
    pub fn enqueue_deferred(&self, key: &Key) {
        if !self.is_enabled {
            return;
        }
        let busy = self.clock.busy();
        self.queue().enqueue_deferred(key, self.clock.now(), busy);
        self.notify(key);
    }

    fn notify(&self, key: &Key) {
        self.changed.notify_one();
        if let Some(listener) = self.listeners().get(key) {
            listener.notify_waiters();
        }
    }

    fn listeners(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Notify>>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `key`, which is being reconciled, has been enqueued more than `known` times
    /// since the reconcile began. Returns how often.
    pub async fn enqueued_again(&self, key: &Key, known: u64) -> u64 {
        let listener = self.listeners().entry(key.clone()).or_default().clone();
        loop {
            let notified = listener.notified();
            let enqueues = self.queue().enqueues(key);
            if enqueues > known {
                return enqueues;
            }
            notified.await;
        }
    }

    /// Waits for the next key that is due. Its reconcile is under way until
    /// [`finish`](Self::finish), and the guard must be held that long.
    ///
    /// For one caller at a time. Dropping the future loses no key.
    pub async fn next(&self) -> (Key, Busy) {
        loop {
            let (taken, due) = {
                let mut queue = self.queue();
                (queue.take(self.clock.now()), queue.next_due())
            };
            if let Some((key, guard)) = taken {
                return (key, guard.unwrap_or_else(|| self.clock.busy()));
            }
            let alarm = async {
                match due {
                    Some(due) => self.clock.sleep_until_or_set_back(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // In this order, so that runs are reproducible.
                biased;
                () = alarm => {}
                () = self.changed.notified() => {}
            }
        }
    }

    /// Runs `work`, a part of the reconcile of `key`, and charges its namespace for the CPU time
    /// that it uses between two awaits. A virtual clock charges nothing.
    pub async fn charging<F: Future>(&self, key: &Key, work: F) -> F::Output {
        let mut work = pin!(work);
        poll_fn(|context| {
            let before = self.clock.cpu_time();
            let polled = work.as_mut().poll(context);
            let used = self.clock.cpu_time().saturating_sub(before);
            self.queue().charge(key, used);
            polled
        })
        .await
    }

    /// How many keys are due and wait for their reconcile to begin.
    pub fn due(&self) -> usize {
        self.queue().due(self.clock.now())
    }

    /// Of keys that are due together, those of lower rank come first.
    pub fn rank(&self, key: &Key, rank: u8) {
        self.queue().rank(key, rank);
    }

    /// Ends the reconcile of `key`; returns how many reconciles in a row have failed.
    pub fn finish(&self, key: &Key, result: ReconcileResult) -> u32 {
        self.listeners().remove(key);
        let failures = self.queue().finish(key, result, self.clock.now());
        self.changed.notify_one();
        failures
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::SignedDuration;

    use super::*;

    fn start() -> Timestamp {
        "2026-03-06T21:30:00Z".parse().unwrap()
    }

    #[tokio::test]
    async fn a_disabled_queue_stays_empty_and_stops_no_clock() {
        let clock = Clock::stopped_at(start());
        let queue = WorkQueue::new(clock.clone(), Backoff::seeded(0), NonZeroUsize::MIN);
        let queue = queue.disabled();
        let key = Key::new("default", "a");
        queue.enqueue(&key);
        queue.enqueue_deferred(&key);
        assert_eq!(queue.due(), 0);
        let later = start() + SignedDuration::from_hours(1);
        clock.advance_to(later).await;
        assert_eq!(clock.now(), later);
    }

    #[tokio::test]
    async fn a_reconcile_begins_exactly_when_due_and_the_clock_is_stopped_meanwhile() {
        let clock = Clock::stopped_at(start());
        let edge = start() + SignedDuration::from_mins(90);
        let work = Arc::new(WorkQueue::new(
            clock.clone(),
            Backoff::seeded(0),
            NonZeroUsize::MIN,
        ));
        let key = Key::new("default", "a");
        work.enqueue(&key);
        let (own, own_clock) = (work.clone(), clock.clone());
        let worker = tokio::spawn(async move {
            let mut begun = Vec::new();
            while begun.len() < 2 {
                let (key, busy) = own.next().await;
                begun.push(own_clock.now());
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                assert_eq!(begun.last(), Some(&own_clock.now()));
                own.finish(
                    &key,
                    ReconcileResult::Succeeded {
                        requeue_at: Some(edge),
                    },
                );
                drop(busy);
            }
            begun
        });
        clock.advance_to(edge + SignedDuration::from_hours(1)).await;
        assert_eq!(worker.await.unwrap(), [start(), edge]);
    }
}

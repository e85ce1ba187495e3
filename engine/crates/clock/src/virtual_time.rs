//! The virtual clock: an instant, the sleepers in order, and a count of pending work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

/// How many rounds of the scheduler must pass without new work before the process counts
/// as quiet: longer than any chain of tasks that wake each other without holding a guard.
const QUIET_ROUNDS: usize = 24;

/// Identifies one sleeper. Ordered by due instant, then by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SleeperId {
    due: Timestamp,
    age: u64,
}

#[derive(Debug)]
pub(crate) struct Virtual {
    state: Mutex<State>,
    /// Notified when work became or stopped being pending, or an earlier sleeper was registered.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    now: Timestamp,
    running: Option<Running>,
    busy: usize,
    /// How often work became pending, so that a short piece of work between two checks is
    /// noticed.
    epoch: u64,
    next_age: u64,
    sleeping: BTreeSet<SleeperId>,
    wakers: BTreeMap<SleeperId, Waker>,
    /// Due, and counted as busy until polled.
    due: BTreeSet<SleeperId>,
}

/// The clock moves with the system's, from where it was, and stops at `cap`.
#[derive(Debug)]
struct Running {
    since: Instant,
    speed: u32,
    cap: Option<Timestamp>,
}

impl State {
    fn now(&self) -> Timestamp {
        let Some(running) = &self.running else {
            return self.now;
        };
        let elapsed = running.since.elapsed().saturating_mul(running.speed);
        let elapsed = SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX);
        let now = self.now.saturating_add(elapsed).unwrap_or(Timestamp::MAX);
        running.cap.map_or(now, |cap| now.min(cap))
    }

    fn stop(&mut self) {
        self.now = self.now();
        self.running = None;
    }

    fn next_due(&self) -> Option<Timestamp> {
        self.sleeping.first().map(|sleeper| sleeper.due)
    }

    fn become_busy(&mut self) {
        self.stop();
        self.busy += 1;
        self.epoch += 1;
    }

    /// Moves every sleeper whose instant has come to `due`, and returns their wakers.
    fn fire(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        while let Some(sleeper) = self.sleeping.first().copied() {
            if sleeper.due > self.now {
                break;
            }
            self.sleeping.remove(&sleeper);
            self.due.insert(sleeper);
            self.become_busy();
            wakers.extend(self.wakers.remove(&sleeper));
        }
        wakers
    }
}

impl Virtual {
    pub(crate) fn new(start: Timestamp) -> Self {
        let state = State {
            now: start,
            running: None,
            busy: 0,
            epoch: 0,
            next_age: 0,
            sleeping: BTreeSet::new(),
            wakers: BTreeMap::new(),
            due: BTreeSet::new(),
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.state().now()
    }

    pub(crate) fn register(&self, due: Timestamp) -> SleeperId {
        let mut state = self.state();
        let sleeper = SleeperId {
            due,
            age: state.next_age,
        };
        state.next_age += 1;
        let earliest = state.next_due().is_none_or(|next| due < next);
        state.sleeping.insert(sleeper);
        drop(state);
        if earliest {
            self.changed.notify_waiters();
        }
        sleeper
    }

    pub(crate) fn poll(&self, sleeper: SleeperId, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.due.remove(&sleeper) {
            state.busy -= 1;
            drop(state);
            self.changed.notify_waiters();
            return Poll::Ready(());
        }
        // Not in the future, or polled again after it was ready.
        if sleeper.due <= state.now() || !state.sleeping.contains(&sleeper) {
            state.sleeping.remove(&sleeper);
            return Poll::Ready(());
        }
        state.wakers.insert(sleeper, cx.waker().clone());
        Poll::Pending
    }

    pub(crate) fn forget(&self, sleeper: SleeperId) {
        let mut state = self.state();
        state.sleeping.remove(&sleeper);
        state.wakers.remove(&sleeper);
        if state.due.remove(&sleeper) {
            state.busy -= 1;
            drop(state);
            self.changed.notify_waiters();
        }
    }

    pub(crate) async fn wait_until_idle(&self) {
        loop {
            let changed = self.changed.notified();
            let (busy, epoch) = {
                let state = self.state();
                (state.busy, state.epoch)
            };
            if busy > 0 {
                changed.await;
            } else if self.stays_quiet(epoch).await {
                return;
            }
        }
    }

    async fn stays_quiet(&self, epoch: u64) -> bool {
        for _ in 0..QUIET_ROUNDS {
            tokio::task::yield_now().await;
            let state = self.state();
            if state.busy > 0 || state.epoch != epoch {
                return false;
            }
        }
        true
    }

    pub(crate) async fn advance_to(&self, to: Timestamp) {
        while self.advance_to_next(to).await.is_some() {}
        let mut state = self.state();
        state.now = state.now.max(to);
    }

    pub(crate) async fn advance_to_next(&self, limit: Timestamp) -> Option<Timestamp> {
        self.wait_until_idle().await;
        let (now, wakers) = {
            let mut state = self.state();
            let due = state.next_due().filter(|due| *due <= limit)?;
            state.now = state.now.max(due);
            (state.now, state.fire())
        };
        wakers.into_iter().for_each(Waker::wake);
        self.wait_until_idle().await;
        Some(now)
    }

    pub(crate) async fn run(&self, speed: u32) {
        loop {
            self.wait_until_idle().await;
            let changed = self.changed.notified();
            let wait = self.start_running(speed);
            let waited = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = waited => {}
                () = changed => {}
            }
            let wakers = {
                let mut state = self.state();
                state.stop();
                state.fire()
            };
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Lets the clock run to the next sleeper. Returns how long that takes, or `None` if there is
    /// no sleeper.
    fn start_running(&self, speed: u32) -> Option<Duration> {
        let mut state = self.state();
        state.stop();
        let cap = state.next_due();
        state.running = Some(Running {
            since: Instant::now(),
            speed,
            cap,
        });
        cap.map(|due| crate::until(state.now, due) / speed)
    }
}

/// One unit of pending work on a virtual clock.
#[derive(Debug)]
pub(crate) struct BusyGuard(Arc<Virtual>);

impl BusyGuard {
    pub(crate) fn on(clock: Arc<Virtual>) -> Self {
        clock.state().become_busy();
        clock.changed.notify_waiters();
        Self(clock)
    }
}

impl Clone for BusyGuard {
    fn clone(&self) -> Self {
        Self::on(self.0.clone())
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.state().busy -= 1;
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::Clock;

    fn start() -> Timestamp {
        "2026-03-06T21:30:00Z".parse().unwrap()
    }

    fn later(seconds: i64) -> Timestamp {
        start() + SignedDuration::from_secs(seconds)
    }

    #[tokio::test]
    async fn a_stopped_clock_wakes_sleepers_in_order_and_at_their_instants() {
        let clock = Clock::stopped_at(start());
        let seen = Arc::new(Mutex::new(Vec::new()));
        for seconds in [30, 10, 20] {
            let (clock, seen) = (clock.clone(), seen.clone());
            tokio::spawn(async move {
                clock.sleep_until(later(seconds)).await;
                seen.lock().unwrap().push((seconds, clock.now()));
            });
        }
        clock.advance_to(later(25)).await;
        assert_eq!(*seen.lock().unwrap(), [(10, later(10)), (20, later(20))]);
        assert_eq!(clock.now(), later(25));
    }

    #[tokio::test]
    async fn a_sleeper_that_sleeps_again_is_woken_by_the_same_advance() {
        let clock = Clock::stopped_at(start());
        let laps = Arc::new(AtomicUsize::new(0));
        let (own, count) = (clock.clone(), laps.clone());
        tokio::spawn(async move {
            loop {
                own.sleep(SignedDuration::from_secs(60)).await;
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        clock.advance_to(later(3600)).await;
        assert_eq!(laps.load(Ordering::Relaxed), 60);
    }

    #[tokio::test]
    async fn the_clock_is_stopped_while_a_guard_is_held() {
        let clock = Clock::stopped_at(start());
        let busy = clock.busy();
        let (done, release) = tokio::sync::oneshot::channel::<()>();
        let own = clock.clone();
        let advanced = tokio::spawn(async move {
            own.advance_to(later(10)).await;
        });
        let own = clock.clone();
        let observer = tokio::spawn(async move {
            release.await.unwrap();
            let seen = own.now();
            drop(busy);
            seen
        });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        done.send(()).unwrap();
        assert_eq!(observer.await.unwrap(), start());
        advanced.await.unwrap();
        assert_eq!(clock.now(), later(10));
    }

    #[tokio::test]
    async fn a_running_clock_stops_at_each_sleeper_however_fast_it_runs() {
        let clock = Clock::stopped_at(start());
        let pace = clock.clone();
        let pacer = tokio::spawn(async move { pace.run(100_000).await });
        for seconds in [3_600, 7_200, 7_201] {
            clock.sleep_until(later(seconds)).await;
            assert_eq!(clock.now(), later(seconds));
            let busy = clock.busy();
            assert_eq!(clock.now(), later(seconds));
            drop(busy);
        }
        pacer.abort();
    }

    #[tokio::test]
    async fn a_dropped_sleeper_is_forgotten() {
        let clock = Clock::stopped_at(start());
        drop(clock.sleep_until(later(5)));
        assert_eq!(clock.advance_to_next(later(60)).await, None);
        assert_eq!(clock.now(), start());
    }
}

//! One source of *now* and of waiting: the system's clock, or a virtual one.
//!
//! Everything that asks for the time or sleeps until an instant takes a [`Clock`]. In
//! production it is [`Clock::system`]. In `5spot dev`, in tests and in the simulation it
//! is virtual: it stands still while anybody is [`busy`](Clock::busy) and, once the
//! process is quiet, moves on to the next due sleeper and stops there, so that no
//! wake-up is ever late however fast the clock runs.
//!
//! A virtual clock expects all its participants on one current-thread tokio runtime:
//! "quiet" means that nobody is busy and that a few rounds of the scheduler woke nobody
//! who then became so.
//!
//! ```
//! use fivespot_clock::Clock;
//! use jiff::{SignedDuration, Timestamp};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let start: Timestamp = "2026-03-06T21:30:00Z".parse().unwrap();
//! let clock = Clock::stopped_at(start);
//! let due = start + SignedDuration::from_hours(2);
//! let sleeper = tokio::spawn(clock.sleep_until(due));
//! clock.advance_to(due).await;
//! sleeper.await.unwrap();
//! assert_eq!(clock.now(), due);
//! # });
//! ```

mod timer;
mod virtual_time;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

pub use timer::Sleep;
use virtual_time::Virtual;

/// A source of *now* and of waiting. Clones share one clock.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    /// From an instant at which the system's clock was read.
    Steady(Timestamp, Instant),
    Virtual(Arc<Virtual>),
    Wrong(Arc<Virtual>, Offset),
}

/// By how much a clock is wrong: what it shows less what is so. Clones are about one clock.
#[derive(Clone, Debug, Default)]
pub struct Offset(Arc<Mutex<SignedDuration>>);

impl Offset {
    /// Sets the clock: from now on it is wrong by `span`. What sleeps sleeps on as long as it would
    /// have, as on a machine whose clock is set.
    pub fn set(&self, span: SignedDuration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = span;
    }

    /// By how much the clock is wrong now.
    pub fn get(&self) -> SignedDuration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock {
    /// The machine's own clock. [`busy`](Self::busy) means nothing to it.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A virtual clock that stands at `start` and moves only by
    /// [`advance_to`](Self::advance_to) and [`advance_to_next`](Self::advance_to_next).
    pub fn stopped_at(start: Timestamp) -> Self {
        Self(Source::Virtual(Arc::new(Virtual::new(start))))
    }

    /// Whether this clock is a virtual one.
    pub fn is_virtual(&self) -> bool {
        self.in_process().is_some()
    }

    /// A clock on this virtual one that is wrong by `offset`. It is moved by moving this one; on
    /// the system's clock it is that.
    #[must_use]
    pub fn wrong_by(&self, offset: Offset) -> Self {
        match self.in_process() {
            Some(clock) => Self(Source::Wrong(clock.clone(), offset)),
            None => self.clone(),
        }
    }

    /// A clock that shows the same now, and from now on what has passed since, however this one
    /// is set meanwhile: to measure spans by, not to tell the time.
    #[must_use]
    pub fn steady(&self) -> Self {
        match &self.0 {
            Source::System => Self(Source::Steady(system_now(), Instant::now())),
            Source::Steady(..) | Source::Virtual(_) => self.clone(),
            Source::Wrong(clock, _) => Self(Source::Virtual(clock.clone())),
        }
    }

    fn in_process(&self) -> Option<&Arc<Virtual>> {
        match &self.0 {
            Source::System | Source::Steady(..) => None,
            Source::Virtual(clock) | Source::Wrong(clock, _) => Some(clock),
        }
    }

    /// The present instant. Goes back only where the system's clock is set back, or one that is
    /// [wrong](Self::wrong_by).
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => system_now(),
            Source::Steady(then, since) => {
                let passed = SignedDuration::try_from(since.elapsed());
                after(*then, passed.unwrap_or(SignedDuration::MAX))
            }
            Source::Virtual(clock) => clock.now(),
            Source::Wrong(clock, offset) => after(clock.now(), offset.get()),
        }
    }

    /// Waits until `due`; ready at once when `due` is not in the future.
    ///
    /// The returned future holds no borrow. When a virtual sleeper falls due the clock
    /// counts it as busy until it has been polled.
    pub fn sleep_until(&self, due: Timestamp) -> Sleep {
        match &self.0 {
            Source::System | Source::Steady(..) => Sleep::system(until(self.now(), due)),
            Source::Virtual(clock) => Sleep::on(clock.clone(), due),
            Source::Wrong(clock, _) => {
                let span = self.now().duration_until(due);
                Sleep::on(clock.clone(), after(clock.now(), span))
            }
        }
    }

    /// Waits for `span` from now on.
    pub fn sleep(&self, span: SignedDuration) -> Sleep {
        self.sleep_until(after(self.now(), span))
    }

    /// Says that work is pending: a virtual clock stands still until the guard and all
    /// its clones are dropped. Free on the system's clock.
    pub fn busy(&self) -> Busy {
        let hold = |clock: &Arc<Virtual>| virtual_time::Hold::on(clock.clone());
        Busy(self.in_process().map(hold))
    }

    /// Waits until nobody is busy. At once on the system's clock.
    pub async fn quiet(&self) {
        if let Some(clock) = self.in_process() {
            clock.quiet().await;
        }
    }

    /// Moves a virtual clock to `to`, stopping at each sleeper that falls due on the way
    /// until the process is quiet again. Does nothing but wait for quiet when `to` is
    /// not in the future, and nothing at all on the system's clock.
    pub async fn advance_to(&self, to: Timestamp) {
        if let Some(clock) = self.in_process() {
            clock.advance_to(to).await;
        }
    }

    /// Moves a virtual clock to the next sleeper that falls due by `limit`, wakes it and
    /// waits for quiet. Returns the new instant, or `None` when nobody is due by then
    /// (the clock then stays where it is), and always `None` on the system's clock.
    pub async fn advance_to_next(&self, limit: Timestamp) -> Option<Timestamp> {
        self.in_process()?.advance_to_next(limit).await
    }

    /// Drives a virtual clock at `speed` virtual seconds a second, for ever: it runs
    /// while the process is quiet, stands while it is not, and stops at each due
    /// sleeper. On the system's clock this never does anything.
    ///
    /// `speed` is taken as at least 1.
    pub async fn run(&self, speed: u32) {
        match self.in_process() {
            None => std::future::pending().await,
            Some(clock) => clock.run(speed.max(1)).await,
        }
    }
}

/// Work is pending while this is held; see [`Clock::busy`].
#[derive(Clone, Debug)]
pub struct Busy(
    #[expect(dead_code, reason = "held for its drop alone")] Option<virtual_time::Hold>,
);

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the clock"
)]
fn system_now() -> Timestamp {
    Timestamp::now()
}

/// `span` after `now`, at most the end of time.
pub fn after(now: Timestamp, span: SignedDuration) -> Timestamp {
    now.saturating_add(span).unwrap_or(Timestamp::MAX)
}

/// How long `due` is ahead of `now`; zero when it is not.
fn until(now: Timestamp, due: Timestamp) -> Duration {
    Duration::try_from(now.duration_until(due)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Timestamp {
        "2026-03-06T21:30:00Z".parse().unwrap()
    }

    #[tokio::test]
    async fn a_clock_that_is_set_back_shows_an_earlier_instant_and_ends_no_sleep_later() {
        let clock = Clock::stopped_at(start());
        let offset = Offset::default();
        let wrong = clock.wrong_by(offset.clone());
        let minute = SignedDuration::from_mins(1);
        let sleeper = tokio::spawn(wrong.sleep(minute * 2));
        offset.set(-minute);
        assert_eq!(wrong.now(), start() - minute);
        clock.advance_to(start() + minute * 2).await;
        sleeper.await.unwrap();
        assert_eq!(wrong.now(), start() + minute);
    }

    #[tokio::test]
    async fn a_sleep_begun_on_a_wrong_clock_ends_when_that_clock_shows_it() {
        let clock = Clock::stopped_at(start());
        let offset = Offset::default();
        let wrong = clock.wrong_by(offset.clone());
        let minute = SignedDuration::from_mins(1);
        offset.set(-minute);
        let sleeper = tokio::spawn(wrong.sleep_until(start() + minute));
        tokio::task::yield_now().await;
        let woke = clock.advance_to_next(start() + minute * 9).await;
        assert_eq!(woke, Some(start() + minute * 2));
        sleeper.await.unwrap();
    }

    #[test]
    fn a_steady_clock_does_not_care_how_the_other_is_set() {
        let clock = Clock::stopped_at(start());
        let offset = Offset::default();
        let steady = clock.wrong_by(offset.clone()).steady();
        offset.set(SignedDuration::from_hours(-1));
        assert_eq!(steady.now(), start());
    }

    #[test]
    fn a_steady_clock_begins_at_the_time_that_the_system_shows() {
        let steady = Clock::system().steady();
        let first = steady.now();
        assert!(steady.now() >= first && !steady.is_virtual());
    }
}

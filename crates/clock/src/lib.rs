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

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

pub use timer::Sleep;
use virtual_time::Virtual;

/// A source of *now* and of waiting. Clones share one clock.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Virtual(Arc<Virtual>),
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
        matches!(self.0, Source::Virtual(_))
    }

    /// The present instant. Never goes back on a virtual clock.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => system_now(),
            Source::Virtual(clock) => clock.now(),
        }
    }

    /// Waits until `due`; ready at once when `due` is not in the future.
    ///
    /// The returned future holds no borrow. When a virtual sleeper falls due the clock
    /// counts it as busy until it has been polled.
    pub fn sleep_until(&self, due: Timestamp) -> Sleep {
        match &self.0 {
            Source::System => Sleep::system(until(system_now(), due)),
            Source::Virtual(clock) => Sleep::on(clock.clone(), due),
        }
    }

    /// Waits for `span` from now on.
    pub fn sleep(&self, span: SignedDuration) -> Sleep {
        let due = self.now().saturating_add(span).unwrap_or(Timestamp::MAX);
        self.sleep_until(due)
    }

    /// Says that work is pending: a virtual clock stands still until the guard and all
    /// its clones are dropped. Free on the system's clock.
    pub fn busy(&self) -> Busy {
        match &self.0 {
            Source::System => Busy(None),
            Source::Virtual(clock) => Busy(Some(virtual_time::Hold::on(clock.clone()))),
        }
    }

    /// Waits until nobody is busy. At once on the system's clock.
    pub async fn quiet(&self) {
        if let Source::Virtual(clock) = &self.0 {
            clock.quiet().await;
        }
    }

    /// Moves a virtual clock to `to`, stopping at each sleeper that falls due on the way
    /// until the process is quiet again. Does nothing but wait for quiet when `to` is
    /// not in the future, and nothing at all on the system's clock.
    pub async fn advance_to(&self, to: Timestamp) {
        if let Source::Virtual(clock) = &self.0 {
            clock.advance_to(to).await;
        }
    }

    /// Moves a virtual clock to the next sleeper that falls due by `limit`, wakes it and
    /// waits for quiet. Returns the new instant, or `None` when nobody is due by then
    /// (the clock then stays where it is), and always `None` on the system's clock.
    pub async fn advance_to_next(&self, limit: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            Source::System => None,
            Source::Virtual(clock) => clock.advance_to_next(limit).await,
        }
    }

    /// Drives a virtual clock at `speed` virtual seconds a second, for ever: it runs
    /// while the process is quiet, stands while it is not, and stops at each due
    /// sleeper. On the system's clock this never does anything.
    ///
    /// `speed` is taken as at least 1.
    pub async fn run(&self, speed: u32) {
        match &self.0 {
            Source::System => std::future::pending().await,
            Source::Virtual(clock) => clock.run(speed.max(1)).await,
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

/// How long `due` is ahead of `now`; zero when it is not.
fn until(now: Timestamp, due: Timestamp) -> Duration {
    Duration::try_from(now.duration_until(due)).unwrap_or(Duration::ZERO)
}

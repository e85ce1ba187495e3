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

mod attend;
mod host;
mod steady;
mod timer;
mod virtual_time;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

pub use attend::Attended;
pub use host::Host;
use steady::Steady;
pub use timer::Sleep;
use virtual_time::Virtual;

/// A source of *now* and of waiting. Clones share one clock.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    /// From an instant at which the system's clock was read.
    Steady(Timestamp, Steady),
    Virtual(Arc<Virtual>),
    /// The clock of a host in the process, as it is set.
    Host(Arc<Virtual>, Host),
    /// The same host's clock for spans, which nobody sets.
    HostSteady(Arc<Virtual>, Host),
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

    /// The clock of `host`, which runs with this virtual one but may be set wrong, and whose sleepers
    /// rest while it is suspended. It is moved by moving this one; on the system's clock it is that.
    #[must_use]
    pub fn of_host(&self, host: Host) -> Self {
        match self.in_process() {
            Some(clock) => Self(Source::Host(clock.clone(), host)),
            None => self.clone(),
        }
    }

    /// A clock that shows the same now, and from now on what has passed since, however this one
    /// is set meanwhile, time in which the machine was suspended included: to measure spans by, not
    /// to read the time.
    ///
    /// Where the system has no such clock (Linux has), it may stand still during a suspension.
    #[must_use]
    pub fn steady(&self) -> Self {
        match &self.0 {
            Source::System => Self(Source::Steady(system_now(), Steady::now())),
            Source::Steady(..) | Source::Virtual(_) | Source::HostSteady(..) => {
                self.clone()
            }
            Source::Host(clock, host) => {
                Self(Source::HostSteady(clock.clone(), host.clone()))
            }
        }
    }

    fn in_process(&self) -> Option<&Arc<Virtual>> {
        match &self.0 {
            Source::System | Source::Steady(..) => None,
            Source::Virtual(clock)
            | Source::Host(clock, _)
            | Source::HostSteady(clock, _) => Some(clock),
        }
    }

    /// The present instant. Goes back only where the system's clock is set back, or that of a
    /// [host](Self::of_host).
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => system_now(),
            Source::Steady(then, since) => after(*then, since.elapsed()),
            Source::Virtual(clock) | Source::HostSteady(clock, _) => clock.now(),
            Source::Host(clock, host) => after(clock.now(), host.offset()),
        }
    }

    /// Waits until this clock shows `due`; ready at once when `due` is not in the future.
    ///
    /// The clock is read again every half minute: one that is set forward, or a machine that wakes
    /// from a suspension, makes nobody later than that. On a plain virtual clock, which nobody sets,
    /// that costs nothing.
    ///
    /// The returned future holds no borrow. When a virtual sleeper falls due the clock
    /// counts it as busy until it has been polled.
    pub fn sleep_until(&self, due: Timestamp) -> Sleep {
        Sleep::until(self, due)
    }

    /// The same, but ready early if the clock is found to have been set back.
    pub fn sleep_until_or_set_back(&self, due: Timestamp) -> Sleep {
        self.sleep_until(due).or_set_back()
    }

    /// Waits for `span` from now on, however the clock is set meanwhile.
    pub fn sleep(&self, span: SignedDuration) -> Sleep {
        let clock = self.steady();
        clock.sleep_until(after(clock.now(), span))
    }

    /// Says that work is pending: a virtual clock stands still until the guard and all
    /// its clones are dropped. Free on the system's clock.
    pub fn busy(&self) -> Busy {
        let hold = |clock: &Arc<Virtual>| virtual_time::Hold::on(clock.clone());
        Busy(self.in_process().map(hold))
    }

    /// Runs `work`, for which a virtual clock stands still except while it waits for what nobody
    /// else is [busy](Self::busy) with: an answer that is a long time coming, or another instant.
    pub fn attend<F: Future>(&self, work: F) -> Attended<F> {
        Attended::new(self.clone(), work)
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

    #[test]
    fn a_steady_clock_begins_at_the_time_that_the_system_shows() {
        let steady = Clock::system().steady();
        let first = steady.now();
        assert!(steady.now() >= first && !steady.is_virtual());
    }
}

//! One source of *now* and of waiting: the system's clock, or a virtual clock.
//!
//! All code that reads the time or sleeps until an instant takes a [`Clock`]. In production it is
//! [`Clock::system`]. In `5spot dev`, in tests and in the simulation it is virtual: it is stopped
//! while a guard of [`busy`](Clock::busy) is held. Once the process is quiet, it moves to the
//! next due sleeper and stops there, so that no sleeper wakes late, however fast the clock runs.
//!
//! Who holds a guard, and what a suspended host means: `internals/decisions/0008-one-clock.md`.
//!
//! A virtual clock requires all its users to be on one current-thread tokio runtime: "quiet"
//! means that no guard is held, and that a few rounds of the scheduler have created none.
//!
//! ```
//! use kubemu_clock::Clock;
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

mod host;
mod steady;
mod stop_while_busy;
mod timer;
mod virtual_time;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

pub use host::Host;
use steady::SteadyInstant;
pub use stop_while_busy::StopWhileBusy;
pub use timer::Sleep;
use virtual_time::Virtual;

/// A source of *now* and of waiting. Clones share the clock.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    /// From an instant at which the system's clock was read.
    Steady(Timestamp, SteadyInstant),
    Virtual(Arc<Virtual>),
    /// The clock of a simulated host, as it is set.
    Host(Arc<Virtual>, Host),
    /// The same host's clock for spans, which is never set.
    HostSteady(Arc<Virtual>, Host),
}

impl Clock {
    /// The system's clock. [`busy`](Self::busy) has no effect on it.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A virtual clock that is stopped at `start` and moves only by
    /// [`advance_to`](Self::advance_to) and [`advance_to_next`](Self::advance_to_next).
    pub fn stopped_at(start: Timestamp) -> Self {
        Self(Source::Virtual(Arc::new(Virtual::new(start))))
    }

    /// Whether this clock is a virtual one.
    pub fn is_virtual(&self) -> bool {
        self.in_process().is_some()
    }

    /// The clock of `host`. It runs with this virtual clock, but may be set wrong, and its
    /// sleepers rest while the host is suspended. It moves when this clock is moved. On the
    /// system's clock, returns that clock.
    #[must_use]
    pub fn of_host(&self, host: Host) -> Self {
        match self.in_process() {
            Some(clock) => Self(Source::Host(clock.clone(), host)),
            None => self.clone(),
        }
    }

    /// A clock that shows the same now, and from now on the time that has passed since, even if
    /// this clock is set meanwhile. It includes time during which the machine was suspended. It
    /// is for measuring spans, not for reading the time.
    ///
    /// If the system has no such clock (Linux has), it may be stopped during a suspension.
    #[must_use]
    pub fn steady(&self) -> Self {
        match &self.0 {
            Source::System => Self(Source::Steady(system_now(), SteadyInstant::now())),
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

    /// The current instant. It goes back only if the system's clock, or that of a
    /// [host](Self::of_host), is set back.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => system_now(),
            Source::Steady(then, since) => after(*then, since.elapsed()),
            Source::Virtual(clock) | Source::HostSteady(clock, _) => clock.now(),
            Source::Host(clock, host) => after(clock.now(), host.offset()),
        }
    }

    /// The CPU time that the calling thread has used, for measuring spans. Zero on a virtual clock,
    /// on which equal runs are equal.
    pub fn cpu_time(&self) -> SignedDuration {
        if self.in_process().is_some() {
            return SignedDuration::ZERO;
        }
        steady::thread_cpu_time()
    }

    /// Waits until this clock shows `due`; ready at once if `due` is not in the future.
    ///
    /// The clock is read again every half minute: if it is set forward, or the machine resumes
    /// from a suspension, a sleeper is at most that late. On a plain virtual clock, which is
    /// never set, that costs nothing.
    ///
    /// The returned future holds no borrow. When a virtual sleeper is due, the clock counts it as
    /// busy until it has been polled.
    pub fn sleep_until(&self, due: Timestamp) -> Sleep {
        Sleep::until(self, due)
    }

    /// The same, but ready early if the clock was set back.
    pub fn sleep_until_or_set_back(&self, due: Timestamp) -> Sleep {
        self.sleep_until(due).or_set_back()
    }

    /// Waits for `span` from now on, even if the clock is set meanwhile.
    pub fn sleep(&self, span: SignedDuration) -> Sleep {
        let clock = self.steady();
        clock.sleep_until(after(clock.now(), span))
    }

    /// Marks work as pending: a virtual clock is stopped until the guard and all its clones are
    /// dropped. It costs nothing on the system's clock.
    pub fn busy(&self) -> Busy {
        let guard = |clock: &Arc<Virtual>| virtual_time::BusyGuard::on(clock.clone());
        Busy(self.in_process().map(guard))
    }

    /// Runs `work`. A virtual clock is stopped meanwhile, except while the work waits for
    /// something that no other task is [busy](Self::busy) with: a slow response, or another
    /// instant.
    pub fn stop_while_busy<F: Future>(&self, work: F) -> StopWhileBusy<F> {
        StopWhileBusy::new(self.clone(), work)
    }

    /// Waits until no guard is held. Returns at once on the system's clock.
    pub async fn wait_until_idle(&self) {
        if let Some(clock) = self.in_process() {
            clock.wait_until_idle().await;
        }
    }

    /// Moves a virtual clock to `to`, and stops at each sleeper that is due on the way until the
    /// process is quiet again. Only waits for quiet if `to` is not in the future. Does nothing on
    /// the system's clock.
    pub async fn advance_to(&self, to: Timestamp) {
        if let Some(clock) = self.in_process() {
            clock.advance_to(to).await;
        }
    }

    /// Moves a virtual clock to the next sleeper that is due by `limit`, wakes it and waits for
    /// quiet. Returns the new instant, or `None` if no sleeper is due by then (the clock then
    /// stays where it is). Always returns `None` on the system's clock.
    pub async fn advance_to_next(&self, limit: Timestamp) -> Option<Timestamp> {
        self.in_process()?.advance_to_next(limit).await
    }

    /// Runs a virtual clock at `speed` virtual seconds per second, until the future is dropped:
    /// it moves while the process is quiet, is stopped while it is not, and stops at each due
    /// sleeper. On the system's clock this never does anything.
    ///
    /// A `speed` of 0 counts as 1.
    pub async fn run(&self, speed: u32) {
        match self.in_process() {
            None => std::future::pending().await,
            Some(clock) => clock.run(speed.max(1)).await,
        }
    }
}

/// A guard: work is pending while it is held; see [`Clock::busy`].
#[derive(Clone, Debug)]
pub struct Busy(
    #[expect(dead_code, reason = "only held for its drop")]
    Option<virtual_time::BusyGuard>,
);

#[expect(
    clippy::disallowed_methods,
    reason = "the only function that reads the clock"
)]
fn system_now() -> Timestamp {
    Timestamp::now()
}

/// `span` after `now`, at most [`Timestamp::MAX`].
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
    fn a_steady_clock_starts_at_the_time_of_the_system() {
        let steady = Clock::system().steady();
        let first = steady.now();
        assert!(steady.now() >= first && !steady.is_virtual());
    }
}

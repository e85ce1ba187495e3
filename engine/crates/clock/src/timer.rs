//! Waiting for an instant.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::futures::OwnedNotified;

use crate::host::Host;
use crate::virtual_time::{SleeperId, Virtual};
use crate::{Clock, Source, after};

/// After how long the clock is read again at the latest: it may have been set, or the machine
/// suspended.
const MAX_SLEEP: SignedDuration = SignedDuration::from_secs(30);

/// By how much a clock must be set back to be noticed.
const SET_BACK: SignedDuration = SignedDuration::from_secs(1);

/// A future that is ready at its instant; see [`Clock::sleep_until`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep(Kind);

#[derive(Debug)]
enum Kind {
    System(ClockTimer<tokio::time::Sleep>),
    Virtual {
        clock: Arc<Virtual>,
        sleeper: SleeperId,
    },
    Host(ClockTimer<HostTimer>),
}

impl Sleep {
    pub(crate) fn until(clock: &Clock, due: Timestamp) -> Self {
        Self(match &clock.0 {
            Source::System | Source::Steady(..) => {
                let timer = tokio::time::sleep(Duration::ZERO);
                Kind::System(ClockTimer::new(clock.clone(), due, timer))
            }
            Source::Virtual(clock) => Kind::Virtual {
                clock: clock.clone(),
                sleeper: clock.register(due),
            },
            Source::Host(on, host) | Source::HostSteady(on, host) => {
                let timer = HostTimer::new(on.clone(), host.clone());
                Kind::Host(ClockTimer::new(clock.clone(), due, timer))
            }
        })
    }

    /// Makes it also ready early if the clock is set back.
    pub(crate) fn or_set_back(mut self) -> Self {
        match &mut self.0 {
            Kind::System(timer) => timer.ends_when_set_back = true,
            Kind::Host(timer) => timer.ends_when_set_back = true,
            // It is never set.
            Kind::Virtual { .. } => {}
        }
        self
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            Kind::System(timer) => timer.poll(cx),
            Kind::Virtual { clock, sleeper } => clock.poll(*sleeper, cx),
            Kind::Host(timer) => timer.poll(cx),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Kind::Virtual { clock, sleeper } = &self.0 {
            clock.forget(*sleeper);
        }
    }
}

/// A timer that measures spans and can be reset.
trait Timer: Future<Output = ()> {
    /// Makes it ready after `span` from now on.
    fn reset_after(self: Pin<&mut Self>, span: SignedDuration);
}

impl Timer for tokio::time::Sleep {
    fn reset_after(self: Pin<&mut Self>, span: SignedDuration) {
        let span = Duration::try_from(span).unwrap_or_default();
        self.reset(tokio::time::Instant::now() + span);
    }
}

/// Waits until a clock shows an instant, and reads that clock at intervals.
#[derive(Debug)]
struct ClockTimer<T> {
    clock: Clock,
    due: Timestamp,
    timer: Pin<Box<T>>,
    /// What the clock will show when the timer is ready, if it is not set meanwhile.
    expected: Timestamp,
    ends_when_set_back: bool,
}

impl<T: Timer> ClockTimer<T> {
    fn new(clock: Clock, due: Timestamp, timer: T) -> Self {
        let now = clock.now();
        let mut timer = Self {
            clock,
            due,
            timer: Box::pin(timer),
            expected: now,
            ends_when_set_back: false,
        };
        timer.restart(now);
        timer
    }

    fn restart(&mut self, now: Timestamp) {
        let span = now.duration_until(self.due);
        let span = span.clamp(SignedDuration::ZERO, MAX_SLEEP);
        self.expected = after(now, span);
        self.timer.as_mut().reset_after(span);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let now = self.clock.now();
            let is_set_back = after(now, SET_BACK) < self.expected;
            if now >= self.due || is_set_back && self.ends_when_set_back {
                return Poll::Ready(());
            }
            self.restart(now);
        }
    }
}

/// A timer of a host: it is stopped while the host is suspended.
#[derive(Debug)]
struct HostTimer {
    clock: Arc<Virtual>,
    host: Host,
    /// What the timers of the host show when it is ready.
    due: Timestamp,
    /// The sleeper for that, as long as nothing changes; `None` while the host is suspended.
    sleeper: Option<SleeperId>,
    changed: Pin<Box<OwnedNotified>>,
    changes: u64,
}

impl HostTimer {
    fn new(clock: Arc<Virtual>, host: Host) -> Self {
        let changed = Box::pin(host.changed());
        let changes = host.changes();
        Self {
            due: host.timer(clock.now()),
            clock,
            host,
            sleeper: None,
            changed,
            changes,
        }
    }

    fn forget(&mut self) {
        if let Some(sleeper) = self.sleeper.take() {
            self.clock.forget(sleeper);
        }
    }

    /// Registers with the virtual clock again.
    fn register(&mut self) {
        self.forget();
        if !self.host.is_suspended() {
            let now = self.clock.now();
            let remaining = self.host.timer(now).duration_until(self.due);
            self.sleeper = Some(self.clock.register(after(now, remaining)));
        }
    }
}

impl Timer for HostTimer {
    fn reset_after(mut self: Pin<&mut Self>, span: SignedDuration) {
        self.due = after(self.host.timer(self.clock.now()), span);
        self.register();
    }
}

impl Future for HostTimer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let is_changed = self.changed.as_mut().poll(cx).is_ready();
            if is_changed {
                self.changed = Box::pin(self.host.changed());
            }
            let changes = self.host.changes();
            if changes != self.changes {
                self.changes = changes;
                self.register();
            }
            if !is_changed {
                break;
            }
        }
        match self.sleeper {
            Some(sleeper) => self.clock.poll(sleeper, cx),
            None => Poll::Pending,
        }
    }
}

impl Drop for HostTimer {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Timestamp {
        "2026-03-06T21:30:00Z".parse().unwrap()
    }

    fn later(seconds: i64) -> Timestamp {
        start() + SignedDuration::from_secs(seconds)
    }

    const HOUR: SignedDuration = SignedDuration::from_hours(1);

    /// When a sleeper wakes that is due in an hour by the clock of a host. `happens` is called
    /// with the host at the 100th second.
    async fn wakes(happens: impl FnOnce(&Host)) -> Timestamp {
        let clock = Clock::stopped_at(start());
        let host = Host::default();
        let own = clock.of_host(host.clone());
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move {
                own.sleep_until(after(own.now(), HOUR)).await;
                clock.now()
            }
        });
        clock.advance_to(later(100)).await;
        happens(&host);
        clock.advance_to(later(1_000)).await;
        host.resume(clock.now());
        clock.advance_to(later(20_000)).await;
        sleeper.await.unwrap()
    }

    #[tokio::test]
    async fn a_sleeper_wakes_at_the_instant_of_a_clock_that_is_not_set() {
        assert_eq!(wakes(|_| {}).await, later(3_600));
    }

    #[tokio::test]
    async fn a_sleeper_wakes_within_half_a_minute_after_its_clock_is_set_forward() {
        let woke = wakes(|host| host.set(HOUR)).await;
        assert_eq!(woke, later(120), "when it is read next");
    }

    #[tokio::test]
    async fn a_sleeper_wakes_when_a_clock_that_was_set_back_shows_the_instant() {
        let woke = wakes(|host| host.set(-HOUR)).await;
        assert_eq!(woke, later(7_200));
    }

    #[tokio::test]
    async fn a_sleeper_wakes_within_half_a_minute_after_its_host_is_resumed() {
        let clock = Clock::stopped_at(start());
        let host = Host::default();
        let own = clock.of_host(host.clone());
        let sleep = own.sleep_until(later(600));
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move {
                sleep.await;
                clock.now()
            }
        });
        clock.advance_to(later(100)).await;
        host.suspend(clock.now());
        clock.advance_to(later(5_000)).await;
        assert!(!sleeper.is_finished(), "the host is suspended");
        host.resume(clock.now());
        clock.advance_to(later(6_000)).await;
        assert_eq!(sleeper.await.unwrap(), later(5_020));
    }

    #[tokio::test]
    async fn a_sleeper_may_wake_early_when_the_clock_is_set_back() {
        let clock = Clock::stopped_at(start());
        let host = Host::default();
        let own = clock.of_host(host.clone());
        let sleep = own.sleep_until_or_set_back(later(3_600));
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move {
                sleep.await;
                clock.now()
            }
        });
        clock.advance_to(later(100)).await;
        host.set(-HOUR);
        clock.advance_to(later(200)).await;
        assert_eq!(sleeper.await.unwrap(), later(120));
    }

    #[tokio::test]
    async fn a_span_does_not_change_when_the_clock_is_set() {
        let clock = Clock::stopped_at(start());
        let host = Host::default();
        let own = clock.of_host(host.clone());
        let sleep = own.sleep(SignedDuration::from_mins(2));
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move {
                sleep.await;
                clock.now()
            }
        });
        tokio::task::yield_now().await;
        host.set(-HOUR);
        clock.advance_to(later(600)).await;
        assert_eq!(sleeper.await.unwrap(), later(120));
    }

    #[tokio::test]
    async fn a_steady_clock_includes_suspensions_and_ignores_settings() {
        let clock = Clock::stopped_at(start());
        let host = Host::default();
        let steady = clock.of_host(host.clone()).steady();
        host.set(-HOUR);
        assert_eq!(steady.now(), start());
        host.suspend(clock.now());
        clock.advance_to(later(600)).await;
        host.resume(clock.now());
        assert_eq!(steady.now(), later(600));
    }
}

//! A clock that is never set.

use std::time::Duration;
#[cfg(not(target_os = "linux"))]
use std::time::Instant;

use jiff::SignedDuration;

/// An instant of the clock that counts from the start of the machine. It includes suspensions if
/// the system has such a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SteadyInstant {
    #[cfg(target_os = "linux")]
    since_boot: Duration,
    #[cfg(not(target_os = "linux"))]
    instant: Instant,
}

impl SteadyInstant {
    #[cfg(target_os = "linux")]
    pub(crate) fn now() -> Self {
        // `Instant` is CLOCK_MONOTONIC, which is stopped while the machine is suspended.
        let since_start = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let since_boot = Duration::try_from(since_start).unwrap_or_default();
        Self { since_boot }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn now() -> Self {
        Self {
            instant: Instant::now(),
        }
    }

    /// How long ago this was.
    pub(crate) fn elapsed(self) -> SignedDuration {
        #[cfg(target_os = "linux")]
        let elapsed = Self::now().since_boot.saturating_sub(self.since_boot);
        #[cfg(not(target_os = "linux"))]
        let elapsed = self.instant.elapsed();
        SignedDuration::try_from(elapsed).unwrap_or(SignedDuration::MAX)
    }
}

/// The CPU time that the calling thread has used. Zero if the system does not tell (Linux does).
pub(crate) fn thread_cpu_time() -> SignedDuration {
    #[cfg(target_os = "linux")]
    {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let used = Duration::try_from(used).unwrap_or_default();
        SignedDuration::try_from(used).unwrap_or(SignedDuration::MAX)
    }
    #[cfg(not(target_os = "linux"))]
    SignedDuration::ZERO
}

//! The jitter of a class: each machine has a fixed part of it, by which its windows open and close
//! later, so that not all machines of the class begin and leave at the same instant.
//!
//! Overrides are not delayed: they are about an instant. Nor is the end of a machine that must be gone
//! by the end of its window. What runs goes on when a jitter is set.

use fivespot_schedule::{Need, Schedule, Steps};
use jiff::{SignedDuration, Timestamp};

use crate::act::memory::after;

/// The delay of the machine with this uid, at most `jitter`. It is the same in every release.
pub(crate) fn delay(jitter: SignedDuration, uid: &str) -> SignedDuration {
    // FNV-1a.
    let hash = uid.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let seconds = u64::try_from(jitter.as_secs()).unwrap_or(0);
    let part = hash % seconds.saturating_add(1);
    SignedDuration::from_secs(i64::try_from(part).unwrap_or(0))
}

/// A schedule whose windows open and close later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delayed<'a> {
    pub(crate) schedule: &'a Schedule,
    pub(crate) delay: SignedDuration,
    /// Whether the machine must be gone by the end of the window, so that only openings are delayed.
    pub(crate) keeps_end: bool,
    /// Whether an object of the machine exists.
    pub(crate) exists: bool,
}

impl Delayed<'_> {
    /// Whether a machine is needed, as [`Schedule::needed`].
    pub(crate) fn needed(&self, now: Timestamp, steps: &Steps) -> Need {
        let own = self.schedule.needed(now, steps);
        let then = after(now, -self.delay);
        let is_overridden = |at| self.schedule.override_at(at).is_some();
        if self.delay.is_zero() || is_overridden(now) || is_overridden(then) {
            return own;
        }
        let later = self.later(self.schedule.needed(then, steps));
        match (self.exists, self.keeps_end) {
            (true, true) => own,
            (true, false) if own.is_needed() && !later.is_needed() => own,
            (true | false, false) => later,
            (false, true) => match (own, later) {
                (Need::Needed { .. }, Need::Needed { .. }) => own,
                (Need::Needed { .. }, Need::NotNeeded { .. }) => later,
                (Need::NotNeeded { .. }, _) => self.later(own),
            },
        }
    }

    /// As [`Schedule::next_need_of`].
    pub(crate) fn next_need_of(
        &self,
        length: SignedDuration,
        from: Timestamp,
        steps: &Steps,
    ) -> Option<Timestamp> {
        let then = after(from, -self.delay);
        let found = self.schedule.next_need_of(length, then, steps)?;
        Some(after(found, self.delay))
    }

    /// The same by the delay later.
    fn later(&self, need: Need) -> Need {
        let later = |at: Option<Timestamp>| at.map(|at| after(at, self.delay));
        match need {
            Need::Needed {
                until,
                window_end,
                known_until,
            } => Need::Needed {
                until: later(until),
                window_end: later(window_end),
                known_until: later(known_until),
            },
            Need::NotNeeded { until, known_until } => Need::NotNeeded {
                until: later(until),
                known_until: later(known_until),
            },
        }
    }
}

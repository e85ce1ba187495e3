//! The jitter of a class: each machine has a fixed part of it, by which its windows open and close
//! later, so that not all machines of the class begin and leave at the same instant.
//!
//! Overrides are not delayed: they are about an instant. Nor is the end of a machine that must be gone
//! by the end of its window. What runs goes on when a jitter is set.

use std::iter;

use fivespot_api::ScheduledMachine;
use fivespot_schedule::{Need, NeededSpan, Schedule, Steps};
use jiff::{SignedDuration, Timestamp};

use crate::MAX_STEPS;
use crate::act::memory::after;
use crate::limits::Span;

/// By how much the windows of a machine open and close later: its part of the jitter of its class. `None`
/// if it has no uid yet, from which that follows; zero if its class has no jitter.
pub fn delay_of(object: &ScheduledMachine) -> Option<SignedDuration> {
    let class = object.spec.class.as_ref();
    let jitter = class.map(|class| class.jitter).filter(|it| !it.is_zero());
    let Some(jitter) = jitter else {
        return Some(SignedDuration::ZERO);
    };
    Some(delay(jitter, object.metadata.uid.as_deref()?))
}

/// The delay of the machine with this uid, at most `jitter`. It is the same in every release.
fn delay(jitter: SignedDuration, uid: &str) -> SignedDuration {
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
pub struct Delayed<'a> {
    /// The schedule, without the delay.
    pub schedule: &'a Schedule,
    /// By how much, at least zero.
    pub delay: SignedDuration,
    /// Whether the machine must be gone by the end of the window, so that only openings are delayed.
    pub keeps_end: bool,
    /// Whether an object of the machine exists.
    pub exists: bool,
}

impl Delayed<'_> {
    /// Whether a machine is needed, as [`Schedule::needed`].
    pub(crate) fn needed(&self, now: Timestamp, steps: &Steps) -> Need {
        if self.delay.is_zero() {
            return self.schedule.needed(now, steps);
        }
        // Each has steps of its own: without any it finds that no machine is needed.
        let needed = |at| {
            let own = Steps::at_most(MAX_STEPS / 8);
            let need = self.schedule.needed(at, &own);
            steps.take(own.taken());
            need
        };
        let own = needed(now);
        let then = after(now, -self.delay);
        let is_overridden = |at| self.schedule.override_at(at).is_some();
        if is_overridden(now) || is_overridden(then) {
            return own;
        }
        let earlier = needed(then);
        let later = self.later(earlier);
        match (self.exists, self.keeps_end) {
            (true, true) => own,
            (true, false) if own.is_needed() && !later.is_needed() => own,
            (true | false, false) => later,
            (false, true) => match (own, later) {
                (Need::Needed { .. }, Need::Needed { .. }) => match earlier.until() {
                    // What it was needed for then is over: this is the next need, which begins later.
                    Some(end) if end <= now => self.later(needed(end)),
                    _ => own,
                },
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

    /// The spans in which a machine is needed that overlap `from..to`, in order; the first one starts
    /// at `from` if it began earlier. A machine that is made for one exists until its end.
    pub fn needed_spans(
        &self,
        from: Timestamp,
        to: Timestamp,
    ) -> impl Iterator<Item = Span> {
        let schedule = self.schedule;
        let own = self.delay.is_zero().then(|| {
            let spans = schedule.needed_spans(from, to);
            spans.map(move |NeededSpan { start, end, .. }| {
                // Another one may follow at once, which begins after `to`.
                let is_open = end.is_some_and(|end| end >= to);
                let need =
                    is_open.then(|| schedule.needed(start, &Steps::at_most(MAX_STEPS)));
                let end = need.map_or(end, |need| need.until().or(need.known_until()));
                Span { start, end }
            })
        });
        let mut at = Some(from).filter(|_| own.is_none());
        let mut delayed = *self;
        delayed.exists &= self.next_with(true, from, to) == Some(from);
        let later = iter::from_fn(move || {
            let start = delayed.next_with(true, at.take()?, to)?;
            delayed.exists = true;
            let end = delayed.next_with(false, start, Timestamp::MAX);
            delayed.exists = false;
            at = end.filter(|end| *end < to);
            Some(Span { start, end })
        });
        own.into_iter().flatten().chain(later)
    }

    /// The first instant from `at` on and before `to` at which a machine is needed, or is not.
    fn next_with(
        &self,
        is_needed: bool,
        mut at: Timestamp,
        to: Timestamp,
    ) -> Option<Timestamp> {
        let overrides = |at| self.schedule.next_override_change(at);
        while at < to {
            let need = self.needed(at, &Steps::at_most(MAX_STEPS));
            if need.is_needed() == is_needed {
                return Some(at);
            }
            let then = after(at, -self.delay);
            let changes = [
                need.until().or(need.known_until()),
                overrides(at),
                overrides(then).map(|then| after(then, self.delay)),
            ];
            at = changes.into_iter().flatten().filter(|it| *it > at).min()?;
        }
        None
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

//! The latest instant that a decision was made for.

use std::sync::{Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};

/// By how much a clock may be set back while decisions still use the latest instant. It is more
/// than the usual corrections of a clock, and an acceptable delay of the next edge.
const CORRECTION: SignedDuration = SignedDuration::from_mins(10);

/// The latest instant that a decision was made for.
///
/// A clock that is set back a little shows instants again that decisions were made for. Until it
/// has caught up, the latest instant is used: otherwise a window that has just opened would
/// close, and open once more. A clock that is set back by more was wrong before, and is accepted.
#[derive(Debug, Default)]
pub struct Monotonic(Mutex<Option<Timestamp>>);

impl Monotonic {
    /// The instant to decide for when the clock shows `now`.
    pub fn at(&self, now: Timestamp) -> Timestamp {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = not_before(now, *latest);
        *latest = Some(at);
        at
    }
}

/// `now`, or the instant on record if a clock that was corrected has not caught up with it yet.
pub fn not_before(now: Timestamp, on_record: Option<Timestamp>) -> Timestamp {
    let ahead = on_record.filter(|then| then.duration_since(now) <= CORRECTION);
    ahead.map_or(now, |then| then.max(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instant_does_not_go_back_while_a_corrected_clock_catches_up() {
        let latest = Monotonic::default();
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let nine = at("2026-03-06T09:00:00Z");
        assert_eq!(latest.at(nine), nine);
        assert_eq!(latest.at(at("2026-03-06T08:58:00Z")), nine);
        assert_eq!(latest.at(at("2026-03-06T08:59:59Z")), nine);
        let later = at("2026-03-06T09:00:01Z");
        assert_eq!(latest.at(later), later);
    }

    #[test]
    fn a_clock_that_was_far_ahead_is_accepted_when_it_is_corrected() {
        let latest = Monotonic::default();
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        latest.at(at("2026-03-06T09:00:00Z"));
        let before = at("2026-03-06T08:49:59Z");
        assert_eq!(latest.at(before), before);
    }
}

//! The changes of a schedule between two instants.

use jiff::{SignedDuration, Timestamp};

use crate::Schedule;
use crate::next_change::HORIZON;
use crate::timeline::Timeline;

/// The changes of a schedule between two instants, in order: the instant, and whether a machine
/// is wanted from then on. Returned by [`Schedule::transitions`].
#[derive(Debug, Clone)]
pub struct Transitions<'s> {
    timeline: Timeline<'s>,
    at: Timestamp,
    to: Timestamp,
}

impl<'s> Transitions<'s> {
    pub(crate) fn new(schedule: &'s Schedule, from: Timestamp, to: Timestamp) -> Self {
        Self {
            timeline: Timeline::new(schedule, None),
            at: from,
            to,
        }
    }
}

impl Iterator for Transitions<'_> {
    type Item = (Timestamp, bool);

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.to {
            let window = self.timeline.window(self.at);
            if let Some(until) = window.until() {
                self.at = until;
                return (until < self.to).then_some((until, !window.is_open()));
            }
            let searched = SignedDuration::from_secs(HORIZON);
            self.at = self.at.checked_add(searched).unwrap_or(self.to);
        }
        None
    }
}

//! The changes of a schedule between two instants.

use jiff::{SignedDuration, Timestamp};

use crate::next_change::HORIZON;
use crate::timeline::Timeline;
use crate::{Schedule, Steps};

/// The changes of a schedule between two instants, in order: the instant, and whether a machine
/// is wanted from then on. Returned by [`Schedule::transitions`].
#[derive(Debug, Clone)]
pub struct Transitions<'s> {
    timeline: Timeline<'s>,
    at: Timestamp,
    to: Timestamp,
}

impl Schedule {
    /// Every change after `from` and before `to`, in order.
    ///
    /// # Example
    /// ```
    /// # use fivespot_schedule::Schedule;
    /// let noon = Schedule::weekly(&["mon"], &["12"], "UTC")?;
    /// let changes = noon.transitions("2026-01-05T00:00:00Z".parse()?, "2026-01-06T00:00:00Z".parse()?);
    /// let changes: Vec<String> = changes.map(|(at, wanted)| format!("{at} {wanted}")).collect();
    /// assert_eq!(changes, ["2026-01-05T12:00:00Z true", "2026-01-05T13:00:00Z false"]);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn transitions(&self, from: Timestamp, to: Timestamp) -> Transitions<'_> {
        Transitions::new(self, from, to, None)
    }

    /// As [`Schedule::transitions`], but ends early when the steps are spent.
    pub fn transitions_within<'s>(
        &'s self,
        from: Timestamp,
        to: Timestamp,
        steps: &'s Steps,
    ) -> Transitions<'s> {
        Transitions::new(self, from, to, Some(steps))
    }
}

impl<'s> Transitions<'s> {
    fn new(
        schedule: &'s Schedule,
        from: Timestamp,
        to: Timestamp,
        steps: Option<&'s Steps>,
    ) -> Self {
        Self {
            timeline: Timeline::new(schedule, steps),
            at: from,
            to,
        }
    }
}

impl Iterator for Transitions<'_> {
    type Item = (Timestamp, bool);

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.to && !self.timeline.is_spent() {
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

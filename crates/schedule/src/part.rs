//! A schedule divided into parts by what decides, also where the state is constant.

use jiff::Timestamp;

use crate::effective::floor;
use crate::timeline::{Segment, Timeline};
use crate::{DecidedBy, Override, OverrideMode, Schedule, Steps};

/// A span of time in which the state of a schedule and what decides it are constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'s> {
    /// The first instant, a whole second.
    pub since: Timestamp,
    /// The first instant after it.
    pub until: Timestamp,
    /// Whether a machine is wanted.
    pub wanted: bool,
    /// What decides that.
    pub decided_by: DecidedBy<'s>,
    /// The override of mode Hold that is in force, if any.
    pub hold: Option<&'s Override>,
}

/// The parts of a schedule between two instants, in order and without gaps. Returned by
/// [`Schedule::parts`].
#[derive(Debug, Clone)]
pub struct Parts<'s> {
    timeline: Timeline<'s>,
    at: i64,
    to: i64,
}

impl Schedule {
    /// The state of the schedule from `from` to `to` and what decides it, clipped at both ends.
    ///
    /// # Example
    /// ```
    /// use fivespot_schedule::{DecidedBy, Override, OverrideMode, Schedule};
    ///
    /// let stop = Override {
    ///     name: "inc-1".to_owned(),
    ///     mode: OverrideMode::Stop,
    ///     start: Some("2026-03-06T10:00:00Z".parse()?),
    ///     end: "2026-03-06T11:00:00Z".parse()?,
    ///     created: None,
    /// };
    /// let office = Schedule::weekly(&["mon-fri"], &["9-17"], "UTC")?.with_overrides(vec![stop]);
    /// let (from, to) = ("2026-03-06T09:30:00Z".parse()?, "2026-03-06T12:00:00Z".parse()?);
    /// let stopped = office.parts(from, to).nth(1).ok_or("three parts")?;
    /// assert!(matches!(stopped.decided_by, DecidedBy::Override(by) if by.name == "inc-1"));
    /// assert_eq!(office.parts(from, to).count(), 3);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn parts(&self, from: Timestamp, to: Timestamp) -> Parts<'_> {
        Parts {
            timeline: Timeline::new(self, None),
            at: floor(from),
            to: floor(to),
        }
    }

    /// As [`Schedule::parts`], but ends early when the steps are spent.
    pub fn parts_within<'s>(
        &'s self,
        from: Timestamp,
        to: Timestamp,
        steps: &'s Steps,
    ) -> Parts<'s> {
        Parts {
            timeline: Timeline::new(self, Some(steps)),
            ..self.parts(from, to)
        }
    }

    /// Since when a machine has been wanted up to `now`, at most since `earliest`. `None` if it
    /// was not wanted, or if the steps do not suffice.
    pub fn wanted_since(
        &self,
        earliest: Timestamp,
        now: Timestamp,
        steps: &Steps,
    ) -> Option<Timestamp> {
        let mut since = None;
        let mut known_until = floor(earliest);
        for part in self.parts_within(earliest, now, steps) {
            since = part.wanted.then(|| since.unwrap_or(part.since));
            known_until = part.until.as_second();
        }
        since.filter(|_| known_until == floor(now))
    }
}

impl<'s> Parts<'s> {
    fn segment(&mut self, at: i64) -> Option<(Segment<'s>, Option<&'s Override>)> {
        let in_force = self.timeline.schedule().overrides.at(at);
        let hold = in_force
            .strongest
            .filter(|it| it.mode == OverrideMode::Hold);
        Some((self.timeline.segment(at)?, hold))
    }
}

impl<'s> Iterator for Parts<'s> {
    type Item = Part<'s>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.to || self.timeline.is_spent() {
            return None;
        }
        let (first, hold) = self.segment(self.at)?;
        let mut end = first.end.min(self.to);
        while end < self.to && !self.timeline.is_spent() {
            let Some((next, next_hold)) = self.segment(end) else {
                break;
            };
            let is_same =
                next.wanted == first.wanted && next.decided_by == first.decided_by;
            if !is_same || next_hold != hold {
                break;
            }
            end = next.end.min(self.to);
        }
        let since = Timestamp::from_second(self.at).ok()?;
        self.at = end;
        Some(Part {
            since,
            until: Timestamp::from_second(end).ok()?,
            wanted: first.wanted,
            decided_by: first.decided_by,
            hold,
        })
    }
}

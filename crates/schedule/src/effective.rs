//! The effective schedule: the first of an override in force, an exception, and the base schedule.

use jiff::Timestamp;

use crate::clock::Clock;
use crate::exception::Exception;
use crate::next_change;
use crate::steps::Steps;
use crate::timeline::{Segment, Timeline};
use crate::{Base, Override, Schedule};

/// What decides at an instant whether a machine is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecidedBy<'s> {
    /// The days and hours, the windows or the cron expression.
    Base,
    /// An exception, on one of its dates.
    Exception(&'s Exception),
    /// An override of mode Run or Stop that is in force.
    Override(&'s Override),
}

impl DecidedBy<'_> {
    fn rank(self) -> u8 {
        match self {
            Self::Base => 0,
            Self::Exception(_) => 1,
            Self::Override(_) => 2,
        }
    }
}

/// Why the state of a schedule changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause<'s> {
    /// A window of that name starts or ends.
    Window(&'s str),
    /// A window that a cron expression opens starts or ends.
    Cron,
    /// A listed hour of a listed day starts or ends.
    Lists,
    /// The dates of the exception of that name start or end.
    Exception(&'s str),
    /// The override of that name starts or ends.
    Override(&'s str),
}

impl Cause<'_> {
    /// The cause as a word: `Window`, `Cron`, `Lists`, `Exception` or `Override`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Window(_) => "Window",
            Self::Cron => "Cron",
            Self::Lists => "Lists",
            Self::Exception(_) => "Exception",
            Self::Override(_) => "Override",
        }
    }

    /// The name of the window, exception or override.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Window(name) | Self::Exception(name) | Self::Override(name) => {
                Some(name)
            }
            Self::Cron | Self::Lists => None,
        }
    }
}

impl Schedule {
    /// The override with precedence at `now`; see [`Override::strongest`].
    pub fn override_at(&self, now: Timestamp) -> Option<&Override> {
        self.overrides.at(floor(now)).strongest
    }

    /// When another override has precedence than at `now`, or none any more. `None` if that never
    /// changes.
    pub fn next_override_change(&self, now: Timestamp) -> Option<Timestamp> {
        Timestamp::from_second(self.overrides.at(floor(now)).until).ok()
    }

    /// What decides at `now`. Under [`OverrideMode::Hold`] that is the schedule without
    /// overrides.
    pub fn decided_by(&self, now: Timestamp) -> DecidedBy<'_> {
        let reign = Timeline::new(self, None).reign(floor(now));
        reign.map_or(DecidedBy::Base, |reign| reign.decided_by)
    }

    /// When something else decides than at `now`; `None` if nothing else does within ten years. If
    /// the steps do not suffice, it is an instant before which nothing else does.
    pub fn next_decision(&self, now: Timestamp, steps: &Steps) -> Option<Timestamp> {
        let mut timeline = Timeline::new(self, Some(steps));
        let now = floor(now);
        let first = timeline.reign(now)?;
        let mut end = first.end;
        while end <= next_change::horizon(now) {
            let next = timeline.reign(end)?;
            if next.decided_by != first.decided_by || timeline.is_spent() {
                return Timestamp::from_second(end).ok();
            }
            end = next.end;
        }
        None
    }

    /// Why the state changes at `at`, which must be an instant of [`Schedule::transitions`].
    ///
    /// Of what decides just before `at` and from `at` on, this is the one with the higher
    /// precedence. At equal precedence it is the later one; a closing is attributed to the
    /// window that ends.
    ///
    /// # Example
    /// ```
    /// use fivespot_schedule::{Cause, Schedule, WindowText};
    ///
    /// let night = WindowText {
    ///     name: "night", days: &["mon-fri"], start: "19:00", end: Some("07:30"), duration: None,
    /// };
    /// let schedule = Schedule::windows(&[night], "Europe/Zurich")?;
    /// let opens = "2026-03-06T18:00:00Z".parse()?;
    /// assert_eq!(schedule.cause(opens), Cause::Window("night"));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn cause(&self, at: Timestamp) -> Cause<'_> {
        let at = floor(at);
        let mut timeline = Timeline::new(self, None);
        let before = timeline.segment(at - 1);
        let after = timeline.segment(at);
        let decider = |segment: &Option<Segment<'_>>| {
            segment
                .as_ref()
                .map_or(0, |segment| segment.decided_by.rank())
        };
        let strongest = if decider(&before) > decider(&after) {
            before
        } else {
            after
        };
        match strongest {
            Some(Segment {
                decided_by: DecidedBy::Override(it),
                ..
            }) => Cause::Override(&it.name),
            Some(Segment {
                decided_by: DecidedBy::Exception(it),
                ..
            }) => Cause::Exception(&it.name),
            segment => {
                let opens = segment.is_some_and(|segment| segment.wanted);
                self.cause_in_base(timeline.clock(), at, opens)
            }
        }
    }

    fn cause_in_base(&self, clock: &mut Clock<'_>, at: i64, opens: bool) -> Cause<'_> {
        match &self.base {
            Base::Weekly(_) => Cause::Lists,
            Base::Cron(_) => Cause::Cron,
            Base::Shared(shared) => {
                let at = Timestamp::from_second(at).unwrap_or_default();
                shared.cause(at)
            }
            Base::Windows(windows) => {
                let name = if opens {
                    windows.starting_at(clock, at)
                } else {
                    windows.ending_at(clock, at)
                };
                Cause::Window(name.unwrap_or_default())
            }
        }
    }
}

/// The whole second that contains an instant.
pub(crate) fn floor(instant: Timestamp) -> i64 {
    instant.as_second() - i64::from(instant.subsec_nanosecond() < 0)
}

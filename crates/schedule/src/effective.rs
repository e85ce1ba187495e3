//! The effective schedule: the first of an override in force, an exception, and the base schedule.

use jiff::Timestamp;

use crate::exception::{Exception, ExceptionAction};
use crate::next_change::{self, DAY, State};
use crate::offset_period::OffsetPeriod;
use crate::{Base, Schedule};

/// The effect of an override on a schedule. The strongest mode is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OverrideMode {
    /// A machine is wanted.
    Run,
    /// The schedule is unchanged. The caller ensures that nothing is started or stopped.
    Hold,
    /// No machine is wanted.
    Stop,
}

/// A change of a schedule for a limited time. It takes precedence over exceptions.
///
/// It is in force from its start (inclusive) to its end (exclusive). Fractions of a second are
/// rounded up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The name, unique among those of a schedule.
    pub name: String,
    /// What it does.
    pub mode: OverrideMode,
    /// The start. An override without one has always been in force before its end.
    pub start: Option<Timestamp>,
    /// The end.
    pub end: Timestamp,
    /// When it was created. Only [`Schedule::looking_back`] uses it, because the clock of the
    /// client that wrote it may be ahead.
    pub created: Option<Timestamp>,
}

impl Override {
    fn start_second(&self) -> i64 {
        self.start.map_or(i64::MIN, ceiling)
    }

    fn end_second(&self) -> i64 {
        ceiling(self.end)
    }

    fn is_in_force(&self, at: i64) -> bool {
        self.start_second() <= at && at < self.end_second()
    }

    /// The override with precedence at `now`. Of those in force it is the one with the
    /// strongest mode (Stop, Hold, Run), then with the latest end, then with the first name.
    pub fn strongest(overrides: &[Self], now: Timestamp) -> Option<&Self> {
        Self::strongest_at(overrides, floor(now))
    }

    fn strongest_at(overrides: &[Self], at: i64) -> Option<&Self> {
        let in_force = overrides.iter().filter(|it| it.is_in_force(at));
        in_force.max_by(|one, other| {
            let strength = |it: &Self| (it.mode, it.end);
            strength(one)
                .cmp(&strength(other))
                .then_with(|| other.name.cmp(&one.name))
        })
    }
}

/// The first whole second that is not before an instant.
fn ceiling(instant: Timestamp) -> i64 {
    instant.as_second() + i64::from(instant.subsec_nanosecond() > 0)
}

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

/// A span of time in which the state and what decides it are constant.
pub(crate) struct Segment<'s> {
    pub(crate) wanted: bool,
    pub(crate) decided_by: DecidedBy<'s>,
    /// The first instant after it; later than the horizon if it does not end.
    pub(crate) end: i64,
}

impl Schedule {
    /// The state of the effective schedule.
    pub(crate) fn state(&self, now: i64) -> Option<State> {
        if self.exceptions.is_empty() && self.overrides.is_empty() {
            return self.base.at(&self.zone, now);
        }
        let horizon = next_change::horizon(now);
        let first = self.segment(now)?;
        let mut end = first.end;
        while end <= horizon {
            let next = self.segment(end)?;
            if next.wanted != first.wanted {
                return Some(State {
                    wanted: first.wanted,
                    until: Some(end),
                });
            }
            end = next.end;
        }
        Some(State {
            wanted: first.wanted,
            until: None,
        })
    }

    /// The override with precedence at `now`; see [`Override::strongest`].
    pub fn override_at(&self, now: Timestamp) -> Option<&Override> {
        self.strongest_override(floor(now))
    }

    /// What decides at `now`. Under [`OverrideMode::Hold`] that is the schedule without
    /// overrides.
    pub fn decided_by(&self, now: Timestamp) -> DecidedBy<'_> {
        self.segment(floor(now))
            .map_or(DecidedBy::Base, |segment| segment.decided_by)
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
        let before = self.segment(at - 1);
        let after = self.segment(at);
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
                self.cause_in_base(at, segment.is_some_and(|segment| segment.wanted))
            }
        }
    }

    fn cause_in_base(&self, at: i64, opens: bool) -> Cause<'_> {
        match &self.base {
            Base::Weekly(_) => Cause::Lists,
            Base::Cron(_) => Cause::Cron,
            Base::Windows(windows) => {
                let name = if opens {
                    windows.starting_at(&self.zone, at)
                } else {
                    windows.ending_at(&self.zone, at)
                };
                Cause::Window(name.unwrap_or_default())
            }
        }
    }

    fn strongest_override(&self, at: i64) -> Option<&Override> {
        Override::strongest_at(&self.overrides, at)
    }

    /// The first instant after `at` at which an override starts or ends.
    fn next_override_edge(&self, at: i64) -> i64 {
        let overrides = self.overrides.iter();
        let edges = overrides.flat_map(|it| [it.start_second(), it.end_second()]);
        edges.filter(|edge| *edge > at).min().unwrap_or(i64::MAX)
    }

    pub(crate) fn segment(&self, at: i64) -> Option<Segment<'_>> {
        let edge = self.next_override_edge(at);
        if let Some(strongest) = self.strongest_override(at)
            && strongest.mode != OverrideMode::Hold
        {
            return Some(Segment {
                wanted: strongest.mode == OverrideMode::Run,
                decided_by: DecidedBy::Override(strongest),
                end: edge,
            });
        }
        let mut segment = self.segment_without_overrides(at)?;
        segment.end = segment.end.min(edge);
        Some(segment)
    }

    fn segment_without_overrides(&self, at: i64) -> Option<Segment<'_>> {
        let mut limit = i64::MAX;
        if !self.exceptions.is_empty() {
            let period = OffsetPeriod::around(&self.zone, at)?;
            let day = period.local(at).div_euclid(DAY);
            let midnight = |day: i64| period.instant(day.saturating_mul(DAY));
            let mut exceptions = self.exceptions.iter();
            if let Some(exception) = exceptions.find(|it| it.dates.contains_day(day)) {
                return Some(Segment {
                    wanted: exception.action == ExceptionAction::Run,
                    decided_by: DecidedBy::Exception(exception),
                    end: midnight(day + 1).min(period.end),
                });
            }
            let exceptions = self.exceptions.iter();
            let next = exceptions
                .filter_map(|it| it.dates.first_day_from(day + 1))
                .min();
            // If the clocks are set back over midnight, a date may occur twice.
            limit = next.map_or(period.end, |day| midnight(day).min(period.end));
        }
        let state = self.base.at(&self.zone, at)?;
        Some(Segment {
            wanted: state.wanted,
            decided_by: DecidedBy::Base,
            end: state.until.unwrap_or(i64::MAX).min(limit),
        })
    }
}

/// The whole second that contains an instant.
pub(crate) fn floor(instant: Timestamp) -> i64 {
    instant.as_second() - i64::from(instant.subsec_nanosecond() < 0)
}

//! The effective schedule, read forward from one instant: what was evaluated is kept until it is
//! passed.

use jiff::Timestamp;

use crate::clock::Clock;
use crate::effective::floor;
use crate::exception::{ExceptionAction, Run};
use crate::next_change::{self, DAY, State};
use crate::{Dates, DecidedBy, OverrideMode, Schedule, Steps, Window};

/// Dates that never come.
const NEVER: Run = Run {
    first: i64::MAX,
    last: i64::MAX,
};

/// A span of time in which the state and what decides it are constant.
pub(crate) struct Segment<'s> {
    pub(crate) wanted: bool,
    pub(crate) decided_by: DecidedBy<'s>,
    /// An instant after it. The next segment may be the same.
    pub(crate) end: i64,
}

/// A span of time in which the same rule decides.
pub(crate) struct Reign<'s> {
    pub(crate) decided_by: DecidedBy<'s>,
    /// An instant after it. The same rule may go on.
    pub(crate) end: i64,
}

/// Reads a schedule. The instants of its queries do not decrease, or what was kept is evaluated
/// again.
#[derive(Debug, Clone)]
pub(crate) struct Timeline<'s> {
    schedule: &'s Schedule,
    steps: Option<&'s Steps>,
    clock: Clock<'s>,
    /// The next listed dates of each exception.
    dates: Vec<NextDates>,
    /// The next dates of every year.
    of_years: NextDates,
    /// The place of the exception that has them.
    of_years_place: usize,
    base: Option<KnownBase>,
    stopped_at: Option<i64>,
}

/// The first dates of an exception that are not before a day.
#[derive(Debug, Clone, Copy)]
struct NextDates {
    from: i64,
    run: Run,
}

impl NextDates {
    fn listed(dates: &Dates, day: i64) -> Self {
        Self {
            from: day,
            run: dates.listed_run_from(day).unwrap_or(NEVER),
        }
    }

    /// Whether they are the next ones on a day as well.
    fn contains(&self, day: i64) -> bool {
        self.from <= day && day <= self.run.last
    }
}

/// The state of the base schedule from one instant to another.
#[derive(Debug, Clone, Copy)]
struct KnownBase {
    from: i64,
    to: i64,
    state: State,
}

impl<'s> Timeline<'s> {
    /// Reads `schedule` until the steps are spent, if there is a limit.
    pub(crate) fn new(schedule: &'s Schedule, steps: Option<&'s Steps>) -> Self {
        let unread = NextDates {
            from: i64::MAX,
            run: NEVER,
        };
        Self {
            schedule,
            steps,
            clock: Clock::new(&schedule.zone),
            dates: vec![unread; schedule.exceptions.all().len()],
            of_years: unread,
            of_years_place: 0,
            base: None,
            stopped_at: None,
        }
    }

    pub(crate) fn schedule(&self) -> &'s Schedule {
        self.schedule
    }

    pub(crate) fn clock(&mut self) -> &mut Clock<'s> {
        &mut self.clock
    }

    /// Whether the steps are spent.
    pub(crate) fn is_spent(&mut self) -> bool {
        self.steps.is_some_and(|steps| {
            steps.take(self.clock.take_steps());
            steps.are_spent()
        })
    }

    /// How far the state was found constant, if the last search for its end was stopped because
    /// the steps are spent.
    pub(crate) fn stopped_at(&self) -> Option<i64> {
        self.stopped_at
    }

    /// The state at an instant.
    pub(crate) fn window(&mut self, now: Timestamp) -> Window {
        let state = self.state(floor(now));
        let State { wanted, until } = state.unwrap_or(State::UNKNOWN);
        let until = until.and_then(|until| Timestamp::from_second(until).ok());
        if wanted {
            Window::Open { until }
        } else {
            Window::Closed { until }
        }
    }

    /// The state at an instant, in seconds.
    pub(crate) fn state(&mut self, now: i64) -> Option<State> {
        self.stopped_at = None;
        if self.schedule.exceptions.all().is_empty() && self.schedule.overrides.are_none()
        {
            return self.base_state(now);
        }
        let horizon = next_change::horizon(now);
        let first = self.segment(now)?;
        let mut state = State {
            wanted: first.wanted,
            until: None,
        };
        let mut end = first.end;
        while end <= horizon {
            if self.is_spent() {
                self.stopped_at = Some(end);
                break;
            }
            let next = self.segment(end)?;
            if next.wanted != first.wanted {
                state.until = Some(end);
                break;
            }
            end = next.end;
        }
        Some(state)
    }

    /// The state of the base schedule, with the horizon of `at`.
    fn base_state(&mut self, at: i64) -> Option<State> {
        let known = self.base_at(at)?;
        if known.state.until.is_none() && known.from < at {
            self.base = None;
            return Some(self.base_at(at)?.state);
        }
        Some(known.state)
    }

    fn base_at(&mut self, at: i64) -> Option<KnownBase> {
        if let Some(known) = self.base
            && known.from <= at
            && at < known.to
        {
            return Some(known);
        }
        let state = self.schedule.base.at(&mut self.clock, at)?;
        let horizon = next_change::horizon(at);
        let known = KnownBase {
            from: at,
            to: state.until.unwrap_or(horizon.saturating_add(1)),
            state,
        };
        self.base = Some(known);
        Some(known)
    }

    /// What decides at an instant.
    pub(crate) fn reign(&mut self, at: i64) -> Option<Reign<'s>> {
        self.clock.count(3);
        let in_force = self.schedule.overrides.at(at);
        let decider = in_force
            .strongest
            .filter(|it| it.mode != OverrideMode::Hold);
        if let Some(strongest) = decider {
            return Some(Reign {
                decided_by: DecidedBy::Override(strongest),
                end: in_force.until,
            });
        }
        let mut reign = Reign {
            decided_by: DecidedBy::Base,
            end: in_force.until,
        };
        if self.schedule.exceptions.all().is_empty() {
            return Some(reign);
        }
        let period = self.clock.period(at)?;
        let day = period.local(at).div_euclid(DAY);
        let time_of_day = period.local(at).rem_euclid(DAY);
        // When an exception begins to apply today.
        let mut begins: Option<i64> = None;
        let of_years = self.of_years(day);
        let is_of_years = of_years.first <= day;
        let mut until = if is_of_years {
            of_years.last.saturating_add(1)
        } else {
            of_years.first
        };
        let exceptions = self.schedule.exceptions.all().iter().zip(&mut self.dates);
        for (place, (exception, next)) in exceptions.enumerate() {
            if !next.contains(day) {
                self.clock.count(1);
                *next = NextDates::listed(&exception.dates, day);
            }
            let is_listed = next.run.first <= day;
            let is_due = time_of_day >= exception.action.begins();
            if is_listed && is_due || is_of_years && place == self.of_years_place {
                reign.decided_by = DecidedBy::Exception(exception);
            }
            if is_listed && exception.action.is_partial() {
                until = until.min(day.saturating_add(1));
            }
            if is_listed && !is_due {
                let earliest = begins.unwrap_or(i64::MAX);
                begins = Some(earliest.min(exception.action.begins()));
            }
            if is_listed {
                until = until.min(next.run.last.saturating_add(1));
            } else {
                until = until.min(next.run.first);
            }
            if reign.decided_by != DecidedBy::Base {
                break;
            }
        }
        // If the clocks are set back over midnight, a date may occur twice.
        let day_after = period.local(period.end).div_euclid(DAY) + 1;
        let midnight = period.instant(until.min(day_after) * DAY);
        reign.end = reign.end.min(midnight).min(period.end);
        if let Some(begins) = begins {
            reign.end = reign.end.min(period.instant(day * DAY + begins));
        }
        Some(reign)
    }

    /// The first dates of every year that are not before a day.
    fn of_years(&mut self, day: i64) -> Run {
        if !self.of_years.contains(day) {
            self.clock.count(4);
            let found = self.schedule.exceptions.next_of_every_year(day);
            self.of_years = NextDates {
                from: day,
                run: found.map_or(NEVER, |found| found.run),
            };
            self.of_years_place = found.map_or(0, |found| found.place);
        }
        self.of_years.run
    }

    /// The state at an instant, and what decides it.
    pub(crate) fn segment(&mut self, at: i64) -> Option<Segment<'s>> {
        let Reign { decided_by, end } = self.reign(at)?;
        let (wanted, end) = match decided_by {
            DecidedBy::Override(of) => (of.mode == OverrideMode::Run, end),
            DecidedBy::Exception(of) => (of.action == ExceptionAction::Run, end),
            DecidedBy::Base => {
                let base = self.base_at(at)?;
                (base.state.wanted, end.min(base.to))
            }
        };
        Some(Segment {
            wanted,
            decided_by,
            end,
        })
    }
}

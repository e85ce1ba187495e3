//! The search for spans in which a machine is needed.
//!
//! It goes from window to window, except where many windows in a row have the same result: there
//! it continues behind them.

use crate::clock::OFFSET_MARGIN;
use crate::next_change::{CronWindows, DAY, HORIZON};
use crate::timeline::Timeline;
use crate::{Base, DecidedBy, Schedule, Steps};

/// A window of the effective schedule, extended by the lead time and shortened by the early
/// end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) start: i64,
    pub(crate) end: Option<i64>,
    /// The end of the last window in it.
    pub(crate) window_end: Option<i64>,
    /// How far it lasts at least, if the steps did not suffice to find the end.
    pub(crate) known_until: Option<i64>,
}

/// A window of the effective schedule.
#[derive(Debug, Clone, Copy)]
struct OpenTime {
    /// `None` if it was open at the start of the search.
    opens: Option<i64>,
    closes: Option<i64>,
    /// How far it is open at least, if the steps did not suffice to find the end.
    open_until: Option<i64>,
}

/// A search for spans.
#[derive(Debug, Clone)]
pub(crate) struct Spans<'s> {
    timeline: Timeline<'s>,
    from: i64,
    /// Where the search continues.
    at: Option<i64>,
    /// A span that was found and belongs to none before it.
    found: Option<Span>,
    /// Up to where all windows were found, if the steps did not suffice for the next one.
    stopped_at: Option<i64>,
    /// The firings with windows that are as long as the gap to the next firing may be at most.
    reaching: Option<CronWindows>,
}

/// Where a search continues.
#[derive(Debug, Clone, Copy)]
enum Skipped {
    /// At the end of the last window.
    Nothing,
    /// At the start of a later window. It belongs to the same span.
    ToWindow,
    /// At the end of a later window, which belongs to the same span.
    ToEnd(i64),
}

/// A time in which the base schedule decides, in one offset.
#[derive(Debug, Clone, Copy)]
struct Calm {
    /// The end of a window. All windows since then had the same result.
    since: i64,
    /// How far the same rule decides and the offset is the same.
    until: i64,
}

impl<'s> Spans<'s> {
    pub(crate) fn new(
        schedule: &'s Schedule,
        from: i64,
        steps: Option<&'s Steps>,
    ) -> Self {
        Self {
            timeline: Timeline::new(schedule, steps),
            from,
            at: Some(from),
            found: None,
            stopped_at: None,
            reaching: reaching(schedule),
        }
    }

    fn lead_time(&self) -> i64 {
        self.timeline.schedule().lead_time.as_secs()
    }

    /// Before which instant no further span begins, if the steps did not suffice.
    pub(crate) fn none_before(&self) -> Option<i64> {
        let stopped_at = self.stopped_at?;
        Some(stopped_at.saturating_sub(self.lead_time()))
    }

    /// A span with all that follow and touch it, unless it ends at `enough` or later: the rest of
    /// it is not searched for.
    pub(crate) fn joined(&mut self, mut span: Span, enough: i64) -> Span {
        let mut calm = None;
        while let Some(end) = span.end.filter(|end| *end < enough) {
            let skipped = self.skip_adjacent(&mut calm);
            if let Skipped::ToEnd(closes) = skipped {
                span.end = Some(self.needed_until(closes));
                span.window_end = Some(closes);
                continue;
            }
            let is_adjacent = matches!(skipped, Skipped::ToWindow);
            match self.next_span() {
                Some(next) if is_adjacent || next.start <= end => {
                    span = Span {
                        start: span.start,
                        ..next
                    };
                }
                Some(next) => {
                    self.found = Some(next);
                    break;
                }
                None => {
                    // A window that was not found may continue the span.
                    let is_near = self.none_before().is_some_and(|before| before <= end);
                    if is_adjacent || is_near {
                        span = Span {
                            start: span.start,
                            end: None,
                            window_end: None,
                            known_until: Some(end),
                        };
                    }
                    break;
                }
            }
        }
        // What begins later than is searched for may continue the span.
        let horizon = self.from.saturating_add(HORIZON);
        if span.end.is_some_and(|end| end > horizon) {
            span.end = None;
            span.window_end = None;
        }
        span
    }

    /// When the need for a window ends.
    fn needed_until(&self, closes: i64) -> i64 {
        closes.saturating_sub(self.timeline.schedule().early_end.as_secs())
    }

    /// The span of the next window that is longer than the early end.
    pub(crate) fn next_span(&mut self) -> Option<Span> {
        if let Some(found) = self.found.take() {
            return Some(found);
        }
        let mut calm = None;
        loop {
            let window = self.next_window()?;
            let since = window.opens.unwrap_or(self.from);
            let start = window
                .opens
                .map_or(i64::MIN, |opens| opens.saturating_sub(self.lead_time()));
            let span = Span {
                start,
                end: window.closes.map(|closes| self.needed_until(closes)),
                window_end: window.closes,
                known_until: window.open_until.map(|until| self.needed_until(until)),
            };
            if span.known_until.is_some_and(|until| until <= since) {
                // Whether the window is long enough is not known.
                self.stopped_at = Some(since);
                return None;
            }
            if span.end.is_none_or(|end| end > since) {
                return Some(span);
            }
            self.skip_short(&mut calm);
        }
    }

    /// The next window of the effective schedule.
    fn next_window(&mut self) -> Option<OpenTime> {
        let at = self.at.take()?;
        if self.timeline.is_spent() {
            self.stopped_at = Some(at);
            return None;
        }
        let mut state = self.timeline.state(at)?;
        let mut opens = (at > self.from).then_some(at);
        if !state.wanted {
            let last = self.last_opening();
            self.stopped_at = self.timeline.stopped_at().filter(|at| *at <= last);
            opens = Some(state.until.filter(|opens| *opens <= last)?);
            state = self.timeline.state(opens?)?;
        }
        let open_until = self.timeline.stopped_at();
        self.stopped_at = open_until;
        self.at = state.until;
        Some(OpenTime {
            opens,
            closes: state.until,
            open_until,
        })
    }

    /// Continues later if windows that follow each other are certain to belong to one span.
    fn skip_adjacent(&mut self, calm: &mut Option<Calm>) -> Skipped {
        let Some((at, limit)) = self.calm_until().filter(|_| self.found.is_none()) else {
            return Skipped::Nothing;
        };
        let Base::Cron(windows) = &self.timeline.schedule().base else {
            return match self.skip_weeks(calm, at, limit) {
                Some(closes) => Skipped::ToEnd(closes),
                None => Skipped::Nothing,
            };
        };
        let Some(reaching) = &self.reaching else {
            return Skipped::Nothing;
        };
        let length = windows.duration().as_secs();
        let last = limit.min(self.last_opening()) - length;
        let reached = at.saturating_add(reaching.duration().as_secs() - length);
        let clock = self.timeline.clock();
        let first = windows.first_from(clock, at, last.min(reached));
        let found = first.and_then(|first| reaching.last_adjacent(clock, first, last));
        match found {
            Some(firing) => {
                self.at = Some(firing);
                Skipped::ToWindow
            }
            None => Skipped::Nothing,
        }
    }

    /// After a window that was too short, continues behind others that are certain to be.
    fn skip_short(&mut self, calm: &mut Option<Calm>) {
        let Some((at, limit)) = self.calm_until() else {
            return;
        };
        let schedule = self.timeline.schedule();
        let Base::Cron(windows) = &schedule.base else {
            self.skip_weeks(calm, at, limit);
            return;
        };
        let length = windows.duration().as_secs();
        if windows.are_apart() && windows.duration() <= schedule.early_end {
            let last = limit.min(self.last_opening()) - length - 1;
            let firing = windows.last_in_period(self.timeline.clock(), at, last);
            self.at = firing.map(|firing| firing + length).or(self.at);
        }
    }

    /// Continues some weeks later, at the returned instant, if a week of windows had the same
    /// result: for schedules that repeat every week. A window ends at `at`.
    fn skip_weeks(
        &mut self,
        calm: &mut Option<Calm>,
        at: i64,
        limit: i64,
    ) -> Option<i64> {
        const WEEK: i64 = 7 * DAY;
        if matches!(self.timeline.schedule().base, Base::Shared(_)) {
            // Its exceptions are not known here.
            return None;
        }
        let period = self.timeline.clock().period(at)?;
        let steady = calm.get_or_insert(Calm {
            since: at,
            until: limit.min(period.end - OFFSET_MARGIN),
        });
        if steady.until <= at || steady.since < period.start + OFFSET_MARGIN {
            *calm = None;
            return None;
        }
        let weeks = (steady.until.min(self.last_opening()) - at).div_euclid(WEEK);
        if at < steady.since + WEEK || weeks <= 0 {
            return None;
        }
        *calm = None;
        self.at = Some(at + weeks * WEEK);
        self.at
    }

    /// The end of the last window, and how far the base schedule decides from then on; `None` if
    /// it does not.
    fn calm_until(&mut self) -> Option<(i64, i64)> {
        let at = self.at?;
        let reign = self.timeline.reign(at)?;
        (reign.decided_by == DecidedBy::Base).then_some((at, reign.end))
    }

    /// The last opening that is searched for: its span may start up to ten years after the
    /// start of the search.
    fn last_opening(&self) -> i64 {
        let searched = self.from.saturating_add(HORIZON);
        searched.saturating_add(self.lead_time())
    }
}

/// The firings of a schedule with windows that reach as far as the next window may be away to
/// belong to the same span. `None` if there is no such distance, or if windows may be too short.
fn reaching(schedule: &Schedule) -> Option<CronWindows> {
    let Base::Cron(windows) = &schedule.base else {
        return None;
    };
    let tolerance = schedule.lead_time.as_secs() - schedule.early_end.as_secs();
    let is_long = windows.duration() > schedule.early_end;
    (tolerance > 0 && is_long).then(|| windows.lengthened(tolerance))
}

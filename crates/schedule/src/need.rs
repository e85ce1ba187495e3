//! When a machine is needed: from a lead time before it is wanted, to some time before it is no
//! longer wanted.

use jiff::Timestamp;

use crate::Schedule;
use crate::effective::floor;
use crate::next_change::{HORIZON, State};

/// The maximum number of windows that the search for one needed span inspects.
///
/// Only continuous windows of a few minutes reach this limit. The next query finds the windows
/// after it.
const MAX_WINDOWS: usize = 20_000;

/// Whether a machine is needed at an instant, and when that changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It is needed.
    Needed {
        /// The first later instant at which it is not needed; `None` if there is none within
        /// ten years.
        until: Option<Timestamp>,
        /// The end of the last window that it is needed for: `until`, or later if machines must
        /// be gone by the end.
        window_end: Option<Timestamp>,
    },
    /// It is not needed.
    NotNeeded {
        /// The first later instant at which it is needed; `None` if there is none within ten
        /// years.
        until: Option<Timestamp>,
    },
}

impl Need {
    /// Whether a machine is needed.
    pub fn is_needed(self) -> bool {
        matches!(self, Self::Needed { .. })
    }

    /// When that changes; `None` if it does not within ten years.
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::Needed { until, .. } | Self::NotNeeded { until } => until,
        }
    }
}

/// A span of time in which a machine is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeededSpan {
    /// The first instant, not before the start of the query.
    pub start: Timestamp,
    /// The first instant after it; `None` if there is none within ten years.
    pub end: Option<Timestamp>,
    /// The end of the last window that it is needed for.
    pub window_end: Option<Timestamp>,
}

/// The spans in which a machine is needed, in order. Returned by [`Schedule::needed_spans`].
#[derive(Debug, Clone)]
pub struct NeededSpans<'s> {
    spans: Spans<'s>,
    from: i64,
    to: i64,
}

impl Iterator for NeededSpans<'_> {
    type Item = NeededSpan;

    fn next(&mut self) -> Option<NeededSpan> {
        let span = self.spans.next_joined()?;
        let start = span.start.max(self.from);
        (start < self.to).then_some(NeededSpan {
            start: Timestamp::from_second(start).ok()?,
            end: instant(span.end),
            window_end: instant(span.window_end),
        })
    }
}

fn instant(second: Option<i64>) -> Option<Timestamp> {
    second.and_then(|second| Timestamp::from_second(second).ok())
}

impl Schedule {
    /// Whether a machine is needed at `now`. It is needed from the lead time before each
    /// opening of the effective schedule until the early end before its closing; see
    /// [`Schedule::with_lead_time`] and [`Schedule::with_early_end`].
    ///
    /// Adjacent or overlapping spans are merged. A window that is not longer than the early end
    /// needs no machine. `until` is exact, unless more than 20,000 windows would have to be
    /// inspected: then it is an instant up to which the result is constant.
    ///
    /// # Example
    /// ```
    /// use fivespot_schedule::{Duration, Need, Schedule};
    ///
    /// let office = Schedule::weekly(&["mon-fri"], &["9-17"], "UTC")?
    ///     .with_lead_time(Duration::minutes(10))
    ///     .with_early_end(Duration::minutes(5));
    /// let needed = office.needed("2026-03-06T08:50:00Z".parse()?);
    /// assert_eq!(needed, Need::Needed {
    ///     until: Some("2026-03-06T17:55:00Z".parse()?),
    ///     window_end: Some("2026-03-06T18:00:00Z".parse()?),
    /// });
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn needed(&self, now: Timestamp) -> Need {
        let now = floor(now);
        let mut spans = Spans::new(self, now);
        match spans.next_joined() {
            Some(span) if span.start <= now => Need::Needed {
                until: instant(span.end),
                window_end: instant(span.window_end),
            },
            span => Need::NotNeeded {
                until: instant(span.map(|span| span.start).or(spans.stopped_at)),
            },
        }
    }

    /// The spans in which a machine is needed that overlap `from..to`, in order. The first one
    /// starts at `from` if it began earlier; the last one may end after `to`.
    pub fn needed_spans(&self, from: Timestamp, to: Timestamp) -> NeededSpans<'_> {
        let (from, to) = (floor(from), floor(to));
        NeededSpans {
            spans: Spans::new(self, from),
            from,
            to,
        }
    }
}

/// A window of the effective schedule, extended by the lead time and shortened by the early
/// end.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: i64,
    end: Option<i64>,
    window_end: Option<i64>,
}

#[derive(Debug, Clone)]
struct Spans<'s> {
    schedule: &'s Schedule,
    /// Spans that end at or before this instant are skipped.
    from: i64,
    /// Where the search for the next window continues; `None` if there are no more windows.
    at: Option<i64>,
    /// A span that was found and is not adjacent to the previous one.
    found: Option<Span>,
    /// Where the last search stopped at its limit.
    stopped_at: Option<i64>,
}

impl<'s> Spans<'s> {
    fn new(schedule: &'s Schedule, from: i64) -> Self {
        Self {
            schedule,
            from,
            at: Some(from),
            found: None,
            stopped_at: None,
        }
    }

    /// The next span, merged with all adjacent ones.
    fn next_joined(&mut self) -> Option<Span> {
        let mut remaining = MAX_WINDOWS;
        self.stopped_at = None;
        let mut span = match self.found.take() {
            Some(span) => span,
            None => self.next_span(&mut remaining)?,
        };
        while let Some(end) = span.end {
            let Some(next) = self.next_span(&mut remaining) else {
                break;
            };
            if next.start > end {
                self.found = Some(next);
                break;
            }
            span.end = next.end;
            span.window_end = next.window_end;
        }
        Some(span)
    }

    /// The span of the next window that is longer than the early end. Inspects at most `remaining`
    /// windows.
    fn next_span(&mut self, remaining: &mut usize) -> Option<Span> {
        let lead_time = self.schedule.lead_time.as_secs();
        let early_end = self.schedule.early_end.as_secs();
        while *remaining > 0 {
            *remaining -= 1;
            let (opens, closes) = self.next_window()?;
            let span = Span {
                start: opens.saturating_sub(lead_time),
                end: closes.map(|closes| closes.saturating_sub(early_end)),
                window_end: closes,
            };
            if span.end.is_none_or(|end| end > span.start.max(self.from)) {
                return Some(span);
            }
        }
        self.stopped_at = self.at;
        None
    }

    /// The next window of the effective schedule. A window that is open at first has no start.
    fn next_window(&mut self) -> Option<(i64, Option<i64>)> {
        let at = self.at.take()?;
        let state = self.schedule.state(at)?;
        let (opens, closes) = match state {
            State {
                wanted: true,
                until,
            } => (i64::MIN, until),
            State {
                wanted: false,
                until,
            } => {
                let opens = until.filter(|opens| *opens <= self.last_opening())?;
                (opens, self.schedule.state(opens)?.until)
            }
        };
        self.at = closes;
        Some((opens, closes))
    }

    /// The last opening that is searched for: its span may start up to ten years after the
    /// start of the search.
    fn last_opening(&self) -> i64 {
        let lead_time = self.schedule.lead_time.as_secs();
        self.from.saturating_add(HORIZON).saturating_add(lead_time)
    }
}

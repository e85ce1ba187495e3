//! When a machine is needed: from a lead time before it is wanted, to some time before it is no
//! longer wanted.

use jiff::{SignedDuration, Timestamp};

use crate::effective::floor;
use crate::span_search::Spans;
use crate::{Schedule, Steps};

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
        /// If the steps did not suffice to find the end: the result stays the same at least until
        /// then, and `until` and `window_end` are `None`.
        known_until: Option<Timestamp>,
    },
    /// It is not needed.
    NotNeeded {
        /// The first later instant at which it is needed; `None` if there is none within ten
        /// years.
        until: Option<Timestamp>,
        /// If the steps did not suffice to find that: the result stays the same at least until
        /// then, and `until` is `None`. Nothing is known if it is not in the future.
        known_until: Option<Timestamp>,
    },
}

impl Need {
    /// Whether a machine is needed.
    pub fn is_needed(self) -> bool {
        matches!(self, Self::Needed { .. })
    }

    /// When that changes; `None` if it does not within ten years, or if the steps did not suffice.
    pub fn until(self) -> Option<Timestamp> {
        match self {
            Self::Needed { until, .. } | Self::NotNeeded { until, .. } => until,
        }
    }

    /// How long it stays the same at least, if the steps did not suffice to find the end.
    pub fn known_until(self) -> Option<Timestamp> {
        match self {
            Self::Needed { known_until, .. } | Self::NotNeeded { known_until, .. } => {
                known_until
            }
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
        let first = self.spans.next_span().filter(|span| span.start < self.to)?;
        let span = self.spans.joined(first, self.to);
        if span.end.is_none_or(|end| end >= self.to) {
            // All that follow and begin before `to` are part of it.
            self.to = i64::MIN;
        }
        Some(NeededSpan {
            start: Timestamp::from_second(span.start.max(self.from)).ok()?,
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
    /// needs no machine, whatever the lead time. `until` is exact, unless the steps do not
    /// suffice: then [`Need::known_until`] says how far the result is known.
    ///
    /// # Example
    /// ```
    /// use fivespot_schedule::{Duration, Need, Schedule, Steps};
    ///
    /// let office = Schedule::weekly(&["mon-fri"], &["9-17"], "UTC")?
    ///     .with_lead_time(Duration::minutes(10))
    ///     .with_early_end(Duration::minutes(5));
    /// let needed = office.needed("2026-03-06T08:50:00Z".parse()?, &Steps::at_most(1_000));
    /// assert_eq!(needed, Need::Needed {
    ///     until: Some("2026-03-06T17:55:00Z".parse()?),
    ///     window_end: Some("2026-03-06T18:00:00Z".parse()?),
    ///     known_until: None,
    /// });
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn needed(&self, now: Timestamp, steps: &Steps) -> Need {
        let now = floor(now);
        let mut spans = Spans::new(self, now, Some(steps));
        match spans.next_span() {
            Some(first) if first.start <= now => {
                let span = spans.joined(first, i64::MAX);
                Need::Needed {
                    until: instant(span.end),
                    window_end: instant(span.window_end),
                    known_until: instant(span.known_until),
                }
            }
            Some(first) => Need::NotNeeded {
                until: instant(Some(first.start)),
                known_until: None,
            },
            None => Need::NotNeeded {
                until: None,
                known_until: instant(spans.none_before()),
            },
        }
    }

    /// The first instant after `from` from which on a machine is needed for at least `length`,
    /// and before which it is not needed. `None` if there is none within ten years, or none as
    /// far as the steps suffice: ask again later.
    pub fn next_need_of(
        &self,
        length: SignedDuration,
        from: Timestamp,
        steps: &Steps,
    ) -> Option<Timestamp> {
        let from = floor(from);
        let mut spans = Spans::new(self, from, Some(steps));
        while let Some(first) = spans.next_span() {
            let enough = if first.start > from {
                first.start.saturating_add(length.as_secs())
            } else {
                i64::MAX
            };
            let span = spans.joined(first, enough);
            let end = span.end.or(span.known_until);
            if span.start > from && end.is_none_or(|end| end >= enough) {
                return Timestamp::from_second(span.start).ok();
            }
        }
        None
    }

    /// The spans in which a machine is needed that overlap `from..to`, in order. The first one
    /// starts at `from` if it began earlier. The last one may end after `to`, and then may end
    /// later than said.
    pub fn needed_spans(&self, from: Timestamp, to: Timestamp) -> NeededSpans<'_> {
        let (from, to) = (floor(from), floor(to));
        NeededSpans {
            spans: Spans::new(self, from, None),
            from,
            to,
        }
    }
}

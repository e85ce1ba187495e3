//! The time range of a preview: `--from` and `--to`.

use fivespot_api::time::whole_seconds;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::Failure;
use crate::time::InstantOrDate;

/// The length of a preview unless --to is given.
const DEFAULT_LENGTH: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Ten years, including leap days.
const MAX_LENGTH: SignedDuration = SignedDuration::from_hours(3_653 * 24);

/// The requested time range.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) from: Option<InstantOrDate>,
    pub(crate) to: Option<InstantOrDate>,
    /// The default start.
    pub(crate) now: Timestamp,
    /// The time zone of dates. The schedule's if absent.
    pub(crate) zone: Option<TimeZone>,
}

impl Range {
    /// The time range for a schedule in `zone`.
    ///
    /// # Errors
    /// The range ends before it begins, or is longer than ten years.
    pub(crate) fn span(&self, zone: &TimeZone) -> Result<Span, Failure> {
        let zone = self.zone.as_ref().unwrap_or(zone);
        let instant = |at: Option<InstantOrDate>| at.map(|at| at.instant_in(zone));
        Span::new(instant(self.from), instant(self.to), self.now)
    }
}

/// The evaluated time range, in whole seconds. `from` is inclusive, `to` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
}

impl Span {
    /// The given span. The default is a week from `now`.
    ///
    /// # Errors
    /// The span ends before it begins, or is longer than ten years.
    pub(crate) fn new(
        from: Option<Timestamp>,
        to: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let from = whole_seconds(from.unwrap_or(now));
        let default = from.checked_add(DEFAULT_LENGTH).unwrap_or(Timestamp::MAX);
        let to = whole_seconds(to.unwrap_or(default));
        if to <= from {
            let why = format!("{to} is not after {from}");
            return Err(Failure::new("--to", why).remedy("give a later time"));
        }
        if from.duration_until(to) > MAX_LENGTH {
            let why = format!("{to} is more than ten years after {from}");
            return Err(Failure::new("--to", why).remedy("give an earlier time"));
        }
        Ok(Self { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp(text: &str) -> Timestamp {
        let instant_or_date: InstantOrDate = text.parse().unwrap();
        instant_or_date.instant_in(&TimeZone::UTC)
    }

    #[test]
    fn the_default_is_a_week_from_now() {
        let now = "2026-03-06T21:30:00.5Z".parse().unwrap();
        let span = Span::new(None, None, now).unwrap();
        assert_eq!(span.from.to_string(), "2026-03-06T21:30:00Z");
        assert_eq!(span.to.to_string(), "2026-03-13T21:30:00Z");
    }

    #[test]
    fn a_span_goes_forward_for_ten_years_at_most() {
        let span = |to| {
            Span::new(
                Some(timestamp("2026-01-01")),
                Some(timestamp(to)),
                Timestamp::UNIX_EPOCH,
            )
        };
        assert!(span("2036-01-01").is_ok());
        assert_eq!(
            span("2026-01-01").unwrap_err().to_string(),
            "--to: 2026-01-01T00:00:00Z is not after 2026-01-01T00:00:00Z; give a later time"
        );
        assert_eq!(
            span("2036-02-01").unwrap_err().to_string(),
            "--to: 2036-02-01T00:00:00Z is more than ten years after 2026-01-01T00:00:00Z; \
             give an earlier time"
        );
    }
}

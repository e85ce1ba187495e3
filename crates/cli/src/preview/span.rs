//! The time range of a preview: `--from` and `--to`.

use std::str::FromStr;

use fivespot_api::time::whole_seconds;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::Failure;

/// The length of a preview unless --to is given.
const DEFAULT_LENGTH: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Ten years, including leap days.
const MAX_LENGTH: SignedDuration = SignedDuration::from_hours(3_653 * 24);

/// A time as users write it: RFC 3339, or a date, which is midnight in some time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstantOrDate {
    /// An instant.
    Instant(Timestamp),
    /// The beginning of a local day.
    Date(Date),
}

impl InstantOrDate {
    /// The instant. A date begins at midnight of `zone`.
    pub(crate) fn instant_in(self, zone: &TimeZone) -> Timestamp {
        match self {
            Self::Instant(at) => at,
            Self::Date(date) => {
                let begins = date.to_zoned(zone.clone());
                begins.map_or(Timestamp::MAX, |at| at.timestamp())
            }
        }
    }
}

impl FromStr for InstantOrDate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let date = || Date::strptime("%Y-%m-%d", text).map(Self::Date);
        text.parse::<Timestamp>()
            .map(Self::Instant)
            .or_else(|_| date())
            .map_err(|_| {
                "expected a time such as 2026-03-08T07:00:00Z, or a date such as 2026-03-08"
                    .to_owned()
            })
    }
}

/// The requested time range.
#[derive(Clone, Debug)]
pub(super) struct Range {
    pub(super) from: Option<InstantOrDate>,
    pub(super) to: Option<InstantOrDate>,
    /// The default start.
    pub(super) now: Timestamp,
    /// The time zone of dates. The schedule's if absent.
    pub(super) zone: Option<TimeZone>,
}

impl Range {
    /// The time range for a schedule in `zone`.
    ///
    /// # Errors
    /// The range ends before it begins, or is longer than ten years.
    pub(super) fn span(&self, zone: &TimeZone) -> Result<Span, Failure> {
        let zone = self.zone.as_ref().unwrap_or(zone);
        let instant = |at: Option<InstantOrDate>| at.map(|at| at.instant_in(zone));
        Span::new(instant(self.from), instant(self.to), self.now)
    }
}

/// The evaluated time range, in whole seconds. `from` is inclusive, `to` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

impl Span {
    /// The given span. The default is a week from `now`.
    ///
    /// # Errors
    /// The span ends before it begins, or is longer than ten years.
    pub(super) fn new(
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
    fn a_date_begins_at_midnight_of_the_zone() {
        let date: InstantOrDate = "2026-03-08".parse().unwrap();
        let zone = TimeZone::get("America/New_York").unwrap();
        assert_eq!(date.instant_in(&zone), timestamp("2026-03-08T05:00:00Z"));
        assert_eq!(
            date.instant_in(&TimeZone::UTC),
            timestamp("2026-03-08T00:00:00Z")
        );
        let instant: InstantOrDate = "2026-03-08T01:30:00+05:45".parse().unwrap();
        assert_eq!(instant.instant_in(&zone), timestamp("2026-03-07T19:45:00Z"));
        for text in ["", "now", "2026-02-30", "2026-03-08T07:00:00", "07:00"] {
            assert!(text.parse::<InstantOrDate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_day_whose_midnight_is_skipped_begins_after_the_gap() {
        let date: InstantOrDate = "2026-03-29".parse().unwrap();
        let zone = TimeZone::get("America/Nuuk").unwrap();
        let begins = date.instant_in(&zone).to_zoned(zone.clone());
        assert_eq!(begins.date().to_string(), "2026-03-29");
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

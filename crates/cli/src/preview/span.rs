//! From when to when: `--from` and `--to`.

use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::Failure;

/// The length of a preview unless --to is given.
const DEFAULT_LENGTH: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Ten years, whatever the leap days in them.
const MAX_LENGTH: SignedDuration = SignedDuration::from_hours(3_653 * 24);

/// An instant as users write it: RFC 3339, or a date, which is its midnight in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(Timestamp);

impl Moment {
    /// The instant.
    pub(crate) fn instant(self) -> Timestamp {
        self.0
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let midnight = |date: Date| date.to_zoned(TimeZone::UTC).map(|at| at.timestamp());
        text.parse::<Timestamp>()
            .or_else(|_| Date::strptime("%Y-%m-%d", text).and_then(midnight))
            .map(Self)
            .map_err(|_| {
                "expected a time such as 2026-03-08T07:00:00Z, or a date such as 2026-03-08"
                    .to_owned()
            })
    }
}

/// The time that is looked at, in whole seconds: `from` belongs to it, `to` does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

impl Span {
    /// The given span; by default a week from `now`.
    ///
    /// # Errors
    /// It ends before it begins, or is longer than ten years.
    pub(super) fn new(
        from: Option<Moment>,
        to: Option<Moment>,
        now: Timestamp,
    ) -> Result<Self, Failure> {
        let whole = |at: Timestamp| Timestamp::from_second(at.as_second()).unwrap_or(at);
        let from = whole(from.map_or(now, |Moment(from)| from));
        let default = from.checked_add(DEFAULT_LENGTH).unwrap_or(Timestamp::MAX);
        let to = whole(to.map_or(default, |Moment(to)| to));
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

    fn moment(text: &str) -> Moment {
        text.parse().unwrap()
    }

    #[test]
    fn a_date_is_its_midnight_in_utc() {
        assert_eq!(moment("2026-03-08"), moment("2026-03-08T00:00:00Z"));
        assert_eq!(
            moment("2026-03-08T01:30:00+05:45"),
            moment("2026-03-07T19:45:00Z")
        );
        for text in ["", "now", "2026-02-30", "2026-03-08T07:00:00", "07:00"] {
            assert!(text.parse::<Moment>().is_err(), "{text}");
        }
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
                Some(moment("2026-01-01")),
                Some(moment(to)),
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

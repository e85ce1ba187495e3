//! Times and durations as users write them in flags.

use std::str::FromStr;

pub(crate) use fivespot_program::duration;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

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
}

//! Local time as periods of one UTC offset, with gaps and folds between them.
//!
//! All instants are whole seconds since 1970-01-01T00:00:00Z. Local times are the same count on
//! the wall clock: the instant plus the offset.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The time between two changes of a zone's offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OffsetPeriod {
    /// The first instant.
    pub(crate) start: i64,
    /// The first instant after it.
    pub(crate) end: i64,
    /// Seconds to add to an instant to get local time.
    pub(crate) offset: i64,
    /// How much local time was skipped at `start`; 0 if the clocks were not put forward.
    pub(crate) skipped: i64,
}

impl OffsetPeriod {
    /// The period that contains `instant`; `None` outside of the years -9999 to 9999.
    pub(crate) fn around(zone: &TimeZone, instant: i64) -> Option<Self> {
        let now = Timestamp::from_second(instant).ok()?;
        let offset = i64::from(zone.to_offset(now).seconds());
        let before = zone.preceding(now).next();
        let mut start = before.map_or(Timestamp::MIN, |change| change.timestamp());
        let mut end = Timestamp::MAX;
        // `preceding` leaves out a change at `now` itself. Just after the last change in a zone's
        // data it applies the rule for later years and may return a change before the actual last
        // one. `following` is always correct.
        for change in zone.following(start) {
            if change.timestamp() > now {
                end = change.timestamp();
                break;
            }
            start = change.timestamp();
        }
        let (start, end) = (start.as_second(), end.as_second());
        let last_of_previous = Timestamp::from_second(start - 1);
        let skipped = last_of_previous.map_or(0, |last| {
            (offset - i64::from(zone.to_offset(last).seconds())).max(0)
        });
        Some(Self {
            start,
            end,
            offset,
            skipped,
        })
    }

    /// The local time at an instant of this period.
    pub(crate) fn local(&self, instant: i64) -> i64 {
        instant + self.offset
    }

    /// The instant at a local time of this period.
    pub(crate) fn instant(&self, local: i64) -> i64 {
        local - self.offset
    }
}

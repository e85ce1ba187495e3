//! Changes of a time zone's offset, which skip or repeat local time.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

/// A change of the offset of a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockChange {
    /// The first instant with the new offset.
    pub at: Timestamp,
    before: Offset,
    after: Offset,
}

impl ClockChange {
    /// The changes of a zone's offset within `from..to`, in order.
    pub fn all(zone: &TimeZone, from: Timestamp, to: Timestamp) -> Vec<Self> {
        let just_before = |at: Timestamp| Timestamp::from_second(at.as_second() - 1);
        let start = just_before(from).unwrap_or(from);
        let mut before = zone.to_offset(start);
        let mut all = Vec::new();
        for change in zone
            .following(start)
            .take_while(|change| change.timestamp() < to)
        {
            let (at, after) = (change.timestamp(), change.offset());
            if after != before {
                all.push(Self { at, before, after });
            }
            before = after;
        }
        all
    }

    /// The earlier of the local times just before and just after the change; its date is the day of
    /// the change.
    pub fn earlier_reading(&self) -> DateTime {
        let (old, new) = self.readings();
        old.min(new)
    }

    /// `clocks go forward from 02:00 to 03:00`, with the dates if they differ.
    pub fn text(&self) -> String {
        let (old, new) = self.readings();
        let way = if new > old { "forward" } else { "back" };
        let form = match (
            old.date() == new.date(),
            old.second() == 0 && new.second() == 0,
        ) {
            (true, true) => "%H:%M",
            (true, false) => "%T",
            (false, _) => "%F %T",
        };
        format!(
            "clocks go {way} from {} to {}",
            old.strftime(form),
            new.strftime(form)
        )
    }

    /// `clocks +1h`, `clocks -30m`: the short form.
    pub fn short_text(&self) -> String {
        let seconds = self.after.seconds() - self.before.seconds();
        let sign = if seconds < 0 { '-' } else { '+' };
        let parts = [
            (seconds.abs() / 3600, 'h'),
            (seconds.abs() / 60 % 60, 'm'),
            (seconds.abs() % 60, 's'),
        ];
        let shown = parts.iter().filter(|(number, _)| *number > 0);
        let shown: Vec<_> = shown
            .map(|(number, unit)| format!("{number}{unit}"))
            .collect();
        format!("clocks {sign}{}", shown.concat())
    }

    fn readings(&self) -> (DateTime, DateTime) {
        (
            self.before.to_datetime(self.at),
            self.after.to_datetime(self.at),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_described_at_length_and_in_short() {
        let from = "2026-03-01T00:00:00Z".parse().unwrap();
        let to = "2026-12-01T00:00:00Z".parse().unwrap();
        let zone = TimeZone::get("America/New_York").unwrap();
        let texts: Vec<_> = ClockChange::all(&zone, from, to)
            .iter()
            .map(|change| (change.text(), change.short_text()))
            .collect();
        let expected = [
            ("clocks go forward from 02:00 to 03:00", "clocks +1h"),
            ("clocks go back from 02:00 to 01:00", "clocks -1h"),
        ];
        let expected = expected.map(|(long, short)| (long.to_owned(), short.to_owned()));
        assert_eq!(texts, expected);
    }
}

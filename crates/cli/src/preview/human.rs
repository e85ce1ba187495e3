//! Instants and durations as text.

use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

/// A change of the clocks: local time is skipped or repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockChange {
    pub(super) at: Timestamp,
    before: Offset,
    after: Offset,
}

impl ClockChange {
    /// The changes of a zone's offset within `from..to`.
    pub(super) fn all(zone: &TimeZone, from: Timestamp, to: Timestamp) -> Vec<Self> {
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

    /// The first of the two readings of the wall clock at the change: where the day belongs.
    pub(super) fn earlier_reading(&self) -> jiff::civil::DateTime {
        self.before
            .to_datetime(self.at)
            .min(self.after.to_datetime(self.at))
    }

    /// `clocks go forward from 02:00 to 03:00`, with dates where they differ.
    pub(super) fn text(&self) -> String {
        let (old, new) = (
            self.before.to_datetime(self.at),
            self.after.to_datetime(self.at),
        );
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
}

/// `Sun 2026-03-08 03:00:00 -04:00`.
pub(super) fn local(at: &Zoned) -> String {
    format!("{} {}", at.strftime("%a %F %T"), offset(at.offset()))
}

/// `-04:00`, with seconds where there are any.
fn offset(offset: Offset) -> String {
    let seconds = offset.seconds();
    let (sign, seconds) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs());
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match seconds {
        0 => format!("{sign}{hours:02}:{minutes:02}"),
        _ => format!("{sign}{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// `45h`, `1h 30m`, `90s`: hours, minutes and seconds, as far as there are any.
pub(super) fn length(seconds: i64) -> String {
    let parts = [
        (seconds / 3600, 'h'),
        (seconds / 60 % 60, 'm'),
        (seconds % 60, 's'),
    ];
    let shown: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect();
    if shown.is_empty() {
        "0s".to_owned()
    } else {
        shown.join(" ")
    }
}

//! Ages in at most two units.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The time from `since` to `now` as Kubernetes prints ages
/// (k8s.io/apimachinery/pkg/util/duration): `90s`, `5m30s`, `3h`, `2d4h`, `400d`, `3y12d`.
///
/// A time at least two seconds ahead is `<invalid>`.
pub(crate) fn human_duration(since: Timestamp, now: Timestamp) -> String {
    let elapsed = now.duration_since(since);
    let seconds = elapsed.as_secs();
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    match seconds {
        ..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two((seconds, MINUTE, "m"), (1, "s")),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two((seconds, HOUR, "h"), (MINUTE, "m")),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two((seconds, DAY, "d"), (HOUR, "h")),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two((seconds, YEAR, "y"), (DAY, "d")),
        252_288_000.. => format!("{}y", seconds / YEAR),
    }
}

/// The whole units of `large`, and the whole units of `small` in the rest, if any.
fn two((seconds, size, unit): (i64, i64, &str), small: (i64, &str)) -> String {
    let whole = seconds / size;
    match seconds % size / small.0 {
        0 => format!("{whole}{unit}"),
        rest => format!("{whole}{unit}{rest}{}", small.1),
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    #[test]
    fn ages_are_printed_with_at_most_two_units() {
        let now: Timestamp = "2026-03-06T12:00:00Z".parse().unwrap();
        let rows = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (600, "10m"),
            (179 * 60, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 59, "3h"),
            (7 * HOUR + 5 * MINUTE, "7h5m"),
            (47 * HOUR, "47h"),
            (2 * DAY + 4 * HOUR, "2d4h"),
            (8 * DAY + 4 * HOUR, "8d"),
            (729 * DAY, "729d"),
            (3 * YEAR + 12 * DAY, "3y12d"),
            (9 * YEAR, "9y"),
        ];
        for (seconds, expected) in rows {
            let since = now - SignedDuration::from_secs(seconds);
            assert_eq!(human_duration(since, now), expected, "{seconds} s");
        }
    }
}

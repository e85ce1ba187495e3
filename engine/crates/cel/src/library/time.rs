//! The components of timestamps and durations.

use super::{Row, Run, member, no_such_overload};
use crate::time::Part;
use crate::{RunError, Value};

macro_rules! of_timestamp {
    ($(($function:literal, $id:literal, $part:ident)),* $(,)?) => {
        &[$(
            member($function, $id, "timestamp -> int", |args| part(args, Part::$part)),
            member(
                $function,
                concat!($id, "_with_tz"),
                "timestamp, string -> int",
                |args| part(args, Part::$part),
            ),
        )*
            member("getHours", "duration_to_hours", "duration -> int", HOURS),
            member("getMinutes", "duration_to_minutes", "duration -> int", MINUTES),
            member("getSeconds", "duration_to_seconds", "duration -> int", SECONDS),
            // The total of milliseconds, as in the API server; the specification returns the
            // remainder.
            member("getMilliseconds", "duration_to_milliseconds", "duration -> int", MILLIS),
        ]
    };
}

pub(super) const ROWS: &[Row] = of_timestamp![
    ("getFullYear", "timestamp_to_year", FullYear),
    ("getMonth", "timestamp_to_month", Month),
    ("getDate", "timestamp_to_day_of_month_1_based", Date),
    ("getDayOfMonth", "timestamp_to_day_of_month", DayOfMonth),
    ("getDayOfWeek", "timestamp_to_day_of_week", DayOfWeek),
    ("getDayOfYear", "timestamp_to_day_of_year", DayOfYear),
    ("getHours", "timestamp_to_hours", Hours),
    ("getMinutes", "timestamp_to_minutes", Minutes),
    ("getSeconds", "timestamp_to_seconds", Seconds),
    ("getMilliseconds", "timestamp_to_milliseconds", Milliseconds),
];

const HOURS: Run = |args| in_units(args, 3_600_000_000_000);
const MINUTES: Run = |args| in_units(args, 60_000_000_000);
const SECONDS: Run = |args| in_units(args, 1_000_000_000);
const MILLIS: Run = |args| in_units(args, 1_000_000);

fn in_units<'v>(args: &[Value<'v>], nanos: i64) -> Result<Value<'v>, RunError> {
    match args {
        [Value::Duration(duration)] => Ok(Value::Int(duration.nanos() / nanos)),
        _ => no_such_overload(),
    }
}

fn part<'v>(args: &[Value<'v>], part: Part) -> Result<Value<'v>, RunError> {
    let (instant, zone) = match args {
        [Value::Timestamp(instant)] => (instant, "UTC"),
        [Value::Timestamp(instant), Value::String(zone)] => (instant, &**zone),
        _ => return no_such_overload(),
    };
    instant
        .part(part, zone)
        .map(Value::Int)
        .map_err(RunError::text)
}

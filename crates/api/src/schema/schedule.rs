//! The schema of `spec.schedule`.

use serde_json::{Value, json};

use super::{MAX_NAME, MAX_SHORT, boolean, choice, list, list_map, object, string, with};
use crate::scheduled_machine::{DEFAULT_TIMEZONE, ExceptionAction};

/// How many windows and how many exceptions a schedule has at most.
const MOST_ENTRIES: usize = 16;

pub(super) fn schedule() -> Value {
    object(
        "When the machine runs: daysOfWeek and hoursOfDay, or cron and duration, or windows. In \
         addition, exceptions for dates.",
        &[],
        [
            ("daysOfWeek", days_of_week()),
            ("hoursOfDay", hours_of_day()),
            ("cron", cron()),
            ("duration", duration()),
            ("windows", windows()),
            ("exceptions", exceptions()),
            ("timezone", timezone()),
            ("enabled", enabled()),
        ],
    )
}

fn days_of_week() -> Value {
    let days = texts(
        "Days on which the machine runs: mon, tue, wed, thu, fri, sat, sun, ranges such as \
         mon-fri or fri-mon, or comma-separated lists of these.",
    );
    with(days, "default", json!([]))
}

fn hours_of_day() -> Value {
    let hours = texts(
        "Hours in which the machine runs, both ends included: 9-17 is from 09:00:00 to 17:59:59. \
         Ranges may cross midnight, such as 22-6, which for a single day means its first and its \
         last hours. Entries may be comma-separated lists.",
    );
    with(hours, "default", json!([]))
}

fn texts(description: &str) -> Value {
    list(
        description,
        32,
        json!({"type": "string", "maxLength": MAX_SHORT}),
    )
}

fn cron() -> Value {
    string(
        "Five cron fields (minute, hour, day of month, month, day of week), instead of daysOfWeek \
         and hoursOfDay. Each firing opens a window of the given duration; adjacent or overlapping windows are merged.",
        128,
    )
}

fn duration() -> Value {
    string(
        "Length of the window that each firing of cron opens, from 1m to 168h; 1h if absent. \
         Only allowed with cron.",
        MAX_SHORT,
    )
}

fn windows() -> Value {
    let window = object(
        "A window. It belongs to the local day on which it starts.",
        &["name", "start"],
        [
            ("name", entry_name("The name of the window.")),
            (
                "days",
                texts(
                    "Days on which the window starts, as in daysOfWeek; every day if empty.",
                ),
            ),
            (
                "start",
                string("Time of day at which the window starts, HH:MM.", MAX_SHORT),
            ),
            (
                "end",
                string(
                    "Time of day at which the window ends, HH:MM. If it is not after start, the \
                     window ends on the next day; if it equals start, after 24 hours.",
                    MAX_SHORT,
                ),
            ),
            (
                "duration",
                string(
                    "Length of the window, from 1m to 168h, instead of end. It is elapsed time.",
                    MAX_SHORT,
                ),
            ),
        ],
    );
    let windows = list_map(
        "Windows in which the machine runs, instead of daysOfWeek, hoursOfDay and cron. Adjacent \
         or overlapping windows are merged.",
        MOST_ENTRIES,
        &["name"],
        window,
    );
    with(windows, "minItems", json!(1))
}

fn exceptions() -> Value {
    let action = choice(
        "What happens on these dates: Run (the machine runs all day) or Stop (it does not run).",
        &ExceptionAction::ALL.map(ExceptionAction::as_str),
    );
    let calendar = object(
        "The ScheduleCalendar with the dates, in the same namespace.",
        &["name"],
        [("name", string("Name of the ScheduleCalendar.", MAX_NAME))],
    );
    let exception = object(
        "Dates on which something else applies, from 00:00 to 24:00 local time.",
        &["name", "action"],
        [
            ("name", entry_name("The name of the exception.")),
            ("action", action),
            ("calendarRef", calendar),
            (
                "startDate",
                string("The first date, YYYY-MM-DD.", MAX_SHORT),
            ),
            (
                "endDate",
                string("The last date, YYYY-MM-DD, included.", MAX_SHORT),
            ),
        ],
    );
    list_map(
        "Dates on which the schedule does not apply. The first exception that matches the local \
         date decides.",
        MOST_ENTRIES,
        &["name"],
        exception,
    )
}

/// The name of an item of a list. A rule bounds it further.
pub(super) fn entry_name(description: &str) -> Value {
    string(description, MAX_NAME)
}

fn timezone() -> Value {
    let zone = string(
        "The IANA time zone of days, hours, cron, windows and exceptions, such as Europe/Zurich. \
         At daylight saving time changes, a skipped hour is never active and a repeated hour is \
         active twice.",
        MAX_SHORT,
    );
    with(zone, "default", json!(DEFAULT_TIMEZONE))
}

fn enabled() -> Value {
    boolean(
        "Whether the schedule is enabled. Disabling it does not remove a running machine.",
        json!(true),
    )
}

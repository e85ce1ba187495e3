//! The schema of ScheduleCalendar.

use serde_json::{Value, json};

use super::schedule::entry_name;
use super::{list_map, object, string, with};
use crate::schedule_calendar::MOST_DATES;

/// Room for a date, and for what is written instead of one: a calendar has many.
const MAX_DATE: u32 = 24;

/// The schema of the whole object.
pub(crate) fn schedule_calendar() -> Value {
    let date = object(
        "A date, or a range of dates.",
        &["name"],
        [
            ("name", entry_name("The name of the entry.")),
            (
                "date",
                string("The date: YYYY-MM-DD, or MM-DD for every year.", MAX_DATE),
            ),
            (
                "startDate",
                string("The first date of a range, YYYY-MM-DD.", MAX_DATE),
            ),
            (
                "endDate",
                string("The last date of a range, YYYY-MM-DD, included.", MAX_DATE),
            ),
        ],
    );
    let dates = list_map(
        "The dates. Each is a whole local day in the time zone of the schedule that uses it.",
        MOST_DATES,
        &["name"],
        date,
    );
    let spec = object(
        "The dates of the calendar.",
        &[],
        [("dates", with(dates, "default", json!([])))],
    );
    super::whole(
        "Dates to which the exceptions of schedules in the same namespace refer.",
        [("spec", spec)],
    )
}

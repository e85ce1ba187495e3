//! What is required of a schedule: days and hours, cron, windows and the dates of exceptions.

use serde_json::Value;

use super::node::{every_text, has_items, is_set, sets_any, text};
use super::pattern::{is_match, matching, pattern};
use super::requirement::Requirement;

pub(super) const DAYS: Requirement = matching!(
    pattern!(days),
    "must be day names or ranges (e.g. 'mon', 'mon-fri', 'mon-wed,fri-sun')"
);

pub(super) const HOURS: Requirement = matching!(
    pattern!(hours),
    "must be hours or ranges (e.g. '9', '9-17', '0-9,18-23')"
);

pub(super) const HOURS_OF_A_DAY: Requirement = matching!(
    if pattern!(hours),
    pattern!(hours of a day),
    "hours must be from 0 to 23"
);

pub(super) const FIVE_FIELDS: Requirement = matching!(
    pattern!(cron),
    "must be five fields: minute, hour, day of month, month, day of week"
);

/// One field of a cron expression of five fields: the fields before it, one value of it as a
/// regular expression, and the fields after it.
macro_rules! cron_field {
    ($before:literal, $value:literal, $after:literal) => {
        concat!(
            "(?i)",
            $before,
            cron_field!(entry $value),
            "(,",
            cron_field!(entry $value),
            ")*",
            $after,
        )
    };
    (entry $value:literal) => {
        concat!(
            "([*](/0*[1-9][0-9]*)?|(",
            $value,
            ")(-(",
            $value,
            ")(/0*[1-9][0-9]*)?)?)"
        )
    };
}

pub(super) const CRON_MINUTES: Requirement = matching!(
    if pattern!(cron),
    cron_field!("^", "0*[1-5]?[0-9]", " "),
    "minutes must be from 0 to 59"
);
pub(super) const CRON_HOURS: Requirement = matching!(
    if pattern!(cron),
    cron_field!("^[^ ]+ +", "0*(1?[0-9]|2[0-3])", " "),
    "hours must be from 0 to 23"
);
pub(super) const CRON_DAYS_OF_MONTH: Requirement = matching!(
    if pattern!(cron),
    cron_field!("^([^ ]+ +){2}", "0*([1-9]|[12][0-9]|3[01])", " "),
    "days of the month must be from 1 to 31"
);
pub(super) const CRON_MONTHS: Requirement = matching!(
    if pattern!(cron),
    cron_field!(
        "^([^ ]+ +){3}",
        "0*([1-9]|1[0-2])|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec",
        " "
    ),
    "months must be from 1 to 12 or jan to dec"
);
pub(super) const CRON_DAYS_OF_WEEK: Requirement = matching!(
    if pattern!(cron),
    cron_field!(" ", "0*[0-7]|sun|mon|tue|wed|thu|fri|sat", "$"),
    "days of the week must be from 0 to 7 or sun to sat"
);

const LISTS: [&str; 2] = ["daysOfWeek", "hoursOfDay"];

pub(super) const NO_OTHER_FORM: Requirement = Requirement::new(
    "!has(self.windows) || !has(self.cron) && !has(self.duration) \
    && (!has(self.daysOfWeek) || self.daysOfWeek.size() == 0) \
    && (!has(self.hoursOfDay) || self.hoursOfDay.size() == 0)",
    |node, _| {
        let has_other =
            || sets_any(node, &["cron", "duration"]) || has_items(node, &LISTS);
        !is_set(node, "windows") || !has_other()
    },
    "windows is mutually exclusive with cron, duration, daysOfWeek and hoursOfDay",
)
.reading(&["windows", "cron", "duration", "daysOfWeek", "hoursOfDay"]);

pub(super) const WINDOW_DAYS: Requirement = Requirement::new(
    concat!("self.all(day, day.matches('", pattern!(days), "'))"),
    |node, _| every_text(node, |text| is_match!(text, pattern!(days))),
    "must be day names or ranges (e.g. 'mon', 'mon-fri', 'mon-wed,fri-sun')",
);

pub(super) const TIME_OF_DAY: Requirement = matching!(
    "^([01][0-9]|2[0-3]):[0-5][0-9]$",
    "must be a time of day from '00:00' to '23:59'"
);

pub(super) const A_DATE: Requirement = matching!(
    concat!("^", pattern!(date), "$"),
    "must be a date such as '2026-12-24'"
);

/// Whether one member is set, or in its place both ends of a range.
pub(super) fn has_one_or_range(node: &Value, one: &str) -> bool {
    let (first, last) = (is_set(node, "startDate"), is_set(node, "endDate"));
    if is_set(node, one) {
        !first && !last
    } else {
        first && last
    }
}

pub(super) const CALENDAR_OR_DATES: Requirement = Requirement::new(
    "(has(self.calendarRef) ? !has(self.startDate) && !has(self.endDate) \
    : has(self.startDate) && has(self.endDate))",
    |node, _| has_one_or_range(node, "calendarRef"),
    "either calendarRef, or both startDate and endDate must be set",
)
.reading(&["calendarRef", "startDate", "endDate"]);

/// The form of a date; another rule checks whether the date exists.
macro_rules! like_a_date {
    () => {
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
    };
}

pub(super) const DATES_IN_ORDER: Requirement = Requirement::new(
    concat!(
        "!has(self.startDate) || !has(self.endDate) || !self.startDate.matches('",
        like_a_date!(),
        "') || !self.endDate.matches('",
        like_a_date!(),
        "') || self.startDate <= self.endDate"
    ),
    |node, _| {
        let member = |name: &str| {
            let date = node.get(name).and_then(Value::as_str);
            date.filter(|date| is_match!(date, like_a_date!()))
        };
        let both = member("startDate").zip(member("endDate"));
        both.is_none_or(|(first, last)| first <= last)
    },
    "endDate must not be before startDate",
)
.reading(&["startDate", "endDate"]);

pub(super) const OBJECT_NAME: Requirement = matching!(
    pattern!(object name),
    "must be the name of a ScheduleCalendar: lower-case letters, digits, '-' and \
    '.', a letter or digit at both ends"
);

pub(super) const CRON_OR_LISTS: Requirement = Requirement::new(
    "!has(self.cron) || (!has(self.daysOfWeek) || self.daysOfWeek.size() == 0) \
    && (!has(self.hoursOfDay) || self.hoursOfDay.size() == 0)",
    |node, _| !is_set(node, "cron") || !has_items(node, &LISTS),
    "cron is mutually exclusive with daysOfWeek and hoursOfDay — set one or the \
    other, not both",
)
.reading(&["cron", "daysOfWeek", "hoursOfDay", "windows", "kind"]);

pub(super) fn has_both_lists(node: &Value) -> bool {
    LISTS.iter().all(|list| has_items(node, &[list]))
}

pub(super) const COMPLETE: Requirement = Requirement::new(
    "has(self.cron) || has(self.windows) || has(self.kind) || has(self.daysOfWeek) \
    && self.daysOfWeek.size() > 0 && has(self.hoursOfDay) && self.hoursOfDay.size() > 0",
    |node, _| sets_any(node, &["cron", "windows", "kind"]) || has_both_lists(node),
    "both daysOfWeek and hoursOfDay must be non-empty",
)
.reading(&["cron", "daysOfWeek", "hoursOfDay", "windows", "kind"]);

pub(super) const DURATION_ONLY_WITH_CRON: Requirement = Requirement::new(
    "!has(self.duration) || has(self.cron) || has(self.windows) || has(self.kind)",
    |node, _| !is_set(node, "duration") || sets_any(node, &["cron", "windows", "kind"]),
    "duration must not be set without cron",
)
.reading(&["cron", "duration", "windows", "kind"]);

pub(super) const ZONE_NAME: Requirement = matching!(
    "^[A-Za-z][A-Za-z0-9_+/-]*$",
    "must be an IANA time zone name such as 'Europe/Zurich'"
);

pub(super) const ONE_END: Requirement = Requirement::new(
    "has(self.end) != has(self.duration)",
    |node, _| is_set(node, "end") != is_set(node, "duration"),
    "exactly one of end and duration must be set",
)
.reading(&["end", "duration"]);

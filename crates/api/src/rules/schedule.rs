//! What is required of a schedule: days and hours, cron, windows and the dates of exceptions.

use serde_json::Value;

use super::node::{every_text, has_items, is_set, sets_any, text};
use super::pattern::{is_match, matching, pattern};
use super::requirement::{Examples, Requirement};

pub(super) const DAYS: Requirement = matching!(
    pattern!(days),
    "must be day names or ranges (e.g. 'mon', 'mon-fri', 'mon-wed,fri-sun')"
)
.examples(Examples::Text {
    accepts: &["mon", "mon-fri", "fri-mon", "mon-wed,fri-sun"],
    rejects: &["", "monday", "Mon", "mon-", "mon,", "mon - fri", "1-5"],
});

pub(super) const HOURS: Requirement = matching!(
    pattern!(hours),
    "must be hours or ranges (e.g. '9', '9-17', '0-9,18-23')"
)
.examples(Examples::Text {
    accepts: &["9", "09", "9-17", "22-6", "0-9,18-23"],
    rejects: &["", "9am", "9-", "9:30", "-1", "9 - 17", "123"],
});

pub(super) const HOURS_OF_A_DAY: Requirement = matching!(
    if pattern!(hours),
    pattern!(hours of a day),
    "hours must be from 0 to 23"
)
.examples(Examples::Text {
    accepts: &["0-23", "00", "23", "20-23"],
    rejects: &["24", "9-24", "99", "9,30"],
});

pub(super) const FIVE_FIELDS: Requirement = matching!(
    pattern!(cron),
    "must be five fields: minute, hour, day of month, month, day of week"
)
.examples(Examples::Text {
    accepts: &["0 9-17 * * 1-5", "*/5 * * * *", "0  9 * * *"],
    rejects: &["", "@daily", "0 9 * *", "0 0 9 * * 1-5", " 0 9 * * *"],
});

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
)
.examples(Examples::Text {
    accepts: &["0 * * * *", "*/15 * * * *", "0-59/5,7 * * * *"],
    rejects: &[
        "60 * * * *",
        "a * * * *",
        "5/15 * * * *",
        "*/0 * * * *",
        ", * * * *",
    ],
});
pub(super) const CRON_HOURS: Requirement = matching!(
    if pattern!(cron),
    cron_field!("^[^ ]+ +", "0*(1?[0-9]|2[0-3])", " "),
    "hours must be from 0 to 23"
)
.examples(Examples::Text {
    accepts: &["0 0-23 * * *", "0 09,17 * * *"],
    rejects: &["0 24 * * *", "0 9-24 * * *", "0 -9 * * *"],
});
pub(super) const CRON_DAYS_OF_MONTH: Requirement = matching!(
    if pattern!(cron),
    cron_field!("^([^ ]+ +){2}", "0*([1-9]|[12][0-9]|3[01])", " "),
    "days of the month must be from 1 to 31"
)
.examples(Examples::Text {
    accepts: &["0 9 1,31 * *"],
    rejects: &["0 9 0 * *", "0 9 32 * *", "0 9 L * *"],
});
pub(super) const CRON_MONTHS: Requirement = matching!(
    if pattern!(cron),
    cron_field!(
        "^([^ ]+ +){3}",
        "0*([1-9]|1[0-2])|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec",
        " "
    ),
    "months must be from 1 to 12 or jan to dec"
)
.examples(Examples::Text {
    accepts: &["0 9 * 1-12 *", "0 9 * JAN,mar-Jun *"],
    rejects: &["0 9 * 0 *", "0 9 * 13 *", "0 9 * january *"],
});
pub(super) const CRON_DAYS_OF_WEEK: Requirement = matching!(
    if pattern!(cron),
    cron_field!(" ", "0*[0-7]|sun|mon|tue|wed|thu|fri|sat", "$"),
    "days of the week must be from 0 to 7 or sun to sat"
)
.examples(Examples::Text {
    accepts: &["0 9 * * 0-7", "0 9 * * mon-FRI"],
    rejects: &["0 9 * * 8", "0 9 * * monday", "0 9 * * 5#2"],
});

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
.reading(&["windows", "cron", "duration", "daysOfWeek", "hoursOfDay"]).examples(Examples::Json {
            accepts: &[
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}]}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "daysOfWeek": [], "hoursOfDay": []}"#,
            ],
            rejects: &[
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "cron": "0 9 * * *"}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "duration": "8h"}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "daysOfWeek": ["mon"], "hoursOfDay": ["9"]}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "hoursOfDay": ["9"]}"#,
            ],
        });

pub(super) const WINDOW_DAYS: Requirement = Requirement::new(
    concat!("self.all(day, day.matches('", pattern!(days), "'))"),
    |node, _| every_text(node, |text| is_match!(text, pattern!(days))),
    "must be day names or ranges (e.g. 'mon', 'mon-fri', 'mon-wed,fri-sun')",
)
.examples(Examples::Json {
    accepts: &[r#"["mon-fri"]"#, r#"["mon-wed,fri", "sun"]"#],
    rejects: &[r#"[""]"#, r#"["mon", "Tue"]"#, r#"["1-5"]"#],
});

pub(super) const TIME_OF_DAY: Requirement = matching!(
    "^([01][0-9]|2[0-3]):[0-5][0-9]$",
    "must be a time of day from '00:00' to '23:59'"
)
.examples(Examples::Text {
    accepts: &["00:00", "07:30", "23:59"],
    rejects: &["", "24:00", "7:30", "07:60", "07:30:00", "noon"],
});

pub(super) const A_DATE: Requirement = matching!(
    concat!("^", pattern!(date), "$"),
    "must be a date such as '2026-12-24'"
)
.examples(Examples::Text {
    accepts: &["2026-12-24", "2024-02-29"],
    rejects: &[
        "",
        "2026-02-29",
        "2026-13-01",
        "26-12-24",
        "2026-12-24T00:00:00Z",
        "24.12.2026",
    ],
});

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
.reading(&["calendarRef", "startDate", "endDate"]).examples(Examples::Json {
            accepts: &[
                r#"{"name": "e", "action": "Stop", "calendarRef": {"name": "zurich"}}"#,
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24", "endDate": "2026-12-24"}"#,
            ],
            rejects: &[
                r#"{"name": "e", "action": "Stop"}"#,
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24"}"#,
                r#"{"name": "e", "action": "Stop", "calendarRef": {"name": "zurich"}, "endDate": "2026-12-24"}"#,
            ],
        });

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
.reading(&["startDate", "endDate"]).examples(Examples::Json {
            accepts: &[
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24", "endDate": "2027-01-02"}"#,
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24", "endDate": "2026-12-24"}"#,
            ],
            rejects: &[
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24", "endDate": "2026-12-23"}"#,
            ],
        });

pub(super) const OBJECT_NAME: Requirement = matching!(
    pattern!(object name),
    "must be the name of a ScheduleCalendar: lower-case letters, digits, '-' and \
    '.', a letter or digit at both ends"
)
.examples(Examples::Text {
    accepts: &["zurich", "holidays.zurich"],
    rejects: &["", "Zurich", "-a", "a/b"],
});

pub(super) const CRON_OR_LISTS: Requirement = Requirement::new(
    "!has(self.cron) || (!has(self.daysOfWeek) || self.daysOfWeek.size() == 0) \
    && (!has(self.hoursOfDay) || self.hoursOfDay.size() == 0)",
    |node, _| !is_set(node, "cron") || !has_items(node, &LISTS),
    "cron is mutually exclusive with daysOfWeek and hoursOfDay — set one or the \
    other, not both",
)
.reading(&["cron", "daysOfWeek", "hoursOfDay", "windows", "kind"]).examples(Examples::Json {
            accepts: &[
                r#"{"cron": "0 9-17 * * 1-5"}"#,
                r#"{"cron": "0 9 * * *", "daysOfWeek": [], "hoursOfDay": []}"#,
                r#"{"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}"#,
            ],
            rejects: &[
                r#"{"cron": "0 9-17 * * 1-5", "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}"#,
                r#"{"cron": "0 9 * * *", "hoursOfDay": ["9"]}"#,
            ],
        });

pub(super) fn has_both_lists(node: &Value) -> bool {
    LISTS.iter().all(|list| has_items(node, &[list]))
}

pub(super) const COMPLETE: Requirement = Requirement::new(
    "has(self.cron) || has(self.windows) || has(self.kind) || has(self.daysOfWeek) \
    && self.daysOfWeek.size() > 0 && has(self.hoursOfDay) && self.hoursOfDay.size() > 0",
    |node, _| sets_any(node, &["cron", "windows", "kind"]) || has_both_lists(node),
    "both daysOfWeek and hoursOfDay must be non-empty",
)
.reading(&["cron", "daysOfWeek", "hoursOfDay", "windows", "kind"])
.examples(Examples::Json {
    accepts: &[
        r#"{"daysOfWeek": ["sat"], "hoursOfDay": ["0-23"]}"#,
        r#"{"cron": "0 9 * * *"}"#,
        r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}]}"#,
    ],
    rejects: &[
        "{}",
        r#"{"daysOfWeek": ["mon-fri"]}"#,
        r#"{"daysOfWeek": ["mon-fri"], "hoursOfDay": []}"#,
        r#"{"hoursOfDay": ["9-17"]}"#,
    ],
});

pub(super) const DURATION_ONLY_WITH_CRON: Requirement = Requirement::new(
    "!has(self.duration) || has(self.cron) || has(self.windows) || has(self.kind)",
    |node, _| !is_set(node, "duration") || sets_any(node, &["cron", "windows", "kind"]),
    "duration must not be set without cron",
)
.reading(&["cron", "duration", "windows", "kind"])
.examples(Examples::Json {
    accepts: &[
        r#"{"cron": "0 9 * * *", "duration": "8h"}"#,
        r#"{"daysOfWeek": ["mon"], "hoursOfDay": ["9"]}"#,
    ],
    rejects: &[r#"{"daysOfWeek": ["mon"], "hoursOfDay": ["9"], "duration": "8h"}"#],
});

pub(super) const ZONE_NAME: Requirement = matching!(
    "^[A-Za-z][A-Za-z0-9_+/-]*$",
    "must be an IANA time zone name such as 'Europe/Zurich'"
)
.examples(Examples::Text {
    accepts: &[
        "UTC",
        "Europe/Zurich",
        "America/Port-au-Prince",
        "Etc/GMT+5",
    ],
    rejects: &["", "../etc/passwd", "Europe Zurich", "+02:00"],
});

pub(super) const ONE_END: Requirement = Requirement::new(
    "has(self.end) != has(self.duration)",
    |node, _| is_set(node, "end") != is_set(node, "duration"),
    "exactly one of end and duration must be set",
)
.reading(&["end", "duration"])
.examples(Examples::Json {
    accepts: &[
        r#"{"name": "night", "start": "19:00", "end": "07:30"}"#,
        r#"{"name": "weekend", "start": "07:30", "duration": "48h"}"#,
    ],
    rejects: &[
        r#"{"name": "night", "start": "19:00"}"#,
        r#"{"name": "night", "start": "19:00", "end": "07:30", "duration": "1h"}"#,
    ],
});

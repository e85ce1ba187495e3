//! The rules about a ScheduleCalendar, in the form of [`super::RULES`].

use super::table::{A_DATE, DATES_IN_ORDER, NAME, date};
use super::{Examples, Layer, Rule, predicate};

const DATE_OR_RANGE: &str = "(has(self.date) \
    ? !has(self.startDate) && !has(self.endDate) : has(self.startDate) && has(self.endDate))";

const A_DATE_OF_SOME_YEAR: &str = concat!(
    "self.matches('^(",
    date!(),
    "|(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)",
    "|02-(0[1-9]|[12][0-9]))$')"
);

/// Every rule about a ScheduleCalendar.
pub const CALENDAR_RULES: &[Rule] = &[
    Rule {
        id: "SM081",
        path: "spec.dates[].name",
        cel: NAME,
        inputs: &[],
        message: "must be a DNS label of at most 63 characters: lower-case letters, digits and '-', a letter or digit at both ends",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_name),
        examples: Examples::Text {
            accepts: &["night", "week-1"],
            rejects: &[
                "",
                "Night",
                "a.b",
                "-a",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            ],
        },
        why: "The name tells people which day it is.",
    },
    Rule {
        id: "SM082",
        path: "spec.dates[]",
        cel: DATE_OR_RANGE,
        inputs: &["date", "startDate", "endDate"],
        message: "either date, or both startDate and endDate must be set",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_date_or_range),
        examples: Examples::Json {
            accepts: &[
                r#"{"name": "d", "date": "12-25"}"#,
                r#"{"name": "d", "startDate": "2026-12-24", "endDate": "2026-12-31"}"#,
            ],
            rejects: &[
                r#"{"name": "d"}"#,
                r#"{"name": "d", "startDate": "2026-12-24"}"#,
                r#"{"name": "d", "date": "12-25", "endDate": "2026-12-31"}"#,
            ],
        },
        why: "An entry without dates would mean nothing.",
    },
    Rule {
        id: "SM083",
        path: "spec.dates[].date",
        cel: A_DATE_OF_SOME_YEAR,
        inputs: &[],
        message: "must be a date such as '2026-12-24', or '12-24' for every year",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_date_of_some_year),
        examples: Examples::Text {
            accepts: &["2026-12-24", "12-24", "02-29"],
            rejects: &["", "2026-02-29", "02-30", "13-01", "24.12.", "2026-12"],
        },
        why: "It is a local date in the time zone of the schedule that uses it.",
    },
    Rule {
        id: "SM084",
        path: "spec.dates[].startDate",
        cel: A_DATE,
        inputs: &[],
        message: "must be a date such as '2026-12-24'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_date),
        examples: Examples::Text {
            accepts: &["2026-12-24", "2024-02-29"],
            rejects: &[
                "",
                "2026-02-29",
                "2026-13-01",
                "26-12-24",
                "2026-12-24T00:00:00Z",
                "24.12.2026",
            ],
        },
        why: "It is a local date in the time zone of the schedule that uses it.",
    },
    Rule {
        id: "SM085",
        path: "spec.dates[].endDate",
        cel: A_DATE,
        inputs: &[],
        message: "must be a date such as '2026-12-24'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_date),
        examples: Examples::Text {
            accepts: &["2026-12-24", "2028-02-29"],
            rejects: &[
                "",
                "2026-02-29",
                "2026-13-01",
                "26-12-24",
                "2026-12-24T00:00:00Z",
                "24.12.2026",
            ],
        },
        why: "It is a local date in the time zone of the schedule that uses it.",
    },
    Rule {
        id: "SM086",
        path: "spec.dates[]",
        cel: DATES_IN_ORDER,
        inputs: &["startDate", "endDate"],
        message: "endDate must not be before startDate",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_dates_in_order),
        examples: Examples::Json {
            accepts: &[
                r#"{"name": "d", "startDate": "2026-12-24", "endDate": "2026-12-24"}"#,
            ],
            rejects: &[
                r#"{"name": "d", "startDate": "2026-12-24", "endDate": "2026-12-23"}"#,
            ],
        },
        why: "Such an entry has no dates.",
    },
];

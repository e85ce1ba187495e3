//! The rules about a ScheduleCalendar, in the form of [`super::RULES`].

use super::node::text;
use super::pattern::{is_match, matching, pattern};
use super::requirement::{NAME, Requirement};
use super::schedule::{A_DATE, DATES_IN_ORDER, has_one_or_range};
use super::{Examples, Rule};

const DATE_OR_RANGE: Requirement = Requirement::new(
    "(has(self.date) ? !has(self.startDate) && !has(self.endDate) \
    : has(self.startDate) && has(self.endDate))",
    |node, _| has_one_or_range(node, "date"),
    "either date, or both startDate and endDate must be set",
)
.reading(&["date", "startDate", "endDate"])
.examples(Examples::Json {
    accepts: &[
        r#"{"name": "d", "date": "12-25"}"#,
        r#"{"name": "d", "startDate": "2026-12-24", "endDate": "2026-12-31"}"#,
    ],
    rejects: &[
        r#"{"name": "d"}"#,
        r#"{"name": "d", "startDate": "2026-12-24"}"#,
        r#"{"name": "d", "date": "12-25", "endDate": "2026-12-31"}"#,
    ],
});

const A_DATE_OF_SOME_YEAR: Requirement = matching!(
    concat!(
        "^(",
        pattern!(date),
        "|(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)",
        "|02-(0[1-9]|[12][0-9]))$"
    ),
    "must be a date such as '2026-12-24', or '12-24' for every year"
)
.examples(Examples::Text {
    accepts: &["2026-12-24", "12-24", "02-29"],
    rejects: &["", "2026-02-29", "02-30", "13-01", "24.12.", "2026-12"],
});

/// Every rule about a ScheduleCalendar.
pub const CALENDAR_RULES: &[Rule] = &[
    Rule {
        id: "SM081",
        path: "spec.dates[].name",
        requirement: NAME,
        why: "The name identifies the day for users.",
    },
    Rule {
        id: "SM082",
        path: "spec.dates[]",
        requirement: DATE_OR_RANGE,
        why: "An entry without dates would have no effect.",
    },
    Rule {
        id: "SM083",
        path: "spec.dates[].date",
        requirement: A_DATE_OF_SOME_YEAR,
        why: "It is a local date in the time zone of the schedule that uses it.",
    },
    Rule {
        id: "SM084",
        path: "spec.dates[].startDate",
        requirement: A_DATE,
        why: "It is a local date in the time zone of the schedule that uses it.",
    },
    Rule {
        id: "SM085",
        path: "spec.dates[].endDate",
        requirement: A_DATE,
        why: "It is a local date in the time zone of the schedule that uses it.",
    },
    Rule {
        id: "SM086",
        path: "spec.dates[]",
        requirement: DATES_IN_ORDER.examples(Examples::Json {
            accepts: &[
                r#"{"name": "d", "startDate": "2026-12-24", "endDate": "2026-12-24"}"#,
            ],
            rejects: &[
                r#"{"name": "d", "startDate": "2026-12-24", "endDate": "2026-12-23"}"#,
            ],
        }),
        why: "Such an entry has no dates.",
    },
];

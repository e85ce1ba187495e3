//! The rules about a CapitalMarketsSchedule, in the form of [`super::RULES`].

use super::node::every_text;
use super::pattern::{is_match, pattern};
use super::requirement::Requirement;
use super::schedule::{A_DATE, WINDOW_DAYS, ZONE_NAME, has_both_lists};
use super::{Examples, Rule};

const BOTH_LISTS: Requirement = Requirement::new(
    "has(self.daysOfWeek) && self.daysOfWeek.size() > 0 \
    && has(self.hoursOfDay) && self.hoursOfDay.size() > 0",
    |node, _| has_both_lists(node),
    "both daysOfWeek and hoursOfDay must be non-empty",
)
.examples(Examples::Json {
    accepts: &[r#"{"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-15"]}"#],
    rejects: &[
        "{}",
        r#"{"daysOfWeek": ["mon-fri"]}"#,
        r#"{"daysOfWeek": [], "hoursOfDay": ["9-15"]}"#,
    ],
});

const ALL_HOURS: Requirement = Requirement::new(
    concat!("self.all(hour, hour.matches('", pattern!(hours), "'))"),
    |node, _| every_text(node, |text| is_match!(text, pattern!(hours))),
    "must be hours or ranges (e.g. '9', '9-17', '0-9,18-23')",
)
.examples(Examples::Json {
    accepts: &[r#"["9-15"]"#, r#"["9", "13-16,18"]"#],
    rejects: &[r#"[""]"#, r#"["9", "9am"]"#, r#"["9:30"]"#],
});

const ALL_HOURS_OF_A_DAY: Requirement = Requirement::new(
    concat!(
        "self.all(hour, !hour.matches('",
        pattern!(hours),
        "') || hour.matches('",
        pattern!(hours of a day),
        "'))"
    ),
    |node, _| {
        every_text(node, |text| {
            !is_match!(text, pattern!(hours)) || is_match!(text, pattern!(hours of a day))
        })
    },
    "hours must be from 0 to 23",
)
.examples(Examples::Json {
    accepts: &[r#"["0-23"]"#, r#"["09"]"#],
    rejects: &[r#"["24"]"#, r#"["9", "9-24"]"#],
});

/// Every rule about a CapitalMarketsSchedule.
pub const CAPITAL_MARKETS_RULES: &[Rule] = &[
    Rule {
        id: "SM401",
        path: "spec.timezone",
        requirement: ZONE_NAME,
        why: "Sessions, holidays and early closes are in the local time of the market.",
    },
    Rule {
        id: "SM402",
        path: "spec.sessions[]",
        requirement: BOTH_LISTS,
        why: "Days without hours, or hours without days, are no session.",
    },
    Rule {
        id: "SM403",
        path: "spec.sessions[].daysOfWeek",
        requirement: WINDOW_DAYS,
        why: "Days are lower case; a range may cross the end of the week.",
    },
    Rule {
        id: "SM404",
        path: "spec.sessions[].hoursOfDay",
        requirement: ALL_HOURS,
        why: "Both ends of a range are included; a range may cross midnight.",
    },
    Rule {
        id: "SM405",
        path: "spec.sessions[].hoursOfDay",
        requirement: ALL_HOURS_OF_A_DAY,
        why: "A day has no other hours.",
    },
    Rule {
        id: "SM406",
        path: "spec.holidays[]",
        requirement: A_DATE,
        why: "It is a local date in the time zone of the market.",
    },
    Rule {
        id: "SM407",
        path: "spec.earlyCloses[].date",
        requirement: A_DATE,
        why: "It is a local date in the time zone of the market.",
    },
];

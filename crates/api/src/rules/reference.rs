//! What is required of a reference in `spec.schedule` to a shared schedule.

use super::node::{has_items, is_set, sets_any, text};
use super::pattern::{is_match, matching, pattern};
use super::requirement::{Examples, Requirement};

const MEMBERS: [&str; 3] = ["apiVersion", "kind", "name"];

pub(super) const NO_FORM_BESIDE_REFERENCE: Requirement = Requirement::new(
    "!has(self.kind) || !has(self.cron) && !has(self.duration) && !has(self.windows) \
    && (!has(self.daysOfWeek) || self.daysOfWeek.size() == 0) \
    && (!has(self.hoursOfDay) || self.hoursOfDay.size() == 0)",
    |node, _| {
        let has_form = || {
            sets_any(node, &["cron", "duration", "windows"])
                || has_items(node, &["daysOfWeek", "hoursOfDay"])
        };
        !is_set(node, "kind") || !has_form()
    },
    "a reference is mutually exclusive with cron, duration, windows, daysOfWeek and hoursOfDay",
)
.reading(&["kind", "windows", "cron", "duration", "daysOfWeek", "hoursOfDay"]).examples(Examples::Json {
            accepts: &[
                r#"{"apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "TimeBasedSpotSchedule", "name": "office"}"#,
                r#"{"apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "TimeBasedSpotSchedule", "name": "office", "daysOfWeek": [], "timezone": "Europe/Zurich", "exceptions": []}"#,
            ],
            rejects: &[
                r#"{"apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "TimeBasedSpotSchedule", "name": "office", "duration": "8h"}"#,
                r#"{"apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "TimeBasedSpotSchedule", "name": "office", "daysOfWeek": ["mon"], "hoursOfDay": ["9"]}"#,
            ],
        });

pub(super) const WHOLE_REFERENCE: Requirement = Requirement::new(
    "has(self.apiVersion) == has(self.kind) && has(self.kind) == has(self.name)",
    |node, _| {
        let set = MEMBERS.iter().filter(|member| is_set(node, member));
        [0, MEMBERS.len()].contains(&set.count())
    },
    "apiVersion, kind and name must be set together",
)
.reading(&["apiVersion", "kind", "name"]).examples(Examples::Json {
            accepts: &[
                r#"{"apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "TimeBasedSpotSchedule", "name": "office"}"#,
            ],
            rejects: &[
                r#"{"kind": "TimeBasedSpotSchedule", "name": "office"}"#,
                r#"{"daysOfWeek": ["mon"], "hoursOfDay": ["9"], "name": "office"}"#,
            ],
        });

pub(super) const NO_REFERENCE: Requirement = Requirement::new(
    "!has(self.apiVersion) && !has(self.kind) && !has(self.name)",
    |node, _| !sets_any(node, &MEMBERS),
    "apiVersion, kind and name must not be set: a shared schedule cannot follow another",
)
.reading(&["apiVersion", "kind", "name"])
.examples(Examples::Json {
    accepts: &[r#"{"daysOfWeek": ["sat"], "hoursOfDay": ["0-23"]}"#],
    rejects: &[r#"{"daysOfWeek": ["sat"], "hoursOfDay": ["0-23"], "name": "other"}"#],
});

pub(super) const SPOT_GROUP: Requirement = matching!(
    "^spotschedules[.]5spot[.]finos[.]org/[a-z0-9]+$",
    "must be of group spotschedules.5spot.finos.org, such as \
    'spotschedules.5spot.finos.org/v1alpha1'"
)
.examples(Examples::Text {
    accepts: &[
        "spotschedules.5spot.finos.org/v1alpha1",
        "spotschedules.5spot.finos.org/v2",
    ],
    rejects: &[
        "",
        "v1",
        "5spot.finos.org/v1alpha1",
        "spotschedules.5spot.finos.org/",
    ],
});

pub(super) const SCHEDULE_KIND: Requirement = matching!(
    pattern!(kind),
    "must be a kind, such as TimeBasedSpotSchedule: at most 63 letters and digits, the first an \
    upper-case letter"
).examples(Examples::Text {
            accepts: &[
                "TimeBasedSpotSchedule",
                "CapitalMarketsSchedule",
                "ManualSchedule",
            ],
            rejects: &["", "timebasedspotschedule", "Manual.Schedule", "A/B"],
        });

pub(super) const SCHEDULE_NAME: Requirement = matching!(
    pattern!(object name),
    "must be the name of an object: lower-case letters, digits, '-' and '.', a letter or digit \
    at both ends"
).examples(Examples::Text { accepts: &["office", "office.zurich"], rejects: &["", "Office", "-a", "a/b"] });

//! The rules about a ScheduleOverride, in the form of [`super::RULES`].

use super::requirement::{NAME, Requirement, date};
use super::table::NO_TIMES;
use super::{Examples, Rule, predicate};

/// An RFC 3339 time of this millennium. Every part is within its bounds, so that CEL's
/// `timestamp()` parses every match.
macro_rules! time {
    () => {
        concat!(
            "^",
            date!(),
            "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?",
            "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
        )
    };
}

const A_TIME: Requirement = Requirement::new(
    concat!("self.matches('^2') && self.matches('", time!(), "')"),
    predicate::is_a_time,
    "must be an RFC 3339 time such as '2026-03-06T22:00:00Z'",
);

const NOT_EMPTY: Requirement = Requirement::new(
    "has(self.matchLabels) && self.matchLabels.size() > 0 \
    || has(self.matchExpressions) && self.matchExpressions.size() > 0",
    predicate::is_not_empty_selector,
    "must not be empty",
)
.reading(&["matchLabels", "matchExpressions"]);

const TIMES_IN_ORDER: Requirement = Requirement::new(
    concat!(
        "!has(self.startTime) || !self.startTime.matches('^2') ",
        "|| !self.startTime.matches('",
        time!(),
        "') || !self.endTime.matches('^2') || !self.endTime.matches('",
        time!(),
        "') || timestamp(self.startTime) < timestamp(self.endTime)"
    ),
    predicate::has_times_in_order,
    "endTime must be after startTime",
)
.reading(&["startTime", "endTime"]);

const SAME_TARGET: Requirement = Requirement::of_change(
    "self.spec.mode == oldSelf.spec.mode \
    && has(self.spec.targetRef) == has(oldSelf.spec.targetRef) \
    && (!has(self.spec.targetRef) || self.spec.targetRef == oldSelf.spec.targetRef) \
    && has(self.spec.selector) == has(oldSelf.spec.selector) \
    && (!has(self.spec.selector) || self.spec.selector == oldSelf.spec.selector)",
    "targetRef, selector and mode must not change; create another ScheduleOverride",
);

const WITHIN_TWO_WEEKS: Requirement = Requirement::new(
    concat!(
        "!self.matches('^2') || !self.matches('",
        time!(),
        "') || object.metadata.?creationTimestamp.optMap(created, ",
        "timestamp(self) <= timestamp(created) + duration('336h')).orValue(true)"
    ),
    predicate::is_within_two_weeks,
    "must be at most 14 days after the creation",
)
.only_in_policy();

const ONE_TARGET: Requirement = Requirement::new(
    "has(self.targetRef) != has(self.selector)",
    predicate::has_one_target,
    "exactly one of targetRef and selector must be set",
)
.reading(&["targetRef", "selector"]);

/// Every rule about a ScheduleOverride.
pub const OVERRIDE_RULES: &[Rule] = &[
    Rule {
        id: "SM073",
        path: "spec",
        requirement: ONE_TARGET,
        examples: Examples::Json {
            accepts: &[r#"{"targetRef": {"name": "worker"}}"#],
            rejects: &[r#"{"selector": {"matchLabels": {"team": "a"}}}"#],
        },
        why: "An override applies to one ScheduledMachine, or to those that are selected.",
    },
    Rule {
        id: "SM074",
        path: "spec.selector",
        requirement: NOT_EMPTY,
        examples: Examples::Json {
            accepts: &[
                r#"{"matchLabels": {"team": "a"}}"#,
                r#"{"matchExpressions": [{"key": "team", "operator": "Exists"}]}"#,
            ],
            rejects: &[
                r"{}",
                r#"{"matchLabels": {}}"#,
                r#"{"matchLabels": {}, "matchExpressions": []}"#,
            ],
        },
        why: "An empty selector would select every ScheduledMachine of the namespace.",
    },
    Rule {
        id: "SM075",
        path: "spec.targetRef.name",
        requirement: NAME,
        examples: Examples::Text {
            accepts: &["worker"],
            rejects: &[
                "",
                "Worker",
                "a.b",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            ],
        },
        why: "No ScheduledMachine has another name.",
    },
    Rule {
        id: "SM076",
        path: "spec.startTime",
        requirement: A_TIME,
        examples: Examples::Text {
            accepts: &["2026-03-06T12:00:00Z", "2026-03-06T12:00:00.5+01:00"],
            rejects: NO_TIMES,
        },
        why: "It is compared with the operator's clock.",
    },
    Rule {
        id: "SM077",
        path: "spec.endTime",
        requirement: A_TIME,
        examples: Examples::Text {
            accepts: &["2026-03-06T22:00:00Z", "2026-03-06T22:00:00.5+01:00"],
            rejects: NO_TIMES,
        },
        why: "It is compared with the operator's clock.",
    },
    Rule {
        id: "SM078",
        path: "spec",
        requirement: TIMES_IN_ORDER,
        examples: Examples::Json {
            accepts: &[
                r#"{"startTime": "2026-03-06T18:00:00Z", "endTime": "2026-03-06T22:00:00Z"}"#,
                r#"{"startTime": "2026-03-06T22:30:00+01:00", "endTime": "2026-03-06T22:00:00Z"}"#,
            ],
            rejects: &[
                r#"{"startTime": "2026-03-06T22:00:00Z", "endTime": "2026-03-06T22:00:00Z"}"#,
                r#"{"startTime": "2026-03-06T21:30:00-01:00", "endTime": "2026-03-06T22:00:00Z"}"#,
            ],
        },
        why: "Such an override would never be in force.",
    },
    Rule {
        id: "SM079",
        path: "spec",
        requirement: SAME_TARGET,
        examples: Examples::Json {
            accepts: &[r#"{"from": {"reason": "a"}, "to": {"reason": "b"}}"#],
            rejects: &[
                r#"{"from": {"mode": "Run"}, "to": {"mode": "Stop"}}"#,
                r#"{"from": {"targetRef": {"name": "a"}}, "to": {"targetRef": {"name": "b"}}}"#,
            ],
        },
        why: "A change would silently end the override for the earlier target.",
    },
    Rule {
        id: "SM080",
        path: "spec.endTime",
        requirement: WITHIN_TWO_WEEKS,
        examples: Examples::Text {
            accepts: &["2026-03-06T22:00:00Z", "2026-03-20T12:00:00Z"],
            rejects: &["2026-03-20T12:00:01Z", "2999-01-01T00:00:00Z"],
        },
        why: "An override is temporary. A permanent change belongs in the schedule.",
    },
];

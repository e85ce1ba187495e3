//! The rules about a ScheduleOverride, in the form of [`super::RULES`].

use super::table::{NAME, date};
use super::{Examples, Layer, Rule, predicate};

/// An RFC 3339 time of this millennium, with every part within its bounds, so that CEL's
/// `timestamp()` reads what it matches.
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

const A_TIME: &str = concat!("self.matches('^2') && self.matches('", time!(), "')");

const NOT_EMPTY: &str = "has(self.matchLabels) && self.matchLabels.size() > 0 \
    || has(self.matchExpressions) && self.matchExpressions.size() > 0";

const TIMES_IN_ORDER: &str = concat!(
    "!has(self.startTime) || !self.startTime.matches('^2') || !self.startTime.matches('",
    time!(),
    "') || !self.endTime.matches('^2') || !self.endTime.matches('",
    time!(),
    "') || timestamp(self.startTime) < timestamp(self.endTime)"
);

const SAME_TARGET: &str = "self.spec.mode == oldSelf.spec.mode \
    && has(self.spec.targetRef) == has(oldSelf.spec.targetRef) \
    && (!has(self.spec.targetRef) || self.spec.targetRef == oldSelf.spec.targetRef) \
    && has(self.spec.selector) == has(oldSelf.spec.selector) \
    && (!has(self.spec.selector) || self.spec.selector == oldSelf.spec.selector)";

const WITHIN_TWO_WEEKS: &str = concat!(
    "!self.matches('^2') || !self.matches('",
    time!(),
    "') || object.metadata.?creationTimestamp.optMap(created, ",
    "timestamp(self) <= timestamp(created) + duration('336h')).orValue(true)"
);

/// Every rule about a ScheduleOverride.
pub const OVERRIDE_RULES: &[Rule] = &[
    Rule {
        id: "SM073",
        path: "spec",
        cel: "has(self.targetRef) != has(self.selector)",
        inputs: &["targetRef", "selector"],
        message: "exactly one of targetRef and selector must be set",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_one_target),
        examples: Examples::Json {
            accepts: &[r#"{"targetRef": {"name": "worker"}}"#],
            rejects: &[r#"{"selector": {"matchLabels": {"team": "a"}}}"#],
        },
        why: "An override is about one ScheduledMachine, or about those that are selected.",
    },
    Rule {
        id: "SM074",
        path: "spec.selector",
        cel: NOT_EMPTY,
        inputs: &["matchLabels", "matchExpressions"],
        message: "must not be empty",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_not_empty_selector),
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
        cel: NAME,
        inputs: &[],
        message: "must be a DNS label of at most 63 characters: lower-case letters, digits and '-', a letter or digit at both ends",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_name),
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
        cel: A_TIME,
        inputs: &[],
        message: "must be an RFC 3339 time such as '2026-03-06T22:00:00Z'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_time),
        examples: Examples::Text {
            accepts: &["2026-03-06T12:00:00Z", "2026-03-06T12:00:00.5+01:00"],
            rejects: &[
                "",
                "2026-03-06",
                "2026-03-06T22:00",
                "2026-03-06T22:00:00",
                "2026-02-29T22:00:00Z",
                "2026-03-06T24:00:00Z",
                "2026-03-06 22:00:00Z",
                "tonight",
            ],
        },
        why: "It is compared with the operator's clock.",
    },
    Rule {
        id: "SM077",
        path: "spec.endTime",
        cel: A_TIME,
        inputs: &[],
        message: "must be an RFC 3339 time such as '2026-03-06T22:00:00Z'",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::is_a_time),
        examples: Examples::Text {
            accepts: &["2026-03-06T22:00:00Z", "2026-03-06T22:00:00.5+01:00"],
            rejects: &[
                "",
                "2026-03-06",
                "2026-03-06T22:00",
                "2026-03-06T22:00:00",
                "2026-02-29T22:00:00Z",
                "2026-03-06T24:00:00Z",
                "2026-03-06 22:00:00Z",
                "tonight",
            ],
        },
        why: "It is compared with the operator's clock.",
    },
    Rule {
        id: "SM078",
        path: "spec",
        cel: TIMES_IN_ORDER,
        inputs: &["startTime", "endTime"],
        message: "endTime must be after startTime",
        layer: Layer::SchemaAndPolicy,
        predicate: Some(predicate::has_times_in_order),
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
        cel: SAME_TARGET,
        inputs: &[],
        message: "targetRef, selector and mode must not change; create another ScheduleOverride",
        layer: Layer::Change,
        predicate: None,
        examples: Examples::Json {
            accepts: &[r#"{"from": {"reason": "a"}, "to": {"reason": "b"}}"#],
            rejects: &[
                r#"{"from": {"mode": "Run"}, "to": {"mode": "Stop"}}"#,
                r#"{"from": {"targetRef": {"name": "a"}}, "to": {"targetRef": {"name": "b"}}}"#,
            ],
        },
        why: "What was said about one machine would be taken back unseen.",
    },
    Rule {
        id: "SM080",
        path: "spec.endTime",
        cel: WITHIN_TWO_WEEKS,
        inputs: &[],
        message: "must be at most 14 days after the creation",
        layer: Layer::Policy,
        predicate: Some(predicate::is_within_two_weeks),
        examples: Examples::Text {
            accepts: &["2026-03-06T22:00:00Z", "2026-03-20T12:00:00Z"],
            rejects: &["2026-03-20T12:00:01Z", "2999-01-01T00:00:00Z"],
        },
        why: "An override is temporary. What stays belongs into the schedule.",
    },
];

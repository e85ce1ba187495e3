//! The rules about a ScheduleOverride, in the form of [`super::RULES`].

use jiff::Timestamp;
use serde_json::Value;

use super::node::{has_items, is_set, text};
use super::pattern::{is_match, pattern};
use super::requirement::{NAME, Requirement};
use super::{Examples, Rule};
use crate::time::MAX_OVERRIDE_DURATION;

/// An RFC 3339 time of this millennium.
fn time(text: &str) -> Option<Timestamp> {
    let is_time = text.starts_with('2') && is_match!(text, pattern!(time));
    is_time.then(|| text.parse().ok()).flatten()
}

const A_TIME: Requirement = Requirement::new(
    concat!("self.matches('^2') && self.matches('", pattern!(time), "')"),
    |node, _| text(node, |text| time(text).is_some()),
    "must be an RFC 3339 time such as '2026-03-06T22:00:00Z'",
)
.examples(Examples::Text {
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
});

const NOT_EMPTY: Requirement = Requirement::new(
    "has(self.matchLabels) && self.matchLabels.size() > 0 \
    || has(self.matchExpressions) && self.matchExpressions.size() > 0",
    |node, _| {
        let labels = node.get("matchLabels").and_then(Value::as_object);
        labels.is_some_and(|labels| !labels.is_empty())
            || has_items(node, &["matchExpressions"])
    },
    "must not be empty",
)
.reading(&["matchLabels", "matchExpressions"])
.examples(Examples::Json {
    accepts: &[
        r#"{"matchLabels": {"team": "a"}}"#,
        r#"{"matchExpressions": [{"key": "team", "operator": "Exists"}]}"#,
    ],
    rejects: &[
        r"{}",
        r#"{"matchLabels": {}}"#,
        r#"{"matchLabels": {}, "matchExpressions": []}"#,
    ],
});

const TIMES_IN_ORDER: Requirement = Requirement::new(
    concat!(
        "!has(self.startTime) || !self.startTime.matches('^2') ",
        "|| !self.startTime.matches('",
        pattern!(time),
        "') || !self.endTime.matches('^2') || !self.endTime.matches('",
        pattern!(time),
        "') || timestamp(self.startTime) < timestamp(self.endTime)"
    ),
    |node, _| {
        let member = |name: &str| node.get(name).and_then(Value::as_str).and_then(time);
        let both = member("startTime").zip(member("endTime"));
        both.is_none_or(|(start, end)| start < end)
    },
    "endTime must be after startTime",
)
.reading(&["startTime", "endTime"]).examples(Examples::Json {
            accepts: &[
                r#"{"startTime": "2026-03-06T18:00:00Z", "endTime": "2026-03-06T22:00:00Z"}"#,
                r#"{"startTime": "2026-03-06T22:30:00+01:00", "endTime": "2026-03-06T22:00:00Z"}"#,
            ],
            rejects: &[
                r#"{"startTime": "2026-03-06T22:00:00Z", "endTime": "2026-03-06T22:00:00Z"}"#,
                r#"{"startTime": "2026-03-06T21:30:00-01:00", "endTime": "2026-03-06T22:00:00Z"}"#,
            ],
        });

const SAME_TARGET: Requirement = Requirement::of_change(
    "self.spec.mode == oldSelf.spec.mode \
    && has(self.spec.targetRef) == has(oldSelf.spec.targetRef) \
    && (!has(self.spec.targetRef) || self.spec.targetRef == oldSelf.spec.targetRef) \
    && has(self.spec.selector) == has(oldSelf.spec.selector) \
    && (!has(self.spec.selector) || self.spec.selector == oldSelf.spec.selector)",
    "targetRef, selector and mode must not change; create another ScheduleOverride",
)
.examples(Examples::Json {
    accepts: &[r#"{"from": {"reason": "a"}, "to": {"reason": "b"}}"#],
    rejects: &[
        r#"{"from": {"mode": "Run"}, "to": {"mode": "Stop"}}"#,
        r#"{"from": {"targetRef": {"name": "a"}}, "to": {"targetRef": {"name": "b"}}}"#,
    ],
});

const WITHIN_TWO_WEEKS: Requirement = Requirement::new(
    concat!(
        "!self.matches('^2') || !self.matches('",
        pattern!(time),
        "') || object.metadata.?creationTimestamp.optMap(created, ",
        "timestamp(self) <= timestamp(created) + duration('336h')).orValue(true)"
    ),
    |node, object| {
        let created = object.pointer("/metadata/creationTimestamp");
        let created = created.and_then(Value::as_str);
        let created = created.and_then(|it| it.parse::<Timestamp>().ok());
        let latest = created.and_then(|it| it.checked_add(MAX_OVERRIDE_DURATION).ok());
        text(node, |text| {
            let both = time(text).zip(latest);
            both.is_none_or(|(end, latest)| end <= latest)
        })
    },
    "must be at most 14 days after the creation",
)
.only_in_policy()
.examples(Examples::Text {
    accepts: &["2026-03-06T22:00:00Z", "2026-03-20T12:00:00Z"],
    rejects: &["2026-03-20T12:00:01Z", "2999-01-01T00:00:00Z"],
});

const ONE_TARGET: Requirement = Requirement::new(
    "has(self.targetRef) != has(self.selector)",
    |node, _| is_set(node, "targetRef") != is_set(node, "selector"),
    "exactly one of targetRef and selector must be set",
)
.reading(&["targetRef", "selector"])
.examples(Examples::Json {
    accepts: &[r#"{"targetRef": {"name": "worker"}}"#],
    rejects: &[r#"{"selector": {"matchLabels": {"team": "a"}}}"#],
});

/// Every rule about a ScheduleOverride.
pub const OVERRIDE_RULES: &[Rule] = &[
    Rule {
        id: "SM073",
        path: "spec",
        requirement: ONE_TARGET,
        why: "An override applies to one ScheduledMachine, or to those that are selected.",
    },
    Rule {
        id: "SM074",
        path: "spec.selector",
        requirement: NOT_EMPTY,
        why: "An empty selector would select every ScheduledMachine of the namespace.",
    },
    Rule {
        id: "SM075",
        path: "spec.targetRef.name",
        requirement: NAME,
        why: "No ScheduledMachine has another name.",
    },
    Rule {
        id: "SM076",
        path: "spec.startTime",
        requirement: A_TIME,
        why: "It is compared with the operator's clock.",
    },
    Rule {
        id: "SM077",
        path: "spec.endTime",
        requirement: A_TIME,
        why: "It is compared with the operator's clock.",
    },
    Rule {
        id: "SM078",
        path: "spec",
        requirement: TIMES_IN_ORDER,
        why: "Such an override would never be in force.",
    },
    Rule {
        id: "SM079",
        path: "spec",
        requirement: SAME_TARGET,
        why: "A change would silently end the override for the earlier target.",
    },
    Rule {
        id: "SM080",
        path: "spec.endTime",
        requirement: WITHIN_TWO_WEEKS,
        why: "An override is temporary. A permanent change belongs in the schedule.",
    },
];

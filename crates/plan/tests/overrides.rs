//! ScheduleOverrides: their status, and when they are deleted.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use fivespot_api::{OverrideMode, ScheduleOverride};
use fivespot_plan::{LimitingClass, Matched, plan_override};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn object(annotations: &Value) -> ScheduleOverride {
    serde_json::from_value(json!({
        "metadata": {
            "name": "o", "uid": "u", "generation": 1, "annotations": annotations,
            "creationTimestamp": "2026-03-06T12:00:00Z",
        },
        "spec": {
            "targetRef": {"name": "worker"}, "mode": "Run",
            "startTime": "2026-03-06T13:00:00Z", "endTime": "2026-03-06T15:00:00Z",
        },
    }))
    .unwrap()
}

fn one() -> Matched {
    Matched {
        machines: 1,
        ..Matched::default()
    }
}

/// The conditions that are true.
fn holding(object: &ScheduleOverride, matched: &Matched, now: &str) -> Vec<String> {
    let status = plan_override(object, matched, at(now)).status.unwrap();
    let conditions = status.conditions.into_iter();
    let holding = conditions.filter(|of| of.status == "True");
    holding.map(|of| of.type_).collect()
}

#[test]
fn an_override_is_active_from_its_start_to_its_end() {
    let object = object(&json!({}));
    for (now, expected) in [
        ("2026-03-06T12:30:00Z", vec!["TargetFound"]),
        ("2026-03-06T13:00:00Z", vec!["Active", "TargetFound"]),
        ("2026-03-06T15:00:00Z", vec!["Expired", "TargetFound"]),
    ] {
        assert_eq!(holding(&object, &one(), now), expected, "{now}");
    }
    let requeue_at = |now: &str| plan_override(&object, &one(), at(now)).requeue_at;
    assert_eq!(
        requeue_at("2026-03-06T12:30:00Z"),
        Some(at("2026-03-06T13:00:00Z"))
    );
    assert_eq!(
        requeue_at("2026-03-06T15:00:00Z"),
        Some(at("2026-03-06T16:00:00Z"))
    );
}

#[test]
fn an_override_is_deleted_an_hour_after_its_end_unless_it_is_kept() {
    let now = "2026-03-06T16:00:00Z";
    let plan = plan_override(&object(&json!({})), &one(), at(now));
    assert!(plan.is_deleted && plan.status.is_none());
    let before = at("2026-03-06T15:59:59Z");
    assert!(!plan_override(&object(&json!({})), &one(), before).is_deleted);
    let kept = object(&json!({"5spot.finos.org/keep": "true"}));
    assert!(!plan_override(&kept, &one(), at(now)).is_deleted);
    assert_eq!(holding(&kept, &one(), now), ["Expired", "TargetFound"]);
}

#[test]
fn the_conditions_report_whether_a_target_exists_or_ignores_the_override() {
    let now = "2026-03-06T14:00:00Z";
    assert_eq!(
        holding(&object(&json!({})), &Matched::default(), now),
        ["Active"]
    );
    let ignored = Matched {
        ignoring: vec!["worker".to_owned()],
        ..one()
    };
    let expected = ["Active", "TargetFound", "Ignored"];
    assert_eq!(holding(&object(&json!({})), &ignored, now), expected);
}

#[test]
fn an_override_that_is_longer_than_a_class_allows_is_ignored_by_the_machines_of_that_class()
 {
    let limiting = |minutes| Matched {
        limiting: vec![LimitingClass {
            name: "desks".to_owned(),
            max_override: SignedDuration::from_mins(minutes),
        }],
        ..one()
    };
    let now = "2026-03-06T14:00:00Z";
    let mut object = object(&json!({}));
    assert_eq!(
        holding(&object, &limiting(120), now),
        ["Active", "TargetFound"]
    );
    let expected = ["Active", "TargetFound", "Ignored"];
    assert_eq!(holding(&object, &limiting(119), now), expected);
    object.spec.mode = OverrideMode::Stop;
    assert_eq!(
        holding(&object, &limiting(1), now),
        ["Active", "TargetFound"]
    );
}

#[test]
fn an_override_beyond_the_limit_is_reported_once_in_its_status() {
    let beyond = Matched {
        is_beyond_limit: true,
        ..one()
    };
    let now = "2026-03-06T14:00:00Z";
    let mut object = object(&json!({}));
    assert_eq!(holding(&object, &beyond, now), ["Ignored"]);
    let first = plan_override(&object, &beyond, at(now));
    object.status = first.status;
    let conditions = &object.status.as_ref().unwrap().conditions;
    let ignored = conditions.iter().find(|of| of.type_ == "Ignored").unwrap();
    assert_eq!(ignored.reason, "TooMany");
    let message = &ignored.message;
    assert!(message.contains("at most 256 overrides"), "{message}");
    let later = plan_override(&object, &beyond, at("2026-03-06T14:30:00Z"));
    assert_eq!(later.status, None);
}

#[test]
fn a_status_is_settled_once_it_is_written_and_its_times_are_kept() {
    let mut object = object(&json!({}));
    let first = plan_override(&object, &one(), at("2026-03-06T14:00:00Z"));
    object.status = first.status;
    assert_eq!(
        plan_override(&object, &one(), at("2026-03-06T14:30:00Z")).status,
        None
    );
}

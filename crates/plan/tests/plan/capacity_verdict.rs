//! The verdict about a ScheduledCapacity, from the status that the planner writes.

use fivespot_api::condition::Actor;
use fivespot_api::scheduled_capacity::ValueSet;
use fivespot_api::verdict::capacity::verdict;
use fivespot_api::verdict::{Lease, State, Verdict};
use fivespot_api::{ScheduledCapacity, name};
use fivespot_plan::capacity::capacity_write_failed;
use fivespot_plan::{CapacityFacts, Fact, ScheduleInputs, Unknown, plan_capacity};
use fivespot_schedule::{Override, OverrideMode};
use jiff::Timestamp;
use serde_json::{Value, json};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Friday, inside the window from 09:00 to 18:00.
const OPEN: &str = "2026-03-06T12:00:00Z";

fn object() -> Value {
    json!({
        "apiVersion": name::API_VERSION, "kind": name::CAPACITY_KIND,
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "u-1", "generation": 1,
            "creationTimestamp": "2026-03-06T11:00:00Z",
        },
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
            "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "capacity": {"field": "replicas", "activeValue": 3},
        },
    })
}

fn deployment(change: impl FnOnce(&mut Value)) -> Fact<Option<Value>> {
    let mut found = json!({
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7"},
        "spec": {"replicas": 3}, "status": {"replicas": 3},
    });
    change(&mut found);
    Fact::Known(Some(found))
}

/// The capacity with the status that the operator writes about it at noon.
fn reconciled(mut object: Value, facts: &CapacityFacts) -> ScheduledCapacity {
    let read: ScheduledCapacity = serde_json::from_value(object.clone()).unwrap();
    let status = plan_capacity(&read, facts, at(OPEN)).status_after(None);
    object["status"] = serde_json::to_value(status).unwrap();
    serde_json::from_value(object).unwrap()
}

fn with_target(target: Fact<Option<Value>>) -> CapacityFacts {
    CapacityFacts {
        target,
        ..CapacityFacts::default()
    }
}

fn judged(object: &ScheduledCapacity) -> Verdict {
    verdict(object, &Lease::Held, at("2026-03-06T12:10:00Z"))
}

#[test]
fn every_problem_that_the_planner_reports_has_a_state_a_cause_and_a_remedy() {
    let failed = |unknown| with_target(Fact::Unknown(unknown));
    let message = || "why".to_owned();
    let mut missing_step = object();
    missing_step["spec"]["capacity"]["field"] = json!("template.spec.replicas");
    let mut templated = object();
    templated["spec"]["target"] = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    templated["spec"]["template"] = json!({});
    let mut invalid = object();
    invalid["spec"]["capacity"]["field"] = json!("a..b");
    let held = CapacityFacts {
        schedule: ScheduleInputs {
            overrides: vec![Override {
                name: "freeze".to_owned(),
                mode: OverrideMode::Hold,
                start: None,
                end: at("2026-03-07T00:00:00Z"),
                created: None,
            }],
            ..ScheduleInputs::default()
        },
        ..with_target(deployment(|_| {}))
    };
    let paused = deployment(|it| {
        it["metadata"]["annotations"] = json!({"cluster.x-k8s.io/paused": ""});
    });
    let deleting = deployment(|it| {
        it["metadata"]["deletionTimestamp"] = json!("2026-03-06T11:59:00Z");
    });
    let not_served = Unknown::NotServed { message: message() };
    let forbidden = Unknown::Forbidden { message: message() };
    let unread = Unknown::Failed { message: message() };
    let cases = [
        (object(), with_target(Fact::Known(None)), "TargetNotFound"),
        (object(), failed(not_served), "KindNotServed"),
        (object(), failed(forbidden), "Forbidden"),
        (object(), failed(unread), "ReadFailed"),
        (object(), with_target(deleting), "TargetDeleting"),
        (
            missing_step,
            with_target(deployment(|_| {})),
            "FieldNotFound",
        ),
        (templated, with_target(deployment(|_| {})), "TargetNotOwned"),
        (invalid, with_target(deployment(|_| {})), "InvalidSpec"),
        (object(), with_target(paused), "TargetPaused"),
        (object(), held, "Held"),
    ];
    for (object, facts, reason) in cases {
        let found = judged(&reconciled(object, &facts));
        let is_held = ["TargetPaused", "Held"].contains(&reason);
        let state = if is_held { State::Held } else { State::Blocked };
        assert_eq!((found.state, found.reason.as_str()), (state, reason));
        assert!(
            !found.cause.is_empty() && found.remedy.is_some(),
            "{found:?}"
        );
        assert_ne!(found.actor, Actor::Nobody, "{reason}");
    }
}

#[test]
fn a_refused_write_is_blocked_and_a_failed_one_after_five_minutes() {
    let written = reconciled(object(), &with_target(deployment(|_| {})));
    let failed = |reason, now| {
        let status = capacity_write_failed(&written, reason, "refused", at(OPEN));
        let object = ScheduledCapacity {
            status: Some(status),
            ..written.clone()
        };
        let found = verdict(&object, &Lease::Held, at(now));
        assert_eq!(found.cause, "refused");
        assert!(found.remedy.is_some(), "{reason}");
        (found.state, found.actor)
    };
    let (soon, later) = ("2026-03-06T12:02:00Z", "2026-03-06T12:10:00Z");
    let blocked = |actor| (State::Blocked, actor);
    assert_eq!(failed("WriteForbidden", soon), blocked(Actor::PlatformTeam));
    assert_eq!(failed("WriteRejected", soon), blocked(Actor::Owner));
    assert_eq!(failed("WriteFailed", soon).0, State::Late);
    assert_eq!(failed("WriteFailed", later).0, State::Blocked);
}

#[test]
fn a_value_that_is_written_is_serving_and_nothing_is_to_be_done() {
    let capacity = reconciled(object(), &with_target(deployment(|_| {})));
    let found = judged(&capacity);
    assert_eq!((found.state, found.remedy), (State::Serving, None));
    assert_eq!(
        found.cause,
        "Deployment web has the active values until 2026-03-06T18:00:00Z"
    );
    assert_eq!(capacity.target_text(), "Deployment web");
    assert_eq!(
        (
            capacity.values_text(ValueSet::Active),
            capacity.values_text(ValueSet::Inactive),
        ),
        ("replicas=3".to_owned(), "replicas=0".to_owned(),)
    );
}

#[test]
fn a_field_that_another_client_writes_is_named_also_while_it_has_its_value() {
    let mut contested = object();
    contested["status"] = json!({
        "phase": "Active", "active": true, "contestedBy": "argocd-controller",
        "recentWrites": ["2026-03-06T11:55:00Z", "2026-03-06T11:56:00Z", "2026-03-06T11:57:00Z"],
        "observedGeneration": 1, "appliedGeneration": 1,
    });
    let found = judged(&reconciled(contested, &with_target(deployment(|_| {}))));
    assert_eq!(found.state, State::Serving);
    assert_eq!(found.reason, "OtherManager");
    assert!(
        found.cause.contains("; argocd-controller has changed"),
        "{}",
        found.cause
    );
}

#[test]
fn without_an_operator_or_its_report_the_state_is_unknown() {
    let read: ScheduledCapacity = serde_json::from_value(object()).unwrap();
    let new = verdict(&read, &Lease::Held, at("2026-03-06T11:00:30Z"));
    assert_eq!((new.state, new.actor), (State::Unknown, Actor::Nobody));
    let unseen = judged(&read);
    assert_eq!(unseen.state, State::Unknown);
    assert!(unseen.remedy.unwrap().contains("namespace shop"));
    let none = Lease::NotHeld {
        cause: "no operator runs".to_owned(),
        since: None,
    };
    let reported = reconciled(object(), &with_target(deployment(|_| {})));
    let found = verdict(&reported, &none, at(OPEN));
    assert_eq!(found.state, State::Unknown);
    assert!(
        found
            .cause
            .starts_with("no operator runs; the last report was: Deployment")
    );
}

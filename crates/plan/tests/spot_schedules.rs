//! What schedules publish for everything that follows them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use fivespot_api::{SharedSchedule, SpotScheduleStatus};
use fivespot_plan::{SpotSchedule, SpotSchedulePlan, plan_spot_schedule};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn office() -> Value {
    json!({"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "America/New_York"})
}

fn planned(
    kind: &str,
    spec: &Value,
    status: &SpotScheduleStatus,
    now: Timestamp,
) -> SpotSchedulePlan {
    let schedule = SharedSchedule::of_spec(kind, spec);
    let calendars = BTreeMap::new();
    let object = SpotSchedule {
        schedule: schedule.as_ref().map_err(ToString::to_string),
        calendars: &calendars,
        generation: Some(1),
        status,
    };
    plan_spot_schedule(&object, now)
}

fn first(kind: &str, spec: &Value, now: &str) -> SpotScheduleStatus {
    let status = planned(kind, spec, &SpotScheduleStatus::default(), at(now)).status;
    status.unwrap()
}

fn ready(status: &SpotScheduleStatus) -> [&str; 3] {
    let [ready] = &status.conditions[..] else {
        return [""; 3];
    };
    [&ready.status, &ready.reason, &ready.message]
}

#[test]
fn the_reason_says_whether_a_window_or_a_session_is_open() {
    let market = json!({
        "sessions": [{"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-15"]}],
        "timezone": "America/New_York",
    });
    let (open, closed) = ("2026-03-06T15:00:00Z", "2026-03-07T15:00:00Z");
    for (kind, spec, now, expected) in [
        ("TimeBasedSpotSchedule", office(), open, "WindowOpen"),
        ("TimeBasedSpotSchedule", office(), closed, "WindowClosed"),
        (
            "CapitalMarketsSchedule",
            market.clone(),
            open,
            "SessionOpen",
        ),
        ("CapitalMarketsSchedule", market, closed, "SessionClosed"),
    ] {
        let status = first(kind, &spec, now);
        assert_eq!(status.active, Some(now == open));
        let [is_ready, reason, _] = ready(&status);
        assert_eq!([is_ready, reason], ["True", expected]);
    }
    let status = first("TimeBasedSpotSchedule", &office(), open);
    assert_eq!(ready(&status)[2], "open until 2026-03-06T23:00:00Z");
    assert_eq!(
        status.next_transition_time,
        Some(at("2026-03-06T23:00:00Z"))
    );
    assert_eq!(status.last_transition_time, Some(at(open)));
}

#[test]
fn a_disabled_schedule_is_published_as_closed() {
    let mut spec = office();
    spec["enabled"] = json!(false);
    let status = first("TimeBasedSpotSchedule", &spec, "2026-03-06T15:00:00Z");
    assert_eq!(status.active, Some(false));
    assert_eq!(ready(&status)[2], "closed for the next ten years");
}

#[test]
fn what_was_published_stays_while_the_schedule_cannot_be_evaluated() {
    let kind = "TimeBasedSpotSchedule";
    let open = first(kind, &office(), "2026-03-06T15:00:00Z");
    let later = at("2026-03-07T15:00:00Z");
    for (field, value) in [("timezone", json!("Mars/Base")), ("daysOfWeek", json!(7))] {
        let mut spec = office();
        spec[field] = value;
        let status = planned(kind, &spec, &open, later).status.unwrap();
        assert_eq!(status.active, Some(true));
        assert_eq!(status.next_transition_time, None);
        assert_eq!(status.last_transition_time, open.last_transition_time);
        assert_eq!(ready(&status)[..2], ["False", "InvalidSchedule"]);
        let corrected = planned(kind, &office(), &status, later).status.unwrap();
        assert_eq!(corrected.active, Some(false));
        assert_eq!(corrected.last_transition_time, Some(later));
    }
}

proptest! {
    #[test]
    fn the_status_is_written_once_for_each_transition(
        hours in prop::collection::vec(0..24_u8, 1..5),
        zone in prop::sample::select(vec!["UTC", "Asia/Kathmandu", "Australia/Lord_Howe"]),
        minutes in prop::collection::vec(1..600_i64, 50),
    ) {
        let hours: Vec<_> = hours.iter().map(ToString::to_string).collect();
        let spec = json!({"daysOfWeek": ["fri-sun"], "hoursOfDay": hours, "timezone": zone});
        let kind = "TimeBasedSpotSchedule";
        let begin = at("2026-04-02T00:00:00Z");
        let SpotSchedulePlan { status, requeue_at } =
            planned(kind, &spec, &SpotScheduleStatus::default(), begin);
        let (mut status, mut next) = (status.unwrap(), requeue_at);
        let schedule = SharedSchedule::of_spec(kind, &spec).unwrap();
        let schedule = schedule.schedule(&BTreeMap::new()).unwrap();
        let mut now = begin;
        let mut writes = Vec::new();
        // Reconciled at each transition, and at any time between for another reason.
        for wait in minutes {
            let other = now + jiff::SignedDuration::from_mins(wait);
            now = next.map_or(other, |next| next.min(other));
            let plan = planned(kind, &spec, &status, now);
            next = plan.requeue_at;
            if let Some(written) = plan.status {
                writes.push((now, written.active.unwrap()));
                status = written;
            }
        }
        let transitions: Vec<_> = schedule.transitions(begin, now).collect();
        // `now` itself may be one, and `transitions` ends before it.
        let until = writes.iter().filter(|(at, _)| *at < now).copied().collect::<Vec<_>>();
        prop_assert_eq!(until, transitions);
    }
}

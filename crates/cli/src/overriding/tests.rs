use fivespot_api::{OverrideMode, ScheduleOverride, rules};
use fivespot_schedule::Schedule;
use insta::assert_snapshot;
use jiff::Timestamp;
use serde_json::json;

use super::{Asked, created_message, next_window, table};

fn instant(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn asked() -> Asked<'static> {
    Asked {
        mode: OverrideMode::Stop,
        start: Some(instant("2026-03-06T18:00:00.7Z")),
        end: instant("2026-03-07T06:30:00Z"),
        reason: Some("no batch tonight"),
    }
}

#[test]
fn what_is_written_keeps_every_rule_and_says_what_was_asked_for() {
    let manifest = asked().manifest("desk-042");
    let object: ScheduleOverride = serde_json::from_value(manifest.clone()).unwrap();
    assert_eq!(rules::check_override(&object), []);
    assert_eq!(manifest["metadata"]["generateName"], "desk-042-stop-");
    assert_eq!(
        manifest["spec"],
        json!({
            "targetRef": {"name": "desk-042"},
            "mode": "Stop",
            "startTime": "2026-03-06T18:00:00Z",
            "endTime": "2026-03-07T06:30:00Z",
            "reason": "no batch tonight",
        })
    );
    assert_snapshot!(created_message("desk-042-stop-x7k2p", "desk-042", &asked()), @"desk-042 is stopped from 2026-03-06T18:00:00Z until 2026-03-07T06:30:00Z (ScheduleOverride desk-042-stop-x7k2p; `5spot overrides --end desk-042-stop-x7k2p` ends it)");
}

#[test]
fn the_next_window_is_the_one_that_has_not_started() {
    let office = Schedule::weekly(&["mon-fri"], &["9-17"], "UTC").unwrap();
    let monday = (
        instant("2026-03-09T09:00:00Z"),
        instant("2026-03-09T18:00:00Z"),
    );
    assert_eq!(
        next_window(&office, instant("2026-03-06T12:00:00Z")),
        Some(monday)
    );
    assert_eq!(
        next_window(&office, instant("2026-03-07T12:00:00Z")),
        Some(monday)
    );
    let always = Schedule::weekly(&["mon-sun"], &["0-23"], "UTC").unwrap();
    assert_eq!(next_window(&always, instant("2026-03-06T12:00:00Z")), None);
}

#[test]
fn overrides_are_listed_by_their_ends_with_their_state() {
    let object = |name: &str, spec: serde_json::Value| -> ScheduleOverride {
        let metadata = json!({"name": name, "namespace": "team-a"});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    };
    let target = json!({"name": "desk-042"});
    let all = [
        object(
            "late",
            json!({
                "targetRef": target, "mode": "Stop", "startTime": "2026-03-06T18:00:00Z",
                "endTime": "2026-03-07T06:30:00Z", "reason": "no batch\u{7}",
            }),
        ),
        object(
            "now",
            json!({
                "selector": {"matchLabels": {"pool": "a"}}, "mode": "Run",
                "endTime": "2026-03-06T13:00:00Z",
            }),
        ),
        object(
            "over",
            json!({
                "targetRef": target, "mode": "Hold", "endTime": "2026-03-06T11:00:00Z",
            }),
        ),
    ];
    let mut out = Vec::new();
    table::print(&mut out, &all, instant("2026-03-06T12:00:00Z")).unwrap();
    assert_snapshot!(String::from_utf8(out).unwrap(), @r"
    NAMESPACE  NAME  MODE  TARGET      FROM                  UNTIL                 STATE     REASON
    team-a     over  Hold  desk-042    -                     2026-03-06T11:00:00Z  ended     -
    team-a     now   Run   (selector)  -                     2026-03-06T13:00:00Z  in force  -
    team-a     late  Stop  desk-042    2026-03-06T18:00:00Z  2026-03-07T06:30:00Z  waiting   no batch\u{7}
    ");
}

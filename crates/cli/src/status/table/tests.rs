use fivespot_api::verdict::State;
use serde_json::{Value, json};

use super::{Instants, PrintedRows, Row, Zones, styled_text, text};
use crate::check::Judge;
use crate::set::tests::judge;

/// The row of an object with a whole spec, five minutes after its conditions changed.
fn row(mut object: Value) -> Row {
    object["spec"]["clusterName"] = json!("production");
    for part in ["bootstrapSpec", "infrastructureSpec"] {
        object["spec"][part] = json!({"apiVersion": "a/v1", "kind": "K", "spec": {}});
    }
    if let Some(node) = object.pointer_mut("/status/nodeRef") {
        node["apiVersion"] = json!("v1");
        node["kind"] = json!("Node");
    }
    if object["spec"]["schedule"].is_null() {
        object["spec"]["schedule"] = json!({"cron": "0 9 * * *"});
    }
    let now = "2026-03-06T15:05:00Z".parse().unwrap();
    let judge = Judge { now, ..judge() };
    let verdict = judge.machine(&object);
    Row::of(&object, verdict, &Zones::default())
}

/// A machine with this phase, and this condition since 15:00.
fn with(name: &str, phase: &str, condition: [&str; 3]) -> Row {
    let [kind, status, reason] = condition;
    row(json!({
        "metadata": {"namespace": "team-b", "name": name},
        "status": {"phase": phase, "conditions": [{
            "type": kind, "status": status, "reason": reason, "message": reason,
            "lastTransitionTime": "2026-03-06T15:00:00Z",
        }]},
    }))
}

#[test]
fn blocked_machines_come_first_then_unknown_and_late_ones() {
    let mut all = [
        with("a", "Active", ["Ready", "True", "MachineRunning"]),
        with("b", "Active", ["Ready", "False", "NodeNotReady"]),
        with("c", "", ["Ready", "False", "Provisioning"]),
        with("d", "Pending", ["Stalled", "True", "ClusterNotFound"]),
        with("e", "Error", ["Ready", "False", "MachineCreationFailed"]),
        with("f", "Inactive", ["Ready", "True", "Inactive"]),
    ];
    all.sort_by(Row::order);
    let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["d", "e", "c", "b", "a", "f"]);
    let states = all.each_ref().map(|it| it.verdict().state);
    let blocked = states.iter().filter(|it| **it == State::Blocked);
    assert_eq!(blocked.count(), 2);
}

#[test]
fn a_state_has_its_colour_only_where_colours_are_shown() {
    let blocked = with("d", "Pending", ["Stalled", "True", "ClusterNotFound"]);
    let shown = |is_colored: bool| {
        let mut out = Vec::new();
        let rows = std::slice::from_ref(&blocked);
        styled_text(&mut out, rows, &Instants::Utc, is_colored).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(!shown(false).contains('\u{1b}'));
    let colored = shown(true);
    assert!(
        colored.contains("\u{1b}[1m\u{1b}[31mBlocked\u{1b}[0m"),
        "{colored:?}"
    );
    assert_eq!(
        anstream::adapter::strip_str(&colored).to_string(),
        shown(false)
    );
}

fn rows() -> Vec<Row> {
    let active = json!({
        "metadata": {"namespace": "default", "name": "worker"},
        "spec": {"schedule": {"timezone": "Europe/Zurich"}},
        "status": {
            "phase": "Active",
            "inSchedule": true,
            "nodeRef": {"name": "worker"},
            "nextTransition": "2026-03-06T23:00:00Z",
            "message": "Node worker is in service until 2026-03-06T23:00:00Z",
        },
    });
    let new = json!({"metadata": {"namespace": "team-a", "name": "night-shift"}});
    vec![row(active), row(new)]
}

#[test]
fn machines_are_printed_in_columns() {
    let mut out = Vec::new();
    text(&mut out, &rows(), &Instants::Utc).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn the_next_change_is_relative_and_in_local_time() {
    let shown = [
        "2026-03-06T22:59:15Z",
        "2026-03-06T22:12:00Z",
        "2026-03-06T12:00:00Z",
        "2026-03-03T12:00:00Z",
        "2026-03-06T23:05:00Z",
    ]
    .map(|now| {
        let instants = Instants::Local(now.parse().unwrap());
        let mut out = Vec::new();
        text(&mut out, &rows(), &instants).unwrap();
        String::from_utf8(out).unwrap()
    });
    insta::assert_snapshot!(shown.concat());
}

#[test]
fn a_machine_that_comes_and_goes_stays_in_its_columns() {
    let changed = |phase: &str, node: &str, message: &str| {
        row(json!({
            "metadata": {"namespace": "default", "name": "every-other-minute"},
            "status": {
                "phase": phase,
                "nodeRef": {"name": node},
                "nextTransition": "2026-03-06T23:00:00Z",
                "message": message,
            },
        }))
    };
    let [_, new] = rows().try_into().unwrap();
    let node = "every-other-minute";
    let mut out = Vec::new();
    let mut printed = PrintedRows::default();
    printed
        .lines(&mut out, &[new, changed("Inactive", "", "not wanted yet")])
        .unwrap();
    for later in [
        changed("Active", node, "in service"),
        changed("ShuttingDown", node, "the window has closed"),
        changed("Inactive", "", "not wanted").deleted(),
    ] {
        printed.lines(&mut out, &[later]).unwrap();
    }
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn text_of_a_server_cannot_leave_its_cell() {
    let hostile = "\u{1b}]0;pwned\u{7}\u{1b}[31m\ndefault    trusted  Active\r";
    let row = row(json!({
        "metadata": {"namespace": "default", "name": "worker"},
        "status": {"phase": hostile, "message": hostile, "nodeRef": {"name": hostile}},
    }));
    let mut out = Vec::new();
    text(&mut out, &[row], &Instants::Utc).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert_eq!(out.lines().count(), 2, "{out:?}");
    assert!(
        !out.contains(|it: char| it.is_control() && it != '\n'),
        "{out:?}"
    );
    assert!(
        out.contains(r"\u{1b}]0;pwned\u{7}\u{1b}[31m default"),
        "{out:?}"
    );
}

#[test]
fn an_event_that_changes_no_column_prints_no_row() {
    let mut printed = PrintedRows::default();
    let rows = rows();
    assert!(printed.is_changed(&rows[0], false));
    assert!(!printed.is_changed(&rows[0], false));
    assert!(printed.is_changed(&rows[0].clone().deleted(), true));
    assert!(printed.is_changed(&rows[0], false));
}

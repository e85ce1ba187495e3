//! Machines of a class.

use std::sync::Arc;

use fivespot_api::ScheduledMachineClassSpec;
use fivespot_controller::Key;
use serde_json::{Value, json};

use super::{at, late, machine, object, planned_spans};
use crate::filter::Filter;
use crate::machine::Machine;
use crate::page;
use crate::state::{CLASSES, State};

const WINDOW: &str = "Window 2026-03-05T09:00:00Z 2026-03-05T18:00:00Z";
const FRIDAY: &str = "Window 2026-03-06T09:00:00Z 2026-03-06T18:00:00Z";

/// A machine of class `desks` without a status.
fn of_class(name: &str) -> Machine {
    let mut object = object(name, json!({}));
    object["spec"] = json!({
        "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC"},
        "classRef": {"name": "desks"},
    });
    Machine::of(serde_json::from_value(object).unwrap())
}

fn class(more: &Value) -> ScheduledMachineClassSpec {
    let mut spec = json!({
        "clusterNames": ["night"],
        "bootstrapSpec": {"apiVersion": "b/v1", "kind": "B", "spec": {}},
        "infrastructureSpec": {"apiVersion": "i/v1", "kind": "RemoteMachine", "spec": {}},
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    serde_json::from_value(spec).unwrap()
}

/// The only machine.
fn only(state: &State) -> Arc<Machine> {
    let all = state.snapshot().machines.all;
    all.into_values().next().unwrap()
}

#[test]
fn an_override_that_a_class_does_not_allow_changes_no_planned_spans() {
    let state = State::new();
    state.apply(of_class("desk-1"));
    // It is for two hours.
    let run = late("late", "desk-1", at("2026-03-06T12:00:00Z"));
    state.change_override(&Key::new("team-a", "late"), Some(run));
    let allowed = "OverrideRun 2026-03-06T18:00:00Z 2026-03-06T20:00:00Z";
    let at_most = |length: &str| Some(class(&json!({"limits": {"maxOverride": length}})));
    state.change_class("desks", at_most("1h"));
    assert_eq!(planned_spans(&state), [WINDOW, FRIDAY]);
    state.change_class("desks", at_most("2h"));
    assert_eq!(planned_spans(&state), [WINDOW, FRIDAY, allowed]);
    state.change_class("nights", at_most("1h"));
    assert_eq!(planned_spans(&state), [WINDOW, FRIDAY, allowed]);
    state.change_class("desks", at_most("1h"));
    state.change_class("desks", None);
    assert_eq!(planned_spans(&state), [WINDOW, FRIDAY, allowed]);
    // A machine that is listed after its class.
    state.change_class("desks", at_most("1h"));
    state.apply(of_class("desk-1"));
    assert_eq!(planned_spans(&state), [WINDOW, FRIDAY]);
}

#[test]
fn a_machine_has_the_rate_and_the_first_cluster_of_its_class() {
    let state = State::new();
    state.apply(of_class("desk-1"));
    state.change_class("desks", Some(class(&json!({}))));
    let machine = only(&state);
    assert_eq!(machine.cluster(), "night");
    let usage = machine.usage(at("2026-03-06T12:00:00Z"));
    assert_eq!(usage.infrastructure_kind, "RemoteMachine");
}

#[test]
fn only_the_machines_of_a_changed_class_are_read_again() {
    let state = State::new();
    for name in ["desk-1", "desk-2"] {
        state.apply(of_class(name));
    }
    state.apply(machine("inline", json!({})));
    let before = state.snapshot().machines.all;
    state.change_class("nights", Some(class(&json!({}))));
    state.change_class("desks", Some(class(&json!({}))));
    let after = state.snapshot().machines.all;
    let read = before
        .iter()
        .filter(|(name, it)| !Arc::ptr_eq(it, &after[*name]));
    let read: Vec<&str> = read.map(|(name, _)| name.name.as_str()).collect();
    assert_eq!(read, ["desk-1", "desk-2"]);
}

#[test]
fn classes_that_cannot_be_read_are_reported_where_a_machine_has_one() {
    let state = State::new();
    state.apply(machine("inline", json!({})));
    state.set_unreadable(CLASSES, "forbidden".to_owned());
    let shown = || {
        let now = at("2026-03-06T12:00:00Z");
        let body = page::week::body(&state.snapshot(), &Filter::default(), now);
        body.live.into_string()
    };
    assert!(!shown().contains("ScheduledMachineClasses"), "{}", shown());
    state.apply(of_class("desk-1"));
    let notice = "ScheduledMachineClasses cannot be read at present, the page does not include \
                  them: forbidden";
    assert!(shown().contains(notice), "{}", shown());
}

//! Sets above the list of machines.

use fivespot_controller::Key;
use serde_json::{Value, json};

use super::at;
use crate::decoded::decoded;
use crate::filter::Filter;
use crate::page;
use crate::state::State;

fn object(status: Value) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachineSet",
        "metadata": {"name": "desks", "namespace": "team-a", "generation": 1},
        "spec": {"replicas": 5, "template": {"spec": {
            "classRef": {"name": "lent-desks"},
            "schedule": {"daysOfWeek": ["mon-sun"], "hoursOfDay": ["19-23"], "timezone": "UTC"},
        }}},
        "status": status,
    })
}

fn with(object: Value) -> State {
    let state = State::new();
    let set = decoded(serde_json::from_value(object).unwrap());
    state.change_set(&Key::new("team-a".to_owned(), "desks"), Some(set));
    state
}

fn live(state: &State, filter: &Filter) -> String {
    let now = at("2026-03-06T22:00:00Z");
    page::list::body(&state.snapshot(), filter, now)
        .live
        .into_string()
}

#[test]
fn a_set_says_how_many_machines_it_wants_and_has_and_links_to_them() {
    let ready = json!({
        "type": "Ready", "status": "False", "reason": "NoHostFree",
        "message": "4 of 5 <ScheduledMachines> are Active",
        "lastTransitionTime": "2026-03-06T19:00:00Z",
    });
    let state = with(object(json!({
        "replicas": 5, "activeReplicas": 4, "readyReplicas": 3, "conditions": [ready],
    })));
    let html = live(&state, &Filter::default());
    let link = "machines?namespace=team-a&amp;\
                label=5spot.finos.org%2Fscheduled-machine-set%3Ddesks";
    assert!(html.contains(link), "{html}");
    assert!(
        html.contains("4 of 5 &lt;ScheduledMachines&gt; are Active"),
        "{html}"
    );
    let cells = |label: &str, value: &str| format!("data-label=\"{label}\">{value}</td>");
    for (label, value) in [
        ("Wanted", "5"),
        ("Exist", "5"),
        ("Active", "4"),
        ("Ready", "3"),
    ] {
        assert!(html.contains(&cells(label, value)), "{label}: {html}");
    }
    let elsewhere = Filter {
        namespace: "team-b".to_owned(),
        ..Filter::default()
    };
    assert!(!live(&state, &elsewhere).contains("desks"));
    state.change_set(&Key::new("team-a".to_owned(), "desks"), None);
    assert!(!live(&state, &Filter::default()).contains("desks"));
}

#[test]
fn a_set_without_a_status_or_that_cannot_be_decoded_says_so() {
    let new = with(object(Value::Null));
    assert!(live(&new, &Filter::default()).contains("has not reported on it yet"));
    let mut broken = object(Value::Null);
    broken["spec"]["replicas"] = "many".into();
    let html = live(&with(broken), &Filter::default());
    assert!(html.contains("cannot be decoded"), "{html}");
    assert!(html.contains("data-label=\"Wanted\">–</td>"), "{html}");
}

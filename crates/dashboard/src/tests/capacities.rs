//! The page of ScheduledCapacities.

use fivespot_api::verdict::Lease;
use fivespot_controller::Key;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{at, machine, text};
use crate::decoded::decoded;
use crate::filter::Filter;
use crate::page;
use crate::reader::Leases;
use crate::state::{CAPACITIES, State};

fn object(name: &str, status: Value) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledCapacity",
        "metadata": {"name": name, "namespace": "team-a", "generation": 1},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC"},
            "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "capacity": {"field": "replicas", "activeValue": 4, "inactiveValue": 0},
        },
        "status": status,
    })
}

/// Its status: the value that is written and what the Ready condition says.
fn status(
    phase: &str,
    value: i64,
    (is_ready, reason, message): (&str, &str, &str),
) -> Value {
    json!({
        "phase": phase,
        "observedGeneration": 1,
        "nextTransition": "2026-03-06T17:00:00Z",
        "written": [{"field": "replicas", "value": value}],
        "conditions": [{
            "type": "Ready", "status": is_ready, "reason": reason, "message": message,
            "lastTransitionTime": "2026-03-06T09:00:00Z",
        }],
    })
}

fn apply(state: &State, name: &str, object: Value) {
    let key = Key::new("team-a".to_owned(), name);
    state.change_capacity(&key, Some(decoded(serde_json::from_value(object).unwrap())));
}

/// A state with one that is serving, one that is blocked, and one that cannot be decoded.
fn three() -> State {
    let state = State::new();
    let serving = status(
        "Active",
        4,
        ("True", "Applied", "Deployment web has what is wanted"),
    );
    apply(&state, "a-serving", object("a-serving", serving));
    let refused = (
        "False",
        "WriteForbidden",
        "deployments.apps \"web\" is forbidden",
    );
    let blocked = status("Error", 0, refused);
    apply(&state, "b-blocked", object("b-blocked", blocked));
    let mut broken = object("c-broken", Value::Null);
    broken["spec"]["capacity"] = "all".into();
    apply(&state, "c-broken", broken);
    state.set_listed();
    state
}

fn now() -> Timestamp {
    at("2026-03-06T12:00:00Z")
}

fn shown(state: &State, filter: &Filter) -> String {
    text(&page::capacities::body(&state.snapshot(), filter, now()))
}

/// The names in the order of their rows.
fn rows(state: &State, filter: &Filter) -> Vec<String> {
    let body = page::capacities::body(&state.snapshot(), filter, now());
    let markup = body.live.into_string();
    let keys = markup.split("data-key=\"team-a/").skip(1);
    keys.filter_map(|it| Some(it.split_once('"')?.0.to_owned()))
        .collect()
}

#[test]
fn capacities_are_listed_with_their_verdict_and_what_is_blocked_comes_first() {
    let state = three();
    let all = Filter::default();
    assert_eq!(rows(&state, &all), ["b-blocked", "c-broken", "a-serving"]);
    let page = shown(&state, &all);
    for part in [
        "Blocked 1",
        "3 capacities",
        "ServingActiveDeployment webreplicas=4in 5h (Fri 6 Mar 17:00 UTC)Deployment web has what is wanted",
        "BlockedErrorDeployment webreplicas=0",
        "deployments.apps &quot;web&quot; is forbidden",
        "the object cannot be read: ",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_capacity_that_is_blocked_says_what_to_do() {
    let remedy = fivespot_api::condition::capacity_reason::row("WriteForbidden")
        .and_then(|row| row.remedy)
        .unwrap();
    let page = shown(&three(), &Filter::default());
    assert!(page.contains(remedy.text), "{page}");
}

#[test]
fn a_filter_admits_capacities_by_state_name_and_namespace() {
    let state = three();
    let filters = [
        (
            Filter {
                state: "Serving".to_owned(),
                ..Filter::default()
            },
            "a-serving",
        ),
        (
            Filter {
                q: "block".to_owned(),
                ..Filter::default()
            },
            "b-blocked",
        ),
    ];
    for (filter, name) in filters {
        assert_eq!(rows(&state, &filter), [name]);
        assert!(shown(&state, &filter).contains("1 of 3 capacities"));
    }
    let elsewhere = Filter {
        namespace: "team-b".to_owned(),
        ..Filter::default()
    };
    let page = shown(&state, &elsewhere);
    assert!(
        page.contains("No ScheduledCapacity matches the filter."),
        "{page}"
    );
}

#[test]
fn the_week_counts_capacities_and_links_to_those_in_each_state() {
    let week = |state: &State| {
        let body = page::week::body(&state.snapshot(), &Filter::default(), now());
        body.live.into_string()
    };
    let markup = week(&three());
    assert!(
        markup.contains("href=\"capacities?state=Blocked\""),
        "{markup}"
    );
    assert!(markup.contains("3 capacities"), "{markup}");
    assert!(!week(&State::new()).contains("capacities"));
}

#[test]
fn capacities_that_may_not_be_listed_are_shown_as_not_readable_with_the_role() {
    let state = State::new();
    state.apply(machine("desk-1", json!({})));
    let refusal = "failed to perform initial object list: ApiError: \
                   scheduledcapacities.5spot.finos.org is forbidden: User \"guest\" cannot list \
                   resource \"scheduledcapacities\" in API group \"5spot.finos.org\" at the \
                   cluster scope";
    state.set_unreadable(CAPACITIES, refusal.to_owned());
    let page = shown(&state, &Filter::default());
    let notice = "ScheduledCapacities: not readable, the page does not include them; a role with \
                  list of scheduledcapacities.5spot.finos.org allows it";
    assert!(page.contains(notice), "{page}");
    assert!(!page.contains("No ScheduledCapacity"), "{page}");
}

#[test]
fn a_deleted_capacity_is_no_longer_listed() {
    let state = three();
    state.change_capacity(&Key::new("team-a".to_owned(), "b-blocked"), None);
    assert_eq!(rows(&state, &Filter::default()), ["c-broken", "a-serving"]);
}

fn lease(name: &str, renewed: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "holderIdentity": format!("{name}-0"), "leaseDurationSeconds": 15,
            "renewTime": renewed,
        },
    })
}

#[test]
fn capacities_are_judged_by_the_lease_of_their_own_controller_where_they_have_one() {
    let fresh = lease("5spot-leader", "2026-03-06T11:59:55.000000Z");
    let lapsed = lease("5spot-capacity", "2026-03-06T11:55:00.000000Z");
    let read =
        |leases: &[Value]| Leases::of(leases, "5spot-leader", "5spot-system", now());
    let alone = read(std::slice::from_ref(&fresh));
    assert_eq!(alone.capacities, Lease::Held);
    let both = read(&[fresh, lapsed]);
    assert_eq!(both.machines, Lease::Held);
    let state = three();
    state.set_leases(both);
    let page = shown(&state, &Filter::default());
    for part in [
        "No controller of ScheduledCapacities runs, so no value changes",
        "5spot-capacity-0 renewed the Lease 5m ago",
        "Unknown 3",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("No operator runs"), "{page}");
}

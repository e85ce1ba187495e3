use std::cell::Cell;

use fivespot_api::schedule_override::MAX_OVERRIDES;
use serde_json::{Value, json};

use super::*;

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn keys(names: &[&str]) -> BTreeSet<Key> {
    names.iter().map(|name| key(name)).collect()
}

fn an_override(name: &str, mode: &str, whom: &Value) -> ScheduleOverride {
    let mut object = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"mode": mode, "endTime": "2026-03-16T15:00:00Z"},
    });
    for (field, value) in whom.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn of_team(team: &str) -> Value {
    json!({"selector": {"matchLabels": {"team": team}}})
}

fn machine(team: &str) -> Machine {
    Machine {
        labels: BTreeMap::from([("team".to_owned(), team.to_owned())]),
        is_ignoring: false,
        class: None,
    }
}

fn never(_: &Key) -> Option<ScheduleOverride> {
    panic!("no other override takes a place")
}

/// The machines `a-0` to `a-2` of team `a`, `b-0` of team `b`, and a machine of another namespace.
fn index() -> OverrideIndex {
    let index = OverrideIndex::default();
    for name in ["a-0", "a-1", "a-2", "b-0"] {
        index.change_machine(&key(name), Some(machine(&name[..1])));
    }
    index.change_machine(&Key::new("other", "a-9"), Some(machine("a")));
    index
}

#[test]
fn a_new_override_affects_the_machines_of_its_namespace_that_it_matches() {
    let whom = [
        (of_team("a"), keys(&["a-0", "a-1", "a-2"])),
        (json!({"targetRef": {"name": "b-0"}}), keys(&["b-0"])),
        (json!({"targetRef": {"name": "none"}}), keys(&[])),
        (
            json!({"selector": {"matchExpressions": [
                {"key": "team", "operator": "NotIn", "values": ["a"]},
            ]}}),
            keys(&["b-0"]),
        ),
        (
            json!({"selector": {
                "matchLabels": {"team": "a"},
                "matchExpressions": [{"key": "team", "operator": "DoesNotExist"}],
            }}),
            keys(&[]),
        ),
    ];
    for (whom, machines) in whom {
        let index = index();
        let object = an_override("o", "Stop", &whom);
        let affected = index.change_override(&key("o"), Some(object), never);
        assert_eq!(affected.machines, machines, "{whom}");
        assert_eq!(affected.overrides, keys(&["o"]));
        assert_eq!(index.matched(&key("o")).machines, machines.len());
    }
}

#[test]
fn a_change_of_metadata_or_status_of_an_override_affects_nothing() {
    let index = index();
    let object = an_override("o", "Stop", &of_team("a"));
    index.change_override(&key("o"), Some(object.clone()), never);
    let mut noted = object.clone();
    noted.metadata.annotations = Some(BTreeMap::from([("k".into(), "v".into())]));
    noted.status = Some(fivespot_api::ScheduleOverrideStatus::default());
    let affected = index.change_override(&key("o"), Some(noted), never);
    assert_eq!(affected, Affected::default());
    let mut longer = object;
    longer.spec.end_time = "2026-03-17T15:00:00Z".to_owned();
    let affected = index.change_override(&key("o"), Some(longer), never);
    assert_eq!(affected.machines, keys(&["a-0", "a-1", "a-2"]));
}

#[test]
fn a_machine_affects_the_overrides_that_match_it_before_or_after() {
    let index = index();
    for team in ["a", "b", "c"] {
        let object = an_override(team, "Hold", &of_team(team));
        index.change_override(&key(team), Some(object), never);
    }
    let at = key("a-0");
    assert_eq!(index.change_machine(&at, Some(machine("a"))), keys(&[]));
    assert_eq!(
        index.change_machine(&at, Some(machine("b"))),
        keys(&["a", "b"])
    );
    let disabled = Machine {
        is_ignoring: true,
        ..machine("b")
    };
    assert_eq!(index.change_machine(&at, Some(disabled)), keys(&["b"]));
    assert_eq!(index.matched(&key("b")).ignoring, ["a-0"]);
    let of_class = Machine {
        class: Some("desks".to_owned()),
        ..machine("b")
    };
    assert_eq!(index.change_machine(&at, Some(of_class)), keys(&["b"]));
    assert_eq!(index.classes(&key("b")), ["desks".to_owned()].into());
    assert_eq!(index.classes(&key("a")), BTreeSet::new());
    assert_eq!(index.change_machine(&at, None), keys(&["b"]));
    assert_eq!(index.matched(&key("a")).machines, 2);
}

#[test]
fn of_too_many_overrides_only_those_that_become_considered_are_read_and_affect_machines()
{
    let index = index();
    for number in 0..MAX_OVERRIDES {
        let name = format!("o-{number:03}");
        let object = an_override(&name, "Run", &of_team("a"));
        index.change_override(&key(&name), Some(object), never);
    }
    let more = |name: &str| an_override(name, "Run", &of_team("b"));
    let affected = index.change_override(&key("x"), Some(more("x")), never);
    assert_eq!(affected, Affected::default(), "it is beyond the limit");
    assert!(index.matched(&key("x")).is_beyond_limit);
    let affected = index.change_override(&key("x"), Some(more("x")), never);
    assert_eq!(affected, Affected::default());
    // A Hold takes the place of the last Run.
    let hold = an_override("hold", "Hold", &json!({"targetRef": {"name": "b-0"}}));
    let affected = index.change_override(&key("hold"), Some(hold), never);
    assert_eq!(affected.overrides, keys(&["hold", "o-255"]));
    assert_eq!(affected.machines, keys(&["a-0", "a-1", "a-2", "b-0"]));
    // Two places are free: for the last Run, and for the one that had none.
    let reads = Cell::new(0);
    let read = |at: &Key| {
        reads.set(reads.get() + 1);
        Some(an_override(&at.name, "Run", &of_team("a")))
    };
    let affected = index.change_override(&key("hold"), None, read);
    assert_eq!(affected.overrides, keys(&["hold", "o-255"]));
    let affected = index.change_override(&key("o-000"), None, read);
    assert_eq!(affected.overrides, keys(&["o-000", "x"]));
    assert_eq!(reads.get(), 2);
}

#[test]
fn nothing_is_kept_of_objects_that_are_gone() {
    let index = index();
    let object = an_override("o", "Stop", &of_team("a"));
    index.change_override(&key("o"), Some(object), never);
    for key in index.overrides() {
        index.change_override(&key, None, never);
    }
    for key in index.machines() {
        index.change_machine(&key, None);
    }
    assert!(index.namespaces().is_empty());
}

#[test]
fn a_class_concerns_the_overrides_of_namespaces_in_which_a_machine_names_it() {
    let index = index();
    let own = an_override("o", "Run", &of_team("a"));
    let elsewhere = Key::new("other", "o");
    for key in [&key("o"), &elsewhere] {
        index.change_override(key, Some(own.clone()), never);
    }
    assert_eq!(index.overrides_beside("desks"), keys(&[]));
    let of_class = Machine {
        class: Some("desks".to_owned()),
        ..machine("b")
    };
    index.change_machine(&key("b-0"), Some(of_class));
    assert_eq!(index.overrides_beside("desks"), keys(&["o"]));
    assert_eq!(index.overrides_beside("others"), keys(&[]));
}

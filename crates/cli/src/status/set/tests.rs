use insta::assert_snapshot;

use super::*;
use crate::explain::unreadable::Unreadable;
use crate::set::tests::{judge, set, two_of_three};
use crate::status::zone::Zones;
use crate::status::{Form, Found, print, rows, values};

#[test]
fn a_set_is_a_line_with_what_it_wants_and_has_and_why_that_is_less() {
    let machines = two_of_three();
    let found = set(3, ("True", "3 of 3 ScheduledMachines exist"));
    let sets = Sets::from(vec![SetState::of(&found, machines.iter(), &judge())]);
    let mut out = Vec::new();
    sets.print(&mut out).unwrap();
    assert_snapshot!(String::from_utf8(out).unwrap());
    assert_snapshot!(serde_json::to_string_pretty(&sets.rows).unwrap());
}

#[test]
fn a_set_that_is_named_is_shown_below_its_machines() {
    let objects = |found: Vec<Value>| -> Vec<DynamicObject> {
        serde_json::from_value(json!(found)).unwrap()
    };
    let named = objects(vec![set(3, ("True", "3 of 3 ScheduledMachines exist"))]);
    let of_set = values(&owned(&named, objects(two_of_three())));
    let found = Found {
        machines: rows(&judge(), &Zones::default(), &of_set),
        sets: Sets::of(&named, &of_set, &judge()),
        ..Found::default()
    };
    let mut out = Vec::new();
    let instants = Form::Wide.instants(&judge());
    print(Form::Wide, &found, None, &instants, &mut out).unwrap();
    assert_snapshot!(String::from_utf8(out).unwrap());
    assert!(found.only().is_none(), "a set has no verdict");
}

#[test]
fn sets_that_may_not_be_read_are_said_to_be_there() {
    let why = "scheduledmachinesets.5spot.finos.org is forbidden";
    let sets = Sets::from(Unreadable::of("scheduledmachinesets", why));
    let mut out = Vec::new();
    sets.print(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.starts_with("scheduledmachinesets: not readable"),
        "{text}"
    );
}

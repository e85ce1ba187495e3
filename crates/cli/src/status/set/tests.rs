use insta::assert_snapshot;

use super::*;
use crate::set::tests::{judge, set, two_of_three};

#[test]
fn a_set_is_a_line_with_what_it_wants_and_has_and_why_that_is_less() {
    let machines = two_of_three();
    let found = set(3, ("True", "3 of 3 ScheduledMachines exist"));
    let sets = Sets {
        rows: vec![SetState::of(&found, machines.iter(), &judge())],
        unreadable: None,
    };
    let mut out = Vec::new();
    sets.print(&mut out).unwrap();
    assert_snapshot!(String::from_utf8(out).unwrap());
    assert_snapshot!(serde_json::to_string_pretty(&sets.rows).unwrap());
}

#[test]
fn sets_that_may_not_be_read_are_said_to_be_there() {
    let why = "scheduledmachinesets.5spot.finos.org is forbidden";
    let sets = Sets {
        rows: Vec::new(),
        unreadable: Some(Unreadable::of("scheduledmachinesets", why)),
    };
    let mut out = Vec::new();
    sets.print(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.starts_with("scheduledmachinesets: not readable"),
        "{text}"
    );
}

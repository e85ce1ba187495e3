use insta::assert_snapshot;

use super::*;
use crate::set::tests::{judge, set, two_of_three};

fn documents(objects: Vec<Value>) -> Vec<Document> {
    let document = |object| Document {
        origin: String::new(),
        object,
        location: None,
    };
    objects.into_iter().map(document).collect()
}

fn printed(report: &Report) -> String {
    let mut out = Vec::new();
    text(&mut out, report).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_machines_of_a_set_are_listed_with_what_keeps_them_from_service() {
    let found = set(3, ("True", "3 of 3 ScheduledMachines exist"));
    let report = report(&found, Ok(documents(two_of_three())), &judge());
    assert_snapshot!(printed(&report));
    assert_snapshot!(serde_json::to_string_pretty(&report).unwrap());
}

#[test]
fn a_set_whose_machines_may_not_be_read_says_who_can_allow_it() {
    let found = set(3, ("True", "3 of 3 ScheduledMachines exist"));
    let why = "scheduledmachines.5spot.finos.org is forbidden";
    let unreadable = Unreadable::of("scheduledmachines", why);
    assert_snapshot!(printed(&report(&found, Err(unreadable), &judge())));
}

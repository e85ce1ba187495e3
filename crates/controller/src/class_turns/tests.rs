use fivespot_plan::limits::{Limit, Span};
use jiff::SignedDuration;
use kubemu_clock::after;

use super::*;
use crate::awaited::AWAITED;

struct Desks {
    turns: ClassTurns,
    limits: Arc<LimitsOfClass>,
    exist: Vec<&'static str>,
    now: Timestamp,
}

fn desks(machines: u32, exist: &[&'static str]) -> Desks {
    Desks {
        turns: ClassTurns::default(),
        limits: Arc::new(LimitsOfClass {
            machines: Some(machines),
            timezone: "UTC".to_owned(),
            ..LimitsOfClass::default()
        }),
        exist: exist.to_vec(),
        now: "2026-03-06T12:00:00Z".parse().unwrap(),
    }
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn keys(names: &[&str]) -> Vec<Key> {
    names.iter().map(|name| key(name)).collect()
}

/// A machine that is needed between these minutes from noon on.
fn claim(priority: u8, minutes: [i64; 2]) -> Claim {
    let noon: Timestamp = "2026-03-06T12:00:00Z".parse().unwrap();
    let at = |minutes| after(noon, SignedDuration::from_mins(minutes));
    Claim {
        priority,
        holds: false,
        spans: vec![Span {
            start: at(minutes[0]),
            end: Some(at(minutes[1])),
        }],
        used: None,
    }
}

impl Desks {
    fn ask(&self, name: &str, claim: Claim) -> Answer {
        let request = Request {
            class: "desks".to_owned(),
            limits: self.limits.clone(),
            claim,
        };
        let all = || self.exist.iter().map(|name| key(name)).collect();
        self.turns.ask(&key(name), request, self.now, all)
    }

    fn wait(&mut self, minutes: i64) {
        self.now = after(self.now, SignedDuration::from_mins(minutes));
    }
}

fn is_waiting(answer: &Answer) -> bool {
    let wait = Limit::Machines;
    matches!(answer.turn, Some(Turn::Wait { limit, .. }) if limit == wait)
}

#[test]
fn after_a_start_nobody_is_allowed_before_all_have_said_what_they_claim() {
    let desks = desks(1, &["a", "b", "c"]);
    let first = desks.ask("a", claim(1, [0, 60]));
    assert_eq!(first.turn, None);
    assert_eq!(first.again, Some(after(desks.now, AWAITED)));
    assert_eq!(desks.ask("b", claim(2, [0, 60])).turn, None);
    let last = desks.ask("c", claim(3, [0, 60]));
    assert_eq!(last.turn, Some(Turn::Open));
    assert_eq!(last.others, keys(&["a", "b"]));
    assert!(is_waiting(&desks.ask("a", claim(1, [0, 60]))));
}

#[test]
fn one_that_never_says_anything_is_awaited_for_half_a_minute() {
    let mut desks = desks(1, &["a", "broken"]);
    assert_eq!(desks.ask("a", claim(1, [0, 60])).turn, None);
    desks.wait(1);
    let later = desks.ask("a", claim(1, [0, 60]));
    assert_eq!(later.turn, Some(Turn::Open));
}

#[test]
fn at_an_edge_the_order_in_which_machines_are_reconciled_makes_no_difference() {
    let mut desks = desks(1, &["low", "high"]);
    desks.ask("low", claim(1, [10, 60]));
    desks.ask("high", claim(9, [10, 60]));
    desks.wait(10);
    assert!(is_waiting(&desks.ask("low", claim(1, [10, 60]))));
    let high = desks.ask("high", claim(9, [10, 60]));
    assert_eq!(high.turn, Some(Turn::Open));
}

#[test]
fn one_that_has_begun_keeps_its_turn_and_who_waits_hears_when_it_leaves() {
    let mut desks = desks(1, &["low"]);
    desks.ask("low", claim(1, [0, 60]));
    let running = Claim {
        holds: true,
        ..claim(1, [0, 60])
    };
    desks.ask("low", running.clone());
    assert!(is_waiting(&desks.ask("b", claim(9, [0, 60]))));
    assert!(is_waiting(&desks.ask("a", claim(10, [0, 60]))));
    assert_eq!(desks.ask("low", running.clone()).others, []);
    desks.wait(1);
    // It is stopped early.
    let stopped = Claim {
        spans: Vec::new(),
        ..running
    };
    assert_eq!(desks.ask("low", stopped).others, keys(&["a", "b"]));
    let next = desks.ask("a", claim(10, [0, 60]));
    assert_eq!(next.turn, Some(Turn::Open));
    assert_eq!(desks.turns.leave(&key("a")), keys(&["b"]));
    let last = desks.ask("b", claim(9, [0, 60]));
    assert_eq!(last.turn, Some(Turn::Open));
}

#[test]
fn an_edit_of_the_class_tells_those_for_whom_it_makes_a_difference() {
    let mut desks = desks(1, &["a"]);
    desks.ask("a", claim(9, [0, 60]));
    desks.ask("b", claim(5, [0, 60]));
    desks.ask("c", claim(1, [0, 60]));
    desks.limits = Arc::new(LimitsOfClass {
        machines: Some(2),
        ..LimitsOfClass::clone(&desks.limits)
    });
    let answer = desks.ask("a", claim(9, [0, 60]));
    assert_eq!(answer.turn, Some(Turn::Open));
    assert!(answer.others.contains(&key("b")));
}

#[test]
fn a_class_in_one_namespace_knows_nothing_of_another_and_a_machine_may_change_its_class()
{
    let desks = desks(1, &["a"]);
    desks.ask("a", claim(1, [0, 60]));
    assert!(is_waiting(&desks.ask("b", claim(1, [0, 60]))));
    let elsewhere = Key::new("other", "b");
    let request = Request {
        class: "desks".to_owned(),
        limits: desks.limits.clone(),
        claim: claim(1, [0, 60]),
    };
    let answer = desks
        .turns
        .ask(&elsewhere, request.clone(), desks.now, Vec::new);
    assert_eq!(answer.turn, Some(Turn::Open));
    let class = "others".to_owned();
    let moved = Request { class, ..request };
    let answer = desks.turns.ask(&key("a"), moved, desks.now, Vec::new);
    assert_eq!(answer.turn, Some(Turn::Open));
    assert_eq!(answer.others, keys(&["b"]));
}

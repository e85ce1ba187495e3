use fivespot_plan::limits::Span;
use fivespot_plan::rates::Rate;

use super::*;
use crate::awaited::AWAITED;

struct Desks {
    all: ClassRates,
    rates: RatesOfClass,
    exist: Vec<&'static str>,
    now: Timestamp,
}

fn desks(starts: u32, exist: &[&'static str]) -> Desks {
    Desks {
        all: ClassRates::default(),
        rates: RatesOfClass {
            starts: Some(starts),
            ..RatesOfClass::default()
        },
        exist: exist.to_vec(),
        now: noon(),
    }
}

fn noon() -> Timestamp {
    "2026-03-06T12:00:00Z".parse().unwrap()
}

/// `team-a/desk-1`.
fn key(name: &str) -> Key {
    let (namespace, name) = name.split_once('/').unwrap();
    Key::new(namespace, name)
}

fn keys(names: &[&str]) -> Vec<Key> {
    names.iter().map(|name| key(name)).collect()
}

/// A machine that is needed between these seconds from noon on.
fn claim(priority: u8, seconds: [i64; 2]) -> Claim {
    let at = |seconds| after(noon(), SignedDuration::from_secs(seconds));
    Claim {
        priority,
        stage: Stage::Absent,
        spans: vec![Span {
            start: at(seconds[0]),
            end: Some(at(seconds[1])),
        }],
        ..Claim::default()
    }
}

fn active(of: Claim) -> Claim {
    Claim {
        stage: Stage::Active,
        ..of
    }
}

impl Desks {
    fn ask(&self, name: &str, claim: Claim) -> Answer {
        let request = Request {
            class: "desks".to_owned(),
            rates: self.rates,
            claim,
        };
        let all = || keys(&self.exist);
        self.all.ask(&key(name), request, self.now, all)
    }

    /// The machine has begun now.
    fn begin(&self, name: &str, of: Claim) -> Answer {
        let begun = Claim {
            started: Some(self.now),
            ..active(of)
        };
        self.ask(name, begun)
    }

    fn wait(&mut self, seconds: i64) {
        self.now = after(self.now, SignedDuration::from_secs(seconds));
    }
}

/// In how many seconds the machine may go.
fn waits(desks: &Desks, answer: &Answer) -> i64 {
    match answer.pace.unwrap() {
        Pace::Free => 0,
        Pace::Wait { again, .. } => again.unwrap().duration_since(desks.now).as_secs(),
    }
}

const HOUR: [i64; 2] = [0, 3600];

#[test]
fn after_a_start_nobody_is_allowed_before_all_of_the_class_have_said_what_they_claim() {
    let desks = desks(1, &["a/1", "b/1"]);
    let first = desks.ask("a/1", claim(1, HOUR));
    assert_eq!(first.pace, None);
    assert_eq!(first.again, Some(after(desks.now, AWAITED)));
    let last = desks.ask("b/1", claim(9, HOUR));
    assert_eq!(last.pace, Some(Pace::Free));
    assert_eq!(last.others, keys(&["a/1"]));
    assert_eq!(waits(&desks, &desks.ask("a/1", claim(1, HOUR))), 60);
}

#[test]
fn one_that_never_says_anything_is_awaited_for_half_a_minute() {
    let mut desks = desks(1, &["a/1", "a/broken"]);
    assert_eq!(desks.ask("a/1", claim(1, HOUR)).pace, None);
    desks.wait(30);
    assert_eq!(desks.ask("a/1", claim(1, HOUR)).pace, Some(Pace::Free));
}

#[test]
fn at_an_edge_the_order_in_which_machines_are_reconciled_makes_no_difference() {
    let mut desks = desks(1, &["a/low", "a/high"]);
    desks.ask("a/low", claim(1, [10, 3600]));
    desks.ask("a/high", claim(9, [10, 3600]));
    desks.wait(10);
    assert_eq!(waits(&desks, &desks.ask("a/low", claim(1, [10, 3600]))), 60);
    assert_eq!(waits(&desks, &desks.ask("a/high", claim(9, [10, 3600]))), 0);
}

#[test]
fn the_next_one_is_woken_when_its_slot_is_free_and_not_before() {
    let mut desks = desks(1, &["a/1"]);
    assert_eq!(waits(&desks, &desks.ask("a/1", claim(9, HOUR))), 0);
    assert_eq!(waits(&desks, &desks.ask("a/2", claim(8, HOUR))), 60);
    assert_eq!(waits(&desks, &desks.ask("a/3", claim(7, HOUR))), 120);
    desks.wait(2);
    // The first one begins a moment later than it was allowed to, and so does the next.
    assert_eq!(desks.begin("a/1", claim(9, HOUR)).others, []);
    desks.wait(58);
    assert_eq!(waits(&desks, &desks.ask("a/2", claim(8, HOUR))), 2);
    desks.wait(2);
    assert_eq!(waits(&desks, &desks.ask("a/2", claim(8, HOUR))), 0);
    assert_eq!(desks.begin("a/2", claim(8, HOUR)).others, []);
    assert_eq!(waits(&desks, &desks.ask("a/3", claim(7, HOUR))), 60);
}

#[test]
fn one_that_may_begin_and_has_not_yet_is_the_one_of_its_minute() {
    let mut desks = desks(1, &["a/1"]);
    assert_eq!(waits(&desks, &desks.ask("a/1", claim(5, HOUR))), 0);
    desks.wait(10);
    assert_eq!(waits(&desks, &desks.ask("a/2", claim(9, HOUR))), 50);
    assert_eq!(waits(&desks, &desks.ask("a/1", claim(5, HOUR))), 0);
}

#[test]
fn one_whose_turn_comes_earlier_than_it_was_told_is_woken() {
    let mut desks = desks(1, &["a/1"]);
    desks.ask("a/1", claim(9, HOUR));
    desks.ask("a/2", claim(8, HOUR));
    assert_eq!(waits(&desks, &desks.ask("a/3", claim(7, HOUR))), 120);
    let woken = desks.all.leave(&key("a/2"), desks.now);
    assert_eq!(woken, keys(&["a/3"]));
    assert_eq!(waits(&desks, &desks.ask("a/3", claim(7, HOUR))), 60);
    // Nor is an edit of the class missed.
    desks.rates.starts = Some(2);
    let answer = desks.ask("a/1", claim(9, HOUR));
    assert_eq!(answer.others, keys(&["a/3"]));
    desks.wait(1);
}

#[test]
fn a_machine_that_is_deleted_and_created_again_gains_no_start() {
    let mut desks = desks(1, &["a/1"]);
    desks.ask("a/1", claim(9, HOUR));
    desks.begin("a/1", claim(9, HOUR));
    desks.wait(10);
    desks.all.leave(&key("a/1"), desks.now);
    assert_eq!(waits(&desks, &desks.ask("a/1", claim(9, HOUR))), 50);
    desks.wait(50);
    assert_eq!(waits(&desks, &desks.ask("a/1", claim(9, HOUR))), 0);
}

#[test]
fn who_is_kept_leaves_when_another_one_is_active() {
    let mut desks = desks(1, &["a/1"]);
    desks.rates = RatesOfClass {
        minimum_active: 1,
        ..RatesOfClass::default()
    };
    desks.ask("a/1", active(claim(9, [0, 60])));
    desks.ask("b/2", claim(1, [50, 3600]));
    desks.wait(60);
    let kept = Pace::Wait {
        rate: Rate::MinimumActive,
        again: None,
    };
    let answer = desks.ask("a/1", active(claim(9, [0, 60])));
    assert_eq!(answer.pace, Some(kept));
    let answer = desks.ask("b/2", active(claim(1, [50, 3600])));
    assert_eq!(answer.others, keys(&["a/1"]));
    let answer = desks.ask("a/1", active(claim(9, [0, 60])));
    assert_eq!(answer.pace, Some(Pace::Free));
}

#[test]
fn a_claim_that_changes_nothing_costs_no_ruling() {
    let desks = desks(1, &["a/1"]);
    desks.ask("a/1", claim(9, HOUR));
    let ruled_at = || {
        let state = desks.all.state();
        (
            state.classes["desks"].ruled_at,
            state.classes["desks"].until,
        )
    };
    let before = ruled_at();
    desks.ask("a/1", claim(9, HOUR));
    // It is needed in the next hour, and nothing is known of it but that.
    desks.ask("a/2", claim(9, [3600, 7200]));
    assert_eq!(ruled_at(), before);
    desks.ask("a/3", claim(9, [30, 60]));
    assert_eq!(
        ruled_at().1,
        after(desks.now, SignedDuration::from_secs(30))
    );
}

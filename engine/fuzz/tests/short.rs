//! A short run of every target with a fixed seed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use kubemu_fuzz::{FuzzRun, TARGETS, Target};

fn is_clean(name: &str, cases: u64) {
    let target: Option<&'static Target> = TARGETS.iter().find(|it| it.name == name);
    let run = FuzzRun {
        seed: 1,
        cases: Some(cases),
        // Only the number of cases ends the run, on any machine.
        time: Duration::MAX,
        corpus: Vec::new(),
    };
    let counts = run.run(target.unwrap()).unwrap();
    assert_eq!(counts.cases, cases);
    assert!(counts.answers > 4, "{counts:?}");
}

#[test]
fn nothing_breaks_the_parser() {
    is_clean("parser", 2000);
}

#[test]
fn nothing_breaks_the_checker() {
    is_clean("checker", 2000);
}

#[test]
fn nothing_breaks_the_evaluator() {
    is_clean("evaluator", 2000);
}

#[test]
fn nothing_breaks_the_translation_of_patterns() {
    is_clean("pattern", 2000);
}

#[test]
fn nothing_breaks_schemas() {
    is_clean("schema", 300);
}

#[test]
fn nothing_breaks_policies() {
    is_clean("policy", 60);
}

#[test]
fn what_one_run_keeps_another_begins_with() {
    let target: &'static Target = TARGETS.iter().find(|it| it.name == "parser").unwrap();
    let run = |seed, corpus| {
        let run = FuzzRun {
            seed,
            cases: Some(4000),
            time: Duration::MAX,
            corpus,
        };
        run.run(target).unwrap()
    };
    let first = run(1, Vec::new());
    let again = run(2, first.kept.clone());
    assert!(!first.kept.is_empty());
    let is_kept = |text: &Vec<u8>| again.kept.contains(text);
    assert!(first.kept.iter().all(is_kept));
}

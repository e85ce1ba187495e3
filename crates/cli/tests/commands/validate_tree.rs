//! `5spot validate` over a tree in which much is wrong: each document has its verdict.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use fivespot_testkit::{MANIFEST_SORTS, ManifestTree, MeasuredRun};
use serde_json::Value;

/// How many files there are of each sort. `cargo run --bin validate -- --tree` has ten thousand.
const EACH: usize = 50;

/// Validates a tree, with the CRDs in it.
fn validate(tree: &ManifestTree, words: &[&str]) -> MeasuredRun {
    let mut command = Command::new(env!("CARGO_BIN_EXE_5spot"));
    command.args(["validate", "-f"]).arg(tree.path());
    command.arg("--crd").arg(tree.definitions()).args(words);
    MeasuredRun::of(&mut command).unwrap()
}

/// The sort of the file of a document.
fn sort_of(item: &Value) -> &str {
    let origin = Path::new(item["origin"].as_str().unwrap());
    let name = origin.file_name().unwrap().to_str().unwrap();
    name.split('-').next().unwrap()
}

#[test]
fn every_document_of_a_tree_has_its_verdict_whatever_is_beside_it() {
    let tree = ManifestTree::new("verdicts", EACH).unwrap();
    let run = validate(&tree, &["-o", "json"]);
    assert_eq!(run.output.status.code(), Some(1), "{:?}", run.output.stderr);
    let report: Value = serde_json::from_slice(&run.output.stdout).unwrap();
    let mut found: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for item in report["items"].as_array().unwrap() {
        let result = item["result"].as_str().unwrap();
        *found.entry((sort_of(item), result)).or_default() += 1;
    }
    let expected = MANIFEST_SORTS.iter().filter(|it| it.documents > 0);
    let expected = expected.map(|it| ((it.name, it.verdict), EACH * it.documents));
    assert_eq!(found, expected.collect());
    let peak = run.peak_kib >> 10;
    assert!((1..=150).contains(&peak), "{peak} MiB");
}

#[test]
fn no_name_in_a_tree_puts_control_characters_into_the_text() {
    let tree = ManifestTree::new("names", 5).unwrap();
    let output = validate(&tree, &[]).output;
    assert_eq!(output.status.code(), Some(1));
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8(printed).unwrap();
    let is_control = |letter: char| letter.is_control() && letter != '\n';
    assert!(!printed.contains(is_control), "{printed:?}");
    let counts = printed.lines().next_back().unwrap();
    assert!(counts.contains(" valid, "), "{counts}");
    assert!(!printed.contains("\n name-"), "a name is on one line");
}

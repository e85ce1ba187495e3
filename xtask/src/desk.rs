//! The table of times in the page about lent desks, from what its test has kept.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::marked_page::filled;
use crate::stored_results::items;

/// The page, below the root.
pub(crate) const PATH: &str = "docs/how-to/lend-my-desk.md";
/// What `RECORD_TIMES` has kept.
const TIMES: &str = "proof/results/desk.json";
/// What `RECORD_DESK` has kept.
const ROUNDS: &str = "proof/results/desk-rounds.json";
/// What servers have answered to a thief, as the promise compares it.
const ANSWERS: &str = "e2e/tests/snapshots/\
    promises__host_keeps_to_its_machine__a_thief_of_its_kubeconfig_can_do_nothing_else.snap";

/// The whole page.
///
/// # Errors
/// A result or the page cannot be read, or the page has no place for a table.
pub(crate) fn page(root: &Path) -> Result<String, Box<dyn Error>> {
    let read = |file: &str| fs::read_to_string(root.join(file));
    let parts = [
        ("times", times(&serde_json::from_str(&read(TIMES)?)?)),
        ("rounds", rounds(&serde_json::from_str(&read(ROUNDS)?)?)),
        ("answers", answers(&read(ANSWERS)?)),
    ];
    filled(root, PATH, parts)
}

fn times(kept: &Value) -> String {
    let mut text = "\
| from; to | measured | 50 in 100 within | 99 in 100 within | longest |
|---|---:|---:|---:|---:|
"
    .to_owned();
    for step in items(&kept["steps"]) {
        let _ = writeln!(
            text,
            "| {} | {} times | {} ms | {} ms | {} ms |",
            step["step"].as_str().unwrap_or_default(),
            step["rounds"],
            step["p50"],
            step["p99"],
            step["most"],
        );
    }
    text
}

fn rounds(kept: &Value) -> String {
    let mut text = "\
| from; to | measured | longest, on the clock of the cluster | longest, in computing time |
|---|---:|---:|---:|
"
    .to_owned();
    for step in items(&kept["steps"]) {
        let _ = writeln!(
            text,
            "| {} | {} times | {} s | {} ms |",
            step["step"].as_str().unwrap_or_default(),
            step["rounds"],
            step["cluster"],
            step["real"],
        );
    }
    text
}

/// Each line after the header of the snapshot is what is tried, and the answer.
fn answers(snapshot: &str) -> String {
    let lines = snapshot.split("---\n").nth(2).unwrap_or_default().lines();
    let mut text =
        "| the thief tries to | the API server answers |\n|---|---|\n".to_owned();
    for (what, answer) in lines.filter_map(|line| line.split_once(": ")) {
        let _ = writeln!(text, "| {what} | `{answer}` |");
    }
    text
}

//! The table of times in the page about lent desks, from what its test has kept.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::stored_results::items;

/// The page, below the root.
pub(crate) const PATH: &str = "docs/how-to/lend-my-desk.md";
/// What `RECORD_TIMES` has kept.
const FILE: &str = "proof/results/desk.json";
/// What is between these lines is written here.
const MARKS: [&str; 2] = ["<!-- times -->\n", "<!-- end of times -->\n"];

/// The whole page.
///
/// # Errors
/// The result or the page cannot be read, or the page has no place for the table.
pub(crate) fn page(root: &Path) -> Result<String, Box<dyn Error>> {
    let written = fs::read_to_string(root.join(PATH))?;
    let kept = serde_json::from_str(&fs::read_to_string(root.join(FILE))?)?;
    let [begin, end] = MARKS;
    let parts = written.split_once(begin).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(end)?;
        Some((before, after))
    });
    let (before, after) = parts.ok_or_else(|| format!("{PATH} has no {begin}"))?;
    Ok(format!("{before}{begin}{}{end}{after}", table(&kept)))
}

fn table(kept: &Value) -> String {
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

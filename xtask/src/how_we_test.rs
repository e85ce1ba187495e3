//! `internals/how-we-test.md`: what each layer of tests proves, how to run it, and the results of its
//! last run.
//!
//! The commands keep their numbers in the source tree; this module runs nothing.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::figure;
use crate::marked_page::filled;
use crate::stored_results::{items, number};

/// Where the page is, below the root.
pub(crate) const PATH: &str = "internals/how-we-test.md";

/// What `benches/validate --tree` has kept.
const VALIDATE: &str = "proof/results/validate.json";

/// What `proof mutation` has recorded.
const MUTATION: &str = "proof/results/mutation.json";

/// What `proof coverage` has recorded.
const COVERAGE: &str = "proof/results/coverage.json";

/// Where `cargo xtask promises` stores the results of the scenarios with every fault, a file per
/// backend.
pub(crate) const FAULTS: &str = "proof/results/faults";

/// The whole page.
///
/// # Errors
/// A result cannot be read.
pub(crate) fn page(root: &Path) -> Result<String, Box<dyn Error>> {
    let read = |file: &str| fs::read_to_string(root.join(file));
    let parts = [
        ("recorded", figure::table(&figure::figures(root)?)),
        (
            "mutation",
            mutation(&serde_json::from_str(&read(MUTATION)?)?),
        ),
        (
            "coverage",
            coverage(&serde_json::from_str(&read(COVERAGE)?)?),
        ),
        (
            "manifests",
            validate(&serde_json::from_str(&read(VALIDATE)?)?),
        ),
    ];
    filled(root, PATH, parts)
}

/// What `cargo mutants` finds in each crate, and why each mutant that is missed may live.
fn mutation(result: &Value) -> String {
    let mut text = "\
| crate | mutants | tried | detected by a test | by the time it takes | does not compile | missed |
|---|---:|---:|---:|---:|---:|---:|
"
    .to_owned();
    let mut reasons = "\n| missed | mutation | why |\n|---|---|---|\n".to_owned();
    for (name, of) in result.as_object().into_iter().flatten() {
        let counts = ["mutants", "tried", "caught", "timeouts", "unviable"];
        let counts = counts.map(|count| of[count].to_string()).join(" | ");
        let missed = items(&of["missed"]).count();
        let _ = writeln!(text, "| {name} | {counts} | {missed} |");
        for of in items(&of["missed"]) {
            let of =
                |field: &str| of[field].as_str().unwrap_or_default().replace('|', "\\|");
            let (at, mutation, reason) = (of("at"), of("mutation"), of("reason"));
            let _ = writeln!(reasons, "| `{at}` | `{mutation}` | {reason} |");
        }
    }
    text + &reasons
}

/// How much of each crate the tests run.
fn coverage(result: &Value) -> String {
    let mut text = "| crate | regions | run | share |\n|---|---:|---:|---:|\n".to_owned();
    for (name, of) in result.as_object().into_iter().flatten() {
        let (all, run) = (&of["regions"], &of["run"]);
        let share = 100.0 * number(run) / number(all);
        let _ = writeln!(text, "| {name} | {all} | {run} | {share:.1} % |");
    }
    text
}

/// The verdicts of `5spot validate` and of another program about one tree.
fn validate(result: &Value) -> String {
    let names: Vec<_> = items(&result["programs"])
        .filter_map(|it| it["name"].as_str())
        .collect();
    let mut text = format!(
        "## Manifests beside kubectl-validate\n\n\
         What `5spot validate` and kubectl-validate say about one tree of manifests, for Kubernetes {}:\n\
         `cargo run --release --bin validate -- --tree --beside PROGRAM`. Both are given the CRDs.\n\
         `crates/testkit/src/manifest_tree.rs` has a text of each sort. kubectl-validate compares objects with schemas;\n\
         what a server decides by other code it does not know.\n\n\
         | sort | documents | a server says | {} |\n|---|---:|---|{}\n",
        result["kubernetes"].as_str().unwrap_or_default(),
        names.join(" | "),
        "---|".repeat(names.len()),
    );
    for sort in items(&result["sorts"]) {
        let verdicts = names.iter().map(|name| {
            let all = sort["verdicts"][name].as_object().into_iter().flatten();
            let all: Vec<_> =
                all.map(|(name, count)| format!("{count} {name}")).collect();
            all.join(", ")
        });
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            sort["sort"].as_str().unwrap_or_default(),
            sort["documents"],
            sort["expected"].as_str().unwrap_or_default(),
            verdicts.collect::<Vec<_>>().join(" | "),
        );
    }
    let _ = writeln!(
        text,
        "\n| program | time | peak memory | exit code |\n|---|---:|---:|---:|"
    );
    for of in items(&result["programs"]) {
        let _ = writeln!(
            text,
            "| {} | {:.1} s | {} MiB | {} |",
            of["name"].as_str().unwrap_or_default(),
            of["seconds"].as_f64().unwrap_or_default(),
            of["peakMib"],
            of["exitCode"],
        );
    }
    let _ = writeln!(
        text,
        "\n`5spot` was built with the profile `{}`.",
        result["profile"].as_str().unwrap_or_default()
    );
    text
}

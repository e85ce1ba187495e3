//! `internals/conformance.md`: the comparisons with Kubernetes, and their results: which promises are
//! kept on which backend, and the reasons why some are not run.
//!
//! The page is made from results that are kept in the source tree, each written by the task that
//! measures it; this module measures nothing.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::marked_page::filled;
use crate::stored_results;

/// Where the page is, below the root.
pub(crate) const PATH: &str = "internals/conformance.md";

/// Where the results of promises are kept, one file per backend. Written by `cargo xtask promises`.
pub(crate) const RESULTS: &str = "e2e/results";

/// Where `cargo run --bin providers` keeps its results, one file per run.
const PROVIDERS: &str = "e2e/providers";

/// The whole page.
///
/// # Errors
/// A result cannot be read.
pub(crate) fn page(root: &Path) -> Result<String, Box<dyn Error>> {
    let promises = stored_results::results(&root.join(RESULTS))?;
    let providers = stored_results::results(&root.join(PROVIDERS))?;
    let parts = [
        ("promises", render(&promises)),
        ("providers", of_providers(&providers)),
    ];
    filled(root, PATH, parts)
}

fn render(results: &[Value]) -> String {
    let mut text = "\
| backend | passed | failed | not run |
|---|---:|---:|---:|
"
    .to_owned();
    let mut reasons: BTreeMap<&str, BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for result in results {
        let backend = result["backend"].as_str().unwrap_or_default();
        let [mut kept, mut broken, mut not_run] = [0; 3];
        for (promise, outcome) in result["promises"].as_object().into_iter().flatten() {
            match (outcome.as_str(), outcome["notRun"].as_str()) {
                (Some("kept"), _) => kept += 1,
                (_, Some(why)) => {
                    not_run += 1;
                    let promises = reasons.entry(why).or_default();
                    promises.entry(promise).or_default().push(backend);
                }
                _ => broken += 1,
            }
        }
        let _ = writeln!(text, "| {backend} | {kept} | {broken} | {not_run} |");
    }
    text.push_str("\nNot run, by the reason that the test gives:\n");
    for (why, promises) in reasons {
        let _ = write!(text, "\n- {why}:\n");
        for (promise, backends) in promises {
            let _ = writeln!(text, "  - `{promise}` ({})", backends.join("; "));
        }
    }
    text
}

fn of_providers(results: &[Value]) -> String {
    let mut sections = Vec::new();
    for result in results {
        let named = |field: &str| result[field].as_str().unwrap_or_default();
        let [kept, broken, not_run] =
            ["kept", "broken", "notRun"].map(|field| result[field].as_u64().unwrap_or(0));
        let mut text = format!(
            "### {}\n\n{} and {} with Cluster API {} on Kubernetes {}: {kept} kept, {broken} broken, \
             {not_run} not run.\n\n| promise | result | why |\n|---|---|---|\n",
            named("title"),
            named("bootstrap"),
            named("infrastructure"),
            named("clusterAPI"),
            named("kubernetes"),
        );
        for item in stored_results::items(&result["items"]) {
            let said = |field: &str| item[field].as_str().unwrap_or_default();
            let verdict = match said("result") {
                "Kept" => "kept",
                "Broken" => "broken",
                _ => "not run",
            };
            let why = said("message").replace('|', "\\|").replace('\n', " ");
            let _ = writeln!(text, "| `{}` | {verdict} | {why} |", said("name"));
        }
        sections.push(text);
    }
    sections.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::render;

    #[test]
    fn what_is_not_run_is_listed_under_its_reason() {
        let text = render(&[
            json!({"backend": "A", "promises": {"x::y": "kept", "x::z": "broken"}}),
            json!({"backend": "B", "promises": {
                "x::y": {"notRun": "needs more"}, "x::z": "kept",
            }}),
        ]);
        assert!(
            text.contains("| A | 1 | 1 | 0 |\n| B | 1 | 0 | 1 |\n"),
            "{text}"
        );
        assert!(text.contains("- needs more:\n  - `x::y` (B)\n"), "{text}");
    }
}

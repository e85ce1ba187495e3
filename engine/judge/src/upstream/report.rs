//! Ginkgo's report: what became of each spec.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde::Deserialize;

/// Most characters that are kept of why a spec did not pass: some print all that they were answered.
const MAX_MESSAGE_CHARS: usize = 200;

/// What became of a spec.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Ginkgo's word: `passed`, `failed`, `panicked`, `timedout` or, by its own decision, `skipped`.
    pub(crate) state: String,
    /// The beginning of the first line of why it did not pass.
    pub(crate) message: String,
    /// Whether it passed in a second attempt only.
    pub(crate) is_flaky: bool,
}

impl Outcome {
    /// Whether it passed, at the first or at the second attempt.
    pub(crate) fn has_passed(&self) -> bool {
        self.state == "passed"
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    spec_reports: Option<Vec<Spec>>,
    #[serde(default)]
    special_suite_failure_reasons: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_type: String,
    leaf_node_text: String,
    state: String,
    #[serde(default)]
    num_attempts: u32,
    #[serde(default)]
    failure: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    message: String,
}

/// Reads a report: every spec that ran, by its name.
///
/// # Errors
/// There is no report, or no spec ran.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, Outcome>, Box<dyn Error>> {
    let file = File::open(path).map_err(|error| {
        format!("the specs wrote no report {}: {error}", path.display())
    })?;
    outcomes(serde_json::from_reader(BufReader::new(file))?)
}

fn outcomes(suites: Vec<Suite>) -> Result<BTreeMap<String, Outcome>, Box<dyn Error>> {
    let mut outcomes = BTreeMap::new();
    let mut reasons = Vec::new();
    for suite in suites {
        reasons.extend(suite.special_suite_failure_reasons.into_iter().flatten());
        for spec in suite.spec_reports.into_iter().flatten() {
            let message = spec.failure.map(|it| it.message).unwrap_or_default();
            if spec.leaf_node_type != "It" {
                if spec.state == "failed" {
                    reasons.push(format!("{}: {message}", spec.leaf_node_type));
                }
                continue;
            }
            // A spec that was not selected is skipped without a message.
            if spec.state == "skipped" && message.is_empty() || spec.state == "pending" {
                continue;
            }
            let mut texts = spec.container_hierarchy_texts.unwrap_or_default();
            texts.push(spec.leaf_node_text);
            texts.retain(|it| !it.is_empty());
            let outcome = Outcome {
                is_flaky: spec.state == "passed" && spec.num_attempts > 1,
                message: short(&message),
                state: spec.state,
            };
            outcomes.insert(texts.join(" "), outcome);
        }
    }
    if outcomes.is_empty() {
        return Err(format!("no spec ran: {}", reasons.join("; ")).into());
    }
    Ok(outcomes)
}

/// The beginning of the first line.
fn short(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    line.chars().take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(specs: Value) -> BTreeMap<String, Outcome> {
        let suites = json!([{"SpecReports": specs}]);
        outcomes(serde_json::from_value(suites).expect("a report")).expect("outcomes")
    }

    #[test]
    fn specs_that_were_not_selected_are_left_out() {
        let spec = |state: &str, failure: Value| {
            json!({"ContainerHierarchyTexts": ["[sig-a] A", ""], "LeafNodeType": "It",
                "LeafNodeText": state, "State": state, "NumAttempts": 1, "Failure": failure})
        };
        let found = read(json!([
            spec("passed", Value::Null),
            spec("failed", json!({"Message": "why\nmore"})),
            spec("skipped", json!({"Message": ""})),
        ]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found["[sig-a] A passed"].has_passed());
        assert_eq!(found["[sig-a] A failed"].message, "why");
    }

    #[test]
    fn a_spec_that_passed_at_the_second_attempt_is_flaky() {
        let found = read(json!([{"LeafNodeType": "It", "LeafNodeText": "a",
            "State": "passed", "NumAttempts": 2}]));
        assert!(found["a"].is_flaky && found["a"].has_passed());
    }
}

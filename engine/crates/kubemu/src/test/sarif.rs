//! SARIF 2.1.0: cases that fail, and what the cases do not reach or detect.

use kubemu_terminal::plain;
use serde_json::{Value, json};

use super::report::Report;
use crate::validate::Extension;
use crate::validate::sarif::{place, run_log};

/// The rules, with what a result of each means.
const RULES: [(&str, &str); 3] = [
    ("FailedCase", "The response is not the expected one."),
    (
        "NotCovered",
        "No case reaches this result of the expression.",
    ),
    (
        "UndetectedChange",
        "The rule can be changed like this, and every case still passes.",
    ),
];

/// The log: one run with a result for each failure, each result that is not reached and each change
/// that is not detected.
pub(super) fn log(report: &Report, extension: &dyn Extension) -> Value {
    let mut results = Vec::new();
    for case in report.cases.iter().filter(|it| !it.passed) {
        let text = plain::line(&case.failure()).into_owned();
        results.push(result(
            "FailedCase",
            "error",
            (&case.file, case.line),
            &text,
        ));
    }
    let missing = report.coverage.iter().flat_map(|it| &it.missing);
    for it in missing {
        let place = (it.file.as_str(), it.line);
        results.push(result("NotCovered", "note", place, &it.text()));
    }
    let survivors = report.mutants.iter().flat_map(|it| &it.survivors);
    for it in survivors {
        let text = format!("no case detects the change: {}", plain::line(&it.change));
        let place = (it.file.as_str(), it.line);
        results.push(result("UndetectedChange", "warning", place, &text));
    }
    let rules =
        RULES.map(|(id, text)| json!({"id": id, "shortDescription": {"text": text}}));
    run_log(extension, (&rules, &results))
}

fn result(rule: &str, level: &str, (file, line): (&str, usize), text: &str) -> Value {
    json!({
        "ruleId": rule,
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": place(file, line)}],
    })
}

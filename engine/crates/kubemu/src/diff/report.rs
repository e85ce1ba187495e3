//! Prints the differences.

use std::fmt::Write as _;
use std::io::Write;

use kubemu_terminal::{Failure, plain};
use serde::Serialize;
use serde_json::{Value, json};

use super::search::Difference;
use crate::output;
use crate::validate::judge::{Question, Reply};

/// What was found about one version of a kind.
pub(super) struct Finding {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) changed: Vec<String>,
    pub(super) found: Vec<(Difference, Question, [Reply; 2])>,
    /// How many requests were asked.
    pub(super) requests: u64,
    pub(super) is_exhausted: bool,
    /// Whether no object was found that a side admits.
    pub(super) is_undecided: bool,
    pub(super) not_covered: Vec<String>,
}

impl Finding {
    /// What differs and was not searched, because no kind is known.
    pub(super) fn not_searched(not_covered: Vec<String>) -> Self {
        Self {
            api_version: String::new(),
            kind: "Policies".to_owned(),
            changed: Vec::new(),
            found: Vec::new(),
            requests: 0,
            is_exhausted: false,
            is_undecided: true,
            not_covered,
        }
    }
}

/// How many changes and gaps are printed as text. JSON has all.
const MAX_LINES: usize = 20;

/// Prints the findings as text.
pub(super) fn text(out: &mut dyn Write, findings: &[Finding]) -> Result<(), Failure> {
    let mut text = String::new();
    for finding in findings {
        of_kind(&mut text, finding)?;
    }
    let found: usize = findings.iter().map(|it| it.found.len()).sum();
    let requests: u64 = findings.iter().map(|it| it.requests).sum();
    let found = match found {
        0 => "none found".to_owned(),
        found => format!("{found} found"),
    };
    let _ = writeln!(text, "{found} with {requests} requests");
    Ok(write!(out, "{}", plain::lines(&text))?)
}

fn of_kind(text: &mut String, finding: &Finding) -> Result<(), Failure> {
    let title = format!("{} {}", finding.kind, finding.api_version);
    let _ = writeln!(text, "{}", plain::line(title.trim_end()));
    lines(text, "changed", &finding.changed);
    for (difference, question, replies) in &finding.found {
        let what = match difference {
            Difference::Refused => "OLD admits and NEW refuses:",
            Difference::Admitted => "OLD refuses and NEW admits:",
            Difference::Stored => "OLD and NEW admit and store differently:",
        };
        let _ = writeln!(text, "\n{what}\n");
        if let Some(old) = &question.old {
            let _ = writeln!(text, "  # stored");
            indented(text, old)?;
            let _ = writeln!(text, "  # update");
        }
        indented(text, &question.object)?;
        let _ = writeln!(text);
        for (side, reply) in ["OLD", "NEW"].iter().zip(replies) {
            let words = match &reply.refusal {
                Some(status) => status["message"].as_str().unwrap_or_default().to_owned(),
                None if *difference == Difference::Stored => {
                    format!("stored {}", reply.stored)
                }
                None => "admitted".to_owned(),
            };
            let _ = writeln!(text, "{side}: {}", plain::line(&words));
        }
    }
    if finding.found.is_empty() && finding.requests > 0 {
        let how = if finding.is_exhausted {
            ", all that the budget allows"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "  no difference in {} requests{how}",
            finding.requests
        );
    }
    lines(text, "not covered", &finding.not_covered);
    text.push('\n');
    Ok(())
}

fn lines(text: &mut String, what: &str, all: &[String]) {
    for line in all.iter().take(MAX_LINES) {
        let _ = writeln!(text, "  {what}: {}", plain::line(line));
    }
    if let Some(more) = all.len().checked_sub(MAX_LINES).filter(|it| *it > 0) {
        let _ = writeln!(text, "  {what}: {more} more");
    }
}

fn indented(text: &mut String, object: &Value) -> Result<(), Failure> {
    let mut yaml = Vec::new();
    output::yaml(&mut yaml, object)?;
    for line in String::from_utf8_lossy(&yaml).lines() {
        let _ = writeln!(text, "  {line}");
    }
    Ok(())
}

/// The JSON form of what was found about one kind.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    api_version: &'a str,
    kind: &'a str,
    changed: &'a [String],
    differences: Vec<Value>,
    requests: u64,
    budget_exhausted: bool,
    not_covered: &'a [String],
}

/// Prints one JSON document.
pub(super) fn json(out: &mut dyn Write, findings: &[Finding]) -> Result<(), Failure> {
    let items: Vec<Item<'_>> = findings.iter().map(item).collect();
    let found: usize = findings.iter().map(|it| it.found.len()).sum();
    output::json(out, &json!({"items": items, "found": found}))
}

fn item(finding: &Finding) -> Item<'_> {
    let differences = finding.found.iter().map(|(difference, question, replies)| {
        let verdict = |it: &Reply| match &it.refusal {
            Some(status) => json!({"admitted": false, "status": status}),
            None => json!({"admitted": true, "stored": it.stored}),
        };
        let [old, new] = replies;
        let mut shown = json!({
            "difference": match difference {
                Difference::Refused => "refused",
                Difference::Admitted => "admitted",
                Difference::Stored => "stored",
            },
            "object": question.object,
            "old": verdict(old),
            "new": verdict(new),
        });
        if let Some(stored) = &question.old {
            shown["oldObject"] = stored.clone();
        }
        shown
    });
    Item {
        api_version: &finding.api_version,
        kind: &finding.kind,
        changed: &finding.changed,
        differences: differences.collect(),
        requests: finding.requests,
        budget_exhausted: finding.is_exhausted,
        not_covered: &finding.not_covered,
    }
}

//! Answers, printed.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::answer::{Answer, Verdict};
use super::refusal::Refusal;
use crate::{Failure, output};

/// As kubectl prints them.
pub(super) fn text(out: &mut dyn Write, answers: &[Answer]) -> io::Result<()> {
    for answer in answers {
        for warning in &answer.warnings {
            writeln!(out, "Warning: {warning}")?;
        }
        let handle = answer.subject.handle();
        match &answer.verdict {
            Verdict::Valid => writeln!(out, "{handle} valid")?,
            Verdict::Skipped(why) => writeln!(out, "{handle} skipped: {why}")?,
            Verdict::Refused(refusals) => {
                for refusal in refusals {
                    write!(out, "{}", refusal.text())?;
                }
            }
        }
    }
    Ok(())
}

/// One document: every object with its answer, and how many there are of each.
pub(super) fn json(out: &mut dyn Write, answers: &[Answer]) -> Result<(), Failure> {
    let count = |wanted: fn(&Verdict) -> bool| {
        answers.iter().filter(|it| wanted(&it.verdict)).count()
    };
    let report = json!({
        "items": answers.iter().map(item).collect::<Vec<_>>(),
        "valid": count(|it| matches!(it, Verdict::Valid)),
        "invalid": count(|it| matches!(it, Verdict::Refused(_))),
        "skipped": count(|it| matches!(it, Verdict::Skipped(_))),
    });
    output::json(out, &report)
}

fn item(answer: &Answer) -> Value {
    let subject = &answer.subject;
    let mut item = json!({
        "origin": subject.origin,
        "apiVersion": subject.api_version(),
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "warnings": answer.warnings,
    });
    match &answer.verdict {
        Verdict::Valid => item["result"] = "valid".into(),
        Verdict::Skipped(why) => {
            item["result"] = "skipped".into();
            item["why"] = why.as_str().into();
        }
        Verdict::Refused(refusals) => {
            item["result"] = "invalid".into();
            item["refusals"] = refusals.iter().map(Refusal::status).collect();
        }
    }
    item
}

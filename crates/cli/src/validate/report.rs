//! Answers, printed.

use std::io::{self, Write};

use fivespot_api::lint::LintWarning;
use serde_json::{Value, json};

use super::answer::{Answer, Verdict};
use super::refusal::Refusal;
use super::{Args, Form, github, junit, sarif};
use crate::{Failure, output, plain};

/// Prints the results in the selected format.
pub(super) fn print(
    out: &mut dyn Write,
    args: &Args,
    answers: &[Answer],
) -> Result<(), Failure> {
    match args.output {
        Form::Text => {
            let mut lines = Vec::new();
            text(&mut lines, answers, args.explain)?;
            let lines = String::from_utf8_lossy(&lines);
            Ok(write!(out, "{}", plain::lines(&lines))?)
        }
        Form::Json => json(out, args, answers),
        Form::Sarif => output::json(out, &sarif::log(answers, args.lint)),
        Form::Junit => Ok(junit::print(out, answers, args.lint)?),
        Form::Github => Ok(github::print(out, answers, args.lint)?),
    }
}

/// As kubectl prints them, followed by lint warnings.
fn text(out: &mut dyn Write, answers: &[Answer], explain: bool) -> io::Result<()> {
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
        for lint_warning in &answer.lints {
            let (code, field) = (lint_warning.lint.code, &lint_warning.field);
            writeln!(out, "{handle} {code} {field}: {}", lint_warning.message)?;
        }
        if explain {
            explained(out, answer)?;
        }
    }
    Ok(())
}

/// The steps, their cost, and the violated rules.
fn explained(out: &mut dyn Write, answer: &Answer) -> io::Result<()> {
    for step in &answer.steps {
        write!(out, "  {}", step.layer)?;
        if let (Some(policy), Some(binding)) = (&step.policy, &step.binding) {
            write!(out, " {policy}, binding {binding}")?;
        }
        match step.refused {
            0 => write!(out, ": accepted")?,
            refused => write!(out, ": rejected ({refused})")?,
        }
        match step.cost {
            Some(cost) => writeln!(out, ", cost {cost}")?,
            None => writeln!(out)?,
        }
    }
    for finding in answer.faults() {
        writeln!(
            out,
            "  {} {}: {}",
            finding.rule, finding.field, finding.message
        )?;
    }
    Ok(())
}

/// One document: every object with its answer, and how many there are of each.
fn json(out: &mut dyn Write, args: &Args, answers: &[Answer]) -> Result<(), Failure> {
    let count = |wanted: fn(&Verdict) -> bool| {
        answers.iter().filter(|it| wanted(&it.verdict)).count()
    };
    let report = json!({
        "items": answers.iter().map(|it| item(it, args)).collect::<Vec<_>>(),
        "valid": count(|it| matches!(it, Verdict::Valid)),
        "invalid": count(|it| matches!(it, Verdict::Refused(_))),
        "skipped": count(|it| matches!(it, Verdict::Skipped(_))),
    });
    output::json(out, &report)
}

fn item(answer: &Answer, args: &Args) -> Value {
    let subject = &answer.subject;
    let mut item = json!({
        "origin": subject.origin,
        "apiVersion": subject.api_version(),
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "warnings": answer.warnings,
    });
    if !answer.lints.is_empty() {
        let lint_warning = |it: &LintWarning| {
            json!({
                "code": it.lint.code,
                "level": args.lint.level().as_str(),
                "field": it.field,
                "message": it.message,
                "remedy": it.lint.remedy,
            })
        };
        item["lints"] = answer.lints.iter().map(lint_warning).collect();
    }
    if args.explain {
        item["explanation"] = json!(answer.steps);
    }
    match &answer.verdict {
        Verdict::Valid => item["result"] = "valid".into(),
        Verdict::Skipped(why) => {
            item["result"] = "skipped".into();
            item["reason"] = why.as_str().into();
        }
        Verdict::Refused(refusals) => {
            item["result"] = "invalid".into();
            item["rejections"] = refusals.iter().map(Refusal::status).collect();
        }
    }
    item
}

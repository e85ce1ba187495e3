//! Prints the results.

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
            text(&mut lines, answers, args)?;
            let lines = String::from_utf8_lossy(&lines);
            Ok(write!(out, "{}", plain::lines(&lines))?)
        }
        Form::Json => json(out, args, answers),
        Form::Sarif => output::json(out, &sarif::log(answers, args.lint)),
        Form::Junit => Ok(junit::print(out, answers, args.lint)?),
        Form::Github => Ok(github::print(out, answers, args.lint)?),
    }
}

/// Prints the results as kubectl does, followed by lint warnings and by the counts.
fn text(out: &mut dyn Write, answers: &[Answer], args: &Args) -> io::Result<()> {
    for answer in answers {
        for warning in &answer.warnings {
            writeln!(out, "Warning: {warning}")?;
        }
        let handle = answer.subject.handle();
        match &answer.verdict {
            Verdict::Valid | Verdict::Skipped(_) if args.quiet => {}
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
            let level = args.lint.level(lint_warning).as_str();
            writeln!(
                out,
                "{handle} {level}[{code}] {field}: {}",
                lint_warning.message
            )?;
        }
        if args.explain {
            explained(out, answer)?;
        }
    }
    if answers.is_empty() {
        return Ok(());
    }
    let [valid, invalid, skipped] = counts(answers, args);
    writeln!(out, "{valid} valid, {invalid} invalid, {skipped} skipped")
}

/// The numbers of valid, invalid and skipped objects. An object with a lint error is invalid.
fn counts(answers: &[Answer], args: &Args) -> [usize; 3] {
    let count =
        |wanted: &dyn Fn(&Answer) -> bool| answers.iter().filter(|it| wanted(it)).count();
    let is_skipped = |it: &Answer| matches!(it.verdict, Verdict::Skipped(_));
    let is_invalid = |it: &Answer| it.is_no(args.lint);
    [
        count(&|it| !is_invalid(it) && !is_skipped(it)),
        count(&is_invalid),
        count(&|it| is_skipped(it) && !is_invalid(it)),
    ]
}

/// Prints the steps, their cost, and the violated rules.
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

/// Prints one JSON document with all results and the counts.
fn json(out: &mut dyn Write, args: &Args, answers: &[Answer]) -> Result<(), Failure> {
    let [valid, invalid, skipped] = counts(answers, args);
    let report = json!({
        "items": answers.iter().map(|it| item(it, args)).collect::<Vec<_>>(),
        "valid": valid,
        "invalid": invalid,
        "skipped": skipped,
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
                "level": args.lint.level(it).as_str(),
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

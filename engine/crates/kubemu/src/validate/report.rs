//! Prints the results.

use std::io::{self, Write};

use kubemu_terminal::{Failure, plain};
use serde_json::{Value, json};

use super::extension::{Extension, Lint};
use super::object_result::{ObjectResult, Verdict};
use super::refusal::Refusal;
use super::{Args, Form, github, junit, sarif};
use crate::output;

/// Prints the results in the selected format.
pub(super) fn print(
    out: &mut dyn Write,
    (args, extension): (&Args, &dyn Extension),
    object_results: &[ObjectResult],
) -> Result<(), Failure> {
    match args.output {
        Form::Text => {
            let mut lines = Vec::new();
            text(&mut lines, object_results, (args, extension))?;
            let lines = String::from_utf8_lossy(&lines);
            Ok(write!(out, "{}", without_commands(&plain::lines(&lines)))?)
        }
        Form::Json => json(out, args, object_results),
        Form::Sarif => output::json(out, &sarif::log(object_results, extension)),
        Form::Junit => Ok(junit::print(out, object_results, extension)?),
        Form::Github => Ok(github::print(out, object_results, extension)?),
    }
}

/// `text` with the escapes of the characters with which a line would be a workflow command, if the
/// output is that of a step of GitHub Actions: `::` at its beginning, after spaces too, or `##[`
/// anywhere in it. Kinds, names and messages come from the files.
fn without_commands(text: &str) -> String {
    let escape = |line: &str| {
        let line = line.replace("##[", r"#\u{23}[");
        match line.trim_start().strip_prefix("::") {
            Some(rest) => {
                let (spaces, _) = line.split_at(line.len() - rest.len() - 2);
                format!(r"{spaces}\u{{3a}}:{rest}")
            }
            None => line,
        }
    };
    text.split_inclusive('\n').map(escape).collect()
}

/// Prints the results as kubectl does, followed by lint warnings and by the counts.
fn text(
    out: &mut dyn Write,
    object_results: &[ObjectResult],
    (args, extension): (&Args, &dyn Extension),
) -> io::Result<()> {
    for object_result in object_results {
        for warning in &object_result.warnings {
            writeln!(out, "Warning: {}", plain::line(warning))?;
        }
        let handle = object_result.subject.handle();
        match &object_result.verdict {
            Verdict::Valid | Verdict::Skipped(_) if args.quiet => {}
            Verdict::Valid => writeln!(out, "{handle} valid")?,
            Verdict::Skipped(why) => {
                writeln!(out, "{handle} skipped: {}", plain::line(why))?;
            }
            Verdict::Refused(refusals) => {
                for refusal in refusals {
                    write!(out, "{}", refusal.text())?;
                }
            }
        }
        for lint in &object_result.lints {
            let (code, level) = (lint.code, lint.level.as_str());
            let text = format!("{}: {}", lint.field, lint.message);
            writeln!(out, "{handle} {level}[{code}] {}", plain::line(&text))?;
        }
        if args.explain {
            print_steps(out, object_result, extension)?;
        }
    }
    let [valid, invalid, skipped] = counts(object_results);
    writeln!(out, "{valid} valid, {invalid} invalid, {skipped} skipped")
}

/// The numbers of valid, invalid and skipped objects. An object with a lint error is invalid.
fn counts(object_results: &[ObjectResult]) -> [usize; 3] {
    let count = |wanted: &dyn Fn(&ObjectResult) -> bool| {
        object_results.iter().filter(|it| wanted(it)).count()
    };
    let is_skipped = |it: &ObjectResult| matches!(it.verdict, Verdict::Skipped(_));
    let is_invalid = |it: &ObjectResult| it.is_invalid();
    [
        count(&|it| !is_invalid(it) && !is_skipped(it)),
        count(&is_invalid),
        count(&|it| is_skipped(it) && !is_invalid(it)),
    ]
}

/// Prints the steps, their cost, and the violated rules.
fn print_steps(
    out: &mut dyn Write,
    object_result: &ObjectResult,
    extension: &dyn Extension,
) -> io::Result<()> {
    for step in &object_result.steps {
        write!(out, "  {}", step.layer)?;
        if let (Some(policy), Some(binding)) = (&step.policy, &step.binding) {
            let names = format!(" {policy}, binding {binding}");
            write!(out, "{}", plain::line(&names))?;
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
    for finding in object_result.faults(extension) {
        let text = format!("{} {}: {}", finding.rule, finding.field, finding.message);
        writeln!(out, "  {}", plain::line(&text))?;
    }
    Ok(())
}

/// Prints one JSON document with all results and the counts.
fn json(
    out: &mut dyn Write,
    args: &Args,
    object_results: &[ObjectResult],
) -> Result<(), Failure> {
    let [valid, invalid, skipped] = counts(object_results);
    let report = json!({
        "items": object_results.iter().map(|it| item(it, args)).collect::<Vec<_>>(),
        "valid": valid,
        "invalid": invalid,
        "skipped": skipped,
    });
    output::json(out, &report)
}

fn item(object_result: &ObjectResult, args: &Args) -> Value {
    let subject = &object_result.subject;
    let mut item = json!({
        "origin": subject.origin,
        "apiVersion": subject.api_version(),
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "warnings": object_result.warnings,
    });
    if !object_result.lints.is_empty() {
        let lint = |it: &Lint| {
            json!({
                "code": it.code,
                "level": it.level.as_str(),
                "field": it.field,
                "message": it.message,
                "remedy": it.remedy,
            })
        };
        item["lints"] = object_result.lints.iter().map(lint).collect();
    }
    if args.explain {
        item["explanation"] = json!(object_result.steps);
    }
    match &object_result.verdict {
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

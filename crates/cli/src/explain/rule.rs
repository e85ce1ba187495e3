//! One rule with its examples, one lint, or the list of both.

use std::io::Write;

use fivespot_api::lint::{LINTS, Lint};
use fivespot_api::rules::{self, Layer, Rule};
use serde_json::{Value, json};

use crate::output::Format;
use crate::{Failure, Outcome, output};

/// Explains the rule or the lint with that id.
///
/// # Errors
/// There is none. The failure names the valid ids.
pub(super) fn explain(
    id: &str,
    format: Format,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    if let Some(lint) = LINTS.iter().find(|it| it.code.eq_ignore_ascii_case(id)) {
        return explain_lint(lint, format, out);
    }
    let Some(rule) = Rule::find(id) else {
        return Err(Failure::new(format!("rule {id}"), "not found")
            .remedy(format!("give an id {}", known_ids())));
    };
    let value = json!({
        "id": rule.id,
        "path": rule.path,
        "message": rule.requirement.message,
        "layers": layers(rule),
        "cel": rule.requirement.cel,
        "accepted": rule.requirement.examples.accepts(),
        "rejected": rule.requirement.examples.rejects(),
        "reason": rule.why,
    });
    output::print(out, format, &value, |out| text(out, rule))?;
    Ok(Outcome::Yes)
}

/// Explains a lint: a setting that every server admits, but that is rarely intended.
fn explain_lint(
    lint: &Lint,
    format: Format,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let value = json!({
        "id": lint.code,
        "name": lint.name,
        "why": lint.why,
        "remedy": lint.remedy,
    });
    output::print(out, format, &value, |out| {
        writeln!(
            out,
            "{}  {}\n\n{}\n\n{}",
            lint.code, lint.name, lint.why, lint.remedy
        )?;
        writeln!(out, "\nchecked by `5spot validate` alone")
    })?;
    Ok(Outcome::Yes)
}

/// Lists every rule and every lint.
///
/// # Errors
/// The output cannot be written.
pub(super) fn list(format: Format, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let rules = rules::all().map(|it| (it.id, it.path, it.requirement.message));
    let lints = LINTS.iter().map(|it| (it.code, "lint", it.name));
    let all: Vec<_> = rules.chain(lints).collect();
    let items = all
        .iter()
        .map(|(id, path, message)| json!({"id": id, "path": path, "message": message}));
    let items = json!({"items": items.collect::<Vec<Value>>()});
    output::print(out, format, &items, |out| {
        let mut all = all.into_iter();
        all.try_for_each(|(id, path, message)| writeln!(out, "{id}  {path}: {message}"))
    })?;
    Ok(Outcome::Yes)
}

fn known_ids() -> String {
    let last = rules::all().last().map_or("", |rule| rule.id);
    let last_lint = LINTS.last().map_or("", |lint| lint.code);
    format!(
        "from SM001 to {last} or from SL001 to {last_lint}; `5spot explain rule` lists them"
    )
}

fn layers(rule: &Rule) -> &'static [&'static str] {
    match rule.requirement.layer {
        Layer::SchemaAndPolicy | Layer::Change => &["CRD", "policy"],
        Layer::Policy => &["policy"],
    }
}

fn text(out: &mut dyn Write, rule: &Rule) -> std::io::Result<()> {
    let path = if rule.path.is_empty() {
        "the object"
    } else {
        rule.path
    };
    writeln!(out, "{}  {path}: {}", rule.id, rule.requirement.message)?;
    writeln!(out, "\n{}", rule.why)?;
    writeln!(out, "\nchecked by {}", layers(rule).join(", "))?;
    let list = |examples: &[&str]| {
        let quoted: Vec<String> = examples.iter().map(|it| format!("{it:?}")).collect();
        quoted.join(", ")
    };
    writeln!(
        out,
        "accepted   {}",
        list(rule.requirement.examples.accepts())
    )?;
    writeln!(
        out,
        "rejected   {}",
        list(rule.requirement.examples.rejects())
    )?;
    writeln!(out, "\n{}", rule.requirement.cel)
}

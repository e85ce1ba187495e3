//! One rule, with its examples.

use std::io::Write;

use fivespot_api::rules::{self, Layer, Rule};
use serde_json::json;

use crate::output::Format;
use crate::{Failure, Outcome, output};

/// Explains the rule of that id.
///
/// # Errors
/// There is no such rule; names the known ones.
pub(super) fn explain(
    id: &str,
    format: Format,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let Some(rule) = Rule::find(id) else {
        return Err(Failure::new(format!("rule {id}"), "not found")
            .remedy(format!("give an id {}", known())));
    };
    let value = json!({
        "id": rule.id,
        "path": rule.path,
        "message": rule.message,
        "layers": layers(rule),
        "cel": rule.cel,
        "accepted": rule.examples.accepts(),
        "rejected": rule.examples.rejects(),
        "reason": rule.why,
    });
    match format {
        Format::Text => text(out, rule)?,
        Format::Json => output::json(out, &value)?,
        Format::Yaml => output::yaml(out, &value)?,
    }
    Ok(Outcome::Yes)
}

/// No id was given.
pub(super) fn unnamed() -> Failure {
    let remedy = format!("give an id {}; for a machine named `rule`, set -n", known());
    Failure::new("rule", "its id is missing").remedy(remedy)
}

fn known() -> String {
    let last = rules::all().last().map_or("", |rule| rule.id);
    format!("from SM001 to {last}")
}

fn layers(rule: &Rule) -> &'static [&'static str] {
    match rule.layer {
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
    writeln!(out, "{}  {path}: {}", rule.id, rule.message)?;
    writeln!(out, "\n{}", rule.why)?;
    writeln!(out, "\nchecked by {}", layers(rule).join(", "))?;
    let list = |examples: &[&str]| {
        let quoted: Vec<String> = examples.iter().map(|it| format!("{it:?}")).collect();
        quoted.join(", ")
    };
    writeln!(out, "accepted   {}", list(rule.examples.accepts()))?;
    writeln!(out, "rejected   {}", list(rule.examples.rejects()))?;
    writeln!(out, "\n{}", rule.cel)
}

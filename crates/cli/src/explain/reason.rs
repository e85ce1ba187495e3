//! One reason of a condition with its meaning and its remedy, or the list of all.

use std::io::Write;

use fivespot_api::condition::{Reason, ReasonRow};
use serde_json::{Value, json};

use crate::output::Format;
use crate::{Failure, Outcome, output};

/// Explains the reason of that name, in any case.
///
/// # Errors
/// There is none. The failure says how to list them.
pub(super) fn explain(
    name: &str,
    format: Format,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let mut all = Reason::TABLE.iter();
    let Some(row) = all.find(|row| row.name.eq_ignore_ascii_case(name)) else {
        return Err(Failure::new(format!("reason {name}"), "not found").remedy(
            "`5spot explain reason` lists those of 5-Spot; a condition may also have one of \
             Cluster API or of a provider",
        ));
    };
    match format {
        Format::Text => text(out, row)?,
        Format::Json => output::json(out, &value(row))?,
        Format::Yaml => output::yaml(out, &value(row))?,
    }
    Ok(Outcome::Yes)
}

/// Lists every reason with its meaning.
///
/// # Errors
/// The output cannot be written.
pub(super) fn list(format: Format, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let items = || json!({"items": Reason::TABLE.iter().map(value).collect::<Vec<_>>()});
    match format {
        Format::Text => {
            for row in Reason::TABLE {
                writeln!(out, "{}: {}", row.name, row.meaning)?;
            }
        }
        Format::Json => output::json(out, &items())?,
        Format::Yaml => output::yaml(out, &items())?,
    }
    Ok(Outcome::Yes)
}

fn text(out: &mut dyn Write, row: &ReasonRow) -> std::io::Result<()> {
    writeln!(out, "{}: {}", row.name, row.meaning)?;
    let Some(remedy) = row.remedy else {
        return writeln!(out, "\nThere is nothing to do.");
    };
    writeln!(out, "\n{} (who: {})", remedy.text, row.actor.as_str())?;
    if let Some(section) = remedy.section {
        writeln!(out, "\nMore: docs/{}", section.path)?;
    }
    Ok(())
}

fn value(row: &ReasonRow) -> Value {
    json!({
        "reason": row.name,
        "meaning": row.meaning,
        "remedy": row.remedy.map(|it| it.text),
        "page": row.remedy.and_then(|it| it.section).map(|it| it.path),
        "actor": row.actor,
    })
}

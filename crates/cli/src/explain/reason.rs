//! One reason of a condition with its meaning and its remedy, or the list of all.

use std::io::Write;

use fivespot_api::condition::{Reason, ReasonRow, capacity_reason, schedule_reason};
use fivespot_api::name;
use serde_json::{Value, json};

use crate::output::Format;
use crate::{Failure, Outcome, output};

/// A reason with the kind whose conditions have it.
#[derive(Clone, Copy)]
struct Entry {
    kind: &'static str,
    row: &'static ReasonRow,
}

/// The reasons of ScheduledMachines, then those that only ScheduledCapacities have, or with another
/// meaning, then those of the schedules that they share.
fn all() -> impl Iterator<Item = Entry> {
    let entry = |kind| move |row| Entry { kind, row };
    let of_machines = Reason::TABLE.iter().map(entry(name::KIND));
    let of_capacities = capacity_reason::TABLE.iter();
    let of_schedules = schedule_reason::TABLE.iter();
    of_machines
        .chain(of_capacities.map(entry(name::CAPACITY_KIND)))
        .chain(of_schedules.map(entry("shared schedule")))
}

/// Explains the reason of that name, in any case, for each kind that has it.
///
/// # Errors
/// There is none. The failure says how to list them.
pub(super) fn explain(
    name: &str,
    format: Format,
    out: &mut dyn Write,
) -> Result<Outcome, Failure> {
    let is_named = |entry: &Entry| entry.row.name.eq_ignore_ascii_case(name);
    let entries: Vec<Entry> = all().filter(is_named).collect();
    match entries.as_slice() {
        [] => Err(Failure::new(format!("reason {name}"), "not found").remedy(
            "`5spot explain reason` lists those of 5-Spot; a condition may also have one of \
             Cluster API or of a provider",
        )),
        [one] => {
            output::print(out, format, &value(one), |out| text(out, one, ""))?;
            Ok(Outcome::Yes)
        }
        several => {
            let items = several.iter().map(value).collect::<Vec<_>>();
            output::print(out, format, &json!({"items": items}), |out| {
                for (number, entry) in several.iter().enumerate() {
                    out.write_all(if number > 0 { b"\n" } else { b"" })?;
                    text(out, entry, &format!(" ({})", entry.kind))?;
                }
                Ok::<_, std::io::Error>(())
            })?;
            Ok(Outcome::Yes)
        }
    }
}

/// Lists every reason with its meaning.
///
/// # Errors
/// The output cannot be written.
pub(super) fn list(format: Format, out: &mut dyn Write) -> Result<Outcome, Failure> {
    let items = json!({"items": all().map(|it| value(&it)).collect::<Vec<_>>()});
    output::print(out, format, &items, |out| {
        all().try_for_each(|Entry { kind, row }| {
            let of = match kind {
                name::KIND => String::new(),
                kind => format!(" ({kind})"),
            };
            writeln!(out, "{}{of}: {}", row.name, row.meaning)
        })
    })?;
    Ok(Outcome::Yes)
}

/// Prints a reason; `of` follows its name.
fn text(out: &mut dyn Write, entry: &Entry, of: &str) -> std::io::Result<()> {
    let row = entry.row;
    writeln!(out, "{}{of}: {}", row.name, row.meaning)?;
    let Some(remedy) = row.remedy else {
        return writeln!(out, "\nThere is nothing to do.");
    };
    writeln!(out, "\n{} (who: {})", remedy.text, row.actor.as_str())?;
    if let Some(section) = remedy.section {
        writeln!(out, "\nMore: docs/{}", section.path)?;
    }
    Ok(())
}

fn value(Entry { kind, row }: &Entry) -> Value {
    json!({
        "kind": kind,
        "reason": row.name,
        "meaning": row.meaning,
        "remedy": row.remedy.map(|it| it.text),
        "page": row.remedy.and_then(|it| it.section).map(|it| it.path),
        "actor": row.actor,
    })
}

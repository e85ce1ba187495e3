//! How many machines a ScheduledMachineSet has, and why not more of them are in service.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use fivespot_api::ScheduledMachine;
use fivespot_api::time::whole_seconds;
use fivespot_api::verdict::State;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::unreadable::Unreadable;
use crate::check::{Judge, Operator};
use crate::cluster::{self, Access, Connection};
use crate::columns::table;
use crate::document::Document;
use crate::named::Named;
use crate::preview::source::{self, Selection};
use crate::set::{Member, SetState};
use crate::{Failure, Outcome, output, plain};

/// The printed report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    at: Timestamp,
    #[serde(flatten)]
    set: SetState,
    machines: Vec<Member>,
    /// Why the machines may not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_readable: Option<Unreadable>,
}

/// Reads a set and its machines.
///
/// # Errors
/// The set cannot be read.
pub(super) async fn read(
    access: &Access,
    named: Named<'_>,
    operator: &Operator,
) -> Result<Report, Failure> {
    let Connection {
        client, address, ..
    } = access.connect().await?;
    let judge = Judge::read(&client, operator).await;
    let found = json!(cluster::named(&client, &address, named).await?);
    let machines = source::listed::<ScheduledMachine>(&client, Selection::Namespace);
    Ok(report(&found, machines.await, &judge))
}

/// The report about a set, of the machines that could be read.
fn report(
    found: &Value,
    machines: Result<Vec<Document>, Unreadable>,
    judge: &Judge,
) -> Report {
    let (set, not_readable) = match machines {
        Ok(machines) => {
            let machines = machines.iter().map(|it| &it.object);
            (SetState::of(found, machines, judge), None)
        }
        Err(unreadable) => (SetState::of_status(found, judge), Some(unreadable)),
    };
    Report {
        at: whole_seconds(judge.now),
        machines: set.machines.clone(),
        set,
        not_readable,
    }
}

impl Report {
    /// The outcome of a command that was asked about the set.
    pub(super) fn outcome(&self) -> Outcome {
        let mut states = self.machines.iter().map(|it| it.verdict.state);
        if states.any(|state| state == State::Blocked) {
            Outcome::No
        } else {
            Outcome::Yes
        }
    }
}

/// Prints the report as text.
pub(super) fn text(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    let Report { set, .. } = report;
    let head = format!(
        "ScheduledMachineSet {}/{}: {} of {} Active",
        set.namespace, set.name, set.active, set.wanted
    );
    writeln!(out, "{}", plain::line(&head))?;
    writeln!(out, "{}", plain::line(&set.message))?;
    if let Some(worst) = set.worst() {
        output::remedy(out, worst)?;
    }
    writeln!(out, "\nAt {}:", report.at)?;
    let SetState {
        class,
        wanted,
        exist,
        active,
        ready,
        ..
    } = set;
    let class = plain::line(class);
    writeln!(out, "  class     ScheduledMachineClass {class}")?;
    writeln!(
        out,
        "  machines  {wanted} wanted, {exist} exist, {active} Active, {ready} Ready"
    )?;
    if let Some(unreadable) = &report.not_readable {
        writeln!(out, "  {}", plain::line(&unreadable.text()))?;
    }
    if report.machines.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let rows = report.machines.iter().map(|member| {
        let state = member.verdict.state.as_str();
        let cells = [member.name.as_str(), state, &member.verdict.cause];
        cells.map(ToOwned::to_owned)
    });
    let rows: Vec<_> = rows.collect();
    table(out, ["MACHINE", "STATE", "MESSAGE"], &rows)
}

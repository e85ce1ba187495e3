//! The ScheduledCapacities, in a table of their own.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::io::{self, Write};

use fivespot_api::ScheduledCapacity;
use fivespot_api::scheduled_capacity::CapacityTarget;
use fivespot_api::verdict::{self, Verdict};
use kube::Client;
use serde::Serialize;

use super::listed::Listed;
use super::table::{self, Instants, or_dash, place};
use super::zone::Zones;
use crate::check::Judge;
use crate::document::Document;
use crate::explain::unreadable::Unreadable;
use crate::preview::source::{self, Selection};
use crate::preview::{Context, PlannedCapacity};

/// What a user who may not read the inputs of a schedule is shown.
const NOT_READABLE: &str = "not readable";

/// What was found of them.
pub(super) type Capacities = Listed<Row>;

/// One row: the state of one ScheduledCapacity, from its status.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    namespace: String,
    name: String,
    phase: String,
    target: CapacityTarget,
    /// The values that were last written; empty if none were.
    value: String,
    /// The values that the schedule wants now.
    wanted: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    next: String,
    verdict: Verdict,
    /// The target in words.
    #[serde(skip)]
    target_text: String,
    /// The time zone of the schedule.
    #[serde(skip)]
    zone: String,
}

impl Capacities {
    /// What was listed. That they cannot be read is no error.
    pub(super) async fn listed(
        client: &Client,
        selection: Selection<'_>,
        judge: &Judge,
        zones: &Zones,
        found: Result<Vec<Document>, Unreadable>,
    ) -> Self {
        match found {
            Ok(documents) => Self::of(client, selection, judge, zones, &documents).await,
            Err(unreadable) => unreadable.into(),
        }
    }

    /// The rows of objects, what to look at first at the beginning. The inputs of their schedules
    /// are read only where the status does not say what is wanted.
    pub(super) async fn of(
        client: &Client,
        selection: Selection<'_>,
        judge: &Judge,
        zones: &Zones,
        documents: &[Document],
    ) -> Self {
        let row = |document: &Document| Row::of(document, judge, zones);
        let mut rows: Vec<Row> = documents.iter().map(row).collect();
        if !rows.iter().all(Row::is_written) {
            let context = source::context(client, selection, None).await.ok();
            let pairs = rows.iter_mut().zip(documents);
            for (row, document) in pairs.filter(|(row, _)| !row.is_written()) {
                row.wanted = wanted(document, context.as_ref(), judge);
            }
        }
        rows.sort_by(Row::order);
        rows.into()
    }

    /// Prints rows under their heads, in columns; or that they may not be read.
    pub(super) fn print(
        &self,
        out: &mut dyn Write,
        instants: &Instants,
        is_colored: bool,
    ) -> io::Result<()> {
        self.print_with(out, |out, rows| {
            let rows = rows.iter();
            let rows = rows.map(|row| (row.cells(instants), row.verdict.state));
            table::styled(out, HEAD, &rows.collect::<Vec<_>>(), is_colored)
        })
    }
}

/// The values that the schedule wants. `context` is `None` if it may not be read.
fn wanted(document: &Document, context: Option<&Context>, judge: &Judge) -> String {
    let Some(context) = context else {
        return NOT_READABLE.to_owned();
    };
    match PlannedCapacity::of(document, context, None) {
        Ok(planned) => planned
            .object
            .values_text(planned.is_active_at(judge.now).into()),
        // The message of the row says why.
        Err(_) => "unknown".to_owned(),
    }
}

impl Row {
    /// Reads a ScheduledCapacity. One that cannot be decoded is a row that says so.
    pub(super) fn of(document: &Document, judge: &Judge, zones: &Zones) -> Self {
        let text = |pointer: &str| document.text(pointer).to_owned();
        let row = Self {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            phase: text("/status/phase"),
            next: text("/status/nextTransition"),
            zone: zones.of(&document.object),
            verdict: judge.capacity(&document.object),
            target: CapacityTarget::default(),
            target_text: String::new(),
            value: String::new(),
            wanted: String::new(),
        };
        let Ok(object) =
            serde_json::from_value::<ScheduledCapacity>(document.object.clone())
        else {
            return row;
        };
        let active = object.status.as_ref().and_then(|status| status.active);
        let wanted = active.map(|is_active| object.values_text(is_active.into()));
        Self {
            value: object.written_text(),
            wanted: wanted.unwrap_or_default(),
            target_text: object.target_text(),
            target: object.spec.target,
            ..row
        }
    }

    /// Whether the values that are written are those that are wanted.
    fn is_written(&self) -> bool {
        verdict::capacity::has_what_it_wants(self.verdict.state)
            && !self.wanted.is_empty()
    }

    /// The row in a list of machines, with the value in the message.
    pub(super) fn among_machines(
        &self,
        document: &Document,
        zones: &Zones,
    ) -> table::Row {
        let cause = match self.value.as_str() {
            "" => self.verdict.cause.clone(),
            value => format!("{value}; {}", self.verdict.cause),
        };
        let verdict = Verdict {
            cause,
            ..self.verdict.clone()
        };
        table::Row::of_capacity(&document.object, verdict, zones)
    }

    /// The verdict.
    pub(super) fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The order in the table.
    fn order(&self, other: &Self) -> Ordering {
        let own = place(&self.verdict, &self.namespace, &self.name);
        own.cmp(&place(&other.verdict, &other.namespace, &other.name))
    }

    fn cells(&self, instants: &Instants) -> [String; 8] {
        let next = instants.text(or_dash(&self.next), &self.zone);
        let cells = [
            &self.namespace,
            &self.name,
            self.verdict.state.as_str(),
            or_dash(&self.target_text),
            or_dash(&self.value),
            or_dash(&self.wanted),
            &*next,
            &self.verdict.cause,
        ];
        cells.map(ToOwned::to_owned)
    }
}

const HEAD: [&str; 8] = [
    "NAMESPACE",
    "CAPACITY",
    "STATE",
    "TARGET",
    "VALUE",
    "WANTED",
    "NEXT",
    "MESSAGE",
];

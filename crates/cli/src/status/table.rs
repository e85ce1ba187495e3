//! Prints one line for each machine.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use fivespot_api::Phase;
use fivespot_api::resource::SCHEDULED_CAPACITY;
use fivespot_api::verdict::{State, Verdict};
use fivespot_drawing::distance;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value;

use super::zone::Zones;
use crate::columns::Columns;
use crate::output;

/// One row: the state of one machine, from its status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    namespace: String,
    name: String,
    phase: String,
    in_schedule: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    node: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    next: String,
    message: String,
    verdict: Verdict,
    /// The time zone of the schedule.
    #[serde(skip)]
    zone: String,
}

/// How instants are shown.
#[derive(Clone, Debug, Default)]
pub(super) enum Instants {
    /// As in the status: `2026-03-06T23:00:00Z`.
    #[default]
    Utc,
    /// Relative to this instant, and in the time zone of the schedule:
    /// `in 8h, 2026-03-07 00:00 +01:00`.
    Local(Timestamp),
}

impl Instants {
    /// An instant of the status of a machine whose schedule is in this zone. A text that is not an
    /// instant is shown as it is.
    pub(super) fn text<'t>(&self, text: &'t str, zone: &str) -> Cow<'t, str> {
        match (self, text.parse::<Timestamp>()) {
            (Self::Local(now), Ok(at)) => {
                let zone = fivespot_schedule::zone(zone).unwrap_or(TimeZone::UTC);
                let local = at.to_zoned(zone).strftime("%F %H:%M %:z");
                format!("{}, {local}", distance(at.duration_since(*now))).into()
            }
            _ => text.into(),
        }
    }

    /// The usual width of an instant.
    fn width(&self) -> usize {
        match self {
            Self::Utc => "2026-03-06T23:00:00Z".len(),
            Self::Local(..) => "in 23h 59m, 2026-03-07 00:00 +01:00".len(),
        }
    }
}

const HEAD: [&str; 7] = [
    "NAMESPACE",
    "NAME",
    "STATE",
    "PHASE",
    "NODE",
    "NEXT",
    "MESSAGE",
];

/// The index of the column of the state.
const STATE: usize = 2;

/// The style of a state on a terminal.
fn style(state: State) -> Style {
    match state {
        State::Blocked => AnsiColor::Red.on_default().bold(),
        State::Unknown => AnsiColor::Magenta.on_default().bold(),
        State::Late => AnsiColor::Yellow.on_default().bold(),
        State::Starting | State::Leaving => AnsiColor::Blue.on_default(),
        State::Serving => AnsiColor::Green.on_default(),
        State::Held | State::Disabled | State::Killed => AnsiColor::Yellow.on_default(),
        State::Off => Style::new().dimmed(),
    }
}

/// The place of a row in its table: what to look at first comes first; then by namespace and name.
pub(super) fn place<'r>(
    verdict: &Verdict,
    namespace: &'r str,
    name: &'r str,
) -> (u8, &'r str, &'r str) {
    (verdict.state.rank(), namespace, name)
}

impl Row {
    /// Reads a ScheduledMachine. Accepts any status.
    pub(super) fn of(object: &Value, verdict: Verdict, zones: &Zones) -> Self {
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        Self {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            phase: text("/status/phase"),
            in_schedule: object.pointer("/status/inSchedule") == Some(&Value::Bool(true)),
            node: text("/status/nodeRef/name"),
            next: text("/status/nextTransition"),
            message: text("/status/message"),
            verdict,
            zone: zones.of(object),
        }
    }

    /// Reads a ScheduledCapacity, whose name is preceded by the short name of its kind.
    pub(super) fn of_capacity(object: &Value, verdict: Verdict, zones: &Zones) -> Self {
        let row = Self::of(object, verdict, zones);
        Self {
            name: format!("{}/{}", SCHEDULED_CAPACITY.short_name, row.name),
            ..row
        }
    }

    /// The phase.
    pub(super) fn phase(&self) -> &str {
        &self.phase
    }

    /// The order in the table.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        let own = place(&self.verdict, &self.namespace, &self.name);
        own.cmp(&place(&other.verdict, &other.namespace, &other.name))
    }

    /// The verdict.
    pub(super) fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The row after the deletion of the object.
    pub(super) fn deleted(self) -> Self {
        let message = "it has been deleted".to_owned();
        Self {
            phase: DELETED.to_owned(),
            node: String::new(),
            next: String::new(),
            verdict: Verdict {
                state: State::Off,
                cause: message.clone(),
                remedy: None,
                ..self.verdict
            },
            message,
            ..self
        }
    }

    fn cells(&self, instants: &Instants) -> [String; 7] {
        let next = instants.text(or_dash(&self.next), &self.zone);
        let cells = [
            &self.namespace,
            &self.name,
            self.verdict.state.as_str(),
            or_dash(&self.phase),
            or_dash(&self.node),
            &*next,
            &self.verdict.cause,
        ];
        cells.map(ToOwned::to_owned)
    }
}

/// The phase of a machine that has been deleted.
const DELETED: &str = "Deleted";

/// A row whose third cell is its state, in columns.
fn line<const N: usize>(
    columns: &Columns<N>,
    cells: &[String; N],
    state: State,
    is_colored: bool,
) -> String {
    let mut cells = columns.padded(cells);
    if is_colored && let Some(cell) = cells.get_mut(STATE) {
        let style = style(state);
        *cell = format!("{style}{cell}{style:#}");
    }
    cells.join("  ").trim_end().to_owned()
}

/// The text, or `-` in its place.
pub(super) fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

/// Prints rows under their heads, in columns.
pub(super) fn text(
    out: &mut dyn Write,
    rows: &[Row],
    instants: &Instants,
) -> io::Result<()> {
    let is_colored = output::is_colored(&io::stdout());
    styled_text(out, rows, instants, is_colored)
}

fn styled_text(
    out: &mut dyn Write,
    rows: &[Row],
    instants: &Instants,
    is_colored: bool,
) -> io::Result<()> {
    let rows = rows.iter();
    let rows = rows.map(|row| (row.cells(instants), row.verdict.state));
    styled(out, HEAD, &rows.collect::<Vec<_>>(), is_colored)
}

/// Prints rows, whose third cell is their state, under their heads, in columns.
pub(super) fn styled<const N: usize>(
    out: &mut dyn Write,
    heads: [&str; N],
    rows: &[([String; N], State)],
    is_colored: bool,
) -> io::Result<()> {
    let mut columns = Columns::under(heads);
    for (cells, _) in rows {
        columns.widen(cells);
    }
    columns.print(out, &heads)?;
    rows.iter().try_for_each(|(cells, state)| {
        writeln!(out, "{}", line(&columns, cells, *state, is_colored))
    })
}

/// The rows that were printed so far while watching.
#[derive(Debug, Default)]
pub(super) struct PrintedRows {
    rows: BTreeMap<(String, String), Row>,
    columns: Option<Columns<7>>,
    instants: Instants,
}

impl PrintedRows {
    /// Whether `row` differs from the row that was last printed for the machine.
    pub(super) fn is_changed(&mut self, row: &Row, is_deleted: bool) -> bool {
        let key = (row.namespace.clone(), row.name.clone());
        if is_deleted {
            self.rows.remove(&key);
            return true;
        }
        self.rows.insert(key, row.clone()).as_ref() != Some(row)
    }

    /// How instants are shown from now on.
    pub(super) fn set_instants(&mut self, instants: Instants) {
        self.instants = instants;
    }

    /// Prints rows, below the heads if they are the first ones. The columns are wide enough for any
    /// phase, and for Nodes that are named like their machines.
    pub(super) fn lines(&mut self, out: &mut dyn Write, rows: &[Row]) -> io::Result<()> {
        let is_first = self.columns.is_none();
        let mut columns = self.columns.unwrap_or_else(|| Columns::under(HEAD));
        for row in rows {
            columns.widen(&row.cells(&self.instants));
        }
        let Columns([_, name, state, phase, node, next, _]) = &mut columns;
        let states = State::ALL.iter().map(|state| state.as_str().len());
        *state = states.fold(*state, usize::max);
        let phases = Phase::ALL.iter().map(|phase| phase.as_str().len());
        *phase = phases.fold(*phase, usize::max);
        *node = (*node).max(*name);
        *next = (*next).max(self.instants.width());
        if is_first {
            columns.print(out, &HEAD)?;
        }
        self.columns = Some(columns);
        let is_colored = output::is_colored(&io::stdout());
        rows.iter().try_for_each(|row| {
            let cells = row.cells(&self.instants);
            let line = line(&columns, &cells, row.verdict.state, is_colored);
            writeln!(out, "{line}")
        })
    }
}

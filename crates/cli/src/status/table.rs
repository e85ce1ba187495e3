//! Prints one line for each machine.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use fivespot_api::Phase;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::columns::{self, Columns};
use crate::plain;

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
    fn text<'t>(&self, text: &'t str, zone: &str) -> Cow<'t, str> {
        match (self, text.parse::<Timestamp>()) {
            (Self::Local(now), Ok(at)) => {
                let zone = fivespot_schedule::zone(zone).unwrap_or(TimeZone::UTC);
                let local = at.to_zoned(zone).strftime("%F %H:%M %:z");
                format!("{}, {local}", relative(at.duration_since(*now))).into()
            }
            _ => text.into(),
        }
    }

    /// The usual width of an instant.
    fn width(&self) -> usize {
        match self {
            Self::Utc => "2026-03-06T23:00:00Z".len(),
            Self::Local(..) => "in 59m, 2026-03-07 00:00 +01:00".len(),
        }
    }
}

/// `in 45s`, `in 12m`, `in 8h`, `in 3d`, `5m ago`: a length in its largest whole unit.
fn relative(length: SignedDuration) -> String {
    let seconds = length.as_secs().unsigned_abs();
    let shown = match seconds {
        ..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    };
    if length.is_negative() {
        format!("{shown} ago")
    } else {
        format!("in {shown}")
    }
}

const HEAD: [&str; 6] = ["NAMESPACE", "NAME", "PHASE", "NODE", "NEXT", "MESSAGE"];

impl Row {
    /// Reads a ScheduledMachine. Accepts any status.
    pub(super) fn of(object: &Value) -> Self {
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let phase = match text("/status/phase") {
            none if none.is_empty() => "Unknown".to_owned(),
            phase => phase,
        };
        let message = match text("/status/message") {
            none if none.is_empty() && phase == "Unknown" => {
                "not reconciled yet".to_owned()
            }
            message => message,
        };
        Self {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            phase,
            in_schedule: object.pointer("/status/inSchedule") == Some(&Value::Bool(true)),
            node: text("/status/nodeRef/name"),
            next: text("/status/nextTransition"),
            message,
            zone: text("/spec/schedule/timezone"),
        }
    }

    /// The row of the machine after its deletion.
    pub(super) fn deleted(self) -> Self {
        Self {
            phase: "Deleted".to_owned(),
            node: String::new(),
            next: String::new(),
            message: "the ScheduledMachine has been deleted".to_owned(),
            ..self
        }
    }

    fn cells(&self, instants: &Instants) -> [Cow<'_, str>; 6] {
        let next = instants.text(or_dash(&self.next), &self.zone);
        let cells = [
            &self.namespace,
            &self.name,
            &self.phase,
            or_dash(&self.node),
            &*next,
            &self.message,
        ];
        cells.map(|cell| plain::line(cell).into_owned().into())
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

/// Prints rows under their heads, in columns.
pub(super) fn text(
    out: &mut dyn Write,
    rows: &[Row],
    instants: &Instants,
) -> io::Result<()> {
    let rows: Vec<_> = rows.iter().map(|row| row.cells(instants)).collect();
    columns::table(out, HEAD, &rows)
}

/// The rows that were printed so far while watching.
#[derive(Debug, Default)]
pub(super) struct PrintedRows {
    rows: BTreeMap<(String, String), Row>,
    columns: Option<Columns<6>>,
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
        let Columns([_, name, phase, node, next, _]) = &mut columns;
        let phases = Phase::ALL.iter().map(|phase| phase.as_str().len());
        *phase = phases.fold(*phase, usize::max);
        *node = (*node).max(*name);
        *next = (*next).max(self.instants.width());
        if is_first {
            columns.print(out, &HEAD.map(Cow::Borrowed))?;
        }
        self.columns = Some(columns);
        rows.iter()
            .try_for_each(|row| columns.print(out, &row.cells(&self.instants)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Instants, PrintedRows, Row, text};

    fn rows() -> Vec<Row> {
        let active = json!({
            "metadata": {"namespace": "default", "name": "worker"},
            "spec": {"schedule": {"timezone": "Europe/Zurich"}},
            "status": {
                "phase": "Active",
                "inSchedule": true,
                "nodeRef": {"name": "worker"},
                "nextTransition": "2026-03-06T23:00:00Z",
                "message": "Node worker is in service until 2026-03-06T23:00:00Z",
            },
        });
        let new = json!({"metadata": {"namespace": "team-a", "name": "night-shift"}});
        vec![Row::of(&active), Row::of(&new)]
    }

    #[test]
    fn machines_are_printed_in_columns() {
        let mut out = Vec::new();
        text(&mut out, &rows(), &Instants::Utc).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap());
    }

    #[test]
    fn the_next_change_is_relative_and_in_local_time() {
        let shown = [
            "2026-03-06T22:59:15Z",
            "2026-03-06T22:12:00Z",
            "2026-03-06T12:00:00Z",
            "2026-03-03T12:00:00Z",
            "2026-03-06T23:05:00Z",
        ]
        .map(|now| {
            let instants = Instants::Local(now.parse().unwrap());
            let mut out = Vec::new();
            text(&mut out, &rows(), &instants).unwrap();
            String::from_utf8(out).unwrap()
        });
        insta::assert_snapshot!(shown.concat());
    }

    #[test]
    fn a_machine_that_comes_and_goes_stays_in_its_columns() {
        let row = |phase: &str, node: &str, message: &str| {
            Row::of(&json!({
                "metadata": {"namespace": "default", "name": "every-other-minute"},
                "status": {
                    "phase": phase,
                    "nodeRef": {"name": node},
                    "nextTransition": "2026-03-06T23:00:00Z",
                    "message": message,
                },
            }))
        };
        let [_, new] = rows().try_into().unwrap();
        let node = "every-other-minute";
        let mut out = Vec::new();
        let mut printed = PrintedRows::default();
        printed
            .lines(&mut out, &[new, row("Inactive", "", "not wanted yet")])
            .unwrap();
        for later in [
            row("Active", node, "in service"),
            row("ShuttingDown", node, "the window has closed"),
            row("Inactive", "", "not wanted").deleted(),
        ] {
            printed.lines(&mut out, &[later]).unwrap();
        }
        insta::assert_snapshot!(String::from_utf8(out).unwrap());
    }

    #[test]
    fn text_of_a_server_cannot_leave_its_cell() {
        let hostile = "\u{1b}]0;pwned\u{7}\u{1b}[31m\ndefault    trusted  Active\r";
        let row = Row::of(&json!({
            "metadata": {"namespace": "default", "name": "worker"},
            "status": {"phase": hostile, "message": hostile, "nodeRef": {"name": hostile}},
        }));
        let mut out = Vec::new();
        text(&mut out, &[row], &Instants::Utc).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out.lines().count(), 2, "{out:?}");
        assert!(
            !out.contains(|it: char| it.is_control() && it != '\n'),
            "{out:?}"
        );
        assert!(
            out.contains(r"\u{1b}]0;pwned\u{7}\u{1b}[31m default"),
            "{out:?}"
        );
    }

    #[test]
    fn an_event_that_changes_no_column_prints_no_row() {
        let mut printed = PrintedRows::default();
        let rows = rows();
        assert!(printed.is_changed(&rows[0], false));
        assert!(!printed.is_changed(&rows[0], false));
        assert!(printed.is_changed(&rows[0].clone().deleted(), true));
        assert!(printed.is_changed(&rows[0], false));
    }
}

//! The report as comma-separated values (RFC 4180): one line per machine.

use std::fmt::Write as _;

use crate::{Costs, Item, Report};

/// A column: its head, and its cell of a machine.
type Column = (&'static str, fn(&Report, &Item) -> String);

const COLUMNS: [Column; 24] = [
    ("month", |report, _| report.month.to_string()),
    ("namespace", |_, of| of.namespace.clone()),
    ("name", |_, of| of.name.clone()),
    ("label", |_, of| of.label_value.clone().unwrap_or_default()),
    ("startTime", |_, of| of.start_time.to_string()),
    ("endTime", |report, _| report.end_time.to_string()),
    ("wantedSeconds", |_, of| {
        of.figures.wanted_seconds.to_string()
    }),
    ("activeSeconds", |_, of| {
        of.figures.active_seconds.to_string()
    }),
    ("provisioningSeconds", |_, of| {
        of.figures.provisioning_seconds.to_string()
    }),
    ("lateSeconds", |_, of| of.figures.late_seconds.to_string()),
    ("usedSeconds", |_, of| of.figures.used_seconds.to_string()),
    ("alwaysOnSeconds", |_, of| {
        of.figures.always_on_seconds.to_string()
    }),
    ("reclaims", |_, of| of.figures.reclaims.to_string()),
    ("rate", |_, of| of.rate.clone().unwrap_or_default()),
    ("currency", |report, of| {
        let currency = report.currency.as_ref().filter(|_| of.costs.is_some());
        currency.cloned().unwrap_or_default()
    }),
    ("money", |_, of| cost(of, |of| of.used.money, 2)),
    ("moneyAlwaysOn", |_, of| {
        cost(of, |of| of.always_on.money, 2)
    }),
    ("moneySaved", |_, of| cost(of, |of| of.saved.money, 2)),
    ("kilowattHours", |_, of| {
        cost(of, |of| of.used.kilowatt_hours, 3)
    }),
    ("kilowattHoursSaved", |_, of| {
        cost(of, |of| of.saved.kilowatt_hours, 3)
    }),
    ("co2Kilograms", |_, of| {
        cost(of, |of| of.used.co2_kilograms, 3)
    }),
    ("co2KilogramsSaved", |_, of| {
        cost(of, |of| of.saved.co2_kilograms, 3)
    }),
    ("state", |_, of| {
        let verdict = of.verdict.as_ref();
        verdict.map_or_else(String::new, |it| it.state.to_string())
    }),
    ("auditedSeconds", |_, of| {
        of.figures.audited_seconds.to_string()
    }),
];

fn cost(item: &Item, of: fn(&Costs) -> f64, digits: usize) -> String {
    let cost = item.costs.as_ref().map(of);
    cost.map_or_else(String::new, |cost| format!("{cost:.digits$}"))
}

/// The whole file, with a header line. Cannot fail.
pub fn document(report: &Report) -> String {
    let mut out = COLUMNS.map(|(head, _)| head).join(",");
    out.push_str("\r\n");
    for item in &report.items {
        let cells = COLUMNS.map(|(_, cell)| quoted(&cell(report, item)));
        let _ = write!(out, "{}\r\n", cells.join(","));
    }
    out
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

//! The report as comma-separated values (RFC 4180): one line per machine.

use std::fmt::Write as _;

use crate::{Costs, Item, Report};

/// The columns.
const COLUMNS: [&str; 24] = [
    "month",
    "namespace",
    "name",
    "label",
    "startTime",
    "endTime",
    "wantedSeconds",
    "activeSeconds",
    "provisioningSeconds",
    "lateSeconds",
    "usedSeconds",
    "alwaysOnSeconds",
    "reclaims",
    "rate",
    "currency",
    "money",
    "moneyAlwaysOn",
    "moneySaved",
    "kilowattHours",
    "kilowattHoursSaved",
    "co2Kilograms",
    "co2KilogramsSaved",
    "state",
    "auditedSeconds",
];

/// The whole file, with a header line. Cannot fail.
pub fn document(report: &Report) -> String {
    let mut out = COLUMNS.join(",");
    out.push_str("\r\n");
    for item in &report.items {
        let cells = cells(report, item).map(|cell| quoted(&cell));
        let _ = write!(out, "{}\r\n", cells.join(","));
    }
    out
}

fn cells(report: &Report, item: &Item) -> [String; COLUMNS.len()] {
    let figures = &item.figures;
    let cost = |of: fn(&Costs) -> f64, digits: usize| {
        let cost = item.costs.as_ref().map(of);
        cost.map_or_else(String::new, |cost| format!("{cost:.digits$}"))
    };
    let currency = report.currency.as_ref().filter(|_| item.costs.is_some());
    [
        report.month.to_string(),
        item.namespace.clone(),
        item.name.clone(),
        item.label_value.clone().unwrap_or_default(),
        item.start_time.to_string(),
        report.end_time.to_string(),
        figures.wanted_seconds.to_string(),
        figures.active_seconds.to_string(),
        figures.provisioning_seconds.to_string(),
        figures.late_seconds.to_string(),
        figures.used_seconds.to_string(),
        figures.always_on_seconds.to_string(),
        figures.reclaims.to_string(),
        item.rate.clone().unwrap_or_default(),
        currency.cloned().unwrap_or_default(),
        cost(|of| of.used.money, 2),
        cost(|of| of.always_on.money, 2),
        cost(|of| of.saved.money, 2),
        cost(|of| of.used.kilowatt_hours, 3),
        cost(|of| of.saved.kilowatt_hours, 3),
        cost(|of| of.used.co2_kilograms, 3),
        cost(|of| of.saved.co2_kilograms, 3),
        item.verdict
            .as_ref()
            .map_or_else(String::new, |it| it.state.to_string()),
        figures.audited_seconds.to_string(),
    ]
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

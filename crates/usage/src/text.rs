//! The report as text for a terminal.

use std::fmt::Write as _;

use crate::figures::{UnitCosts, hours};
use crate::{Costs, Figures, Report, Total};

/// The maximum number of machines that a sentence names.
const NAMED: usize = 5;

/// The whole report. Cannot fail.
pub fn document(report: &Report) -> String {
    let until = if report.is_forecast {
        "as the schedules plan it".to_owned()
    } else {
        format!("counted to {}", report.end_time)
    };
    let mut out = format!("{} (UTC), {until}\n\n", report.month.in_words());
    if let Some(key) = &report.label {
        let rows = report.by_label.iter().map(|of| {
            let value = of.value.as_deref().unwrap_or("(none)");
            (format!("{key}={value}"), of.total)
        });
        table(&mut out, "LABEL", rows.collect(), None);
        out.push('\n');
    }
    let rows = report.items.iter().map(|item| {
        let total = Total {
            machines: 1,
            without_rate: 0,
            figures: item.figures,
            costs: item.costs,
        };
        (format!("{}/{}", item.namespace, item.name), total)
    });
    table(&mut out, "MACHINE", rows.collect(), Some(report.total));
    if let (Some(costs), Some(currency)) = (&report.total.costs, &report.currency) {
        out.push('\n');
        amounts(&mut out, costs, currency);
    }
    capacities(&mut out, report);
    notes(&mut out, report);
    out
}

/// The hours at each value of the capacities.
fn capacities(out: &mut String, report: &Report) {
    let rows = report.capacities.iter().flat_map(|of| {
        of.values.iter().map(move |value| {
            let name = format!("{}/{}", of.namespace, of.name);
            [
                name,
                of.target.clone(),
                value.text.clone(),
                cell(value.seconds),
            ]
        })
    });
    let rows: Vec<[String; 4]> = rows.collect();
    if rows.is_empty() {
        return;
    }
    let width = |column: usize, head: &str| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(head.len())
    };
    let [name, target, value] =
        [width(0, "CAPACITY"), width(1, "TARGET"), width(2, "VALUE")];
    let head = ["CAPACITY", "TARGET", "VALUE", "PLANNED h"].map(ToOwned::to_owned);
    out.push('\n');
    for [of, what, which, hours] in [head].iter().chain(&rows) {
        let _ = writeln!(
            out,
            "{of:name$}  {what:target$}  {which:value$}  {hours:>9}"
        );
    }
}

/// The hours and the costs of several machines next to those of always-on machines. Cannot fail.
pub fn total(total: &Total, currency: &str) -> String {
    let mut out = String::new();
    let costs = total.costs.unwrap_or_default();
    amounts_head(&mut out, currency);
    let Figures {
        used_seconds,
        always_on_seconds,
        ..
    } = total.figures;
    let used = UnitCosts {
        unit: "hours",
        used: hours(used_seconds),
        always_on: hours(always_on_seconds),
        saved: hours(always_on_seconds.saturating_sub(used_seconds)),
    };
    amounts_line(&mut out, &used, currency);
    if total.costs.is_some() {
        for of in costs.by_unit(currency) {
            amounts_line(&mut out, &of, currency);
        }
    }
    if total.without_rate > 0 {
        let (count, all) = (total.without_rate, total.machines);
        let _ = writeln!(out, "Without a rate, so not in the costs: {count} of {all}");
    }
    out
}

/// Hours with two decimals.
fn cell(seconds: i64) -> String {
    format!("{:.2}", hours(seconds))
}

fn table(out: &mut String, head: &str, rows: Vec<(String, Total)>, sum: Option<Total>) {
    let widest = rows.iter().map(|(name, _)| name.chars().count());
    let width = widest.max().unwrap_or(0).max(head.len());
    let _ = writeln!(
        out,
        "{head:width$}  {:>9}  {:>9}  {:>8}  {:>8}  {:>8}  {:>9}  {:>5}",
        "WANTED h", "ACTIVE h", "START h", "LATE h", "RECLAIMS", "ALWAYS h", "USED"
    );
    let sum = sum.map(|total| ("total".to_owned(), total));
    for (name, total) in rows.into_iter().chain(sum) {
        let of = &total.figures;
        let _ = writeln!(
            out,
            "{name:width$}  {:>9}  {:>9}  {:>8}  {:>8}  {:>8}  {:>9}  {:>5}",
            cell(of.wanted_seconds),
            cell(of.active_seconds),
            cell(of.provisioning_seconds),
            cell(of.late_seconds),
            of.reclaims,
            cell(of.always_on_seconds),
            percent(of),
        );
    }
}

/// The percentage of the time in which a machine existed.
fn percent(figures: &Figures) -> String {
    if figures.always_on_seconds == 0 {
        return "-".to_owned();
    }
    let share = 100.0 * hours(figures.used_seconds) / hours(figures.always_on_seconds);
    format!("{share:.0} %")
}

fn amounts(out: &mut String, costs: &Costs, currency: &str) {
    amounts_head(out, currency);
    for of in costs.by_unit(currency) {
        amounts_line(out, &of, currency);
    }
}

/// The width of the column of units.
fn unit_width(currency: &str) -> usize {
    currency.chars().count().max("kg CO2".len())
}

fn amounts_head(out: &mut String, currency: &str) {
    let _ = writeln!(
        out,
        "{:width$}  {:>12}  {:>12}  {:>12}",
        "",
        "USED",
        "ALWAYS ON",
        "SAVED",
        width = unit_width(currency)
    );
}

fn amounts_line(out: &mut String, of: &UnitCosts<'_>, currency: &str) {
    let _ = writeln!(
        out,
        "{:width$}  {:>12.2}  {:>12.2}  {:>12.2}",
        of.unit,
        of.used,
        of.always_on,
        of.saved,
        width = unit_width(currency)
    );
}

/// Notes that explain the figures.
fn notes(out: &mut String, report: &Report) {
    let late: Vec<String> = report
        .items
        .iter()
        .filter(|item| item.start_time > report.start_time)
        .map(|item| format!("{}/{} from {}", item.namespace, item.name, item.start_time))
        .collect();
    if !late.is_empty() {
        let _ = writeln!(
            out,
            "\nNot counted from the beginning of the month: {}",
            some(&late)
        );
    }
    if report.total.without_rate > 0 {
        let without = report.items.iter().filter(|item| item.rate.is_none());
        let names: Vec<String> = without
            .map(|item| format!("{}/{}", item.namespace, item.name))
            .collect();
        let _ = writeln!(
            out,
            "\nWithout a rate, so not in the costs: {}",
            some(&names)
        );
    }
    let audited = report.audited();
    if !audited.is_empty() {
        let _ = writeln!(
            out,
            "\nIn audit mode; {} h in which they were wanted count as used: {}",
            cell(report.total.figures.audited_seconds),
            some(&audited)
        );
    }
    let blocked = report.blocked();
    if !blocked.is_empty() {
        let _ = writeln!(
            out,
            "\nBlocked at present, see `5spot status`: {}",
            some(&blocked)
        );
    }
    if !report.without_account.is_empty() {
        let names = some(&report.without_account);
        let _ = writeln!(out, "\nWithout usage data for this month: {names}");
    }
}

/// The first of the names, and the number of the others.
fn some(names: &[String]) -> String {
    let first: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let first = first.join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

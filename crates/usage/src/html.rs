//! The report as HTML: one self-contained file, or the part of a page.

use fivespot_drawing::html::SHEET;
use fivespot_drawing::shares::{self, Share, Shares};
use fivespot_drawing::style;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::figures::hours;
use crate::{Costs, Figures, Report, Total};

/// The maximum number of bars; the table has all rows.
const MAX_BARS: usize = 40;

/// The maximum number of machines in the table.
const MAX_ROWS: usize = 500;

/// The whole report as one file. Cannot fail.
pub fn document(report: &Report) -> String {
    let title = title(report);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                title { (title) }
                style { (PreEscaped(SHEET)) (PreEscaped(style::sheet())) }
            }
            body { main { h1 { (title) } (part(report, None)) } }
        }
    };
    page.into_string() + "\n"
}

/// The title of the page: `Savings in October 2026`.
pub fn title(report: &Report) -> String {
    let forecast = if report.is_forecast {
        "Forecast of the savings"
    } else {
        "Savings"
    };
    format!("{forecast} in {}", report.month.in_words())
}

/// The report without its title, for a page that has the style sheets of the charts. `width` is that of
/// the charts in pixels, where it is known.
pub fn part(report: &Report, width: Option<u32>) -> Markup {
    html! {
        p {
            (count(report.total.machines)) ", "
            @if report.is_forecast { "as the schedules plan the month of UTC" } @else {
                "counted to "
                time datetime=(report.end_time) { (report.end_time.strftime("%-d %b %Y %H:%M")) }
                " UTC"
            }
            ". Used is the time in which a machine existed, including its start; always on is \
             a machine that is never shut down."
        }
        @if report.items.is_empty() {
            p { "No machine has usage data for this month." }
        } @else {
            (figure(&Shares { width, ..together(report) }))
            (figure(&Shares { width, ..apart(report) }))
            @let more = without_bar(report);
            @if more > 0 { p { "and " (more) " more, in the table below" } }
            @if let Some(key) = &report.label { (labels(report, key)) }
            (machines(report))
        }
        @if !report.capacities.is_empty() { (capacities(report)) }
        (notes(report))
    }
}

/// The hours at each value of the capacities.
fn capacities(report: &Report) -> Markup {
    let rows = report.capacities.iter().take(MAX_ROWS);
    html! {
        h2 { "Capacities" }
        div.scroll role="region" tabindex="0" aria-label="Capacities" {
            table {
                thead { tr {
                    th scope="col" { "Capacity" }
                    th scope="col" { "Target" }
                    th scope="col" { "Value" }
                    th scope="col" { "Planned h" }
                } }
                tbody {
                    @for of in rows { @for value in &of.values { tr {
                        th scope="row" { (of.namespace) "/" (of.name) }
                        td { (of.target) }
                        td { (value.text) }
                        td { (format!("{:.2}", hours(value.seconds))) }
                    } } }
                }
            }
        }
    }
}

/// The totals of the reports of several months as one table, one row per month.
pub fn by_month(reports: &[Report]) -> Markup {
    let rows = reports.iter().map(|of| (of.month.in_words(), of.total));
    let with_costs = reports.iter().find(|of| of.total.costs.is_some());
    html! {
        @if let Some(first) = with_costs.or(reports.first()) { (table(first, "Month", rows)) }
    }
}

fn count(machines: usize) -> String {
    match machines {
        1 => "1 machine".to_owned(),
        several => format!("{several} machines"),
    }
}

/// A chart that scrolls if it is wider than the page.
fn figure(drawn: &Shares) -> Markup {
    html! {
        h2 { (drawn.title) }
        figure {
            div.scroll role="region" tabindex="0" aria-label=(drawn.title) {
                (PreEscaped(shares::svg_part(drawn)))
            }
        }
    }
}

/// The chart of all machines: hours, money, energy, CO2.
fn together(report: &Report) -> Shares {
    let total = &report.total;
    let mut rows = vec![Share {
        name: "hours".to_owned(),
        ..of_hours(&total.figures)
    }];
    if let (Some(costs), Some(currency)) = (&total.costs, &report.currency) {
        let kinds = costs.by_unit(currency).into_iter();
        rows.extend(kinds.filter(|of| of.always_on > 0.0).map(|of| Share {
            name: of.unit.to_owned(),
            part: of.used / of.always_on,
            line: None,
            text: format!(
                "{:.2} of {:.2}, saved {:.2}",
                of.used, of.always_on, of.saved
            ),
        }));
    }
    shares(
        format!("All machines in {}", report.month.in_words()),
        "all-",
        rows,
    )
}

/// The chart by label, or by machine.
fn apart(report: &Report) -> Shares {
    let by_label = report.by_label.iter().map(|of| Share {
        name: of.value.clone().unwrap_or_else(|| "(none)".to_owned()),
        ..of_hours(&of.total.figures)
    });
    let by_machine = report.items.iter().map(|item| Share {
        name: format!("{}/{}", item.namespace, item.name),
        ..of_hours(&item.figures)
    });
    let (title, rows) = if let Some(key) = &report.label {
        (format!("Hours by {key}"), by_label.take(MAX_BARS).collect())
    } else {
        let rows = by_machine.take(MAX_BARS).collect();
        ("Hours by machine".to_owned(), rows)
    };
    shares(title, "apart-", rows)
}

/// How many bars the chart by label or by machine leaves out.
fn without_bar(report: &Report) -> usize {
    let all = match report.label {
        Some(_) => report.by_label.len(),
        None => report.items.len(),
    };
    all.saturating_sub(MAX_BARS)
}

fn shares(title: String, prefix: &'static str, rows: Vec<Share>) -> Shares {
    Shares {
        title,
        prefix,
        rows,
        width: None,
    }
}

fn of_hours(figures: &Figures) -> Share {
    let whole = hours(figures.always_on_seconds);
    let share = |seconds| {
        if whole > 0.0 {
            hours(seconds) / whole
        } else {
            0.0
        }
    };
    Share {
        name: String::new(),
        part: share(figures.used_seconds),
        line: Some(share(figures.wanted_seconds)),
        text: format!("{:.1} of {whole:.1} h", hours(figures.used_seconds)),
    }
}

fn labels(report: &Report, key: &str) -> Markup {
    html! {
        h2 { "By " (key) }
        (table(report, key, report.by_label.iter().map(|of| {
            let value = of.value.clone().unwrap_or_else(|| "(none)".to_owned());
            (format!("{value}, {}", count(of.total.machines)), of.total)
        })))
    }
}

fn machines(report: &Report) -> Markup {
    let rows = report.items.iter().take(MAX_ROWS).map(|item| {
        let total = Total {
            machines: 1,
            without_rate: 0,
            figures: item.figures,
            costs: item.costs,
        };
        (format!("{}/{}", item.namespace, item.name), total)
    });
    let more = report.items.len().saturating_sub(MAX_ROWS);
    html! {
        h2 { "By machine" }
        (table(report, "Machine", rows.chain([("total".to_owned(), report.total)])))
        @if more > 0 {
            p {
                @match more {
                    1 => "1 more machine is",
                    several => { (several) " more machines are" },
                }
                " only in the CSV file and in the total."
            }
        }
    }
}

fn table(
    report: &Report,
    head: &str,
    rows: impl Iterator<Item = (String, Total)>,
) -> Markup {
    let currency = report
        .currency
        .as_deref()
        .filter(|_| report.total.costs.is_some());
    let number = |number: f64| html! { td.number { (format!("{number:.2}")) } };
    html! {
        div.scroll role="region" tabindex="0" aria-label=(format!("Figures by {head}")) {
            table {
                thead {
                    tr {
                        th scope="col" { (head) }
                        @for column in ["Hours wanted", "Active", "Starting", "Late", "Reclaims", "Always on", "Hours saved"] {
                            th.number scope="col" { (column) }
                        }
                        @if let Some(currency) = currency {
                            th.number scope="col" { (currency) " used" }
                            @for unit in [currency, "kWh", "kg CO2"] {
                                th.number scope="col" { (unit) " saved" }
                            }
                        }
                    }
                }
                tbody {
                    @for (name, Total { figures, costs, .. }) in rows {
                        tr {
                            th scope="row" { (name) }
                            (number(hours(figures.wanted_seconds)))
                            (number(hours(figures.active_seconds)))
                            (number(hours(figures.provisioning_seconds)))
                            (number(hours(figures.late_seconds)))
                            td.number { (figures.reclaims) }
                            (number(hours(figures.always_on_seconds)))
                            (number(hours(figures.always_on_seconds.saturating_sub(figures.used_seconds))))
                            @if currency.is_some() { (cost_cells(costs)) }
                        }
                    }
                }
            }
        }
    }
}

fn cost_cells(costs: Option<Costs>) -> Markup {
    let cells = costs.map(|costs| {
        let saved = costs.saved;
        [
            costs.used.money,
            saved.money,
            saved.kilowatt_hours,
            saved.co2_kilograms,
        ]
    });
    html! {
        @match cells {
            Some(cells) => @for cell in cells { td.number { (format!("{cell:.2}")) } },
            None => td.number colspan="4" { "no rate" },
        }
    }
}

fn notes(report: &Report) -> Markup {
    let begun_late = report
        .items
        .iter()
        .filter(|item| item.start_time > report.start_time)
        .count();
    let (unrated, missing) = (report.total.without_rate, report.without_account.len());
    let blocked = report.blocked().len();
    let audited = report.audited().len();
    html! {
        @if begun_late > 0 {
            p { "Not counted from the beginning of the month: " (count(begun_late)) "." }
        }
        @if audited > 0 {
            p { (count(audited)) " in audit mode: the time in which they were wanted counts as used." }
        }
        @if blocked > 0 { p { (count(blocked)) " blocked at present: somebody has to act." } }
        @if unrated > 0 { p { (count(unrated)) " without a rate: not in the costs." } }
        @if missing > 0 { p { (count(missing)) " more without usage data for this month." } }
    }
}

//! The usage of the machines in a month, and the savings.

use fivespot_usage::{Month, Query, Rates, Report, html as drawing};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use crate::filter::Filter;
use crate::page::{self, Body};
use crate::state::Snapshot;

/// The report on the machines that the filter admits, for its month. A month in the future is
/// replaced by the current month.
pub(crate) fn report(
    snapshot: &Snapshot,
    filter: &Filter,
    rates: Option<&Rates>,
    now: Timestamp,
) -> Report {
    let present = Month::at(now);
    let month = filter.month().filter(|month| *month <= present);
    let machines = page::matching(&page::judged(snapshot, now), filter);
    let query = Query {
        month: month.unwrap_or(present),
        now,
        label: filter.by(),
        rates,
    };
    let machines = machines.into_iter().map(|it| fivespot_usage::Machine {
        verdict: Some(it.verdict),
        ..it.object.usage(now)
    });
    Report::of(machines, &query)
}

/// The page of savings.
pub(crate) fn body(
    snapshot: &Snapshot,
    filter: &Filter,
    report: &Report,
    now: Timestamp,
) -> Body {
    let csv = format!("savings.csv{}", in_month(filter, report.month).query());
    Body {
        fixed: html! {
            h1 { (drawing::title(report)) }
            (form(filter))
        },
        live: html! {
            (page::notices(snapshot, &filter.zone_or(TimeZone::UTC)))
            (months(filter, report, now))
            (drawing::part(report, filter.width))
            @if !report.items.is_empty() {
                p { a href=(csv) download { "These figures as a CSV file" } }
            }
            @if report.currency.is_none() {
                p.soft {
                    "With a file of rates also in money, energy and CO2: start the dashboard with "
                    code { "--rates FILE" } "."
                }
            }
        },
    }
}

fn in_month(filter: &Filter, month: Month) -> Filter {
    filter.with(|it| it.month = month.to_string())
}

/// Links to other months.
fn months(filter: &Filter, report: &Report, now: Timestamp) -> Markup {
    let link = |month: Month| format!("savings{}", in_month(filter, month).query());
    let present = Month::at(now);
    let next = report.month.next().filter(|month| *month <= present);
    html! {
        nav.pages aria-label="Months" {
            @if let Some(previous) = report.month.previous() {
                a href=(link(previous)) rel="prev" { (previous.in_words()) }
            }
            @if let Some(next) = next { a href=(link(next)) rel="next" { (next.in_words()) } }
        }
    }
}

/// The form for the label to group by and for the machines to include.
fn form(filter: &Filter) -> Markup {
    html! {
        form.filter method="get" action="savings" role="search" aria-label="Choose machines" {
            label {
                "Group by label"
                input type="text" name="by" value=(filter.by) placeholder="team" maxlength="256";
            }
            label { "Only label" input type="text" name="label" value=(filter.label) placeholder="team=a" maxlength="256"; }
            label { "Name contains" input type="text" name="q" value=(filter.q) maxlength="63"; }
            @if !filter.zone.is_empty() { input type="hidden" name="zone" value=(filter.zone); }
            @if !filter.month.is_empty() { input type="hidden" name="month" value=(filter.month); }
            button type="submit" { "Show" }
        }
    }
}

//! The list of machines.

use fivespot_controller::Key;
use fivespot_drawing::most_frequent_zone;
use fivespot_schedule::Schedule;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use crate::filter::{Column, Filter};
use crate::machine::{Machine, link};
use crate::page::{self, Body, Judged};
use crate::state::Snapshot;

/// The page of machines.
pub(crate) fn body(snapshot: &Snapshot, filter: &Filter, now: Timestamp) -> Body {
    let all = page::judged(snapshot, now);
    let mut machines = page::matching(&all, filter);
    if let Some(order) = filter.order() {
        page::sort(&mut machines, order);
    }
    let schedules = machines.iter().filter_map(|it| it.object.schedule.as_ref());
    let zone = filter.zone_or(most_frequent_zone(schedules.map(Schedule::zone_name)));
    let shown = page::page_of(&machines, filter);
    Body {
        fixed: html! {
            h1 { "Machines" }
            (page::form::of_machines("machines", filter, snapshot))
        },
        live: html! {
            (page::notices(snapshot, &zone))
            (page::sets::table(snapshot, filter))
            (page::machine_counts("machines", filter, &all))
            @if machines.is_empty() {
                @if snapshot.is_listed { p.empty { "No ScheduledMachine matches the filter." } }
            } @else {
                (page::shown_range(filter, machines.len(), all.len(), &page::machines(all.len())))
                table.stack {
                    thead {
                        tr { @for column in Column::ALL { (head(column, filter)) } }
                    }
                    tbody { @for machine in shown { (row(machine, filter, &zone, now)) } }
                }
                p.soft { (page::whose_times(&zone)) }
                (page::pages("machines", filter, machines.len()))
            }
        },
    }
}

/// Whether a name fits on one line of the table in every window that shows columns. A longer one is
/// broken, so that the page is not wider than its window.
fn is_short(name: &Key) -> bool {
    name.namespace.len() + name.name.len() <= 30
}

/// The head of a column, with a link that sorts by it.
fn head(column: Column, filter: &Filter) -> Markup {
    let order = filter.order().filter(|order| order.column == column);
    let sorted = order.map(|order| {
        if order.is_descending {
            "descending"
        } else {
            "ascending"
        }
    });
    html! {
        th scope="col" aria-sort=[sorted] {
            a href=(format!("machines{}", filter.sorted_by(column).query())) {
                (column.title())
                @match sorted {
                    Some("descending") => span aria-hidden="true" { " ▼" },
                    Some(_) => span aria-hidden="true" { " ▲" },
                    None => {},
                }
            }
        }
    }
}

fn row(
    judged: &Judged<Machine>,
    filter: &Filter,
    zone: &TimeZone,
    now: Timestamp,
) -> Markup {
    let Judged {
        object: machine,
        verdict,
        ..
    } = judged;
    html! {
        tr data-key=(machine.name) {
            th.nowrap[is_short(&machine.name)] scope="row" {
                span.soft { (machine.name.namespace) "/" }
                a href={ (link(&machine.name)) (filter.only_zone().query()) } { (machine.name.name) }
            }
            td data-label="State" { (page::state(verdict.state)) }
            td data-label="Phase" { (page::phase_name(machine.phase())) }
            td data-label="Cluster" { (machine.cluster()) }
            td data-label="Node" { (machine.node()) }
            td.date data-label="Next change" { (next(machine, zone, now)) }
            td data-label="Message" { (page::in_zone(&verdict.cause, zone)) }
        }
    }
}

/// The time of the next change, relative and in a zone; or why there is none.
pub(crate) fn next(machine: &Machine, zone: &TimeZone, now: Timestamp) -> Markup {
    html! {
        @if let Some(next) = machine.next() {
            (page::instant_and_distance(next, zone, now))
        } @else {
            span.soft { (without_change(machine, now)) }
        }
    }
}

/// Why no change is ahead. Empty if the status should have one.
fn without_change(machine: &Machine, now: Timestamp) -> &'static str {
    let at_now = machine.active_schedule().map(|schedule| schedule.at(now));
    match at_now {
        Some(window) if window.until().is_some() => "",
        Some(window) if window.is_open() => "none: always wanted",
        Some(_) => "none: never wanted",
        None if machine.schedule.is_none() => "",
        None => "none: disabled or killed",
    }
}

//! The list of machines.

use fivespot_controller::Key;
use fivespot_schedule::Schedule;
use jiff::Timestamp;
use maud::{Markup, html};

use crate::filter::Filter;
use crate::machine::{Machine, link};
use crate::page::{self, Body, JudgedMachine};
use crate::state::Snapshot;

/// The page of machines.
pub(crate) fn body(snapshot: &Snapshot, filter: &Filter, now: Timestamp) -> Body {
    let all = page::judged(snapshot, now);
    let machines = page::matching(&all, filter);
    let shown = page::page_of(&machines, filter);
    Body {
        fixed: html! {
            h1 { "Machines" }
            (page::form("machines", filter, snapshot))
        },
        live: html! {
            (page::notices(snapshot))
            (page::counts("machines", filter, &all))
            @if machines.is_empty() {
                @if snapshot.is_listed { p.empty { "No ScheduledMachine matches the filter." } }
            } @else {
                (page::shown_range(snapshot, filter, machines.len()))
                table.stack {
                    thead {
                        tr {
                            th scope="col" { "Machine" }
                            th scope="col" { "State" }
                            th scope="col" { "Phase" }
                            th scope="col" { "Cluster" }
                            th scope="col" { "Node" }
                            th scope="col" { "Next change" }
                            th scope="col" { "Message" }
                        }
                    }
                    tbody { @for machine in shown { (row(machine, now)) } }
                }
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

fn row(judged: &JudgedMachine, now: Timestamp) -> Markup {
    let JudgedMachine { machine, verdict } = judged;
    html! {
        tr {
            th.nowrap[is_short(&machine.name)] scope="row" {
                span.soft { (machine.name.namespace) "/" }
                a href=(link(&machine.name)) { (machine.name.name) }
            }
            td data-label="State" { (page::state(verdict.state)) }
            td data-label="Phase" { (page::phase_name(machine.phase)) }
            td data-label="Cluster" { (machine.cluster) }
            td data-label="Node" { (machine.node) }
            td.date data-label="Next change" { (next(machine, now)) }
            td data-label="Message" { (verdict.cause) }
        }
    }
}

/// The time of the next change, relative and in the zone of the schedule.
pub(crate) fn next(machine: &Machine, now: Timestamp) -> Markup {
    let zone = machine.schedule.as_ref().map(Schedule::time_zone);
    html! {
        @if let Some(next) = machine.next {
            span.nowrap { (page::relative(now, next)) }
            @if let Some(zone) = zone {
                " " span.soft.nowrap { "(" (page::local(next, zone)) ")" }
            }
        }
    }
}

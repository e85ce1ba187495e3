//! The list of capacities.

use fivespot_api::verdict::Verdict;
use fivespot_api::verdict::capacity::verdict;
use fivespot_api::{CapacityPhase, ScheduledCapacity};
use fivespot_drawing::most_frequent_zone;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use crate::decoded::Decoded;
use crate::filter::Filter;
use crate::page::{self, Body, Judged};
use crate::state::{CAPACITIES, Snapshot};

/// The path of the page, from the other lists.
const PATH: &str = "capacities";

const HEADS: [&str; 7] = [
    "Capacity",
    "State",
    "Phase",
    "Target",
    "Value",
    "Next change",
    "Message",
];

/// A capacity, or why it cannot be decoded, with the verdict about it.
type JudgedCapacity = Judged<Decoded<ScheduledCapacity>>;

/// All capacities.
fn judged(snapshot: &Snapshot, now: Timestamp) -> Vec<JudgedCapacity> {
    let lease = &snapshot.leases.capacities;
    Judged::all(&snapshot.capacities, |object| match object {
        Ok(object) => verdict(object, lease, now),
        Err(error) => Verdict::undecoded(error),
    })
}

/// The page of capacities.
pub(crate) fn body(snapshot: &Snapshot, filter: &Filter, now: Timestamp) -> Body {
    let all = judged(snapshot, now);
    let objects = all.iter().filter_map(|it| Result::as_ref(&it.object).ok());
    let zones = objects.map(|it| it.spec.schedule.timezone.as_str());
    let zone = filter.zone_or(most_frequent_zone(zones));
    let admitted =
        |it: &&JudgedCapacity| filter.matches_state_and_name(&it.name, it.verdict.state);
    let capacities: Vec<&JudgedCapacity> = all.iter().filter(admitted).collect();
    let shown = page::page_of(&capacities, filter);
    Body {
        fixed: html! {
            h1 { "Capacities" }
            (form(filter, snapshot))
        },
        live: html! {
            (page::notices(snapshot, &zone))
            (counts(filter, &all))
            @if capacities.is_empty() {
                @if snapshot.is_listed && !snapshot.unreadable.contains_key(CAPACITIES) {
                    p.empty { "No ScheduledCapacity matches the filter." }
                }
            } @else {
                (page::shown_range(filter, capacities.len(), all.len(), &in_words(all.len())))
                table.stack {
                    (page::heads(&HEADS))
                    tbody { @for capacity in shown { (row(capacity, &zone, now)) } }
                }
                p.soft { (page::whose_times(&zone)) }
                (page::pages(PATH, filter, capacities.len()))
            }
        },
    }
}

/// The number of capacities in each state, for the pages that list machines. Empty without a
/// capacity.
pub(crate) fn summary(snapshot: &Snapshot, filter: &Filter, now: Timestamp) -> Markup {
    let all = judged(snapshot, now);
    let only_zone = filter.only_zone();
    html! {
        @if !all.is_empty() {
            p.soft { a href={ (PATH) (only_zone.query()) } { (in_words(all.len())) } }
            (counts(&only_zone, &all))
        }
    }
}

fn counts(filter: &Filter, all: &[JudgedCapacity]) -> Markup {
    let states = all.iter().map(|it| it.verdict.state);
    page::counts(PATH, "Capacities by state", filter, states)
}

/// `1 capacity`, `12 capacities`.
fn in_words(count: usize) -> String {
    match count {
        1 => "1 capacity".to_owned(),
        several => format!("{several} capacities"),
    }
}

fn form(filter: &Filter, snapshot: &Snapshot) -> Markup {
    html! {
        form.filter method="get" action=(PATH) role="search" aria-label="Filter capacities" {
            label { "Name contains" input type="text" name="q" value=(filter.q) maxlength="63"; }
            (page::form::state_choice(filter))
            (page::form::namespace_choice(filter, snapshot.capacities.all.keys()))
            (page::form::zone_choice(filter, "The capacities"))
            button type="submit" { "Filter" }
        }
    }
}

fn row(judged: &JudgedCapacity, zone: &TimeZone, now: Timestamp) -> Markup {
    let Judged { name, verdict, .. } = judged;
    let object = Result::as_ref(&judged.object).ok();
    let status = object.and_then(|object| object.status.as_ref());
    let phase = status.and_then(|status| status.phase);
    let next = status.and_then(|status| status.next_transition);
    html! {
        tr data-key=(name) {
            th scope="row" { span.soft { (name.namespace) "/" } (name.name) }
            td data-label="State" { (page::state(verdict.state)) }
            td data-label="Phase" { (phase.map_or("Unknown", CapacityPhase::as_str)) }
            td data-label="Target" { @if let Some(object) = object { (object.target_text()) } }
            td data-label="Value" { @if let Some(object) = object { (object.written_text()) } }
            td.date data-label="Next change" {
                @if let Some(next) = next { (page::instant_and_distance(next, zone, now)) }
            }
            td data-label="Message" {
                (page::in_zone(&verdict.cause, zone))
                @if let Some(remedy) = &verdict.remedy { " " span.soft { (remedy) } }
            }
        }
    }
}

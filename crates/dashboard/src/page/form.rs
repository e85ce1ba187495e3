//! The forms by which what a page shows is chosen.

use fivespot_api::Phase;
use fivespot_api::verdict::State;
use fivespot_controller::Key;
use maud::{Markup, html};

use crate::filter::{Filter, PAGE};
use crate::page::phase_name;
use crate::state::Snapshot;

/// The form of the filter. `path` is the page that shows the result.
pub(crate) fn of_machines(path: &str, filter: &Filter, snapshot: &Snapshot) -> Markup {
    let mut clusters: Vec<&str> = snapshot
        .machines
        .all
        .values()
        .map(|machine| machine.cluster())
        .collect();
    clusters.sort_unstable();
    clusters.dedup();
    clusters.truncate(PAGE);
    // A machine that the operator has not seen has no phase.
    let phases = Phase::ALL.into_iter().map(Some).chain([None]);
    let phases = phases.map(phase_name);
    html! {
        form.filter method="get" action=(path) role="search" aria-label="Filter machines" {
            label { "Name contains" input type="text" name="q" value=(filter.q) maxlength="63"; }
            (state_choice(filter))
            (namespace_choice(filter, snapshot.machines.all.keys()))
            (choice(["Phase", "phase"], &filter.phase, phases))
            (choice(["Cluster", "cluster"], &filter.cluster, clusters))
            label { "Label" input type="text" name="label" value=(filter.label) placeholder="team=a" maxlength="256"; }
            (zone_choice(filter, "The machines"))
            @if !filter.sort.is_empty() { input type="hidden" name="sort" value=(filter.sort); }
            @if !filter.days.is_empty() { input type="hidden" name="days" value=(filter.days); }
            @if !filter.from.is_empty() { input type="hidden" name="from" value=(filter.from); }
            button type="submit" { "Filter" }
        }
    }
}

pub(crate) fn state_choice(filter: &Filter) -> Markup {
    let states = State::ALL.map(State::as_str);
    choice(["State", "state"], &filter.state, states)
}

/// The choice among the namespaces of `names`, which are in order.
pub(crate) fn namespace_choice<'k>(
    filter: &Filter,
    names: impl Iterator<Item = &'k Key>,
) -> Markup {
    let mut namespaces: Vec<&str> = names.map(|name| name.namespace.as_str()).collect();
    namespaces.dedup();
    namespaces.truncate(PAGE);
    choice(["Namespace", "namespace"], &filter.namespace, namespaces)
}

/// The choice among values, or of none, of the field with that label and that name in the query.
fn choice<'v>(
    [label, field]: [&str; 2],
    chosen: &str,
    values: impl IntoIterator<Item = &'v str>,
) -> Markup {
    html! {
        label {
            (label)
            select name=(field) {
                option value="" { "All" }
                @for value in values {
                    option value=(value) selected[chosen == value] { (value) }
                }
            }
        }
    }
}

/// The choice of the time zone; `own` says whose it is otherwise. The script adds the zone of the
/// browser.
pub(crate) fn zone_choice(filter: &Filter, own: &str) -> Markup {
    let is_other = !["", "UTC"].contains(&filter.zone.as_str());
    html! {
        label {
            "Times of"
            select name="zone" {
                option value="" { (own) }
                option value="UTC" selected[filter.zone == "UTC"] { "UTC" }
                @if is_other { option value=(filter.zone) selected { (filter.zone) } }
            }
        }
    }
}

/// The form of a page of which only the time zone can be chosen. `path` is that page.
pub(crate) fn of_zone(path: &str, filter: &Filter) -> Markup {
    html! {
        form.filter method="get" action=(path) aria-label="Choose the time zone" {
            (zone_choice(filter, "The machines"))
            button type="submit" { "Show" }
        }
    }
}

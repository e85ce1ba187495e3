//! The ScheduledMachineSets, above the list of machines.

use fivespot_api::name;
use fivespot_controller::Key;
use maud::{Markup, html};

use crate::filter::{Filter, PAGE};
use crate::set::Set;
use crate::state::Snapshot;

const HEADS: [&str; 6] = ["Set", "Wanted", "Exist", "Active", "Ready", "Message"];

/// The sets of the namespace of the filter. Empty without any.
pub(crate) fn table(snapshot: &Snapshot, filter: &Filter) -> Markup {
    let is_shown =
        |name: &Key| filter.namespace.is_empty() || filter.namespace == name.namespace;
    let sets = snapshot.sets.iter().filter(|(name, _)| is_shown(name));
    let sets: Vec<_> = sets.collect();
    html! {
        @if !sets.is_empty() {
            details #sets open {
                summary { "Sets of machines" }
                table.stack {
                    thead { tr { @for head in HEADS { th scope="col" { (head) } } } }
                    tbody { @for (name, set) in sets.iter().take(PAGE) { (row(name, set, filter)) } }
                }
                @if sets.len() > PAGE {
                    p.soft { (sets.len() - PAGE) " more are not shown; choose a namespace." }
                }
            }
        }
    }
}

/// A set with a link to its machines.
fn row(name: &Key, set: &Set, filter: &Filter) -> Markup {
    let machines = Filter {
        namespace: name.namespace.clone(),
        label: format!("{}={}", name::SET_LABEL, name.name),
        zone: filter.zone.clone(),
        ..Filter::default()
    };
    let number = |of: Option<i32>| of.map_or_else(|| "–".to_owned(), |of| of.to_string());
    let wanted = set
        .wanted
        .map_or_else(|| "–".to_owned(), |of| of.to_string());
    html! {
        tr data-key=(format!("set {name}")) {
            th scope="row" {
                span.soft { (name.namespace) "/" }
                a href={ "machines" (machines.query()) } { (name.name) }
            }
            td data-label="Wanted" { (wanted) }
            td data-label="Exist" { (number(set.exist)) }
            td data-label="Active" { (number(set.active)) }
            td data-label="Ready" { (number(set.ready)) }
            td data-label="Message" { (set.message) }
        }
    }
}

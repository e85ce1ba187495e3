//! The ScheduledMachineSets, above the list of machines.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{ScheduledMachineSet, name};
use fivespot_controller::Key;
use maud::{Markup, html};

use crate::decoded::Decoded;
use crate::filter::{Filter, PAGE};
use crate::page;
use crate::state::Snapshot;

const HEADS: [&str; 6] = ["Set", "Wanted", "Exist", "Active", "Ready", "Message"];

/// The sets of the namespace of the filter. Empty without any.
pub(crate) fn table(snapshot: &Snapshot, filter: &Filter) -> Markup {
    let is_shown =
        |name: &Key| filter.namespace.is_empty() || filter.namespace == name.namespace;
    let sets = snapshot.sets.all.iter().filter(|(name, _)| is_shown(name));
    let sets: Vec<_> = sets.collect();
    html! {
        @if !sets.is_empty() {
            details #sets open {
                summary { "Sets of machines" }
                table.stack {
                    (page::heads(&HEADS))
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
fn row(name: &Key, set: &Decoded<ScheduledMachineSet>, filter: &Filter) -> Markup {
    let machines = filter.only_zone().with(|it| {
        it.namespace.clone_from(&name.namespace);
        it.label = format!("{}={}", name::SET_LABEL, name.name);
    });
    let set = set.as_ref();
    let wanted = set.ok().map(|set| set.spec.replicas);
    let status = set.ok().and_then(|set| set.status.as_ref());
    let ready =
        status.and_then(|it| condition::find(&it.conditions, ConditionType::Ready));
    let message = match (set, ready) {
        (Err(error), _) => format!("cannot be decoded: {error}"),
        (Ok(_), Some(ready)) => ready.message.clone(),
        (Ok(_), None) => "the operator has not reported on it yet".to_owned(),
    };
    html! {
        tr data-key=(format!("set {name}")) {
            th scope="row" {
                span.soft { (name.namespace) "/" }
                a href={ "machines" (machines.query()) } { (name.name) }
            }
            td data-label="Wanted" { (number(wanted)) }
            td data-label="Exist" { (number(status.and_then(|it| it.replicas))) }
            td data-label="Active" { (number(status.and_then(|it| it.active_replicas))) }
            td data-label="Ready" { (number(status.and_then(|it| it.ready_replicas))) }
            td data-label="Message" { (message) }
        }
    }
}

fn number(of: Option<impl Into<i64>>) -> String {
    of.map_or_else(|| "–".to_owned(), |of| of.into().to_string())
}

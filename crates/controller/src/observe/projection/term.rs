//! The terms by which objects find those of other kinds that depend on them.

use fivespot_runtime::Key;
use serde_json::Value;

/// The index term of the objects that belong to the Cluster of that name.
pub(crate) fn cluster_term(cluster: &Key) -> String {
    format!("cluster {cluster}")
}

/// The index term of the ScheduledMachines whose exceptions name that calendar.
pub(crate) fn calendar_term(calendar: &Key) -> String {
    format!("calendar {calendar}")
}

/// The index term of the ScheduledMachines that follow the schedule of that kind and name.
pub(crate) fn spot_schedule_term(kind: &str, schedule: &Key) -> String {
    format!("schedule {kind} {schedule}")
}

/// The index term of the ScheduledMachines that the set of that uid owns.
pub(crate) fn set_term(uid: &str) -> String {
    format!("set {uid}")
}

/// The index term of the Machine whose Node has that name.
pub(super) fn node_term(cluster: &Key, node: &str) -> String {
    format!("node {cluster} {node}")
}

/// The index term of the Machine of that name which has no Node yet.
pub(super) fn coming_term(cluster: &Key, machine: &str) -> String {
    format!("coming {cluster} {machine}")
}

/// The index term of the Machine with that provider ID.
pub(super) fn provider_term(cluster: &Key, provider_id: &str) -> String {
    format!("provider {cluster} {provider_id}")
}

/// The index term of a Machine of another owner that has this term. They differ, so that no event
/// of a Node enqueues the name of such a Machine.
pub(super) fn foreign(term: &str) -> String {
    format!("foreign {term}")
}

/// The index terms of the Machines whose Node has that name, or with that provider ID; either may
/// be empty. Machines of other owners included.
pub(crate) fn node_terms(cluster: &Key, node: &str, provider_id: &str) -> Vec<String> {
    let node = (!node.is_empty()).then(|| node_term(cluster, node));
    let provider = (!provider_id.is_empty()).then(|| provider_term(cluster, provider_id));
    let own = node.into_iter().chain(provider);
    own.flat_map(|term| [foreign(&term), term]).collect()
}

/// The index terms of the calendars of a schedule, and of the schedule that it follows.
pub(super) fn schedule_terms(schedule: &Value, own: &Key) -> Vec<String> {
    let mut terms: Vec<String> = calendar_terms(schedule, own).collect();
    if let (Some(kind), Some(name)) =
        (schedule["kind"].as_str(), schedule["name"].as_str())
    {
        let followed = Key::new(own.namespace.clone(), name);
        terms.push(spot_schedule_term(kind, &followed));
    }
    terms
}

/// The index terms of the calendars of a schedule.
pub(super) fn calendar_terms<'o>(
    schedule: &'o Value,
    own: &'o Key,
) -> impl Iterator<Item = String> + 'o {
    let exceptions = schedule["exceptions"].as_array();
    exceptions.into_iter().flatten().filter_map(|exception| {
        let calendar = exception["calendarRef"]["name"].as_str()?;
        Some(calendar_term(&Key::new(own.namespace.clone(), calendar)))
    })
}

/// A text; empty for another value.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

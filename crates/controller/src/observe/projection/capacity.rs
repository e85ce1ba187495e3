//! The targets and the index terms of ScheduledCapacities and of what they follow.

use fivespot_api::name;
use fivespot_runtime::Key;
use serde_json::Value;

use super::target::Target;
use super::term::{schedule_terms, text};

/// The index term of the ScheduledMachine with that Node.
pub(crate) fn machine_node_term(namespace: &str, node: &str) -> String {
    format!("node of {namespace} {node}")
}

/// The index term of the ScheduledCapacities of a namespace that name a Node.
pub(crate) fn hosted_term(namespace: &str) -> String {
    format!("hosted {namespace}")
}

/// The index term of the ScheduledCapacities with a target of that API group.
pub(crate) fn target_group_term(group: &str) -> String {
    format!("targets of {group}")
}

/// The index term of the ScheduledCapacities with that target; `target` has no namespace for a kind
/// of cluster scope.
fn target_term(group: &str, kind: &str, target: &Key) -> String {
    format!("target {kind}.{group} {target}")
}

/// The ScheduledCapacities of a target.
pub(super) fn target(object: &Value, own: &Key) -> Vec<Target> {
    let (group, kind) = (group_of(&object["apiVersion"]), text(&object["kind"]));
    vec![Target::Capacities(target_term(group, kind, own))]
}

/// The targets of an override: itself, and the ScheduledCapacity that it names.
pub(super) fn of_override(object: &Value, own: &Key) -> Vec<Target> {
    let target = &object["spec"]["targetRef"];
    let capacity = (target["kind"] == name::CAPACITY_KIND).then(|| {
        Target::Capacity(Key::new(own.namespace.clone(), text(&target["name"])))
    });
    [Target::Own(own.clone())]
        .into_iter()
        .chain(capacity)
        .collect()
}

/// The index terms of a ScheduledCapacity: its target, its calendars and its schedule, and whether
/// it names a Node.
pub(super) fn terms(object: &Value, own: &Key) -> Vec<String> {
    let spec = &object["spec"];
    let target = &spec["target"];
    let (group, kind) = (group_of(&target["apiVersion"]), text(&target["kind"]));
    let name = target["name"].as_str().unwrap_or(&own.name);
    let in_namespace = Key::new(own.namespace.clone(), name);
    let mut terms = vec![
        target_group_term(group),
        target_term(group, kind, &in_namespace),
        target_term(group, kind, &Key::new("", name)),
    ];
    terms.extend(schedule_terms(&spec["schedule"], own));
    if spec["nodeName"].is_string() {
        terms.push(hosted_term(&own.namespace));
    }
    terms
}

/// The group of an `apiVersion`; that of the core is empty.
fn group_of(api_version: &Value) -> &str {
    text(api_version)
        .split_once('/')
        .map_or("", |(group, _)| group)
}

//! What keeps a Machine in line with today's spec, whether it stays or leaves.

use fivespot_capi::{Machine, MachinePatch, draft};

use crate::Node;
use crate::case::Case;

/// The timeouts that the Machine lacks. They bound Cluster API's own drain, also one that is
/// under way.
pub(crate) fn timeouts(case: &Case<'_>, machine: &Machine) -> MachinePatch {
    let wanted = case
        .want
        .drain_timeout
        .map(jiff::SignedDuration::unsigned_abs);
    let wanted = wanted.map(draft::effective).filter(|wanted| {
        machine.drain_timeout != Some(*wanted)
            || machine.volume_detach_timeout != Some(*wanted)
    });
    MachinePatch {
        drain_timeout: wanted,
        ..MachinePatch::default()
    }
}

/// Whether the Node is the one that the Machine became: named by it, of the same provider
/// identifier, and of the same uid where the Machine knows one.
pub(crate) fn is_node_of(machine: &Machine, node: &Node) -> bool {
    let is_named = machine.node.as_ref().is_some_and(|link| {
        link.name == node.name && link.uid.as_ref().is_none_or(|uid| *uid == node.uid)
    });
    is_named && machine.provider_id.is_some() && machine.provider_id == node.provider_id
}

/// The Node of our Machine, if it was read and is the right one.
pub(crate) fn node<'a>(case: &Case<'a>, machine: &Machine) -> Option<&'a Node> {
    let node = case.seen.workload.node.known()?.as_ref()?;
    is_node_of(machine, node).then_some(node)
}

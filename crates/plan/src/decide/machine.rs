//! Keeps a Machine in line with the current spec, whether it stays or is shut down, and
//! identifies its Node.

use fivespot_api::name;
use fivespot_capi::{Machine, MachinePatch, draft, one_line};

use crate::act::write;
use crate::decide::case::Case;
use crate::decide::precedence::paused_kind;
use crate::decide::{outcome::Outcome, outcome::ShutdownChange};
use crate::{Action, Node, Step};

/// The timeouts that differ on the Machine. They limit Cluster API's own drain, also one in
/// progress.
pub(crate) fn timeouts(case: &Case<'_>, machine: &Machine) -> MachinePatch {
    let wanted = case
        .desired
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

/// The Machine that a Node must belong to.
pub(crate) struct Identity<'a> {
    /// Name of the Cluster.
    pub(crate) cluster: &'a str,
    /// Namespace of the Machine.
    pub(crate) namespace: &'a str,
    /// Name of the Machine.
    pub(crate) name: &'a str,
}

/// Why a Node of the right name and provider ID must not be touched; `None` if it may be. Name
/// and provider ID are taken from the infrastructure object, whose spec is the user's: they alone
/// prove nothing.
pub(crate) fn claimed_by_others(
    case: &Case<'_>,
    of: &Identity<'_>,
    node: &Node,
) -> Option<String> {
    let name = &node.name;
    let claim = &node.machine;
    let differs = |said: &Option<String>, own: &str| {
        said.as_ref().is_some_and(|said| said.as_str() != own)
    };
    if differs(&claim.cluster, of.cluster)
        || differs(&claim.namespace, of.namespace)
        || differs(&claim.machine, of.name)
    {
        let said = |said: &Option<String>| one_line(said.as_deref().unwrap_or("?"));
        return Some(format!(
            "Node {name} has the annotations of Machine {}/{} in Cluster {}",
            said(&claim.namespace),
            said(&claim.machine),
            said(&claim.cluster),
        ));
    }
    if let Some(rival) = &case.observed.workload.conflicting_machine {
        return Some(format!(
            "Machine {rival} of the same Cluster also claims Node {name}"
        ));
    }
    node.is_control_plane
        .then(|| format!("Node {name} has a control-plane role"))
}

/// Whether the Node is that of the Machine: same name and provider ID, and same uid if the
/// Machine has one.
pub(crate) fn is_node_of(machine: &Machine, node: &Node) -> bool {
    let is_named = machine.node.as_ref().is_some_and(|link| {
        link.name == node.name && link.uid.as_ref().is_none_or(|uid| *uid == node.uid)
    });
    is_named && machine.provider_id.is_some() && machine.provider_id == node.provider_id
}

/// Why the Node that was read must not be touched although the Machine refers to it; `None` if it
/// may be touched or is another Node.
pub(crate) fn why_untouchable(case: &Case<'_>, machine: &Machine) -> Option<String> {
    let node = case.observed.workload.node.known()?.as_ref()?;
    let identity = Identity {
        cluster: &machine.cluster_name,
        namespace: &machine.meta.namespace,
        name: &machine.meta.name,
    };
    is_node_of(machine, node)
        .then(|| claimed_by_others(case, &identity, node))
        .flatten()
}

/// The Node of our Machine, if it was read, belongs to the Machine, and may be touched.
pub(crate) fn node<'a>(case: &Case<'a>, machine: &Machine) -> Option<&'a Node> {
    let node = case.observed.workload.node.known()?.as_ref()?;
    (is_node_of(machine, node) && why_untouchable(case, machine).is_none())
        .then_some(node)
}

/// Whether the Node of our Machine is ready; `None` if it has none, or if that is not known. The
/// Node itself is read where possible: Cluster API reports its readiness later, and no longer while
/// it is paused or the Machine is being deleted.
pub(crate) fn is_node_ready(case: &Case<'_>, machine: &Machine) -> Option<bool> {
    machine.node.as_ref()?;
    let is_gone = matches!(case.observed.workload.node.known(), Some(None));
    let is_reported =
        !machine.meta.is_deleting && paused_kind(case, Some(machine)).is_none();
    if is_gone && !is_reported {
        return Some(false);
    }
    node(case, machine)
        .map(|node| node.is_ready)
        .or_else(|| machine.is_node_ready())
}

/// Puts our uid on the label of our Machine before any other write. The Machine may be ours only
/// by its owner reference, as after `clusterctl move`, and a foreground or orphan deletion strips
/// that. Once this step has failed it blocks nothing.
pub(crate) fn relabel(case: &Case<'_>, mut outcome: Outcome) -> Outcome {
    let uid = case.subject.uid.as_str();
    let is_touched = outcome.state.is_observed();
    let machine = case.owned.our_machine().filter(|machine| {
        is_touched && name::owner_uid(&machine.meta.labels) != Some(uid)
    });
    let Some(machine) = machine else {
        return outcome;
    };
    let relabel = write::relabel_machine(machine, case.subject);
    if case.memory.failure(Step::RelabelMachine).is_none() {
        return Outcome {
            actions: vec![relabel],
            shutdown: ShutdownChange::Keep,
            ..outcome
        };
    }
    let is_finalizing = |action: &Action| {
        matches!(action.step, Step::AddFinalizer | Step::RemoveFinalizer)
    };
    if !outcome.actions.iter().any(is_finalizing) {
        outcome.actions.push(relabel);
    }
    outcome
}

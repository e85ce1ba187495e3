//! Draining the Node: what is due now, and when to requeue.

use fivespot_api::condition::Reason;
use fivespot_capi::Machine;
use jiff::{SignedDuration, Timestamp};

use crate::act::write;
use crate::act::{memory::RefusedEviction, memory::after};
use crate::decide::case::Case;
use crate::decide::machine;
use crate::decide::{outcome::Outcome, outcome::State};
use crate::{Access, Action, Cause, Event, Fact, Node, Pod, Step, Unknown};

/// How many evictions one reconcile sends.
const BATCH: usize = 10;
/// How long after its record a shutdown counts as beginning.
const BEGINNING: SignedDuration = SignedDuration::from_secs(30);
/// How long until a Node with terminating pods, or a cluster that does not respond, is read
/// again.
const DRAIN_REQUEUE: SignedDuration = SignedDuration::from_secs(5);

/// The progress of the drain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Drain {
    /// The Node has no pods that must leave: our drain has finished.
    Empty,
    /// There is nothing for us to drain: no Node, or none that we may touch. Cluster API drains
    /// what it can.
    NotOurs,
    /// There is something to do or to wait for.
    Running {
        actions: Vec<Action>,
        /// When to requeue.
        due: Timestamp,
        /// What blocks the drain, if anything does.
        problem: Option<String>,
    },
}

/// What to do about the Node of a Machine that is shut down with time to drain.
pub(crate) fn next(case: &Case<'_>, machine: &Machine, started: Timestamp) -> Drain {
    let Some(link) = &machine.node else {
        return Drain::NotOurs;
    };
    let unreachable = || Drain::Running {
        actions: Vec::new(),
        due: after(case.now, DRAIN_REQUEUE),
        problem: Some(format!(
            "Node {} is unreachable; the drain is retried until the deadline",
            link.name,
        )),
    };
    match &case.observed.workload.access {
        Access::Connected => {}
        // A cluster without access when the shutdown begins never had any. Later it may be a
        // credential rotation, and a drain in progress is worth waiting for.
        Access::KubeconfigMissing { .. }
        | Access::KubeconfigRefused { .. }
        | Access::TooLarge { .. }
        | Access::Unauthorized { .. }
            if case.now <= after(started, BEGINNING) =>
        {
            return Drain::NotOurs;
        }
        Access::KubeconfigMissing { .. }
        | Access::KubeconfigRefused { .. }
        | Access::TooLarge { .. }
        | Access::Unauthorized { .. }
        | Access::Unreachable { .. }
        | Access::NotRequested => return unreachable(),
    }
    if is_refused(case) {
        return Drain::NotOurs;
    }
    if let Some(node) = machine::node(case, machine) {
        return match &case.observed.workload.pods {
            Fact::Known(pods) => drain_node(case, node, pods),
            Fact::Unknown(Unknown::Forbidden { .. }) => Drain::NotOurs,
            Fact::Unknown(_) => unreachable(),
        };
    }
    match &case.observed.workload.node {
        Fact::Known(_) | Fact::Unknown(Unknown::Forbidden { .. }) => Drain::NotOurs,
        Fact::Unknown(_) => unreachable(),
    }
}

/// Whether the workload cluster forbids what a drain needs.
fn is_refused(case: &Case<'_>) -> bool {
    [Step::CordonNode, Step::EvictPod]
        .into_iter()
        .any(|step| case.failed_at(step) == Some(Cause::Forbidden))
}

/// Cordons the Node and sends the evictions that are due.
fn drain_node(case: &Case<'_>, node: &Node, pods: &[Pod]) -> Drain {
    let leaving: Vec<&Pod> = pods.iter().filter(|pod| pod.has_to_leave()).collect();
    // Only a list of pods read after the Node was cordoned is complete.
    if leaving.is_empty() && node.is_unschedulable {
        return Drain::Empty;
    }
    let mut actions = Vec::new();
    if !node.is_unschedulable {
        actions.push(write::cordon(node, case.subject));
    }
    let mut staying: Vec<&Pod> = leaving
        .iter()
        .copied()
        .filter(|pod| !pod.is_deleting)
        .collect();
    // Pods with a refused eviction come last, so that they do not delay the others.
    staying.sort_by_key(|pod| (retry_due(case, pod), &pod.namespace, &pod.name));
    let due = staying
        .iter()
        .filter(|pod| retry_due(case, pod).is_none_or(|due| due <= case.now));
    actions.extend(due.take(BATCH).map(|pod| write::evict(pod)));
    let next_try = staying.iter().filter_map(|pod| retry_due(case, pod)).min();
    let recheck = after(case.now, DRAIN_REQUEUE);
    let is_all_waiting = leaving.len() == staying.len() && actions.is_empty();
    Drain::Running {
        due: if is_all_waiting {
            next_try.unwrap_or(recheck)
        } else {
            recheck
        },
        problem: blocking_pod(case, node, &leaving),
        actions,
    }
}

/// Deletes the pods of a reclaimed host at once, regardless of disruption budgets; `None` if no
/// pod is left that can be deleted.
pub(crate) fn delete_pods(case: &Case<'_>, node: &Node, pods: &[Pod]) -> Option<Outcome> {
    let leaving: Vec<&Pod> = pods.iter().filter(|pod| pod.has_to_leave()).collect();
    if leaving.is_empty() || case.failed_at(Step::DeletePod) == Some(Cause::Forbidden) {
        return None;
    }
    // The pods' replacements must not be scheduled on this Node again.
    let cordon = (!node.is_unschedulable && case.failed_at(Step::CordonNode).is_none())
        .then(|| write::cordon(node, case.subject));
    let staying = leaving.iter().filter(|pod| !pod.is_deleting);
    let due =
        staying.filter(|pod| retry_due(case, pod).is_none_or(|due| due <= case.now));
    let deletions: Vec<Action> = due.map(|pod| write::delete_pod(pod)).collect();
    let (count, name) = (deletions.len(), &node.name);
    let message = format!("waiting for {} pods to leave Node {name}", leaving.len());
    let mut outcome = Outcome::of(State::Terminating(message))
        .with(cordon.into_iter().chain(deletions).collect())
        .requeue_at(after(case.now, DRAIN_REQUEUE));
    if count > 0 {
        let note = format!(
            "deleting {count} pods on Node {name} at once: disruption budgets do not hold a \
             reclaimed host"
        );
        let reason = Reason::EmergencyReclaim;
        outcome
            .events
            .push(Event::warning(reason.as_str(), "DeletePods", &note));
    }
    Some(outcome)
}

/// When a refused eviction may be retried; `None` if it was not refused.
fn retry_due(case: &Case<'_>, pod: &Pod) -> Option<Timestamp> {
    refusal(case, pod).map(|refusal| refusal.due)
}

fn refusal<'a>(case: &Case<'a>, pod: &Pod) -> Option<&'a RefusedEviction> {
    case.memory.refusal(&pod.uid)
}

/// The pod that blocks the drain, with the reason, if one does.
fn blocking_pod(case: &Case<'_>, node: &Node, leaving: &[&Pod]) -> Option<String> {
    let (pod, refusal) = leaving
        .iter()
        .find_map(|pod| Some((pod, refusal(case, pod)?)))?;
    let pods = match leaving.len() {
        1 => "1 pod".to_owned(),
        count => format!("{count} pods"),
    };
    Some(format!(
        "evicting {pods} from Node {}; {}/{} is not evicted: {}",
        node.name, pod.namespace, pod.name, refusal.message,
    ))
}

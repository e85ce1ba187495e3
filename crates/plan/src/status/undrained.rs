//! A Machine that was deleted before the pods had left its Node: why, and the note about it until
//! the next activation.

use fivespot_api::condition::ConditionType;
use fivespot_capi::{Machine, shortened};

use crate::decide::case::Case;
use crate::decide::machine::is_node_of;
use crate::decide::outcome::Outcome;
use crate::observed::provider;
use crate::{Access, Event, Fact, Unknown};

/// How the note begins. It is at the end of the message of `Ready`, where a later reconcile finds
/// it again: the Machine and the facts about its Node are gone by then. It is information for
/// people, who read the message; no decision depends on it, so it has no field.
const NOTE: &str = "the Machine was deleted without a finished drain: ";

/// How many pods are listed at most.
const MAX_LISTED_PODS: usize = 5;

/// How many characters of a note are kept.
const MAX_NOTE_CHARS: usize = 768;

/// The outcome that deletes the Machine, with a Warning if the drain of its Node was not
/// finished. No Warning if the spec requests no drain.
pub(crate) fn warn(case: &Case<'_>, machine: &Machine, outcome: Outcome) -> Outcome {
    let Some(why) =
        why(case, machine).filter(|_| !case.desired.shutdown_timeout.is_zero())
    else {
        return outcome;
    };
    note(outcome, &why)
}

/// The same where Cluster API drains, and the deadline ends its drain.
pub(crate) fn warn_of_interrupted_drain(machine: &Machine, outcome: Outcome) -> Outcome {
    let progress = machine.deletion_progress();
    let is_draining = progress.is_some_and(|at| at.reason.contains("Drain"));
    if outcome.actions.is_empty() || !is_draining {
        return outcome;
    }
    let progress = provider::removal(machine);
    note(
        outcome,
        &format!("the deadline ended the drain by Cluster API{progress}"),
    )
}

fn note(mut outcome: Outcome, why: &str) -> Outcome {
    outcome.undrained = Some(format!("{NOTE}{why}"));
    outcome
}

/// The Warning about an unfinished drain.
pub(crate) fn event(note: &str) -> Event {
    Event::warning("DrainIncomplete", "DeleteMachine", note)
}

/// The note at the end of a message, if there is one.
pub(crate) fn of(message: &str) -> Option<String> {
    let begin = message.rfind(NOTE)?;
    let note = message.get(begin..)?;
    Some(shortened(note, MAX_NOTE_CHARS))
}

/// The recorded note. Only the message depends on it.
pub(crate) fn recorded_note(case: &Case<'_>) -> Option<String> {
    of(&case.subject.reported(ConditionType::Ready)?.message)
}

/// Why pods may be left on the Node of a Machine that is deleted now.
fn why(case: &Case<'_>, machine: &Machine) -> Option<String> {
    let Some(link) = &machine.node else {
        // Without a host there is no Node.
        return machine.had_infrastructure.then(|| {
            let node = provider::node_without_provider_id(case, machine);
            format!("the Machine had no nodeRef{node}")
        });
    };
    let name = &link.name;
    match &case.observed.workload.access {
        Access::Connected => {}
        Access::KubeconfigMissing { message }
        | Access::KubeconfigRefused { message }
        | Access::Unauthorized { message }
        | Access::TooLarge { message } => {
            return Some(format!(
                "the operator has no access to the workload cluster ({message}), Cluster API \
                 drains the Node if it can"
            ));
        }
        Access::Unreachable { .. } | Access::NotRequested => {
            return Some(format!(
                "the workload cluster did not respond, pods may remain on Node {name}"
            ));
        }
    }
    match &case.observed.workload.node {
        Fact::Known(None) => return None,
        Fact::Known(Some(node)) if is_node_of(machine, node) => {}
        Fact::Known(Some(_)) => {
            return Some(format!("Node {name} did not match the Machine"));
        }
        Fact::Unknown(unknown) => return Some(unread_message(name, unknown)),
    }
    match &case.observed.workload.pods {
        Fact::Known(pods) => {
            let left = pods.iter().filter(|pod| pod.has_to_leave());
            let left = left.map(|pod| format!("{}/{}", pod.namespace, pod.name));
            pods_left(name, left.collect())
        }
        Fact::Unknown(unknown) => Some(unread_message(name, unknown)),
    }
}

fn unread_message(node: &str, unknown: &Unknown) -> String {
    let why = unknown.message().unwrap_or("not read");
    format!("the pods of Node {node} could not be read ({why}), some may remain")
}

/// The pods that are left, sorted by name; `None` if there are none.
fn pods_left(node: &str, mut pods: Vec<String>) -> Option<String> {
    pods.sort();
    let rest = pods.len().saturating_sub(MAX_LISTED_PODS);
    pods.truncate(MAX_LISTED_PODS);
    let more = if rest == 0 {
        String::new()
    } else {
        format!(" and {rest} more")
    };
    (!pods.is_empty()).then(|| {
        let pods = pods.join(", ");
        format!("at the deadline pods remained on Node {node}: {pods}{more}")
    })
}

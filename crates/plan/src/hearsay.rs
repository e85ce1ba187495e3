//! What may be told on the word of caches.
//!
//! A status tells what was true a moment ago, is guarded by the ScheduledMachine's version, and
//! is corrected by the next event. That bears a cache's delay. What others are built on does not:
//! an action, a commitment made or ended, what goes on record before a creation, the end of
//! anything, and that a Machine is there which another process has made: it may be gone, and what
//! was made since would count as its leftovers. One thing more may be done while caches say what is there, if what is wanted was read
//! live: creating what is on record. Each creation is guarded by its name, and one that is refused
//! brings a live look.

use fivespot_api::ScheduledMachineStatus;

use crate::case::Case;
use crate::outcome::{Commitment, Outcome};
use crate::{Fact, Freshness, Seen, Step};

/// Whether the change of the status may be written without reading anything live.
pub(crate) fn suffices(
    case: &Case<'_>,
    outcome: &Outcome,
    (before, after): (&ScheduledMachineStatus, Option<&ScheduledMachineStatus>),
) -> bool {
    if begins(outcome) {
        return case.seen.freshness == Freshness::Intent && is_complete(case.seen);
    }
    let keeps = outcome.shutdown == Commitment::Keep || before.shutdown.is_none();
    outcome.actions.is_empty()
        && outcome.record.is_none()
        && keeps
        && after.is_none_or(|after| ends_nothing(before, after))
        && (case.memory.has_made()
            || after.is_none_or(|after| is_same_machine(before, after)))
        && is_complete(case.seen)
}

/// Whether all there is to do is to create the three objects, none of which is there; that they
/// are on record comes before that.
pub(crate) fn begins(outcome: &Outcome) -> bool {
    let steps = outcome.actions.iter().map(|action| action.step);
    let all = [
        Step::CreateBootstrap,
        Step::CreateInfrastructure,
        Step::CreateMachine,
    ];
    outcome.shutdown == Commitment::Keep && steps.eq(all)
}

/// Whether whatever was on record still is. A taint that is dropped from the status is not ours any
/// more: a cache may be behind another operator's write to the Node.
fn ends_nothing(before: &ScheduledMachineStatus, after: &ScheduledMachineStatus) -> bool {
    fn lasts<T>(before: Option<&T>, after: Option<&T>) -> bool {
        before.is_none() || after.is_some()
    }
    let keeps_taints = before.applied_node_taints.iter().all(|taint| {
        let mut kept = after.applied_node_taints.iter();
        kept.any(|of| (&of.key, of.effect) == (&taint.key, taint.effect))
    });
    keeps_taints
        && before.shutdown == after.shutdown
        && before.spec_hash == after.spec_hash
        && lasts(before.machine_ref.as_ref(), after.machine_ref.as_ref())
        && lasts(before.bootstrap_ref.as_ref(), after.bootstrap_ref.as_ref())
        && lasts(
            before.infrastructure_ref.as_ref(),
            after.infrastructure_ref.as_ref(),
        )
        && lasts(before.node_ref.as_ref(), after.node_ref.as_ref())
}

/// Whether no other Machine goes on record.
fn is_same_machine(
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
) -> bool {
    let uid = |status: &ScheduledMachineStatus| {
        let machine = status.machine_ref.as_ref();
        machine.and_then(|machine| machine.uid.clone())
    };
    uid(before) == uid(after)
}

/// Whether everything in the management cluster could be found out. That it could not may be
/// the cache's own trouble, which is not worth telling.
fn is_complete(seen: &Seen) -> bool {
    fn known<T>(fact: &Fact<T>) -> bool {
        fact.known().is_some()
    }
    let mut sightings = seen.bootstrap.iter().chain(&seen.infrastructure);
    known(&seen.contract)
        && known(&seen.cluster)
        && known(&seen.machine)
        && sightings.all(|sighting| known(&sighting.found))
}

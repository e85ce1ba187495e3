//! What may be written on the word of caches.
//!
//! A status tells what was true a moment ago, is guarded by the ScheduledMachine's version, and is
//! corrected by the next event. That bears a cache's delay. A commitment made or ended does not, nor
//! does a record that is rewritten, the end of anything, or that a Machine is there which another
//! process has made: it may be gone, and what was made since would count as its leftovers. Nor does
//! that nothing is there any more, once something could have been made: it may not show yet.
//!
//! Two steps are taken on the word of caches. Our finalizer is guarded by the ScheduledMachine's
//! version. And what is on record is created while caches show nothing of it, under a
//! [precondition](crate::Precondition) and under names that are either free or bring a live look.

use fivespot_api::{Phase, ScheduledMachineStatus};

use crate::decide::case::Case;
use crate::decide::record::Record;
use crate::decide::{outcome::Commitment, outcome::Outcome};
use crate::{Fact, Freshness, Seen, Step};

/// What a plan that was made from caches takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sufficiency {
    /// Nothing more.
    Suffices,
    /// That the [precondition](crate::Precondition) holds before the first action is sent.
    Conditional,
    /// Everything has to be read live.
    Lacks,
}

/// Whether what was planned may be done without reading everything live.
pub(crate) fn sufficiency(
    case: &Case<'_>,
    outcome: &Outcome,
    (before, after): (&ScheduledMachineStatus, Option<&ScheduledMachineStatus>),
) -> Sufficiency {
    if case.seen.freshness == Freshness::Live {
        return Sufficiency::Suffices;
    }
    if !is_complete(case.seen) {
        return Sufficiency::Lacks;
    }
    if creates_all(outcome) {
        return Sufficiency::Conditional;
    }
    let mut steps = outcome.actions.iter().map(|action| action.step);
    let keeps = outcome.shutdown == Commitment::Keep || before.shutdown.is_none();
    let suffices = steps.all(|step| step == Step::AddFinalizer)
        && keeps
        && after.is_none_or(|after| {
            ends_nothing(before, after)
                && (case.memory.has_made() || is_same_machine(before, after))
        });
    if suffices {
        Sufficiency::Suffices
    } else {
        Sufficiency::Lacks
    }
}

/// Whether all there is to do is to create the three objects, none of which is there; that they
/// are on record comes before that.
fn creates_all(outcome: &Outcome) -> bool {
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
    let keeps_taints = before.applied_node_taints.iter().all(|taint| {
        let mut kept = after.applied_node_taints.iter();
        kept.any(|of| (&of.key, of.effect) == (&taint.key, taint.effect))
    });
    let (earlier, record) = (Record::stored(before), Record::stored(after));
    // The first record follows from the spec alone, whose version guards it.
    let is_first = earlier.is_empty() && record.has_no_uid();
    let is_gone = matches!(after.phase, Some(Phase::Inactive | Phase::Terminated));
    let tells_end = is_gone && before.phase != after.phase && !earlier.is_empty();
    !tells_end
        && keeps_taints
        && before.shutdown == after.shutdown
        && (is_first || record.continues(&earlier))
        && (before.machine_ref.is_none() || after.machine_ref.is_some())
        && (before.node_ref.is_none() || after.node_ref.is_some())
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

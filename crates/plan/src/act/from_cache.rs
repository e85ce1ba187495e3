//! What may be written based on caches (`internals/decisions/0012-caches-begin-and-end-nothing.md`).
//!
//! A status may be a moment old: its write is guarded by the ScheduledMachine's resourceVersion,
//! and the next event corrects it. These need live reads, because a cache may be stale:
//! - to make or end a shutdown record, to rewrite a record, to report that an object is gone;
//! - to record a Machine that another process has created: it may be gone in the meantime, and
//!   objects created since would count as its leftovers;
//! - to report that no object exists once one could have been created.
//!
//! Three actions are taken based on caches. Our finalizer is guarded by the ScheduledMachine's
//! resourceVersion. A host is claimed by creating its Lease, which only one can. And recorded objects are created while caches contain none of them, under a
//! [precondition](crate::Precondition) and with deterministic names: a name that is taken results
//! in a conflict, and a live read follows.

use fivespot_api::{Phase, ScheduledMachineStatus};

use crate::decide::case::Case;
use crate::decide::record::Record;
use crate::decide::{outcome::Outcome, outcome::ShutdownChange};
use crate::{Fact, Freshness, Observed, Step};

/// What must be confirmed before a plan made from caches is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmation {
    /// Nothing.
    NotNeeded,
    /// That the [precondition](crate::Precondition) holds before the first action is sent.
    Precondition,
    /// All facts must be read live.
    LiveRead,
}

/// What must be confirmed before `outcome` is carried out and `after` is written.
pub(crate) fn confirmation(
    case: &Case<'_>,
    outcome: &Outcome,
    after: Option<&ScheduledMachineStatus>,
) -> Confirmation {
    let before = &case.subject.status;
    if case.observed.freshness == Freshness::Live {
        return Confirmation::NotNeeded;
    }
    if !is_complete(case.observed) {
        return Confirmation::LiveRead;
    }
    if creates_all(outcome) {
        return Confirmation::Precondition;
    }
    let mut steps = outcome.actions.iter().map(|action| action.step);
    let keeps = outcome.shutdown == ShutdownChange::Keep || before.shutdown.is_none();
    // A claim is a Lease that does not exist yet.
    let suffices = steps.all(|step| matches!(step, Step::AddFinalizer | Step::ClaimHost))
        && keeps
        && after.is_none_or(|after| {
            ends_nothing(before, after)
                && (case.memory.has_created || is_same_machine(before, after))
        });
    if suffices {
        Confirmation::NotNeeded
    } else {
        Confirmation::LiveRead
    }
}

/// Whether the outcome is exactly to create the three objects, none of which exists. They are
/// recorded before that.
fn creates_all(outcome: &Outcome) -> bool {
    let steps = outcome.actions.iter().map(|action| action.step);
    outcome.shutdown == ShutdownChange::Keep && steps.eq(Step::CREATIONS)
}

/// Whether everything that was recorded still is. A taint that is dropped from the status is no
/// longer ours, and a cache may not contain another operator's write to the Node yet.
fn ends_nothing(before: &ScheduledMachineStatus, after: &ScheduledMachineStatus) -> bool {
    let keeps_taints = before.applied_node_taints.iter().all(|taint| {
        let mut kept = after.applied_node_taints.iter();
        kept.any(|of| (&of.key, of.effect) == (&taint.key, taint.effect))
    });
    let (earlier, record) = (Record::stored(before), Record::stored(after));
    // The first record is derived from the spec alone, which the resourceVersion guards.
    let is_first = earlier.is_empty() && record.has_no_uid();
    let is_gone = matches!(after.phase, Some(Phase::Inactive | Phase::Terminated));
    let reports_end = is_gone && before.phase != after.phase && !earlier.is_empty();
    !reports_end
        && keeps_taints
        && before.shutdown == after.shutdown
        && before.host == after.host
        && (is_first || record.continues(&earlier))
        && (before.machine_ref.is_none() || after.machine_ref.is_some())
        && (before.node_ref.is_none() || after.node_ref.is_some())
}

/// Whether no other Machine is recorded.
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

/// Whether all facts of the management cluster were read. A missing one may be a problem of the
/// cache alone, which is not worth reporting.
fn is_complete(observed: &Observed) -> bool {
    fn known<T>(fact: &Fact<T>) -> bool {
        fact.known().is_some()
    }
    let mut lookups = observed.bootstrap.iter().chain(&observed.infrastructure);
    known(&observed.contract)
        && known(&observed.cluster)
        && known(&observed.machine)
        && lookups.all(|lookup| known(&lookup.found))
}

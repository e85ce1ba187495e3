//! What waits after a failure: the step that failed, and what depends on it.

use crate::case::Case;
use crate::outcome::{Commitment, Outcome};
use crate::{Cause, Failure, Step};

/// Takes out of `outcome` what has to wait, and returns the failure to tell of: the first of a
/// step that is called for and that something depends on. A failed step that nobody calls for
/// any more is passed over.
pub(crate) fn back<'a>(case: &Case<'a>, outcome: &mut Outcome) -> Option<&'a Failure> {
    let (mut told, mut is_held) = (None, false);
    let mut due = Vec::new();
    for action in std::mem::take(&mut outcome.actions) {
        let failure = case.memory.failure(action.step);
        if !is_aside(action.step) {
            told = told.or(failure);
        }
        match failure.filter(|failure| failure.retry_at > case.now) {
            Some(failure) => {
                outcome.wakes.push(failure.retry_at);
                is_held |= binds(failure);
            }
            None if is_held && !is_aside(action.step) => {}
            None => due.push(action),
        }
    }
    outcome.actions = due;
    // What was done for a commitment is undone before the commitment ends.
    if is_held && outcome.shutdown == Commitment::Clear {
        outcome.shutdown = Commitment::Keep;
    }
    told
}

/// Whether a step stands beside the machine's life: nothing waits for it, it waits for nothing,
/// and a condition of its own tells of its failure.
fn is_aside(step: Step) -> bool {
    match step {
        Step::TaintNode
        | Step::LabelNode
        | Step::CreateAgentConfig
        | Step::UpdateAgentConfig
        | Step::DeleteAgentConfig
        | Step::ClearRequest => true,
        Step::AddFinalizer
        | Step::CreateBootstrap
        | Step::CreateInfrastructure
        | Step::CreateMachine
        | Step::UpdateMachine
        | Step::ExcludeDrain
        | Step::CordonNode
        | Step::CommitReclaim
        | Step::DisableSchedule
        | Step::RecordDisabled
        | Step::EvictPod
        | Step::DeletePod
        | Step::UncordonNode
        | Step::DeleteMachine
        | Step::DeleteBootstrap
        | Step::DeleteInfrastructure
        | Step::RemoveFinalizer => false,
    }
}

/// Whether what comes after the failed step waits for it.
pub(crate) fn binds(failure: &Failure) -> bool {
    if failure.step == Step::ExcludeDrain {
        // A refusal would be repeated for ever, and a machine that has to go would stay.
        failure.cause == Cause::Unavailable
    } else {
        !is_aside(failure.step)
    }
}

//! What waits: the step that failed and the steps that depend on it; a step that another client
//! undoes again and again; and, under the start limit, a machine whose turn has not come.

use crate::decide::case::Case;
use crate::decide::{outcome::Outcome, outcome::ShutdownChange, outcome::State};
use crate::{Action, Cause, Failure, Step};

/// Removes from `outcome` what has to wait, and returns the failure to report: the first one of a
/// step that is required and whose failure is the business of `Ready`. A failed step that is no
/// longer required is ignored.
pub(crate) fn apply<'a>(case: &Case<'a>, outcome: &mut Outcome) -> Option<&'a Failure> {
    let (mut reported, mut is_held) = (None, false);
    let mut due = Vec::new();
    for action in std::mem::take(&mut outcome.actions) {
        let failure = case.memory.failure(action.step);
        reported = reported.or(failure.filter(|failure| failure.why().is_some()));
        match failure.filter(|failure| failure.retry_at > case.now) {
            Some(failure) => {
                outcome.requeues.push(failure.retry_at);
                is_held |= blocks_rest(failure);
            }
            None if is_held && !action.step.is_independent() => {}
            None => match paused_until(case, action.step) {
                Some(until) => {
                    outcome.requeues.push(until);
                    is_held |= !action.step.is_independent()
                        && action.step != Step::ExcludeDrain;
                }
                None => due.push(action),
            },
        }
    }
    // An independent request that gets no response for half a minute delays no other.
    due.sort_by_key(|action: &Action| action.step.is_independent());
    outcome.actions = due;
    if is_held {
        // They are about steps that are not taken now; the events of transitions are separate.
        outcome.events.clear();
        // A reclaim is recorded on the Machine first, and what was done for a shutdown is reverted
        // before its record is cleared.
        outcome.shutdown = ShutdownChange::Keep;
    }
    // Only these steps end a drain, by Cluster API or by us.
    let ends_drain =
        |action: &Action| matches!(action.step, Step::ExcludeDrain | Step::DeleteMachine);
    if is_held || !outcome.actions.iter().any(ends_drain) {
        outcome.undrained = None;
    }
    reported
}

/// Until when a step waits that another client undoes again and again; `None` if it does not.
fn paused_until(case: &Case<'_>, step: Step) -> Option<jiff::Timestamp> {
    let until = case.memory.repeats_until(step);
    until.filter(|until| *until > case.now)
}

/// Removes the start of the machine from `outcome` until its turn has come, and reports that.
pub(crate) fn delay_start(case: &Case<'_>, outcome: &mut Outcome) {
    let starts = |action: &Action| action.step == Step::CreateBootstrap;
    let delay = case.memory.start_delay.filter(|delay| delay.due > case.now);
    let Some(delay) = delay.filter(|_| outcome.actions.iter().any(starts)) else {
        return;
    };
    outcome
        .actions
        .retain(|action| action.step.is_independent());
    outcome.requeues.push(delay.due);
    let most = match delay.per_minute.get() {
        1 => "1 machine starts".to_owned(),
        number => format!("{number} machines start"),
    };
    let message = format!("waiting for its turn: at most {most} in a minute");
    outcome.state = State::Provisioning(message);
}

/// Whether the steps after the failed one wait for it.
pub(crate) fn blocks_rest(failure: &Failure) -> bool {
    if failure.step == Step::ExcludeDrain {
        // A refusal would repeat forever, and a machine that must be shut down would stay.
        failure.cause == Cause::Unavailable
    } else {
        !failure.step.is_independent()
    }
}

//! What a reconcile records for later ones and for the metrics.

use fivespot_plan::{Failure, Plan};
use jiff::Timestamp;
use kubemu_clock::after;

use crate::apply::FailedStep;
use crate::context::Context;
use crate::object_state::ReportedState;
use crate::observe::Snapshot;
use fivespot_runtime::Key;
use fivespot_runtime::queue::ReconcileResult;

/// Records the result and the duration. A reconcile that was only deferred is not counted.
pub(super) fn measure(
    context: &Context,
    key: &Key,
    result: ReconcileResult,
    begun: Timestamp,
) {
    let is_success = match result {
        ReconcileResult::Waiting { .. } | ReconcileResult::Deferred { .. } => return,
        ReconcileResult::Succeeded { .. } => true,
        ReconcileResult::Failed { .. } | ReconcileResult::Stale { .. } => false,
    };
    let phase = context
        .phase(key)
        .map_or("Unknown", fivespot_api::Phase::as_str);
    let took = context.clock.now().duration_since(begun);
    context.metrics.count_reconcile(phase, is_success, took);
}

pub(super) fn record_phase(
    context: &Context,
    key: &Key,
    snapshot: &Snapshot,
    plan: &Plan,
) {
    let status = plan.status.as_ref().or(snapshot.object.status.as_ref());
    let reported = status.and_then(ReportedState::of);
    context.state(key, |state| state.reported = reported);
    // If the next edge is a closing, low priorities are first; if it is an opening, high ones.
    let priority = snapshot.object.spec.priority;
    let is_open = status.is_some_and(|status| status.in_schedule);
    let rank = if is_open {
        priority
    } else {
        u8::MAX - priority
    };
    context.queue.rank(key, rank);
    if !plan.confirm {
        context.metrics.count_evaluation(is_open);
    }
}

pub(super) fn record_failure(context: &Context, key: &Key, failed: FailedStep) {
    let step = failed.step;
    context.state(key, |state| {
        let attempts = state.memory.attempts(step).saturating_add(1);
        let wait = match failed.retry_after {
            // Not doubled: the server knows when it has room.
            Some(span) => context.backoff.not_before(span, &(key, step)),
            None => context.backoff.wait(&(key, step), attempts),
        };
        state.memory.failed(Failure {
            step,
            cause: failed.cause,
            message: failed.message,
            attempts,
            // The response may have been slow.
            retry_at: after(context.queue.now(), wait),
        });
    });
}

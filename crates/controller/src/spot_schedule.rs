//! The controller of the schedules that other objects follow: it publishes whether they are active
//! and when that changes. Machines that follow one are planned from its spec, without it.

pub(crate) mod spot_schedules;

use std::sync::Arc;

use fivespot_api::{SharedSchedule, SpotScheduleStatus};
use fivespot_plan::{Freshness, ScheduleInputs, SpotSchedule, plan_spot_schedule};
use fivespot_runtime::Key;
use fivespot_runtime::queue::ReconcileResult;
use kubemu_clock::Busy;
use serde::Deserialize as _;

use crate::context::Context;
use crate::observe::live_reads::LiveReads;
use crate::observe::management::Source;
use crate::observe::schedule_inputs::add_calendars;
use crate::own_kind::DONE;
use crate::own_object::{Change, OwnObject};
use spot_schedules::SpotSchedules;

/// A schedule that is due.
pub(crate) struct Due {
    /// Its place in [`Context::spot_schedules`].
    kind: usize,
    key: Key,
    busy: Busy,
}

/// Waits for the next schedule that is due. Dropping the future loses none.
pub(crate) async fn next_due(context: &Context) -> Due {
    let [one, other] = &context.spot_schedules;
    tokio::select! {
        // In this order, so that equal runs poll equally.
        biased;
        (key, busy) = one.kind.queue.next() => Due { kind: 0, key, busy },
        (key, busy) = other.kind.queue.next() => Due { kind: 1, key, busy },
    }
}

/// Reconciles a schedule and puts its key back into the queue. The future must be run by
/// [`Clock::stop_while_busy`].
pub(crate) async fn reconcile(context: Arc<Context>, due: Due, id: u64) {
    let Due { kind, key, busy } = due;
    let Some(schedules) = context.spot_schedules.get(kind) else {
        return;
    };
    let span = tracing::info_span!(
        "reconcile",
        namespace = key.namespace,
        kind = schedules.name,
        name = key.name,
        reconcile_id = id
    );
    let work = Box::pin(result(&context, schedules, &key));
    schedules.kind.reconcile(&key, busy, span, work).await;
}

async fn result(
    context: &Arc<Context>,
    schedules: &SpotSchedules,
    own: &Key,
) -> ReconcileResult {
    let informer = context.spot_schedule_cache(schedules.name);
    let Some(found) = informer.store.get(own) else {
        return DONE;
    };
    let stored = found.value();
    let object = OwnObject {
        context,
        informer: &informer,
        of_kind: &schedules.kind,
        key: own,
        found: &found,
        stored: &stored,
    };
    object.fenced(publish(&object, schedules.name)).await
}

async fn publish(own: &OwnObject<'_>, kind: &str) -> ReconcileResult {
    let now = own.of_kind.queue.now();
    let meta = &own.stored["metadata"];
    if meta["deletionTimestamp"].is_string() {
        return DONE;
    }
    let schedule = SharedSchedule::of_spec(kind, &own.stored["spec"]);
    let mut inputs = ScheduleInputs::default();
    if let Ok(schedule) = &schedule {
        let source = Source {
            context: own.context,
            key: own.key,
            freshness: Freshness::Cached,
            reads: &LiveReads::default(),
        };
        let names = schedule.calendars().into_iter();
        let read = add_calendars(&source, names, &mut inputs).await;
        // Without its calendars what was published stays. The list that is awaited enqueues it.
        if read.is_err() {
            return own.of_kind.waiting();
        }
        if inputs.unknown.is_some() {
            return DONE;
        }
    }
    let status = SpotScheduleStatus::deserialize(&own.stored["status"]);
    let object = SpotSchedule {
        schedule: schedule.as_ref().map_err(ToString::to_string),
        calendars: &inputs.calendars,
        generation: meta["generation"].as_i64(),
        status: &status.unwrap_or_default(),
    };
    let plan = plan_spot_schedule(&object, now);
    own.change(plan.status.map(Change::Status), plan.requeue_at)
        .await
}

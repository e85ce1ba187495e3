//! The controller of the schedules that other objects follow: it publishes whether they are active
//! and when that changes. Machines that follow one are planned from its spec, without it.

pub(crate) mod spot_schedules;

use std::sync::Arc;

use fivespot_api::{SharedSchedule, SpotScheduleStatus};
use fivespot_plan::{Freshness, ScheduleInputs, SpotSchedule, plan_spot_schedule};
use fivespot_runtime::Key;
use fivespot_runtime::queue::ReconcileResult;
use serde::Deserialize as _;

use crate::context::Context;
use crate::observe::live_reads::LiveReads;
use crate::observe::management::Source;
use crate::observe::schedule_inputs::add_calendars;
use crate::own_kind::{DONE, OwnKind};
use crate::own_object::{Change, OwnObject};

/// Reconciles the schedule `own` of that kind.
pub(crate) async fn result(
    context: &Arc<Context>,
    of_kind: &OwnKind,
    own: &Key,
) -> ReconcileResult {
    let informer = context.spot_schedule_cache(of_kind.name);
    let Some(found) = informer.store.get(own) else {
        return DONE;
    };
    let stored = found.value();
    let object = OwnObject {
        context,
        informer: &informer,
        of_kind,
        key: own,
        found: &found,
        stored: &stored,
    };
    object.fenced(publish(&object, of_kind.name)).await
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

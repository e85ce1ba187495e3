//! Reporting: the status, and one Event per transition.

pub(crate) mod unpublished;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use fivespot_api::condition::{self, ConditionType, ConditionUpdate, Reason};
use fivespot_api::{Phase, ScheduledMachineStatus, name};
use fivespot_plan::overrides::is_longer;
use fivespot_plan::{Event, MAX_STEPS};
use fivespot_schedule::Steps;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::events::v1 as events;
use kube::api::ApiResource;
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::context::Context;
use crate::kind::{cache_name, scheduled_machine};
use crate::observe::projection::CachedKind;
use crate::observe::{Reading, Snapshot};
use crate::status_patch::status_patch;
use crate::{Key, Transition, failure};
use fivespot_runtime::cache::{Expectation, Version};
use fivespot_runtime::http::error::retry_after;
use fivespot_runtime::http::{Address, PatchFormat};
use fivespot_runtime::lease::{Fence, Fenced};
use fivespot_runtime::queue::ReconcileResult;
use unpublished::Unpublished;

/// The outcome of writing a status.
pub(crate) enum StatusWrite {
    /// The status is written, or there was nothing to write.
    Written,
    /// The server has dropped the fields that differ: its CustomResourceDefinition lacks them.
    Dropped,
    /// The ScheduledMachine has changed since it was read, or is gone.
    Conflict,
    /// This replica may not act on the ScheduledMachine any more.
    Fenced,
    /// The status could not be written.
    Failed {
        /// The error message.
        error: String,
        /// When the server asks for the next attempt.
        retry_after: Option<SignedDuration>,
    },
}

/// A status to write.
#[derive(Clone, Copy)]
pub(crate) struct StatusChange<'a> {
    pub(crate) status: &'a ScheduledMachineStatus,
    /// The resourceVersion of the ScheduledMachine that the plan was made for.
    pub(crate) version: &'a str,
}

/// Writes the fields of the status that differ from the stored ones, if the ScheduledMachine still
/// has that resourceVersion.
pub(crate) async fn status(
    context: &Arc<Context>,
    key: &Key,
    reading: Reading<'_>,
    change: StatusChange<'_>,
) -> StatusWrite {
    let Reading { snapshot, reads } = reading;
    let StatusChange { status, version } = change;
    let patch = match status_patch(&snapshot.status.value(), status, version) {
        Ok(Some(patch)) => patch,
        Ok(None) => {
            context.state(key, |state| state.note_dropped(None));
            return StatusWrite::Written;
        }
        Err(error) => {
            return StatusWrite::Failed {
                error: error.to_string(),
                retry_after: None,
            };
        }
    };
    let cache = cache_name(&scheduled_machine());
    let Ok(sent) = patch_status(context, key, &patch).await else {
        return StatusWrite::Fenced;
    };
    let response = match sent {
        Ok(response) => response,
        Err(error) if matches!(failure::code(&error), Some(404 | 409)) => {
            return StatusWrite::Conflict;
        }
        Err(error) => {
            return StatusWrite::Failed {
                error: failure::message(&error),
                retry_after: retry_after(&error),
            };
        }
    };
    let written_version = response["metadata"]["resourceVersion"].as_str();
    let store = &context.scheduled_machines.store;
    let lists_begun = store.lists_begun(&key.namespace);
    let written = Expectation {
        uid: snapshot.object.metadata.uid.clone().unwrap_or_default(),
        version: written_version.map(Version::new),
        lists_begun,
    };
    reads.record_write(&cache, key, Some(&response));
    let stored = &response["status"]["shutdown"];
    let dropped = status.shutdown.clone().filter(|_| stored.is_null());
    let is_newly_dropped = context.state(key, |state| {
        state.expectations.expect(cache, key.clone(), written);
        state.note_dropped(dropped)
    });
    transition(context, key, snapshot, status);
    count_unresolved(context, snapshot, status);
    if written_version == Some(version) && !is_newly_dropped {
        StatusWrite::Dropped
    } else {
        StatusWrite::Written
    }
}

async fn patch_status(
    context: &Context,
    key: &Key,
    patch: &Value,
) -> Result<kube::Result<Value>, Fenced> {
    let at = Address {
        resource: &scheduled_machine(),
        namespace: Some(&key.namespace),
        name: &key.name,
        projection: Some(&CachedKind::ScheduledMachine),
    };
    let sent = context
        .api
        .patch(&at, Some("status"), PatchFormat::Merge, patch);
    context.fence.write(key, sent).await
}

/// Reports that nothing is done about an object that cannot be parsed. It is reconciled again when
/// it changes.
pub(crate) async fn unreadable(
    context: &Arc<Context>,
    key: &Key,
    value: &Value,
    why: &str,
) -> ReconcileResult {
    let stored = &value["status"];
    let before = ScheduledMachineStatus::deserialize(stored);
    let mut status = before.unwrap_or_default();
    let message = format!("the object cannot be read: {why}; nothing is changed");
    let (kind, reason) = (ConditionType::Ready, Reason::InvalidSpec);
    let found = ConditionUpdate::new(kind, false, reason, message.clone());
    let generation = value["metadata"]["generation"].as_i64();
    condition::set(
        &mut status.conditions,
        found,
        generation,
        context.queue.now(),
    );
    status.phase = Some(Phase::Error);
    status.message = Some(message.chars().take(1_024).collect());
    status.observed_generation = generation;
    let version = &value["metadata"]["resourceVersion"];
    let version = version.as_str().unwrap_or_default();
    let Ok(Some(patch)) = status_patch(stored, &status, version) else {
        return ReconcileResult::Succeeded { requeue_at: None };
    };
    match patch_status(context, key, &patch).await {
        // The replica that may act on it reports it too.
        Err(Fenced) | Ok(Ok(_)) => ReconcileResult::Succeeded { requeue_at: None },
        Ok(Err(error)) if matches!(failure::code(&error), Some(404 | 409)) => {
            ReconcileResult::Stale { requeue_at: None }
        }
        Ok(Err(error)) => {
            let error = failure::message(&error);
            context
                .outage
                .warn(format_args!("status could not be written"), &error);
            ReconcileResult::Failed { requeue_at: None }
        }
    }
}

fn transition(
    context: &Context,
    key: &Key,
    snapshot: &Snapshot,
    status: &ScheduledMachineStatus,
) {
    let from = snapshot
        .object
        .status
        .as_ref()
        .and_then(|status| status.phase);
    let Some(to) = status.phase.filter(|to| from != Some(*to)) else {
        return;
    };
    let announced = snapshot.object.status.as_ref();
    let announced = announced.and_then(|status| status.next_transition);
    if let Some(announced) = announced.filter(|announced| *announced <= snapshot.now) {
        let late = context.clock.now().duration_since(announced);
        context.metrics.observe_lateness(late);
    }
    if to == Phase::Terminated {
        context.metrics.count_kill();
    }
    let is_new = matches!(from, Some(Phase::Pending | Phase::Error));
    if to == Phase::Active && is_new {
        let due = wanted_since(snapshot);
        context
            .metrics
            .observe_ready_lateness(context.clock.now().duration_since(due));
    }
    tracing::info!(
        from = from.map(Phase::as_str),
        to = to.as_str(),
        "phase changed"
    );
    context.options.listener.transition(&Transition {
        at: snapshot.now,
        key: key.clone(),
        from,
        to,
        message: status.message.clone().unwrap_or_default(),
    });
}

/// Counts it if the schedule that the machine follows has become unresolved.
fn count_unresolved(
    context: &Context,
    snapshot: &Snapshot,
    status: &ScheduledMachineStatus,
) {
    let reason = |status: &ScheduledMachineStatus| {
        let kind = ConditionType::SpotScheduleResolved;
        let found = condition::find(&status.conditions, kind);
        let found = found.filter(|of| of.status == "False")?;
        Some(found.reason.clone())
    };
    let before = snapshot.object.status.as_ref().and_then(reason);
    let now = reason(status).filter(|now| before.as_ref() != Some(now));
    if let Some(now) = now {
        context.metrics.count_unresolved(&now);
    }
}

/// How far back the opening of the window is searched.
const MAX_WAIT: SignedDuration = SignedDuration::from_hours(14 * 24);

/// Since when a machine has been wanted that was not Ready: since the current window opened, or
/// since `Ready` became False within it, for example because the machine was deleted by hand.
/// Returns now if a lead time has created the machine before its window, or if the schedule changes
/// so often that the steps do not suffice.
fn wanted_since(snapshot: &Snapshot) -> Timestamp {
    let now = snapshot.now;
    let inputs = &snapshot.observed.schedule;
    let schedule = snapshot.object.spec.schedule(&inputs.calendars);
    let Ok(schedule) = schedule else {
        return now;
    };
    let class = snapshot.object.spec.class.as_ref();
    let most = class.and_then(|class| class.limits.as_ref()?.max_override);
    let mut overrides = inputs.overrides.clone();
    overrides.retain(|of| most.is_none_or(|most| !is_longer(of, most)));
    let schedule = schedule.with_overrides(overrides);
    let before = snapshot.object.status.as_ref();
    let ready =
        before.and_then(|of| condition::find(&of.conditions, ConditionType::Ready));
    let unready_since = ready.map_or(now, |of| of.last_transition_time.0);
    let earliest = now.checked_sub(MAX_WAIT).unwrap_or(Timestamp::MIN);
    let steps = Steps::at_most(MAX_STEPS);
    let since = schedule.wanted_since(unready_since.max(earliest), now, &steps);
    since.unwrap_or(now)
}

/// The reason of the event that the planner sends when a finalizer is removed although objects
/// remain.
const RELEASED: &str = "FinalizerCleanupTimedOut";

/// The object that an Event is about.
pub(crate) struct Regarding<'a> {
    pub(crate) kind: &'a str,
    pub(crate) key: &'a Key,
    pub(crate) uid: &'a str,
}

impl Regarding<'_> {
    /// The Event, as JSON. `place` is its position among those of the same instant.
    ///
    /// Its name begins with the time, because `kubectl describe` shows events in the order of their
    /// names. The same event of the same reconcile has the same name, so that it is published once.
    pub(crate) fn event(
        &self,
        context: &Context,
        event: &Event,
        at: Timestamp,
        place: i128,
    ) -> Value {
        let Self { kind, key, uid } = self;
        let (reason, action, note) = (&event.reason, &event.action, &event.note);
        let mut hasher = DefaultHasher::new();
        (uid, reason, action, note).hash(&mut hasher);
        let time = at.as_nanosecond() + place;
        json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {
                "namespace": key.namespace,
                "name": format!("{time:016x}.{:016x}.{}", hasher.finish(), key.name),
            },
            "eventTime": format!("{at:.6}"),
            "reportingController": name::FIELD_MANAGER,
            "reportingInstance": context.options.identity,
            "type": event.kind.as_str(),
            "reason": reason,
            "action": action,
            "note": note,
            "regarding": {
                "apiVersion": name::API_VERSION,
                "kind": kind,
                "namespace": key.namespace,
                "name": key.name,
                "uid": uid,
            },
        })
    }
}

/// Publishes the events about the ScheduledMachine `key`, whose reconcile has this fence. Best effort: a lost
/// event is not sent again.
pub(crate) async fn publish(
    context: &Context,
    fence: &Fence,
    key: &Key,
    all: &[Unpublished],
) {
    for unpublished in all {
        let event = &unpublished.event;
        if event.reason == RELEASED {
            context.metrics.count_finalizer_release();
        }
        let observe = &context.options.listener;
        observe.event(unpublished.at, key, &event.reason, &event.note);
        let regarding = Regarding {
            kind: name::KIND,
            key,
            uid: &unpublished.uid,
        };
        let body = regarding.event(context, event, unpublished.at, unpublished.place);
        create_event(context, fence, key, &body).await;
    }
}

/// Creates an Event in its namespace. A failure is only logged.
pub(crate) async fn create_event(
    context: &Context,
    fence: &Fence,
    key: &Key,
    event: &Value,
) {
    let at = Address {
        resource: &ApiResource::erase::<events::Event>(&()),
        namespace: event["metadata"]["namespace"].as_str(),
        name: "",
        projection: None,
    };
    let created = context.api.create(&at, event);
    if let Ok(Err(error)) = fence.write(key, created).await {
        let (reason, error) = (event["reason"].as_str(), failure::message(&error));
        tracing::debug!(reason, error, "event could not be created");
    }
}

//! The controller of the schedules that other objects follow: it publishes whether they are active
//! and when that changes. Machines that follow one are planned from its spec, without it.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use fivespot_api::{ScheduleCalendar, SharedSchedule, SpotScheduleStatus, name};
use fivespot_plan::{SpotSchedule, plan_spot_schedule};
use fivespot_runtime::Key;
use fivespot_runtime::cache::Health;
use fivespot_runtime::lease::Fence;
use fivespot_runtime::queue::{Backoff, EVENT_TIMEOUT, ReconcileResult, WorkQueue};
use fivespot_schedule::Dates;
use kubemu_clock::{Busy, Clock, after};
use serde::Deserialize as _;
use tracing::Instrument as _;

use crate::context::Context;
use crate::kind;
use crate::observe::projection::{CachedKind, spot_schedule_term};
use crate::observe::watch::KindInformer;
use crate::own_object::{Change, OwnObject};

/// How many schedules of a kind are reconciled concurrently.
const MAX_CONCURRENT: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// The kinds.
const KINDS: [&str; 2] = [name::TIME_BASED_KIND, name::CAPITAL_MARKETS_KIND];

/// The schedules of one kind.
#[derive(Debug)]
pub(crate) struct SpotSchedules {
    kind: &'static str,
    pub(crate) queue: WorkQueue,
    fence: Fence,
    /// The generation of each that the cache shows.
    shown: Mutex<BTreeMap<Key, Shown>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Shown {
    uid: String,
    generation: Option<i64>,
}

/// The schedules of all kinds. `fence` is that of the machines.
pub(crate) fn all(clock: &Clock, backoff: Backoff, fence: &Fence) -> [SpotSchedules; 2] {
    KINDS.map(|kind| SpotSchedules {
        kind,
        queue: WorkQueue::new(clock.clone(), backoff, MAX_CONCURRENT),
        fence: fence.of_kind(kind),
        shown: Mutex::default(),
    })
}

impl Context {
    /// Starts the watches of the schedules that other objects follow.
    pub(crate) fn watch_spot_schedules(self: &Arc<Self>) {
        for kind in KINDS {
            informer(self, kind);
        }
    }

    fn of_kind(&self, kind: &str) -> Option<&SpotSchedules> {
        self.spot_schedules.iter().find(|of| of.kind == kind)
    }

    /// Enqueues schedules of a kind.
    pub(crate) fn enqueue_spot_schedules<'k>(
        &self,
        kind: &str,
        keys: impl IntoIterator<Item = &'k Key>,
    ) {
        if let Some(of_kind) = self.of_kind(kind) {
            for key in keys {
                of_kind.queue.enqueue(key);
            }
        }
    }

    /// Enqueues the machines and the capacities that follow a schedule.
    pub(crate) fn enqueue_followers(&self, kind: &str, key: &Key) {
        let term = spot_schedule_term(kind, key);
        self.enqueue_keys(self.scheduled_machines.store.found_by(&term));
        self.capacities.enqueue(self.capacities_by(&term));
    }

    /// The cache shows a change of a schedule. Enqueues it and, if its spec has changed, the
    /// machines that follow it: what it publishes changes nothing for them.
    pub(crate) fn spot_schedule_changed(
        &self,
        informer: &KindInformer,
        kind: &str,
        key: &Key,
    ) {
        self.followed.forget(&spot_schedule_term(kind, key));
        self.enqueue_spot_schedules(kind, [key]);
        let shows_other_spec = self.of_kind(kind).is_none_or(|of| of.show(informer, key));
        if shows_other_spec {
            self.enqueue_followers(kind, key);
        }
    }
}

impl SpotSchedules {
    /// Records what the cache shows of a schedule; returns whether its spec may be another.
    fn show(&self, informer: &KindInformer, key: &Key) -> bool {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(cached) = informer.store.get(key) else {
            shown.remove(key);
            return true;
        };
        let now = Shown {
            uid: cached.uid.clone(),
            generation: cached.value()["metadata"]["generation"].as_i64(),
        };
        let is_other = shown.get(key) != Some(&now);
        shown.insert(key.clone(), now);
        is_other
    }
}

fn informer(context: &Arc<Context>, kind: &str) -> Arc<KindInformer> {
    let cached = CachedKind::SpotSchedule(kind.to_owned());
    context.informer(&kind::spot_schedule(kind), cached)
}

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
        (key, busy) = one.queue.next() => Due { kind: 0, key, busy },
        (key, busy) = other.queue.next() => Due { kind: 1, key, busy },
    }
}

/// Reconciles a schedule and puts its key back into the queue. The future must be run by
/// [`Clock::stop_while_busy`].
pub(crate) async fn reconcile(context: Arc<Context>, due: Due, id: u64) {
    let Due { kind, key, busy } = due;
    drop(busy);
    let Some(schedules) = context.spot_schedules.get(kind) else {
        return;
    };
    let span = tracing::info_span!(
        "reconcile",
        namespace = key.namespace,
        kind = schedules.kind,
        name = key.name,
        reconcile_id = id
    );
    let work = result(&context, schedules, &key).instrument(span);
    let result = schedules.queue.charging(&key, work).await;
    schedules.queue.finish(&key, result);
}

const DONE: ReconcileResult = ReconcileResult::Succeeded { requeue_at: None };

async fn result(
    context: &Arc<Context>,
    schedules: &SpotSchedules,
    own: &Key,
) -> ReconcileResult {
    let informer = informer(context, schedules.kind);
    let Some(found) = informer.store.get(own) else {
        return DONE;
    };
    if !schedules.fence.begin(own, &found.uid) {
        return DONE;
    }
    let stored = found.value();
    let object = OwnObject {
        context,
        informer: &informer,
        fence: &schedules.fence,
        key: own,
        found: &found,
        stored: &stored,
    };
    let result = publish(&object, schedules).await;
    schedules.fence.end(own);
    result
}

async fn publish(own: &OwnObject<'_>, schedules: &SpotSchedules) -> ReconcileResult {
    let now = schedules.queue.now();
    let meta = &own.stored["metadata"];
    if meta["deletionTimestamp"].is_string() {
        return DONE;
    }
    let schedule = SharedSchedule::of_spec(schedules.kind, &own.stored["spec"]);
    let calendars = match &schedule {
        Ok(schedule) => own_calendars(own.context, own.key, schedule),
        Err(_) => Some(BTreeMap::new()),
    };
    let Some(calendars) = calendars else {
        // The first list enqueues it.
        let until = after(now, EVENT_TIMEOUT);
        return ReconcileResult::Waiting { until };
    };
    let status = SpotScheduleStatus::deserialize(&own.stored["status"]);
    let object = SpotSchedule {
        schedule: schedule.as_ref().map_err(ToString::to_string),
        calendars: &calendars,
        generation: meta["generation"].as_i64(),
        status: &status.unwrap_or_default(),
    };
    let plan = plan_spot_schedule(&object, now);
    own.change(plan.status.map(Change::Status), plan.requeue_at)
        .await
}

/// The calendars of its namespace that a schedule refers to. `None` if they are not listed yet.
/// While they cannot be read, none applies.
fn own_calendars(
    context: &Arc<Context>,
    own: &Key,
    schedule: &SharedSchedule,
) -> Option<BTreeMap<String, Dates>> {
    let mut found = BTreeMap::new();
    for name in schedule.calendars() {
        let informer = context.informer(&kind::schedule_calendar(), CachedKind::Calendar);
        let calendar = Key::new(own.namespace.clone(), name);
        match informer.health(&own.namespace) {
            Health::Synced => {}
            Health::Loading => return None,
            Health::Failing(_) => continue,
        }
        let dates = informer.store.get(&calendar).and_then(|cached| {
            let version = cached.version.as_str();
            let read = || Some(cached.read::<ScheduleCalendar>().ok()?.spec.dates());
            context.calendars.get_or_read(&calendar, version, read)
        });
        found.extend(dates.map(|dates| (name.to_owned(), dates)));
    }
    Some(found)
}

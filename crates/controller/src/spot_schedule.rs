//! The controller of the schedules that other objects follow: it publishes whether they are active
//! and when that changes. Machines that follow one are planned from its spec, without it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use fivespot_api::{SharedSchedule, SpotScheduleStatus, name};
use fivespot_plan::{Freshness, ScheduleInputs, SpotSchedule, plan_spot_schedule};
use fivespot_runtime::Key;
use fivespot_runtime::queue::ReconcileResult;
use kubemu_clock::Busy;
use serde::Deserialize as _;

use crate::context::Context;
use crate::kind;
use crate::observe::live_reads::LiveReads;
use crate::observe::management::Source;
use crate::observe::projection::{CachedKind, spot_schedule_term};
use crate::observe::schedule_inputs::add_calendars;
use crate::observe::watch::KindInformer;
use crate::own_object::{Change, DONE, OwnKind, OwnObject};

/// The kinds.
const KINDS: [&str; 2] = [name::TIME_BASED_KIND, name::CAPITAL_MARKETS_KIND];

/// The schedules of one kind.
#[derive(Debug)]
pub(crate) struct SpotSchedules {
    name: &'static str,
    pub(crate) kind: OwnKind,
    /// The generation of each that the cache shows.
    shown: Mutex<BTreeMap<Key, Shown>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Shown {
    uid: String,
    generation: Option<i64>,
}

/// The schedules of all kinds. `of_kind` returns the queue of the kind of that name.
pub(crate) fn all(of_kind: impl Fn(&'static str) -> OwnKind) -> [SpotSchedules; 2] {
    KINDS.map(|name| SpotSchedules {
        name,
        kind: of_kind(name),
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
        self.spot_schedules.iter().find(|of| of.name == kind)
    }

    /// Enqueues schedules of a kind.
    pub(crate) fn enqueue_spot_schedules<'k>(
        &self,
        kind: &str,
        keys: impl IntoIterator<Item = &'k Key>,
    ) {
        if let Some(of_kind) = self.of_kind(kind) {
            for key in keys {
                of_kind.kind.queue.enqueue(key);
            }
        }
    }

    /// Enqueues the cached schedules of that name.
    pub(crate) fn enqueue_spot_schedules_named(&self, key: &Key) {
        for of_kind in &self.spot_schedules {
            let cache = self.cache(&kind::cache_name(&kind::spot_schedule(of_kind.name)));
            if cache.is_some_and(|cache| cache.store.get(key).is_some()) {
                of_kind.kind.queue.enqueue(key);
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
    let informer = informer(context, schedules.name);
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

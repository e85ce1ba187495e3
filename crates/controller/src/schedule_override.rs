//! The controller of ScheduleOverrides: their status, and their deletion an hour after their end.
//! Their effect on machines is planned with each machine.

pub(crate) mod ended;
mod index;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fivespot_api::scheduled_machine::ScheduleSpec;
use fivespot_api::{ClassLimits, ClassRef, OverrideMode, ScheduleOverride};
use fivespot_plan::{LimitingClass, Unknown, plan_override};
use fivespot_runtime::Key;
use fivespot_runtime::cache::{Health, SharedReads};
use fivespot_runtime::queue::ReconcileResult;
use kubemu_clock::Busy;
use serde::Deserialize;

use crate::context::Context;
use crate::kind::{schedule_override, scheduled_machine_class};
use crate::observe::projection::CachedKind;
use crate::observe::schedule_inputs::Listed;
use crate::observe::watch::KindInformer;
use crate::own_object::{Change, DONE, OwnKind, OwnObject};
use crate::scheduled_capacity;
use ended::EndedOverrides;
use index::{Machine, OverrideIndex};

/// The overrides: their queue, and which machines they apply to.
#[derive(Debug)]
pub(crate) struct Overrides {
    pub(crate) kind: OwnKind,
    index: OverrideIndex,
    /// Those that have ended.
    pub(crate) ended: EndedOverrides,
    /// Live lists that machines share.
    pub(crate) listed: SharedReads<Result<Listed, Unknown>>,
}

/// The part of a ScheduledMachine that is read for the index.
#[derive(Deserialize)]
struct MachineParts {
    metadata: Labels,
    spec: SpecParts,
}

#[derive(Deserialize)]
struct Labels {
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct SpecParts {
    schedule: ScheduleSpec,
    #[serde(default)]
    enabled: Option<bool>,
    #[serde(default, rename = "classRef")]
    class_ref: Option<ClassRef>,
}

/// The part of a ScheduledMachineClass that overrides depend on.
#[derive(Deserialize)]
struct ClassParts {
    spec: Limited,
}

#[derive(Deserialize)]
struct Limited {
    #[serde(default)]
    limits: Option<ClassLimits>,
}

impl From<MachineParts> for Machine {
    fn from(parts: MachineParts) -> Self {
        let SpecParts {
            schedule,
            enabled,
            class_ref,
        } = parts.spec;
        Self {
            is_ignoring: !schedule.is_enabled_beside(enabled)
                || schedule.schedule().is_err(),
            labels: parts.metadata.labels.unwrap_or_default(),
            class: class_ref.map(|class| class.name),
        }
    }
}

impl Overrides {
    /// No overrides.
    pub(crate) fn new(kind: OwnKind) -> Self {
        Self {
            kind,
            index: OverrideIndex::default(),
            ended: EndedOverrides::default(),
            listed: SharedReads::default(),
        }
    }

    /// The considered overrides of a machine with these labels.
    pub(crate) fn of_machine(
        &self,
        key: &Key,
        labels: &BTreeMap<String, String>,
    ) -> Vec<Arc<ScheduleOverride>> {
        self.index.of_machine(key, labels)
    }

    /// The considered overrides of a ScheduledCapacity.
    pub(crate) fn of_capacity(&self, key: &Key) -> Vec<Arc<ScheduleOverride>> {
        self.index.of_capacity(key)
    }

    /// The cache of capacities shows a change of one: enqueues the overrides of it.
    pub(crate) fn capacity_changed(&self, key: &Key) {
        let own = self.index.of_capacity(key);
        let names = own.iter().filter_map(|of| of.metadata.name.as_deref());
        self.kind
            .enqueue(names.map(|name| Key::new(key.namespace.clone(), name)));
    }

    /// These overrides as a schedule knows them. One that had ended before the clock was set back is
    /// not among them; one that has ended by now still applies to the time before its end.
    pub(crate) fn in_schedule(
        &self,
        overrides: &[Arc<ScheduleOverride>],
    ) -> Vec<fivespot_schedule::Override> {
        let now = self.kind.queue.now();
        let is_over = |of: &ScheduleOverride| {
            self.ended.end_of(of, now).is_some_and(|end| end > now)
        };
        let all = overrides.iter().filter(|of| !is_over(of));
        all.filter_map(|of| of.in_schedule()).collect()
    }

    /// Whether one of mode Stop would be considered that is created now in a namespace.
    pub(crate) fn have_room_for_stop(&self, namespace: &str) -> bool {
        self.index.has_room_for_stop(namespace)
    }

    /// Enqueues the overrides beside machines of a class that has changed, and with it which of them
    /// these machines ignore.
    pub(crate) fn class_changed(&self, class: &str) {
        self.kind.enqueue(self.index.overrides_beside(class));
    }

    /// The cache of machines shows a change of these. Enqueues the overrides whose status may
    /// change.
    pub(crate) fn machines_changed<'a>(
        &self,
        machines: &KindInformer,
        keys: impl IntoIterator<Item = &'a Key>,
    ) {
        for key in keys {
            let found = machines.store.get(key);
            let parts = found.and_then(|of| of.read::<MachineParts>().ok());
            self.kind
                .enqueue(self.index.change_machine(key, parts.map(Machine::from)));
        }
    }

    /// The cache shows a change of these overrides. Enqueues them, and returns the machines whose
    /// schedule may change.
    pub(crate) fn changed<'a>(
        &self,
        informer: &KindInformer,
        keys: impl IntoIterator<Item = &'a Key>,
    ) -> BTreeSet<Key> {
        let read = |key: &Key| -> Option<ScheduleOverride> {
            informer.store.get(key)?.read().ok()
        };
        let mut machines = BTreeSet::new();
        for key in keys {
            let mut affected = self.index.change_override(key, read(key), read);
            affected.overrides.insert(key.clone());
            self.kind.enqueue(affected.overrides);
            machines.append(&mut affected.machines);
        }
        machines
    }

    /// The machines have been listed: forgets those that are gone, and enqueues all overrides,
    /// which may have waited for that.
    pub(crate) fn machines_synced(&self, machines: &KindInformer) {
        let mut known = self.index.machines();
        known.retain(|key| machines.store.get(key).is_none());
        self.machines_changed(machines, &known);
        self.kind.enqueue(self.index.overrides());
    }

    /// The overrides have been listed: forgets those that are gone. Returns the machines whose
    /// schedule may change.
    pub(crate) fn synced(&self, informer: &KindInformer) -> BTreeSet<Key> {
        let mut known = self.index.overrides();
        known.retain(|key| informer.store.get(key).is_none());
        self.changed(informer, &known)
    }
}

/// The cache of overrides.
pub(crate) fn informer(context: &Arc<Context>) -> Arc<KindInformer> {
    context.informer(&schedule_override(), CachedKind::Override)
}

/// Reconciles the override `own` and puts its key back into the queue. The future must be run by
/// [`Clock::stop_while_busy`].
pub(crate) async fn reconcile(context: Arc<Context>, own: Key, busy: Busy, id: u64) {
    let span = tracing::info_span!(
        "reconcile",
        namespace = own.namespace,
        scheduleoverride = own.name,
        reconcile_id = id
    );
    let work = Box::pin(result(&context, &own));
    context
        .overrides
        .kind
        .reconcile(&own, busy, span, work)
        .await;
}

async fn result(context: &Arc<Context>, own: &Key) -> ReconcileResult {
    let informer = informer(context);
    // The number of machines is reported, too.
    let machines = context.scheduled_machines.health(&own.namespace);
    let caches = [informer.health(&own.namespace), machines];
    if let Some(end) = context.overrides.kind.unsynced(caches) {
        return end;
    }
    let Some(found) = informer.store.get(own) else {
        return DONE;
    };
    let stored = found.value();
    let Ok(object) = ScheduleOverride::deserialize(&stored) else {
        tracing::warn!("ScheduleOverride could not be parsed");
        return DONE;
    };
    let reconciled = OwnObject {
        context,
        informer: &informer,
        of_kind: &context.overrides.kind,
        key: own,
        found: &found,
        stored: &stored,
    };
    reconciled.fenced(run(&reconciled, &object)).await
}

async fn run(own: &OwnObject<'_>, object: &ScheduleOverride) -> ReconcileResult {
    let overrides = &own.context.overrides;
    let now = own.of_kind.queue.now();
    // An override that has ended stays ended.
    let end = overrides.ended.end_of(object, now);
    let mut matched = overrides.index.matched(own.key);
    if let Some(name) = object.capacity()
        && !matched.is_beyond_limit
    {
        // Where another process reconciles capacities, they are watched for their overrides.
        let capacities = scheduled_capacity::informer(own.context);
        if capacities.health(&own.key.namespace) == Health::Loading {
            return own.of_kind.waiting();
        }
        let key = Key::new(own.key.namespace.clone(), name);
        matched.machines = usize::from(capacities.store.get(&key).is_some());
    }
    if object.spec.mode == OverrideMode::Run {
        let Some(limiting) = limiting(own) else {
            return own.of_kind.waiting();
        };
        matched.limiting = limiting;
    }
    let plan = plan_override(object, &matched, end.unwrap_or(now).max(now));
    let change = if plan.is_deleted {
        Some(Change::Deletion)
    } else {
        plan.status.map(Change::Status)
    };
    own.change(change, plan.requeue_at).await
}

/// The classes of the machines of an override that limit how long it may be; `None` if they have not
/// been listed yet.
fn limiting(own: &OwnObject<'_>) -> Option<Vec<LimitingClass>> {
    let mut limiting = Vec::new();
    for name in own.context.overrides.index.classes(own.key) {
        let resource = scheduled_machine_class();
        let classes = own.context.informer(&resource, CachedKind::Class);
        if classes.health("") == Health::Loading {
            return None;
        }
        let found = classes.store.get(&Key::new("", &name));
        let parts = found.and_then(|of| of.read::<ClassParts>().ok());
        let limits = parts.and_then(|parts| parts.spec.limits);
        let max_override = limits.and_then(|of| of.longest_override());
        limiting.extend(
            max_override.map(|max_override| LimitingClass { name, max_override }),
        );
    }
    Some(limiting)
}

//! The controller of ScheduledMachineSets: it creates, changes and deletes their ScheduledMachines.
//!
//! That something is to be done is seen in the caches; which machines are created and deleted is
//! decided from the set and its machines as they are just then read from the server.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use fivespot_api::scheduled_machine_set::INDEXES;
use fivespot_api::{ScheduledMachineSet, name};
use fivespot_plan::set::{SetFailure, set_warning};
use fivespot_plan::{
    Event, SetAction, SetFacts, SetMachine, SetPlan, Side, Unanswered, plan_set,
};
use fivespot_runtime::Key;
use fivespot_runtime::cache::Health;
use fivespot_runtime::http::Address;
use fivespot_runtime::lease::{Fence, Fenced};
use fivespot_runtime::queue::{Backoff, EVENT_TIMEOUT, ReconcileResult, WorkQueue};
use jiff::Timestamp;
use kubemu_clock::{Busy, Clock, after};
use serde::Deserialize as _;
use serde_json::Value;
use tracing::Instrument as _;

use crate::context::{Context, work_queue};
use crate::failure;
use crate::kind::{cache_name, scheduled_machine, scheduled_machine_set};
use crate::observe::projection::{CachedKind, set_term};
use crate::observe::watch::KindInformer;
use crate::own_object::{OwnObject, OwnWrite};
use crate::report::{self, Regarding};

/// How many sets are reconciled concurrently.
const MAX_CONCURRENT: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// How many machines one request lists, and how many such requests there are at most: a set has no
/// more machines, unless others have its label.
const PAGE: &str = "500";
const MAX_PAGES: usize = 10;

/// The queue of the sets, and the requests without an answer.
#[derive(Debug)]
pub(crate) struct Sets {
    pub(crate) queue: WorkQueue,
    /// The fence of their reconciles.
    fence: Fence,
    unanswered: Mutex<BTreeMap<Key, Unanswered>>,
}

impl Sets {
    /// An empty queue. `fence` is that of the machines. They are reconciled here if `is_enabled`.
    pub(crate) fn new(
        clock: Clock,
        backoff: Backoff,
        fence: &Fence,
        is_enabled: bool,
    ) -> Self {
        Self {
            queue: work_queue(clock, backoff, MAX_CONCURRENT, is_enabled),
            fence: fence.of_kind(name::SET_KIND),
            unanswered: Mutex::default(),
        }
    }

    /// Reads or changes what is not answered of a set.
    fn unanswered<T>(&self, key: &Key, with: impl FnOnce(&mut Unanswered) -> T) -> T {
        let all = self.unanswered.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        let own = all.entry(key.clone()).or_default();
        let result = with(own);
        if *own == Unanswered::default() {
            all.remove(key);
        }
        result
    }
}

impl Context {
    /// Enqueues every cached set that this replica may act on.
    pub(crate) fn enqueue_sets(&self) {
        let cache = self.cache(&cache_name(&scheduled_machine_set()));
        let all = cache.map_or_else(Vec::new, |cache| cache.store.all());
        for (key, _) in all
            .iter()
            .filter(|(_, object)| self.fence.covers(&object.uid))
        {
            self.sets.queue.enqueue(key);
        }
    }

    /// ScheduledMachines have changed: enqueues the sets whose machines have such names.
    pub(crate) fn enqueue_sets_of<'k>(
        &self,
        machines: impl IntoIterator<Item = &'k Key>,
    ) {
        let Some(sets) = self.cache(&cache_name(&scheduled_machine_set())) else {
            return;
        };
        for machine in machines {
            if let Some((set, _)) = machine.name.rsplit_once('-') {
                let set = Key::new(machine.namespace.clone(), set);
                if sets.store.get(&set).is_some() {
                    self.sets.queue.enqueue(&set);
                }
            }
        }
    }
}

/// The cache of sets.
pub(crate) fn informer(context: &Arc<Context>) -> Arc<KindInformer> {
    context.informer(&scheduled_machine_set(), CachedKind::Set)
}

/// Reconciles `own` and puts its key back into the queue. The future must be run by
/// [`Clock::stop_while_busy`].
pub(crate) async fn reconcile(context: Arc<Context>, own: Key, busy: Busy, id: u64) {
    drop(busy);
    let span = tracing::info_span!(
        "reconcile",
        namespace = own.namespace,
        scheduledmachineset = own.name,
        reconcile_id = id
    );
    let queue = &context.sets.queue;
    let work = Box::pin(result(&context, &own)).instrument(span);
    let result = queue.charging(&own, work).await;
    queue.finish(&own, result);
}

const DONE: ReconcileResult = ReconcileResult::Succeeded { requeue_at: None };

async fn result(context: &Arc<Context>, own: &Key) -> ReconcileResult {
    let informer = informer(context);
    let machines = context.scheduled_machines.health(&own.namespace);
    match (informer.health(&own.namespace), machines) {
        (Health::Synced, Health::Synced) => {}
        (Health::Failing(_), _) | (_, Health::Failing(_)) => return DONE,
        // The first list enqueues it.
        (Health::Loading, _) | (_, Health::Loading) => {
            let until = after(context.sets.queue.now(), EVENT_TIMEOUT);
            return ReconcileResult::Waiting { until };
        }
    }
    let Some(found) = informer.store.get(own) else {
        context.sets.unanswered(own, std::mem::take);
        return DONE;
    };
    let stored = found.value();
    let set = match ScheduledMachineSet::deserialize(&stored) {
        Ok(set) => set,
        Err(error) => {
            let error = error.to_string();
            tracing::warn!(error, "ScheduledMachineSet could not be parsed");
            return DONE;
        }
    };
    // Its machines are deleted by the garbage collector, one by one through their finalizers.
    if set.metadata.deletion_timestamp.is_some() {
        return DONE;
    }
    let fence = &context.sets.fence;
    if !fence.begin(own, &found.uid) {
        return DONE;
    }
    let reconcile = Reconcile(OwnObject {
        context,
        informer: &informer,
        fence,
        key: own,
        found: &found,
        stored: &stored,
    });
    let result = reconcile.run(set).await;
    fence.end(own);
    result
}

/// A set and its machines, as they were read.
struct Observed {
    set: ScheduledMachineSet,
    machines: Vec<SetMachine>,
    taken: BTreeSet<u32>,
    unanswered: Unanswered,
}

impl Observed {
    fn facts(&self) -> SetFacts<'_> {
        SetFacts {
            set: &self.set,
            machines: &self.machines,
            taken: &self.taken,
            unanswered: &self.unanswered,
        }
    }
}

/// How the actions of a plan ended.
#[derive(Default)]
struct Sent {
    /// How many have succeeded, of those before the first that has not.
    done: usize,
    /// Why one failed.
    failure: Option<SetFailure>,
    /// Whether the machines are others than those that were read.
    is_outdated: bool,
}

/// A reconcile of a set, as its cache shows it.
struct Reconcile<'a>(OwnObject<'a>);

impl Reconcile<'_> {
    async fn run(&self, set: ScheduledMachineSet) -> ReconcileResult {
        let mut observed = self.cached(set);
        let mut plan = plan_set(&observed.facts());
        if plan.is_about_live_reads() {
            match self.live().await {
                Ok(Some(read)) => observed = read,
                // The watch delivers that it is gone.
                Ok(None) => return DONE,
                Err(error) => return self.could_not_read(&error),
            }
            plan = plan_set(&observed.facts());
        }
        let Ok(sent) = self.send_all(&plan).await else {
            return DONE;
        };
        let now = self.0.context.sets.queue.now();
        for event in plan.events(&observed.facts(), sent.done) {
            self.publish(&event, now).await;
        }
        let written = self.report(&observed, &plan, &sent, now).await;
        let requeue_at = plan.repeats.then_some(now);
        if sent.failure.is_some() || written == OwnWrite::Failed {
            ReconcileResult::Failed { requeue_at: None }
        } else if sent.is_outdated {
            ReconcileResult::Stale { requeue_at: None }
        } else {
            ReconcileResult::Succeeded { requeue_at }
        }
    }

    /// The set and its machines according to the caches.
    fn cached(&self, set: ScheduledMachineSet) -> Observed {
        let store = &self.0.context.scheduled_machines.store;
        let keys = store.found_by(&set_term(&self.0.found.uid));
        let own = keys
            .iter()
            .filter(|key| key.namespace == self.0.key.namespace);
        let objects = own.filter_map(|key| store.get(key));
        let machines = objects.filter_map(|it| SetMachine::of(&it.value(), &set));
        let machines: Vec<SetMachine> = machines.collect();
        self.observed(set, machines)
    }

    /// The set and its machines as the server has them. `None` if the set is gone.
    async fn live(&self) -> kube::Result<Option<Observed>> {
        let OwnObject {
            context,
            key,
            found,
            ..
        } = self.0;
        let api = &context.api;
        let stored = api.get(&self.0.address()).await?;
        let set = stored.and_then(|it| ScheduledMachineSet::deserialize(&it).ok());
        let is_same = |set: &ScheduledMachineSet| {
            set.metadata.uid.as_deref() == Some(found.uid.as_str())
        };
        let Some(set) = set.filter(is_same) else {
            return Ok(None);
        };
        let at = Address {
            resource: &scheduled_machine(),
            namespace: Some(&key.namespace),
            name: "",
            projection: Some(&CachedKind::ScheduledMachine),
        };
        let selector = format!("{}={}", name::SET_LABEL, key.name);
        let (mut machines, mut next) = (Vec::new(), String::new());
        for _ in 0..MAX_PAGES {
            let mut query = vec![("labelSelector", selector.as_str()), ("limit", PAGE)];
            if !next.is_empty() {
                query.push(("continue", next.as_str()));
            }
            let page = api.page(&at, &query, |object| {
                machines.extend(SetMachine::of(&object, &set));
                Ok(())
            });
            next = page.await?.next;
            if next.is_empty() {
                return Ok(Some(self.observed(set, machines)));
            }
        }
        let message = format!("too many ScheduledMachines have the label {selector}");
        Err(kube::Error::Service(message.into()))
    }

    fn observed(&self, set: ScheduledMachineSet, machines: Vec<SetMachine>) -> Observed {
        let OwnObject { context, key, .. } = self.0;
        let unanswered = context.sets.unanswered(key, |unanswered| {
            let is_there = |index: &u32| machines.iter().any(|it| it.index == *index);
            unanswered.creations.retain(|index| !is_there(index));
            let is_staying =
                |uid: &String| machines.iter().any(|it| it.uid == *uid && !it.is_leaving);
            unanswered.deletions.retain(is_staying);
            unanswered.clone()
        });
        let taken = self.taken(&set, &machines);
        Observed {
            set,
            machines,
            taken,
            unanswered,
        }
    }

    /// The indexes whose names ScheduledMachines have that the set does not own, as far as the set
    /// may need them.
    fn taken(&self, set: &ScheduledMachineSet, machines: &[SetMachine]) -> BTreeSet<u32> {
        let OwnObject {
            context,
            key,
            found,
            ..
        } = self.0;
        let store = &context.scheduled_machines.store;
        let mut needed = machines.len() + set.spec.replicas as usize;
        let mut taken = BTreeSet::new();
        for index in 0..INDEXES {
            if needed == 0 {
                break;
            }
            let name = ScheduledMachineSet::machine_name(&key.name, index);
            let machine = store.get(&Key::new(key.namespace.clone(), name));
            let is_of_others =
                |it: &Value| fivespot_plan::set::owner_of(it) != Some(found.uid.as_str());
            if machine.is_some_and(|it| is_of_others(&it.value())) {
                taken.insert(index);
            } else {
                needed -= 1;
            }
        }
        taken
    }

    /// Sends the actions in order. One that is refused ends it, except that a machine that cannot
    /// be changed keeps no other one from being.
    async fn send_all(&self, plan: &SetPlan) -> Result<Sent, Fenced> {
        let mut sent = Sent::default();
        for action in &plan.actions {
            let error = match self.send(action).await? {
                Ok(_) => {
                    let is_first = sent.failure.is_none() && !sent.is_outdated;
                    sent.done += usize::from(is_first);
                    continue;
                }
                Err(error) => error,
            };
            let is_create = matches!(action, SetAction::Create { .. });
            match failure::code(&error) {
                Some(409) => sent.is_outdated = true,
                Some(404) if !is_create => sent.is_outdated = true,
                _ => {
                    let message = failure::message_from(Side::Management, &error);
                    let (outage, key) = (&self.0.context.outage, self.0.key);
                    outage.warn(
                        format_args!(
                            "write of a machine of ScheduledMachineSet {key} failed"
                        ),
                        &message,
                    );
                    sent.failure.get_or_insert(SetFailure {
                        cause: failure::cause(&error),
                        message,
                    });
                }
            }
            if !matches!(action, SetAction::Update { .. }) {
                break;
            }
        }
        Ok(sent)
    }

    async fn send(&self, action: &SetAction) -> Result<kube::Result<Value>, Fenced> {
        let OwnObject {
            context,
            key,
            fence,
            ..
        } = self.0;
        let (api, sets) = (&context.api, &context.sets);
        let resource = scheduled_machine();
        let at = |name| Address {
            resource: &resource,
            namespace: Some(&key.namespace),
            name,
            projection: Some(&CachedKind::ScheduledMachine),
        };
        let named = |index: &u32| ScheduledMachineSet::machine_name(&key.name, *index);
        match action {
            SetAction::Create { index, object } => {
                sets.unanswered(key, |it| it.creations.insert(*index));
                let sent = fence.write(key, api.create(&at(""), object)).await?;
                if is_answered(&sent) {
                    sets.unanswered(key, |it| it.creations.remove(index));
                }
                Ok(sent)
            }
            SetAction::Update { index, patch } => {
                let name = named(index);
                fence.write(key, api.patch(&at(&name), None, patch)).await
            }
            SetAction::Delete {
                index,
                uid,
                version,
            } => {
                let name = named(index);
                sets.unanswered(key, |it| it.deletions.insert(uid.clone()));
                let at = at(&name);
                let deletion = api.delete_version(&at, uid, version);
                let sent = fence.write(key, deletion).await?;
                if is_answered(&sent) {
                    sets.unanswered(key, |it| it.deletions.remove(uid));
                }
                Ok(sent)
            }
        }
    }

    fn could_not_read(&self, error: &kube::Error) -> ReconcileResult {
        let (message, key) = (failure::message(error), self.0.key);
        let outage = &self.0.context.outage;
        outage.warn(
            format_args!("read of the machines of ScheduledMachineSet {key} failed"),
            &message,
        );
        ReconcileResult::Failed { requeue_at: None }
    }

    /// Writes the status if it differs, and publishes the Warning about it.
    async fn report(
        &self,
        observed: &Observed,
        plan: &SetPlan,
        sent: &Sent,
        now: Timestamp,
    ) -> OwnWrite {
        let facts = observed.facts();
        let status = plan.status_after(&facts, sent.done, sent.failure.as_ref(), now);
        let Some(status) = status else {
            return OwnWrite::None;
        };
        let written = self.0.write_status(&status).await;
        let before = observed.set.status.clone().unwrap_or_default();
        let warning = set_warning(&before, &status);
        if let Some(event) = warning.filter(|_| written == OwnWrite::Done) {
            self.publish(&event, now).await;
        }
        written
    }

    async fn publish(&self, event: &Event, now: Timestamp) {
        let OwnObject {
            context,
            fence,
            key,
            found,
            ..
        } = self.0;
        let listener = &context.options.listener;
        listener.set(now, key, &event.note);
        let regarding = Regarding {
            kind: name::SET_KIND,
            key,
            uid: &found.uid,
        };
        let body = regarding.event(context, event, now, 0);
        report::create_event(context, fence, key, &body).await;
    }
}

/// Whether a request has certainly taken effect, or certainly will not.
fn is_answered(sent: &kube::Result<Value>) -> bool {
    match sent {
        Ok(_) => true,
        Err(error) => {
            let code = failure::code(error);
            code.is_some_and(|code| (400..500).contains(&code) && code != 408)
        }
    }
}

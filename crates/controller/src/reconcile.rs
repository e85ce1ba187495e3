//! One reconcile: observe, plan, apply, report.

mod caches;
mod record;
mod turns;

use std::sync::Arc;

use fivespot_plan::{Freshness, Memory, Plan, Step};
use jiff::SignedDuration;
use kubemu_clock::{Busy, after};
use tracing::Instrument as _;

use crate::apply::{ApplyOutcome, apply, give_back};
use crate::context::Context;
use crate::failure::{self, ErrorType};
use crate::host_pool::{Turn, Wish};
use crate::interrupt::superseded;
use crate::observe::confirm::confirm;
use crate::observe::live_reads::LiveReads;
use crate::observe::taken_name::watch_names;
use crate::observe::{
    Incomplete, Observation, Reading, Snapshot, has_failed_reads, observe,
};
use crate::orphan;
use crate::report::unpublished::Unpublished;
use crate::report::{self, StatusChange, StatusWrite};
use caches::{await_effect, event_deadline, is_caught_up, record_observation};
use fivespot_runtime::Key;
use fivespot_runtime::queue::ReconcileResult;
use record::{measure, record_failure, record_phase};
use turns::ask_class;

/// How often an object that no watch shows is read again.
const UNWATCHED: SignedDuration = SignedDuration::from_secs(60);

/// The maximum number of attempts in one reconcile, e.g. after a conflict or a failed step.
const MAX_ATTEMPTS: usize = 8;

/// Reconciles `key` and puts the key back into the queue. The future must be
/// run by [`Clock::stop_while_busy`](kubemu_clock::Clock::stop_while_busy).
pub(crate) async fn reconcile(context: Arc<Context>, key: Key, busy: Busy, id: u64) {
    drop(busy);
    let span = tracing::info_span!(
        "reconcile",
        namespace = key.namespace,
        scheduledmachine = key.name,
        reconcile_id = id
    );
    let work = async {
        if !context.fence.begin(&key, &context.uid(&key)) {
            return warm_caches(&context, &key).await;
        }
        let begun = context.clock.now();
        let result = result(&context, &key).await;
        context.fence.end(&key);
        measure(&context, &key, result, begun);
        tracing::debug!(?result, "reconcile ended");
        result
    }
    .instrument(span);
    let result = context.queue.charging(&key, Box::pin(work)).await;
    context.queue.finish(&key, result);
}

/// Another replica owns the ScheduledMachine. Observes it, so that this replica's caches and
/// watches are ready if it takes over. Reads from caches and writes nothing.
async fn warm_caches(context: &Arc<Context>, key: &Key) -> ReconcileResult {
    context.leave_hosts(key);
    match observe(context, key, Freshness::Cached, &LiveReads::default()).await {
        Observation::Snapshot(snapshot) => {
            ask_class(context, key, &snapshot);
            make_plan(context, key, &snapshot);
        }
        Observation::Gone => context.forget(key),
        Observation::Unreadable { .. } => context.leave_class(key),
        Observation::Incomplete(_) | Observation::Failed(_) => {}
    }
    ReconcileResult::Succeeded { requeue_at: None }
}

/// Reconciles `key` and publishes the events. The events of a reconcile that has created a machine
/// are kept until the key is reconciled again, after other machines have been created.
async fn result(context: &Arc<Context>, key: &Key) -> ReconcileResult {
    let mut events = Vec::new();
    let result = attempts(context, key, &mut events).await;
    match result {
        ReconcileResult::Deferred { .. } => {
            context.state(key, |state| state.unpublished.append(&mut events));
        }
        ReconcileResult::Waiting { .. } => {
            report::publish(context, &context.fence, key, &events).await;
        }
        ReconcileResult::Succeeded { .. }
        | ReconcileResult::Failed { .. }
        | ReconcileResult::Stale { .. } => {
            let mut earlier = context.created_events(key);
            earlier.append(&mut events);
            report::publish(context, &context.fence, key, &earlier).await;
        }
    }
    result
}

async fn attempts(
    context: &Arc<Context>,
    key: &Key,
    events: &mut Vec<Unpublished>,
) -> ReconcileResult {
    // Caches do not show provider objects without our label: a name that is taken is not tried again
    // and again.
    let has_name_conflict = context.state(key, |state| state.has_name_conflict);
    let mut freshness = if has_name_conflict {
        Freshness::Live
    } else {
        Freshness::Cached
    };
    if !is_caught_up(context, key) {
        if let Some(until) = event_deadline(context, key) {
            return if context.state(key, |state| state.has_created) {
                ReconcileResult::Deferred { until }
            } else {
                ReconcileResult::Waiting { until }
            };
        }
        // A live read shows what the caches lack.
        context.state(key, |state| state.expectations.clear());
        freshness = Freshness::Live;
    }
    let reads = LiveReads::default();
    for _ in 0..MAX_ATTEMPTS {
        let Some(observation) =
            observe_unless_superseded(context, key, freshness, &reads).await
        else {
            reads.clear();
            freshness = Freshness::Live;
            continue;
        };
        let next = match prepare(context, key, observation).await {
            Ok(snapshot) => {
                record_observation(context, key, &snapshot);
                let mut attempt = Attempt {
                    context,
                    key,
                    snapshot: &snapshot,
                    reads: &reads,
                    events,
                };
                attempt.run().await
            }
            Err(next) => next,
        };
        match next {
            Flow::End(result) => return result,
            Flow::Continue => {}
            Flow::ReadAgain => {
                reads.clear();
                freshness = Freshness::Live;
            }
        }
    }
    ReconcileResult::Stale { requeue_at: None }
}

/// The objects to plan from, or what follows if there is nothing to plan.
async fn prepare(
    context: &Arc<Context>,
    key: &Key,
    observation: Observation,
) -> Result<Box<Snapshot>, Flow> {
    let result = match observation {
        Observation::Snapshot(snapshot) => return Ok(snapshot),
        Observation::Gone => {
            if let Err(error) = give_back(context, key).await {
                let error = failure::message(&error);
                let what =
                    "hosts of a ScheduledMachine that is gone could not be given back";
                context.outage.warn(format_args!("{what}"), &error);
                context.metrics.count_error(ErrorType::KubeApi);
                return Err(Flow::End(ReconcileResult::Failed { requeue_at: None }));
            }
            context.forget(key);
            orphan::warn(context, key).await;
            ReconcileResult::Succeeded { requeue_at: None }
        }
        Observation::Unreadable { value, message } => {
            context.leave_hosts(key);
            context.leave_class(key);
            tracing::warn!(error = message, "ScheduledMachine could not be parsed");
            report::unreadable(context, key, &value, &message).await
        }
        Observation::Failed(error) => {
            context
                .outage
                .warn(format_args!("ScheduledMachine could not be read"), &error);
            context.metrics.count_error(ErrorType::KubeApi);
            ReconcileResult::Failed { requeue_at: None }
        }
        Observation::Incomplete(Incomplete::NotYet) => {
            let until = event_deadline(context, key).ok_or(Flow::ReadAgain)?;
            ReconcileResult::Waiting { until }
        }
        Observation::Incomplete(Incomplete::NotCached) => return Err(Flow::ReadAgain),
    };
    Err(Flow::End(result))
}

/// Observes the objects. `None` if another reason to terminate the machine arises while a slow
/// workload cluster responds.
async fn observe_unless_superseded(
    context: &Arc<Context>,
    key: &Key,
    freshness: Freshness,
    reads: &LiveReads,
) -> Option<Observation> {
    let observation = observe(context, key, freshness, reads);
    if freshness != Freshness::Live || context.used_by(key).is_none() {
        return Some(observation.await);
    }
    tokio::select! {
        biased;
        observation = observation => Some(observation),
        () = superseded(context, key) => None,
    }
}

/// The replica that owns the ScheduledMachine reconciles it; if that is this one again, the key is
/// enqueued.
const FENCED: Flow = Flow::End(ReconcileResult::Succeeded { requeue_at: None });

/// What follows an attempt.
enum Flow {
    /// The end of the reconcile.
    End(ReconcileResult),
    /// Something was written, and the responses contain the new state.
    Continue,
    /// All objects must be read again, live.
    ReadAgain,
}

/// One attempt of a reconcile: one snapshot, its plan and the writes.
struct Attempt<'a> {
    context: &'a Arc<Context>,
    key: &'a Key,
    snapshot: &'a Snapshot,
    reads: &'a LiveReads,
    /// The events to publish.
    events: &'a mut Vec<Unpublished>,
}

impl Attempt<'_> {
    async fn run(&mut self) -> Flow {
        let (context, key, snapshot) = (self.context, self.key, self.snapshot);
        let mut plan = plan_in_turn(context, key, snapshot);
        record_phase(context, key, snapshot, &plan);
        if plan.confirm {
            return match snapshot.observed.freshness {
                Freshness::Cached => Flow::ReadAgain,
                Freshness::Live => Flow::End(ReconcileResult::Failed {
                    requeue_at: plan.requeue_at,
                }),
            };
        }
        if !confirm(context, key, self.reads, &mut plan).await {
            context.cancel_start(key);
            return Flow::ReadAgain;
        }
        let destroys = plan
            .actions
            .iter()
            .any(|action| action.step.is_destructive());
        if destroys && !self.reads.is_fresh() {
            return Flow::ReadAgain;
        }
        if let Some(next) = self.write(&plan).await {
            return next;
        }
        if plan.actions.is_empty() && plan.status.is_none() {
            settled(context, key, snapshot, &plan)
        } else if destroys {
            let until = await_effect(context, key, &plan);
            Flow::End(ReconcileResult::Waiting { until })
        } else {
            Flow::Continue
        }
    }

    /// Sends the actions and writes the status. `None` if the attempt continues.
    async fn write(&mut self, plan: &Plan) -> Option<Flow> {
        let (context, key) = (self.context, self.key);
        let (snapshot, reads) = (self.snapshot, self.reads);
        let version = match apply(context, key, Reading { snapshot, reads }, plan).await {
            ApplyOutcome::All { version } => version,
            ApplyOutcome::Conflict => return Some(Flow::ReadAgain),
            ApplyOutcome::Fenced => return Some(FENCED),
            ApplyOutcome::Failed(failed) => {
                record_failure(context, key, failed);
                return Some(Flow::ReadAgain);
            }
        };
        if creates_machine(plan) {
            let until = await_effect(context, key, plan);
            context.state(key, |state| state.has_created = true);
            return Some(Flow::End(ReconcileResult::Deferred { until }));
        }
        let version =
            version.or_else(|| snapshot.object.metadata.resource_version.clone());
        if let Some(status) = &plan.status {
            let change = StatusChange {
                status,
                version: &version.unwrap_or_default(),
            };
            if let Some(next) = self.write_status(plan, change).await {
                return Some(next);
            }
        }
        let events = plan.events.clone();
        let uid = snapshot.object.metadata.uid.clone().unwrap_or_default();
        let events = Unpublished::of(uid, snapshot.now, events);
        self.events.extend(events);
        None
    }

    /// Writes the status. `None` if the attempt continues.
    async fn write_status(&self, plan: &Plan, change: StatusChange<'_>) -> Option<Flow> {
        let (context, key) = (self.context, self.key);
        let (snapshot, reads) = (self.snapshot, self.reads);
        match report::status(context, key, Reading { snapshot, reads }, change).await {
            StatusWrite::Written => {
                let now = snapshot.now;
                context.state(key, |state| state.memory.status_written(plan, now));
                None
            }
            // Writing it again would change nothing. What the actions have changed enqueues the
            // key.
            StatusWrite::Dropped => Some(settled(context, key, snapshot, plan)),
            StatusWrite::Conflict => Some(Flow::ReadAgain),
            StatusWrite::Fenced => Some(FENCED),
            StatusWrite::Failed { error, retry_after } => {
                context
                    .outage
                    .warn(format_args!("status could not be written"), &error);
                let asked = retry_after.map(|span| {
                    let span = context.backoff.not_before(span, key);
                    after(context.queue.now(), span)
                });
                let requeue_at = plan.requeue_at.into_iter().chain(asked).min();
                Some(Flow::End(ReconcileResult::Failed { requeue_at }))
            }
        }
    }
}

/// The plan. If the machine waits for a host of its class and one is free, the plan that claims it.
fn plan_in_turn(context: &Context, key: &Key, snapshot: &Snapshot) -> Plan {
    context.state(key, |state| state.memory.offer_host(None));
    let again = ask_class(context, key, snapshot);
    let mut plan = plan_within_limit(context, key, snapshot);
    plan.requeue_at = plan.requeue_at.into_iter().chain(again).min();
    let class = snapshot.object.spec.class.as_ref();
    let Some((class, hosts)) = class.and_then(|class| Some((class, class.pool.clone()?)))
    else {
        context.leave_hosts(key);
        return plan;
    };
    let wish = Wish {
        class: class.name.clone(),
        hosts,
        named: class.host.clone(),
        priority: snapshot.object.spec.priority,
    };
    if !plan.seeks_host {
        context.leave_hosts(key);
        let status = snapshot.object.status.as_ref();
        let has_host = status.is_some_and(|status| status.host.is_some());
        // What it asks again for may be that its window opens.
        if let Some(at) = plan.requeue_at.filter(|_| !has_host) {
            context.host_pools.expect(key, wish, at);
        }
        return plan;
    }
    let is_taken = |host: &str| context.is_host_taken(&class.name, host, key);
    let now = context.queue.now();
    match context.host_pools.seek(key, wish, now, is_taken) {
        Turn::Offered(host) => {
            context.state(key, |state| state.memory.offer_host(Some(host)));
            plan_within_limit(context, key, snapshot)
        }
        Turn::Wait(again) => {
            plan.requeue_at = plan.requeue_at.into_iter().chain(again).min();
            plan
        }
    }
}

/// The plan. If the rate limit allows no start yet, the plan that waits for it.
fn plan_within_limit(context: &Context, key: &Key, snapshot: &Snapshot) -> Plan {
    let Some(limit) = context.options.max_starts_per_minute else {
        return make_plan(context, key, snapshot);
    };
    context.state(key, |state| state.memory.end_start_delay());
    let plan = make_plan(context, key, snapshot);
    let mut steps = plan.actions.iter().map(|action| action.step);
    if !steps.any(|step| step == Step::CreateBootstrap) {
        context.leave_starts(key);
        return plan;
    }
    match context.try_start(key, snapshot.object.spec.priority) {
        Ok(()) => plan,
        Err(span) => {
            context.state(key, |state| {
                let due = after(snapshot.now, span);
                state.memory.delay_start(due, limit);
            });
            make_plan(context, key, snapshot)
        }
    }
}

fn make_plan(context: &Context, key: &Key, snapshot: &Snapshot) -> Plan {
    let memory: Memory = context.state(key, |state| {
        let generation = snapshot.object.metadata.generation;
        state
            .memory
            .observe(generation, &snapshot.observed, snapshot.now);
        state.memory.clone()
    });
    let plan =
        fivespot_plan::plan(&snapshot.object, &snapshot.observed, &memory, snapshot.now);
    context.state(key, |state| state.removal = plan.removal);
    plan
}

/// Whether the plan creates a Machine.
fn creates_machine(plan: &Plan) -> bool {
    let mut steps = plan.actions.iter().map(|action| action.step);
    steps.any(|step| step == Step::CreateMachine)
}

/// The result of a reconcile in which nothing was left to do.
fn settled(context: &Arc<Context>, key: &Key, snapshot: &Snapshot, plan: &Plan) -> Flow {
    // Caches do not show objects without our label.
    let is_live = snapshot.observed.freshness == Freshness::Live;
    let is_watched = !is_live || watch_names(context, key, &snapshot.conflicts);
    let requeue_at = plan.requeue_at;
    if has_failed_reads(&snapshot.observed) {
        return Flow::End(ReconcileResult::Failed { requeue_at });
    }
    let unwatched = (!is_watched).then(|| after(snapshot.now, UNWATCHED));
    let requeue_at = requeue_at.into_iter().chain(unwatched).min();
    Flow::End(ReconcileResult::Succeeded { requeue_at })
}

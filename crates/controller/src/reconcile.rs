//! One reconcile: observe, plan, apply, report.

mod caches;

use std::sync::Arc;

use fivespot_clock::{Busy, after};
use fivespot_plan::{Failure, Freshness, Memory, Plan, Step};
use jiff::{SignedDuration, Timestamp};
use tracing::Instrument as _;

use crate::apply::{Applied, FailedStep, apply};
use crate::context::Context;
use crate::interrupt::superseded;
use crate::object_state::Reported;
use crate::observe::live_reads::LiveReads;
use crate::observe::name_conflict::watch_names;
use crate::observe::{
    Incomplete, Observation, Reading, Snapshot, confirm, is_troubled, observe,
};
use crate::orphan;
use crate::report::{self, StatusChange, StatusWrite, Unpublished};
use crate::schedule_override;
use caches::{await_effect, event_deadline, is_caught_up, note_look};
use fivespot_runtime::Key;
use fivespot_runtime::queue::ReconcileResult;

/// How often an object is looked at that no watch shows.
const UNWATCHED: SignedDuration = SignedDuration::from_secs(60);

/// How often one reconcile may look again because the world has moved or a step has failed.
const MAX_ATTEMPTS: usize = 8;

/// Runs the reconcile of `key`, which is to be [attended](fivespot_clock::Clock::attend), and puts the
/// key back into the queue.
pub(crate) async fn reconcile(context: Arc<Context>, key: Key, busy: Busy, id: u64) {
    drop(busy);
    let span = tracing::info_span!(
        "reconcile",
        namespace = key.namespace,
        scheduledmachine = key.name,
        reconcile_id = id
    );
    let result = async {
        if let Some(own) = schedule_override::of_queue_key(&key) {
            return schedule_override::reconcile(&context, &key, &own).await;
        }
        if !context.fence.begin(&key, &context.uid(&key)) {
            return warm_caches(&context, &key).await;
        }
        let begun = context.clock.now();
        let result = result(&context, &key).await;
        context.fence.end(&key);
        measure(&context, &key, result, begun);
        tracing::debug!(?result, "pass ended");
        result
    }
    .instrument(span)
    .await;
    context.queue.finish(&key, result);
}

/// A reconcile that was merely put off is none.
fn measure(context: &Context, key: &Key, result: ReconcileResult, begun: Timestamp) {
    let is_success = match result {
        ReconcileResult::Waiting { .. } | ReconcileResult::Deferred { .. } => return,
        ReconcileResult::Done { .. } => true,
        ReconcileResult::Failed { .. } | ReconcileResult::Stale { .. } => false,
    };
    let phase = context
        .phase(key)
        .map_or("Unknown", fivespot_api::Phase::as_str);
    let took = context.clock.now().duration_since(begun);
    context.metrics.passed(phase, is_success, took);
}

/// Another instance acts on the ScheduledMachine: looks at it, so that everything it depends on
/// is watched and remembered when it is this one's turn. Reads from caches and writes nothing.
async fn warm_caches(context: &Arc<Context>, key: &Key) -> ReconcileResult {
    match observe(context, key, Freshness::Cached, &LiveReads::default()).await {
        Observation::Snapshot(snapshot) => {
            planned(context, key, &snapshot);
        }
        Observation::Gone => context.forget(key),
        Observation::Incomplete(_)
        | Observation::Unreadable { .. }
        | Observation::Failed(_) => {}
    }
    ReconcileResult::Done { wake: None }
}

/// Runs the reconcile, and publishes what has happened in it; if it has created a machine, not before
/// others have created theirs.
async fn result(context: &Arc<Context>, key: &Key) -> ReconcileResult {
    let mut events = Vec::new();
    let result = attempts(context, key, &mut events).await;
    match result {
        ReconcileResult::Deferred { .. } => {
            context.state(key, |state| state.unpublished.append(&mut events));
        }
        ReconcileResult::Waiting { .. } => report::publish(context, key, &events).await,
        ReconcileResult::Done { .. }
        | ReconcileResult::Failed { .. }
        | ReconcileResult::Stale { .. } => {
            let mut earlier = context.created_events(key);
            earlier.append(&mut events);
            report::publish(context, key, &earlier).await;
        }
    }
    result
}

async fn attempts(
    context: &Arc<Context>,
    key: &Key,
    events: &mut Vec<Unpublished>,
) -> ReconcileResult {
    // Caches do not show what others have: a name that is taken is not tried again and again.
    let has_name_conflict = context.state(key, |state| state.has_name_conflict);
    let mut freshness = if has_name_conflict == Some(true) {
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
        // Whatever the caches lack, a live read shows.
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
        let snapshot = match prepare(context, key, observation).await {
            Prepared::Snapshot(snapshot) => snapshot,
            Prepared::End(result) => return result,
            Prepared::ReadLive => {
                freshness = Freshness::Live;
                continue;
            }
        };
        note_look(context, key, &snapshot);
        let mut attempt = Attempt {
            context,
            key,
            snapshot: &snapshot,
            reads: &reads,
            events,
        };
        match attempt.run().await {
            Next::End(result) => return result,
            Next::Continue => {}
            Next::ReadAgain => {
                reads.clear();
                freshness = Freshness::Live;
            }
        }
    }
    ReconcileResult::Stale { wake: None }
}

/// What a reconcile goes on with once its objects were looked up.
enum Prepared {
    /// They are known.
    Snapshot(Box<Snapshot>),
    /// There is nothing to plan.
    End(ReconcileResult),
    /// Caches do not hold them all.
    ReadLive,
}

async fn prepare(
    context: &Arc<Context>,
    key: &Key,
    observation: Observation,
) -> Prepared {
    match observation {
        Observation::Snapshot(snapshot) => Prepared::Snapshot(snapshot),
        Observation::Gone => {
            context.forget(key);
            orphan::warn(context, key).await;
            Prepared::End(ReconcileResult::Done { wake: None })
        }
        Observation::Unreadable { value, message } => {
            tracing::warn!(error = message, "ScheduledMachine could not be parsed");
            Prepared::End(report::unreadable(context, key, &value, &message).await)
        }
        Observation::Failed(error) => {
            context
                .outage
                .warn(format_args!("ScheduledMachine could not be read"), &error);
            context.metrics.failed("kube_api");
            Prepared::End(ReconcileResult::Failed { wake: None })
        }
        Observation::Incomplete(Incomplete::NotYet) => event_deadline(context, key)
            .map_or(Prepared::ReadLive, |until| {
                Prepared::End(ReconcileResult::Waiting { until })
            }),
        Observation::Incomplete(_) => Prepared::ReadLive,
    }
}

/// Looks; none where the machine is to leave for another reason by the time that a slow workload
/// cluster has answered.
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

/// Whoever may act on the ScheduledMachine looks at it; if that is this instance again, it is
/// woken.
const FENCED: Next = Next::End(ReconcileResult::Done { wake: None });

/// What follows from one look at the world.
enum Next {
    /// The end of the reconcile.
    End(ReconcileResult),
    /// Something was written, and the answers show what became of it.
    Continue,
    /// Everything is to be read again, live.
    ReadAgain,
}

/// One look at the world, and what is done about it.
struct Attempt<'a> {
    context: &'a Arc<Context>,
    key: &'a Key,
    snapshot: &'a Snapshot,
    reads: &'a LiveReads,
    /// What has happened, to be published.
    events: &'a mut Vec<Unpublished>,
}

impl Attempt<'_> {
    async fn run(&mut self) -> Next {
        let Self {
            context,
            key,
            snapshot,
            ..
        } = *self;
        let mut plan = planned_within_limit(context, key, snapshot);
        note_phase(context, key, snapshot, &plan);
        if plan.confirm {
            return match snapshot.observed.freshness {
                Freshness::Cached => Next::ReadAgain,
                Freshness::Live => Next::End(ReconcileResult::Failed { wake: plan.wake }),
            };
        }
        if !confirm(context, key, self.reads, &mut plan).await {
            context.has_not_started(key);
            return Next::ReadAgain;
        }
        let destroys = plan
            .actions
            .iter()
            .any(|action| action.step.is_destructive());
        if destroys && !self.reads.is_fresh() {
            return Next::ReadAgain;
        }
        if let Some(next) = self.write(&plan).await {
            return next;
        }
        if plan.actions.is_empty() && plan.status.is_none() {
            Next::End(rest(context, key, snapshot, &plan))
        } else if destroys {
            let until = await_effect(context, key, &plan);
            Next::End(ReconcileResult::Waiting { until })
        } else {
            Next::Continue
        }
    }

    /// Sends the actions and writes the status; what follows if that is not the rest of the attempt.
    async fn write(&mut self, plan: &Plan) -> Option<Next> {
        let Self {
            context,
            key,
            snapshot,
            reads,
            ..
        } = *self;
        let version = match apply(context, key, Reading { snapshot, reads }, plan).await {
            Applied::All { version } => version,
            Applied::Conflict => return Some(Next::ReadAgain),
            Applied::Fenced => return Some(FENCED),
            Applied::Failed(failed) => {
                note_failure(context, key, failed);
                return Some(Next::ReadAgain);
            }
        };
        if creates_machine(plan) {
            let until = await_effect(context, key, plan);
            context.state(key, |state| state.has_created = true);
            return Some(Next::End(ReconcileResult::Deferred { until }));
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
        self.events.extend(Unpublished::of(snapshot, events));
        None
    }

    /// Writes the status; what follows if that is not the rest of the attempt.
    async fn write_status(&self, plan: &Plan, change: StatusChange<'_>) -> Option<Next> {
        let Self {
            context,
            key,
            snapshot,
            reads,
            ..
        } = *self;
        match report::status(context, key, Reading { snapshot, reads }, change).await {
            StatusWrite::Written => {
                let now = snapshot.now;
                context.state(key, |state| state.memory.status_written(plan, now));
                None
            }
            // Writing it again would change nothing either. Whatever the actions have changed wakes.
            StatusWrite::Dropped => Some(Next::End(rest(context, key, snapshot, plan))),
            StatusWrite::Conflict => Some(Next::ReadAgain),
            StatusWrite::Fenced => Some(FENCED),
            StatusWrite::Failed(error) => {
                context
                    .outage
                    .warn(format_args!("status could not be written"), &error);
                let wake = plan.wake;
                Some(Next::End(ReconcileResult::Failed { wake }))
            }
        }
    }
}

/// The plan. Where others start first, that to wait for them.
fn planned_within_limit(context: &Context, key: &Key, snapshot: &Snapshot) -> Plan {
    let plan = planned(context, key, snapshot);
    let mut steps = plan.actions.iter().map(|action| action.step);
    let limit = context.options.max_starts_per_minute;
    let Some(limit) = limit.filter(|_| steps.any(|step| step == Step::CreateBootstrap))
    else {
        return plan;
    };
    match context.may_start(key, snapshot.object.spec.priority) {
        Ok(()) => plan,
        Err(span) => {
            context.state(key, |state| {
                state.memory.delay_start(span, snapshot.now, limit);
            });
            planned(context, key, snapshot)
        }
    }
}

fn note_phase(context: &Context, key: &Key, snapshot: &Snapshot, plan: &Plan) {
    let status = plan.status.as_ref().or(snapshot.object.status.as_ref());
    let reported = status.and_then(Reported::of);
    context.state(key, |state| state.reported = reported);
    // The next edge is a closing: low priorities leave first. Or an opening: high ones come.
    let priority = snapshot.object.spec.priority;
    let is_open = status.is_some_and(|status| status.in_schedule);
    let rank = if is_open {
        priority
    } else {
        u8::MAX - priority
    };
    context.queue.rank(key, rank);
    if !plan.confirm {
        context.metrics.evaluated(is_open);
    }
}

fn note_failure(context: &Context, key: &Key, failed: FailedStep) {
    let step = failed.step;
    context.state(key, |state| {
        let attempts = state.memory.attempts(step).saturating_add(1);
        let wait = context.backoff.wait(&(key, step), attempts);
        state.memory.failed(Failure {
            step,
            cause: failed.cause,
            message: failed.message,
            attempts,
            // The answer may have been long in coming.
            retry_at: after(context.queue.now(), wait),
        });
    });
}

fn planned(context: &Context, key: &Key, snapshot: &Snapshot) -> Plan {
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

/// When to look again after a round in which there was nothing to do.
fn rest(
    context: &Arc<Context>,
    key: &Key,
    snapshot: &Snapshot,
    plan: &Plan,
) -> ReconcileResult {
    // Caches do not show what others have.
    let is_live = snapshot.observed.freshness == Freshness::Live;
    let is_watched = !is_live || watch_names(context, key, &snapshot.conflicts);
    if is_troubled(&snapshot.observed) {
        return ReconcileResult::Failed { wake: plan.wake };
    }
    let unwatched = (!is_watched).then(|| after(snapshot.now, UNWATCHED));
    let wake = match (plan.wake, unwatched) {
        (Some(wake), Some(unwatched)) => Some(wake.min(unwatched)),
        (wake, unwatched) => wake.or(unwatched),
    };
    ReconcileResult::Done { wake }
}

//! One pass: gather, plan, apply, report.

use std::sync::Arc;

use fivespot_clock::{Busy, after};
use fivespot_plan::{Cause, Failure, Freshness, Memory, Plan, Step};
use jiff::{SignedDuration, Timestamp};
use tracing::Instrument as _;

use crate::apply::{Applied, apply};
use crate::gather::{Gathered, Short, View, confirm, gather, is_troubled};
use crate::interrupt::superseded;
use crate::memo::Memo;
use crate::orphan;
use crate::report::{self, Told, Unpublished};
use crate::shell::Shell;
use crate::taken::follow_names;
use fivespot_runtime::Key;
use fivespot_runtime::queue::{Outcome, PATIENCE};

/// How often an object is looked at that no watch shows.
const UNWATCHED: SignedDuration = SignedDuration::from_secs(60);

/// How often one pass may look again because the world has moved or a step has failed.
const ROUNDS: usize = 8;

/// Runs the pass of `key`, which is to be [attended](fivespot_clock::Clock::attend), and puts the
/// key back into the queue.
pub(crate) async fn pass(shell: Arc<Shell>, key: Key, busy: Busy, id: u64) {
    drop(busy);
    let span = tracing::info_span!(
        "reconcile",
        namespace = key.namespace,
        scheduledmachine = key.name,
        reconcile_id = id
    );
    let outcome = async {
        if !shell.fence.begin(&key, &shell.uid(&key)) {
            return keep_warm(&shell, &key).await;
        }
        let begun = shell.clock.now();
        let outcome = outcome(&shell, &key).await;
        shell.fence.end(&key);
        measure(&shell, &key, outcome, begun);
        tracing::debug!(?outcome, "pass ended");
        outcome
    }
    .instrument(span)
    .await;
    shell.work.finish(&key, outcome);
}

/// A pass that was merely put off is none.
fn measure(shell: &Shell, key: &Key, outcome: Outcome, begun: Timestamp) {
    let is_success = match outcome {
        Outcome::Waiting { .. } | Outcome::Deferred { .. } => return,
        Outcome::Done { .. } => true,
        Outcome::Failed { .. } | Outcome::Stale { .. } => false,
    };
    let phase = shell
        .phase(key)
        .map_or("Unknown", fivespot_api::Phase::as_str);
    let took = shell.clock.now().duration_since(begun);
    shell.metrics.passed(phase, is_success, took);
}

/// Another instance acts on the ScheduledMachine: looks at it, so that everything it depends on
/// is watched and remembered when it is this one's turn. Reads from caches and writes nothing.
async fn keep_warm(shell: &Arc<Shell>, key: &Key) -> Outcome {
    match gather(shell, key, Freshness::Cached, &Memo::default()).await {
        Gathered::View(view) => {
            planned(shell, key, &view);
        }
        Gathered::Gone => shell.forget(key),
        Gathered::Short(_) | Gathered::Unreadable { .. } | Gathered::Failed(_) => {}
    }
    Outcome::Done { wake: None }
}

/// Runs the pass, and publishes what has happened in it; if it has created a machine, not before
/// others have created theirs.
async fn outcome(shell: &Arc<Shell>, key: &Key) -> Outcome {
    let mut events = Vec::new();
    let outcome = rounds(shell, key, &mut events).await;
    match outcome {
        Outcome::Deferred { .. } => {
            shell.desk(key, |desk| desk.unpublished.append(&mut events));
        }
        Outcome::Waiting { .. } => report::publish(shell, key, &events).await,
        Outcome::Done { .. } | Outcome::Failed { .. } | Outcome::Stale { .. } => {
            let mut earlier = shell.created_events(key);
            earlier.append(&mut events);
            report::publish(shell, key, &earlier).await;
        }
    }
    outcome
}

async fn rounds(shell: &Arc<Shell>, key: &Key, events: &mut Vec<Unpublished>) -> Outcome {
    // Caches do not show what others have: a name that is taken is not tried again and again.
    let is_taken = shell.desk(key, |desk| desk.is_taken);
    let mut freshness = if is_taken == Some(true) {
        Freshness::Live
    } else {
        Freshness::Cached
    };
    if !is_caught_up(shell, key) {
        if let Some(until) = patience(shell, key) {
            return if shell.desk(key, |desk| desk.has_created) {
                Outcome::Deferred { until }
            } else {
                Outcome::Waiting { until }
            };
        }
        // Whatever the caches lack, a live read shows.
        shell.desk(key, |desk| desk.ledger.clear());
        freshness = Freshness::Live;
    }
    let memo = Memo::default();
    for _ in 0..ROUNDS {
        let Some(gathered) = looked(shell, key, freshness, &memo).await else {
            memo.clear();
            freshness = Freshness::Live;
            continue;
        };
        let view = match observed(shell, key, gathered).await {
            Observed::View(view) => view,
            Observed::End(outcome) => return outcome,
            Observed::ReadLive => {
                freshness = Freshness::Live;
                continue;
            }
        };
        note_look(shell, key, &view);
        let mut round = Round {
            shell,
            key,
            view: &view,
            memo: &memo,
            events,
        };
        match round.run().await {
            Next::End(outcome) => return outcome,
            Next::GoOn => {}
            Next::LookAgain => {
                memo.clear();
                freshness = Freshness::Live;
            }
        }
    }
    Outcome::Stale { wake: None }
}

/// What a reconcile goes on with once its objects were looked up.
enum Observed {
    /// They are known.
    View(Box<View>),
    /// There is nothing to plan.
    End(Outcome),
    /// Caches do not hold them all.
    ReadLive,
}

async fn observed(shell: &Arc<Shell>, key: &Key, gathered: Gathered) -> Observed {
    match gathered {
        Gathered::View(view) => Observed::View(view),
        Gathered::Gone => {
            shell.forget(key);
            orphan::warn(shell, key).await;
            Observed::End(Outcome::Done { wake: None })
        }
        Gathered::Unreadable { value, message } => {
            tracing::warn!(error = message, "ScheduledMachine could not be parsed");
            Observed::End(report::unreadable(shell, key, &value, &message).await)
        }
        Gathered::Failed(error) => {
            shell
                .outage
                .complain(format_args!("ScheduledMachine could not be read"), &error);
            shell.metrics.failed("kube_api");
            Observed::End(Outcome::Failed { wake: None })
        }
        Gathered::Short(Short::NotYet) => patience(shell, key)
            .map_or(Observed::ReadLive, |until| {
                Observed::End(Outcome::Waiting { until })
            }),
        Gathered::Short(_) => Observed::ReadLive,
    }
}

/// Notes that a look succeeded, and of a live one whether a name is taken.
fn note_look(shell: &Shell, key: &Key, view: &View) {
    shell.desk(key, |desk| {
        desk.waiting_since = None;
        if view.seen.freshness == Freshness::Live {
            desk.is_taken = Some(!view.taken.is_empty());
        }
    });
}

/// Looks; none where the machine is to leave for another reason by the time that a slow workload
/// cluster has answered.
async fn looked(
    shell: &Arc<Shell>,
    key: &Key,
    freshness: Freshness,
    memo: &Memo,
) -> Option<Gathered> {
    let gathered = gather(shell, key, freshness, memo);
    if freshness != Freshness::Live || shell.used_by(key).is_none() {
        return Some(gathered.await);
    }
    tokio::select! {
        biased;
        gathered = gathered => Some(gathered),
        () = superseded(shell, key) => None,
    }
}

/// Whoever may act on the ScheduledMachine looks at it; if that is this instance again, it is
/// woken.
const FENCED: Next = Next::End(Outcome::Done { wake: None });

/// What follows from one look at the world.
enum Next {
    /// The end of the pass.
    End(Outcome),
    /// Something was written, and the answers show what became of it.
    GoOn,
    /// Everything is to be read again, live.
    LookAgain,
}

/// One look at the world, and what is done about it.
struct Round<'a> {
    shell: &'a Arc<Shell>,
    key: &'a Key,
    view: &'a View,
    memo: &'a Memo,
    /// What has happened, to be published.
    events: &'a mut Vec<Unpublished>,
}

impl Round<'_> {
    async fn run(&mut self) -> Next {
        let Self {
            shell, key, view, ..
        } = *self;
        let mut plan = in_turn(shell, key, view);
        note_phase(shell, key, view, &plan);
        if plan.confirm {
            return match view.seen.freshness {
                Freshness::Cached => Next::LookAgain,
                Freshness::Live => Next::End(Outcome::Failed { wake: plan.wake }),
            };
        }
        if !confirm(shell, key, self.memo, &mut plan).await {
            shell.has_not_started(key);
            return Next::LookAgain;
        }
        let destroys = plan
            .actions
            .iter()
            .any(|action| action.step.is_destructive());
        if destroys && !self.memo.is_fresh() {
            return Next::LookAgain;
        }
        if let Some(next) = self.write(&plan).await {
            return next;
        }
        if plan.actions.is_empty() && plan.status.is_none() {
            Next::End(rest(shell, key, view, &plan))
        } else if destroys {
            let until = await_effect(shell, key, &plan);
            Next::End(Outcome::Waiting { until })
        } else {
            Next::GoOn
        }
    }

    /// Sends the actions and writes the status; what follows if that is not the rest of the round.
    async fn write(&mut self, plan: &Plan) -> Option<Next> {
        let Self {
            shell,
            key,
            view,
            memo,
            ..
        } = *self;
        let version = match apply(shell, key, (view, memo), plan).await {
            Applied::All { version } => version,
            Applied::Moved => return Some(Next::LookAgain),
            Applied::Fenced => return Some(FENCED),
            Applied::Failed {
                step,
                cause,
                message,
            } => {
                note_failure(shell, key, (step, cause, message));
                return Some(Next::LookAgain);
            }
        };
        if creates_machine(plan) {
            let until = await_effect(shell, key, plan);
            shell.desk(key, |desk| desk.has_created = true);
            return Some(Next::End(Outcome::Deferred { until }));
        }
        let version = version.or_else(|| view.object.metadata.resource_version.clone());
        if let Some(status) = &plan.status {
            let version = version.unwrap_or_default();
            match report::status(shell, key, (view, memo), (status, &version)).await {
                Told::Written => shell.desk(key, |desk| desk.memory.told(plan, view.now)),
                Told::Moved => return Some(Next::LookAgain),
                Told::Fenced => return Some(FENCED),
                Told::Failed(error) => {
                    shell
                        .outage
                        .complain(format_args!("status could not be written"), &error);
                    let wake = plan.wake;
                    return Some(Next::End(Outcome::Failed { wake }));
                }
            }
        }
        let events = plan.events.clone();
        self.events.extend(Unpublished::of(view, events));
        None
    }
}

/// The plan. Where others start first, that to wait for them.
fn in_turn(shell: &Shell, key: &Key, view: &View) -> Plan {
    let plan = planned(shell, key, view);
    let mut steps = plan.actions.iter().map(|action| action.step);
    let limit = shell.options.max_starts_per_minute;
    let Some(limit) = limit.filter(|_| steps.any(|step| step == Step::CreateBootstrap))
    else {
        return plan;
    };
    match shell.may_start(key, view.object.spec.priority) {
        Ok(()) => plan,
        Err(span) => {
            shell.desk(key, |desk| desk.memory.waits(span, view.now, limit));
            planned(shell, key, view)
        }
    }
}

fn note_phase(shell: &Shell, key: &Key, view: &View, plan: &Plan) {
    let status = plan.status.as_ref().or(view.object.status.as_ref());
    let phase = status.and_then(|status| status.phase);
    shell.desk(key, |desk| desk.phase = phase);
    // The next edge is a closing: low priorities leave first. Or an opening: high ones come.
    let priority = view.object.spec.priority;
    let is_open = status.is_some_and(|status| status.in_schedule);
    let rank = if is_open {
        priority
    } else {
        u8::MAX - priority
    };
    shell.work.rank(key, rank);
    if !plan.confirm {
        let is_active = status.is_some_and(|status| status.in_schedule);
        shell.metrics.evaluated(is_active);
    }
}

fn note_failure(shell: &Shell, key: &Key, (step, cause, message): (Step, Cause, String)) {
    shell.desk(key, |desk| {
        let attempts = desk.memory.attempts(step).saturating_add(1);
        let wait = shell.backoff.wait(&(key, step), attempts);
        desk.memory.failed(Failure {
            step,
            cause,
            message,
            attempts,
            // The answer may have been long in coming.
            retry_at: after(shell.work.now(), wait),
        });
    });
}

fn planned(shell: &Shell, key: &Key, view: &View) -> Plan {
    let memory: Memory = shell.desk(key, |desk| {
        let generation = view.object.metadata.generation;
        desk.memory.observe(generation, &view.seen, view.now);
        desk.memory.clone()
    });
    let plan = fivespot_plan::plan(&view.object, &view.seen, &memory, view.now);
    shell.desk(key, |desk| desk.removal = plan.removal);
    plan
}

/// Whether the plan creates a Machine.
fn creates_machine(plan: &Plan) -> bool {
    let mut steps = plan.actions.iter().map(|action| action.step);
    steps.any(|step| step == Step::CreateMachine)
}

/// What was made or taken away shows through the watches, and wakes the key. When to look if it
/// does not.
fn await_effect(shell: &Shell, key: &Key, plan: &Plan) -> Timestamp {
    let now = shell.work.now();
    shell.desk(key, |desk| desk.waiting_since = Some(now));
    let until = after(now, PATIENCE);
    plan.wake.map_or(until, |wake| wake.min(until))
}

/// When to look again after a round in which there was nothing to do.
fn rest(shell: &Arc<Shell>, key: &Key, view: &View, plan: &Plan) -> Outcome {
    // Caches do not show what others have.
    let is_live = view.seen.freshness == Freshness::Live;
    let is_watched = !is_live || follow_names(shell, key, &view.taken);
    if is_troubled(&view.seen) {
        return Outcome::Failed { wake: plan.wake };
    }
    let unwatched = (!is_watched).then(|| after(view.now, UNWATCHED));
    let wake = match (plan.wake, unwatched) {
        (Some(wake), Some(unwatched)) => Some(wake.min(unwatched)),
        (wake, unwatched) => wake.or(unwatched),
    };
    Outcome::Done { wake }
}

/// Whether the caches show everything that we have written.
fn is_caught_up(shell: &Shell, key: &Key) -> bool {
    let mut ledger = shell.desk(key, |desk| std::mem::take(&mut desk.ledger));
    let is_settled = ledger.is_settled(|cache, object, written| {
        shell
            .cache(cache)
            .is_none_or(|feed| feed.store.has_seen(object, written))
    });
    shell.desk(key, |desk| desk.ledger = ledger);
    is_settled
}

/// Until when a pass may be put off; none when it has been put off long enough.
fn patience(shell: &Shell, key: &Key) -> Option<Timestamp> {
    let now = shell.clock.now();
    let since = shell.desk(key, |desk| *desk.waiting_since.get_or_insert(now));
    Some(after(since, PATIENCE)).filter(|until| *until > now)
}

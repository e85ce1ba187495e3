//! One pass: gather, plan, apply, report.

use std::sync::Arc;

use fivespot_clock::{Busy, after};
use fivespot_plan::{Cause, Failure, Freshness, Memory, Plan, Step};
use jiff::{SignedDuration, Timestamp};
use tracing::Instrument as _;

use crate::apply::{Applied, apply};
use crate::gather::{Gathered, Short, View, gather, is_troubled};
use crate::interrupt::superseded;
use crate::memo::Memo;
use crate::orphan;
use crate::report::{self, Told};
use crate::shell::Shell;
use crate::taken::follow_names;
use fivespot_runtime::Key;
use fivespot_runtime::queue::{Outcome, PATIENCE};

/// How often an object is looked at that no watch shows.
const UNWATCHED: SignedDuration = SignedDuration::from_secs(60);

/// How long ago a live look may be for a machine to be made without another one: longer than an
/// edge takes at which thousands are made, of which the last one was looked at first.
const RECENT: SignedDuration = SignedDuration::from_mins(15);

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
        if !shell.tenure.begin(&key) {
            return keep_warm(&shell, &key).await;
        }
        let begun = shell.clock.now();
        let outcome = outcome(&shell, &key).await;
        shell.tenure.end(&key);
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
        Outcome::Waiting { .. } | Outcome::Made { .. } => return,
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

async fn outcome(shell: &Arc<Shell>, key: &Key) -> Outcome {
    let mut freshness = Freshness::Cached;
    if !is_caught_up(shell, key) {
        if let Some(until) = patience(shell, key) {
            return Outcome::Waiting { until };
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
        let view = match gathered {
            Gathered::View(view) => view,
            Gathered::Gone => {
                shell.forget(key);
                orphan::warn(shell, key).await;
                return Outcome::Done { wake: None };
            }
            Gathered::Unreadable { value, message } => {
                tracing::warn!(error = message, "ScheduledMachine makes no sense");
                return report::unreadable(shell, key, &value, &message).await;
            }
            Gathered::Failed(error) => {
                shell
                    .outage
                    .complain(format_args!("ScheduledMachine could not be read"), &error);
                shell.metrics.failed("kube_api");
                return Outcome::Failed { wake: None };
            }
            Gathered::Short(short) => {
                if matches!(short, Short::NotYet)
                    && let Some(until) = patience(shell, key)
                {
                    return Outcome::Waiting { until };
                }
                freshness = Freshness::Live;
                continue;
            }
        };
        note_look(shell, key, &view);
        match round(shell, key, &view, &memo).await {
            Round::Ended(outcome) => return outcome,
            Round::GoOn => {}
            Round::LookAgain => memo.clear(),
            Round::Begin => {
                shell.work.makes(key);
                freshness = Freshness::Intent;
                continue;
            }
        }
        freshness = Freshness::Live;
    }
    Outcome::Stale { wake: None }
}

/// Notes that a look succeeded, and of a live one whether nothing was there.
fn note_look(shell: &Shell, key: &Key, view: &View) {
    shell.desk(key, |desk| {
        desk.waiting_since = None;
        if view.seen.freshness == Freshness::Live {
            desk.found_empty = view.seen.is_empty_place().then_some(view.now);
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
const FENCED: Round = Round::Ended(Outcome::Done { wake: None });

/// How one look at the world ended.
enum Round {
    /// With the pass.
    Ended(Outcome),
    /// Something was written, and the answers show what became of it.
    GoOn,
    /// Everything is to be read again, live.
    LookAgain,
    /// What is wanted is to be read live.
    Begin,
}

async fn round(shell: &Arc<Shell>, key: &Key, view: &View, memo: &Memo) -> Round {
    let plan = in_turn(shell, key, view);
    note_phase(shell, key, view, &plan);
    let destroys = plan
        .actions
        .iter()
        .any(|action| action.step.is_destructive());
    if plan.confirm {
        return confirm(shell, key, view, &plan);
    }
    if destroys && !memo.is_fresh() {
        return Round::LookAgain;
    }
    let version = match apply(shell, key, (view, memo), &plan).await {
        Applied::All { version } => version,
        Applied::Moved => return Round::LookAgain,
        Applied::Fenced => return FENCED,
        Applied::Failed {
            step,
            cause,
            message,
        } => {
            note_failure(shell, key, (step, cause, message));
            return Round::LookAgain;
        }
    };
    if is_made(&plan) {
        return made(shell, key, &plan);
    }
    let version = version.or_else(|| view.object.metadata.resource_version.clone());
    if let Some(status) = &plan.status {
        let version = version.unwrap_or_default();
        match report::status(shell, key, (view, memo), (status, &version)).await {
            Told::Written => shell.desk(key, |desk| desk.memory.told(view.now)),
            Told::Moved => return Round::LookAgain,
            Told::Fenced => return FENCED,
            Told::Failed(error) => {
                shell
                    .outage
                    .complain(format_args!("status could not be written"), &error);
                return Round::Ended(Outcome::Failed { wake: plan.wake });
            }
        }
    }
    report::publish(shell, key, view, &plan.events).await;
    let is_idle = plan.actions.is_empty() && plan.status.is_none();
    if is_idle || view.seen.freshness != Freshness::Live {
        // What was told from caches brings the next pass through them.
        Round::Ended(rest(shell, key, view, &plan))
    } else if destroys {
        let until = await_effect(shell, key, &plan);
        Round::Ended(Outcome::Waiting { until })
    } else {
        Round::GoOn
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

/// How to look once more at what caches do not suffice for.
fn confirm(shell: &Shell, key: &Key, view: &View, plan: &Plan) -> Round {
    match view.seen.freshness {
        Freshness::Cached if plan.begins && is_still_empty(shell, key, view) => {
            Round::Begin
        }
        Freshness::Cached | Freshness::Intent => Round::LookAgain,
        Freshness::Live => Round::Ended(Outcome::Failed { wake: plan.wake }),
    }
}

/// Whether nothing was there when everything was looked at live a short while ago: caches show
/// neither the objects of others, of which one may have our name, nor what another operator has
/// made a moment ago.
fn is_still_empty(shell: &Shell, key: &Key, view: &View) -> bool {
    let found_empty = shell.desk(key, |desk| desk.found_empty);
    found_empty.is_some_and(|looked| after(looked, RECENT) >= view.now)
}

/// Ends the pass that made a machine: what became of it is told when others have been made that
/// are due.
fn made(shell: &Shell, key: &Key, plan: &Plan) -> Round {
    shell.desk(key, |desk| {
        desk.waiting_since = Some(shell.work.now());
        desk.found_empty = None;
    });
    Round::Ended(Outcome::Made { wake: plan.wake })
}

/// Whether the plan makes a machine.
fn is_made(plan: &Plan) -> bool {
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

//! The controller of ScheduledMachineSets: it creates, changes and deletes their ScheduledMachines.
//!
//! That something is to be done is seen in the caches; which machines are created and deleted is
//! decided from the set and its machines as they are just then read from the server.

mod observe;
pub(crate) mod sets;

use std::sync::Arc;

use fivespot_api::ScheduledMachineSet;
use fivespot_plan::set::{SetFailure, set_events, set_warning};
use fivespot_plan::{Cause, Event, SetAction, SetPlan, Side, Unanswered, plan_set};
use fivespot_runtime::Key;
use fivespot_runtime::http::PatchFormat::Merge;
use fivespot_runtime::http::{Address, Deletion};
use fivespot_runtime::lease::Fenced;
use fivespot_runtime::queue::ReconcileResult;
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;

use crate::context::Context;
use crate::failure;
use crate::kind::scheduled_machine;
use crate::observe::projection::CachedKind;
use crate::own_kind::DONE;
use crate::own_object::{OwnObject, OwnWrite};
use observe::Observed;

/// Reconciles the set `own`.
pub(crate) async fn result(context: &Arc<Context>, own: &Key) -> ReconcileResult {
    let informer = context.set_cache();
    let machines = context.scheduled_machines.health(&own.namespace);
    let caches = [informer.health(&own.namespace), machines];
    if let Some(end) = context.sets.kind.unsynced(caches) {
        return end;
    }
    let Some(found) = informer.store.get(own) else {
        context.sets.forget(own);
        return DONE;
    };
    let stored = found.value();
    let generation = stored["metadata"]["generation"].as_i64();
    if let Some(until) = context.sets.pause(own, generation) {
        return ReconcileResult::Succeeded {
            requeue_at: Some(until),
        };
    }
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
    let reconcile = Reconcile(OwnObject {
        context,
        informer: &informer,
        of_kind: &context.sets.kind,
        key: own,
        found: &found,
        stored: &stored,
    });
    let work = Box::pin(reconcile.run(set));
    reconcile.0.fenced(work).await
}

/// How the actions of a plan ended.
#[derive(Default)]
struct Sent<'p> {
    /// Those that have succeeded.
    done: Vec<&'p SetAction>,
    /// Why a machine could not be created or deleted.
    failure: Option<SetFailure>,
    /// Whether the machines are others than those that were read.
    is_outdated: bool,
}

/// A reconcile of a set, as its cache shows it.
struct Reconcile<'a>(OwnObject<'a>);

impl Reconcile<'_> {
    async fn run(&self, set: ScheduledMachineSet) -> ReconcileResult {
        let mut observed = self.cached(set).await;
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
        let generation = observed.set.metadata.generation;
        let Ok(mut sent) = self.send_all(&plan, generation).await else {
            return DONE;
        };
        let now = self.0.of_kind.queue.now();
        for event in set_events(&observed.facts(), &sent.done) {
            self.publish(&event, now).await;
        }
        let (sets, key) = (&self.0.context.sets, self.0.key);
        sets.rest(key, generation, plan.actions.is_empty());
        let is_stopped = sent.failure.is_some();
        let refusal = sets.unanswered(key, |it| it.refusal(now));
        let (refused, retry_at) = refusal.unzip();
        sent.failure = sent.failure.or(refused);
        let written = self.report(&observed, &plan, &sent, now).await;
        let is_failed = is_stopped || written == OwnWrite::Failed;
        let is_refused = sent.failure.as_ref().is_none_or(SetFailure::is_refusal);
        let repeats = if is_failed {
            plan.has_more_updates && is_refused
        } else {
            plan.repeats
        };
        let requeue_at = repeats.then_some(now).or(retry_at);
        if is_failed {
            ReconcileResult::Failed { requeue_at }
        } else if sent.is_outdated {
            ReconcileResult::Stale { requeue_at }
        } else {
            ReconcileResult::Succeeded { requeue_at }
        }
    }

    /// Sends the actions in order. One that fails ends it, except that a machine that refuses its
    /// change keeps no other one from being changed.
    async fn send_all<'p>(
        &self,
        plan: &'p SetPlan,
        generation: Option<i64>,
    ) -> Result<Sent<'p>, Fenced> {
        let mut sent = Sent::default();
        for action in &plan.actions {
            let updated = match action {
                SetAction::Update { uid, .. } => Some(uid),
                SetAction::Create { .. } | SetAction::Delete { .. } => None,
            };
            let response = self.send(action).await?;
            match (
                response.map_err(|error| self.failure(action, &error)),
                updated,
            ) {
                (Ok(_), _) => {
                    sent.done.push(action);
                    if let Some(uid) = updated {
                        let now = self.0.of_kind.queue.now();
                        self.unanswered(|it| it.accepted(uid, now));
                    }
                }
                (Err(None), Some(_)) => sent.is_outdated = true,
                (Err(None), None) => {
                    sent.is_outdated = true;
                    break;
                }
                (Err(Some(failure)), Some(uid)) => {
                    self.update_failed(uid, generation, failure.clone());
                    if !failure.is_refusal() {
                        sent.failure = Some(failure);
                        break;
                    }
                }
                (Err(Some(failure)), None) => {
                    sent.failure = Some(failure);
                    break;
                }
            }
        }
        Ok(sent)
    }

    fn unanswered(&self, with: impl FnOnce(&mut Unanswered)) {
        self.0.context.sets.unanswered(self.0.key, with);
    }

    fn update_failed(&self, uid: &str, generation: Option<i64>, failure: SetFailure) {
        let OwnObject { context, key, .. } = self.0;
        let now = self.0.of_kind.queue.now();
        let wait = |attempts| context.backoff.wait(&(key, uid), attempts);
        self.unanswered(|it| it.failed(uid, generation, failure, wait, now));
    }

    /// Logs why an action failed; `None` if the machine is another one than that which was read.
    fn failure(&self, action: &SetAction, error: &kube::Error) -> Option<SetFailure> {
        let is_create = matches!(action, SetAction::Create { .. });
        match failure::code(error) {
            Some(409) => return None,
            Some(404) if !is_create => return None,
            _ => {}
        }
        let message = failure::message_from(Side::Management, error);
        let (outage, key) = (&self.0.context.outage, self.0.key);
        outage.warn(
            format_args!("write of a machine of ScheduledMachineSet {key} failed"),
            &message,
        );
        let cause = failure::cause(error);
        Some(SetFailure { cause, message })
    }

    async fn send(&self, action: &SetAction) -> Result<kube::Result<Value>, Fenced> {
        let OwnObject { context, key, .. } = self.0;
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
                let sent = self.0.send(api.create(&at(""), object)).await?;
                if is_answered(&sent) {
                    sets.unanswered(key, |it| it.creations.remove(index));
                }
                Ok(sent)
            }
            SetAction::Update {
                index,
                patch,
                alone,
                ..
            } => {
                let name = named(index);
                let sent = self
                    .0
                    .send(api.patch(&at(&name), None, Merge, patch))
                    .await?;
                let is_refused = |of: &kube::Error| failure::cause(of) == Cause::Rejected;
                if sent.as_ref().is_err_and(is_refused)
                    && let Some(alone) = alone
                {
                    // What is refused of the rest is reported.
                    let _ = self
                        .0
                        .send(api.patch(&at(&name), None, Merge, alone))
                        .await?;
                }
                Ok(sent)
            }
            SetAction::Delete {
                index,
                uid,
                version,
            } => {
                let name = named(index);
                sets.unanswered(key, |it| it.deletions.insert(uid.clone()));
                let at = at(&name);
                let deletion = Deletion::of(uid).in_version(version);
                let sent = self.0.send(api.delete(&at, deletion)).await?;
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
        sent: &Sent<'_>,
        now: Timestamp,
    ) -> OwnWrite {
        let facts = observed.facts();
        let status = plan.status_after(&facts, &sent.done, sent.failure.as_ref(), now);
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
        let listener = &self.0.context.options.listener;
        listener.set(now, self.0.key, &event.note);
        self.0.publish(event, now).await;
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

//! Reconciles ScheduleOverrides: their status, and their deletion an hour after their end. Their
//! effect on machines is planned with each machine.

pub(crate) mod ended;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fivespot_api::schedule_override::ConsideredOverrides;
use fivespot_api::{ScheduleOverride, ScheduledMachine};
use fivespot_clock::after;
use fivespot_plan::{Matched, plan_override};
use fivespot_runtime::Key;
use fivespot_runtime::cache::Health;
use fivespot_runtime::http::Address;
use fivespot_runtime::queue::{EVENT_TIMEOUT, ReconcileResult};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure;
use crate::kind::schedule_override;
use crate::observe::projection::{CachedKind, overrides_term};
use crate::observe::watch::KindInformer;
use crate::report::{self, Unpublished};

/// The prefix of the keys of overrides in the queue; no object's name contains a slash.
const PREFIX: &str = "scheduleoverride/";

/// How often the machines that a selector matches are counted again. Sends no request.
const RECOUNT: SignedDuration = SignedDuration::from_mins(1);

/// The key of an override in the queue.
pub(crate) fn queue_key(own: &Key) -> Key {
    Key::new(own.namespace.clone(), format!("{PREFIX}{}", own.name))
}

/// The key of the override that a queue key represents. `None` for a ScheduledMachine.
pub(crate) fn of_queue_key(key: &Key) -> Option<Key> {
    let name = key.name.strip_prefix(PREFIX)?;
    Some(Key::new(key.namespace.clone(), name))
}

/// The cache of overrides.
pub(crate) fn informer(context: &Arc<Context>) -> Arc<KindInformer> {
    context.informer(&schedule_override(), CachedKind::Override)
}

/// The overrides of a namespace that are considered, oldest first.
pub(crate) fn considered(
    informer: &KindInformer,
    namespace: &str,
) -> ConsideredOverrides {
    let keys = informer.store.found_by(&overrides_term(namespace));
    let objects = keys.iter().filter_map(|key| informer.store.get(key));
    ConsideredOverrides::of(objects.filter_map(|object| object.read().ok()))
}

/// Reconciles the override `own`, whose key in the queue is `key`.
pub(crate) async fn reconcile(
    context: &Arc<Context>,
    key: &Key,
    own: &Key,
) -> ReconcileResult {
    let informer = informer(context);
    match informer.health(&own.namespace) {
        Health::Synced => {}
        Health::Loading => {
            informer.add_waiting(key);
            let until = after(context.queue.now(), EVENT_TIMEOUT);
            return ReconcileResult::Waiting { until };
        }
        Health::Failing(_) => return ReconcileResult::Succeeded { requeue_at: None },
    }
    let Some(found) = informer.store.get(own) else {
        return ReconcileResult::Succeeded { requeue_at: None };
    };
    let stored = found.value();
    let version = found.version.as_str().to_owned();
    let Ok(object) = found.read::<ScheduleOverride>() else {
        tracing::warn!("ScheduleOverride could not be parsed");
        return ReconcileResult::Succeeded { requeue_at: None };
    };
    if !context.fence.begin(key, &found.uid) {
        return ReconcileResult::Succeeded { requeue_at: None };
    }
    let reconcile = OverrideReconcile {
        own,
        object: &object,
        stored: &stored,
        version: &version,
    };
    let result = reconcile.run(context, key, &informer).await;
    context.fence.end(key);
    result
}

/// A reconcile of an override, as its cache shows it.
struct OverrideReconcile<'a> {
    own: &'a Key,
    object: &'a ScheduleOverride,
    stored: &'a Value,
    version: &'a str,
}

impl OverrideReconcile<'_> {
    async fn run(
        &self,
        context: &Arc<Context>,
        key: &Key,
        informer: &KindInformer,
    ) -> ReconcileResult {
        let now = context.queue.now();
        let matched = self.matched(context, informer);
        // An override that has ended stays ended.
        let end = context.ended_overrides.end_of(self.object, now);
        let plan = plan_override(self.object, &matched, end.unwrap_or(now).max(now));
        let resource = schedule_override();
        let at = Address {
            resource: &resource,
            namespace: Some(&self.own.namespace),
            name: &self.own.name,
            projection: Some(&CachedKind::Override),
        };
        let sent = if plan.is_deleted {
            let uid = self.object.metadata.uid.clone().unwrap_or_default();
            let deletion = context.api.delete_version(&at, &uid, self.version);
            context.fence.write(key, deletion).await
        } else if let Some(status) = plan.status.and_then(|of| self.status_patch(&of)) {
            let patch = context.api.patch(&at, Some("status"), &status);
            context.fence.write(key, patch).await
        } else {
            Ok(Ok(Value::Null))
        };
        let requeue_at = self.recount(plan.requeue_at, now);
        if let (Ok(Ok(_)), Some(event)) = (&sent, plan.event) {
            let uid = self.object.metadata.uid.clone().unwrap_or_default();
            let event = Unpublished::of_override(uid, now, event);
            report::publish(context, key, &[event]).await;
        }
        match sent {
            Err(_) | Ok(Ok(_)) => ReconcileResult::Succeeded { requeue_at },
            // The watch delivers the change.
            Ok(Err(error)) if matches!(failure::code(&error), Some(404 | 409)) => {
                ReconcileResult::Succeeded { requeue_at }
            }
            Ok(Err(error)) => {
                let message = failure::message(&error);
                context.outage.warn(
                    format_args!("ScheduleOverride {} failed", self.own),
                    &message,
                );
                ReconcileResult::Failed { requeue_at }
            }
        }
    }

    /// The patch that turns the stored status into this one. `None` if they are equal.
    fn status_patch(
        &self,
        status: &fivespot_api::ScheduleOverrideStatus,
    ) -> Option<Value> {
        let status = serde_json::to_value(status).ok()?;
        (self.stored["status"] != status).then(|| {
            json!({
                "metadata": {"resourceVersion": self.version},
                "status": status,
            })
        })
    }

    /// Requeues an override with a selector: the machines that it matches may change.
    fn recount(
        &self,
        requeue_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let is_over = self.object.end().is_none_or(|end| end <= now);
        let recount = (self.object.spec.selector.is_some() && !is_over)
            .then(|| after(now, RECOUNT));
        requeue_at.into_iter().chain(recount).min()
    }

    fn matched(&self, context: &Context, informer: &KindInformer) -> Matched {
        let machines = &context.scheduled_machines.store;
        let namespace = &self.own.namespace;
        let keys = match &self.object.spec.target_ref {
            Some(target) => vec![Key::new(namespace.clone(), target.name.clone())],
            None => machines.keys(),
        };
        let of_namespace = keys.iter().filter(|key| key.namespace == *namespace);
        let objects = of_namespace.filter_map(|key| machines.get(key));
        let objects = objects.filter_map(|of| of.read::<ScheduledMachine>().ok());
        let mut matched = Matched {
            is_beyond_limit: !self.is_considered(informer),
            ..Matched::default()
        };
        let mut ignoring = BTreeSet::new();
        for machine in objects.filter(|of| is_about(self.object, of)) {
            matched.machines += 1;
            let schedule = &machine.spec.schedule;
            if !schedule.enabled || schedule.schedule().is_err() {
                ignoring.extend(machine.metadata.name);
            }
        }
        matched.ignoring = ignoring.into_iter().collect();
        matched
    }

    fn is_considered(&self, informer: &KindInformer) -> bool {
        let all = considered(informer, &self.own.namespace);
        all.iter()
            .any(|of| of.metadata.uid == self.object.metadata.uid)
    }
}

/// Whether an override targets a ScheduledMachine of its namespace.
fn is_about(object: &ScheduleOverride, machine: &ScheduledMachine) -> bool {
    let name = machine.metadata.name.as_deref().unwrap_or_default();
    let labels = machine.metadata.labels.as_ref();
    object.is_about(name, labels.unwrap_or(&BTreeMap::new()))
}

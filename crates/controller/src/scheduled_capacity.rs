//! The controller of ScheduledCapacities: values of other objects that follow a schedule.

mod target;

use std::sync::Arc;

use fivespot_api::{ScheduledCapacity, ScheduledCapacityStatus, name};
use fivespot_plan::capacity::{capacity_event, capacity_write_failed, manager_of};
use fivespot_plan::{
    CapacityFacts, CapacityPlan, CapacityWrite, Fact, Freshness, Unknown, plan_capacity,
};
use fivespot_runtime::Key;
use fivespot_runtime::cache::{FieldMask, Health, Projection, Version};
use fivespot_runtime::http::PatchFormat;
use fivespot_runtime::lease::Fenced;
use fivespot_runtime::queue::ReconcileResult;
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;

use crate::context::Context;
use crate::failure;
use crate::listener::Transition;
use crate::observe::Incomplete;
use crate::observe::live_reads::LiveReads;
use crate::observe::management::Source;
use crate::observe::projection::{CachedKind, KindInformer, machine_node_term};
use crate::observe::schedule_inputs;
use crate::own_kind::DONE;
use crate::own_object::{OwnObject, OwnWrite};
use target::{Located, locate};

/// Reconciles the capacity `own`.
pub(crate) async fn result(context: &Arc<Context>, own: &Key) -> ReconcileResult {
    let informer = context.capacity_cache();
    let caches = [informer.health(&own.namespace)];
    if let Some(end) = context.capacities.unsynced(caches) {
        return end;
    }
    let Some(found) = informer.store.get(own) else {
        if context.scheduled_machines.store.get(own).is_none() {
            context.forget_unserved(own);
        }
        return DONE;
    };
    let stored = found.value();
    let object = match ScheduledCapacity::deserialize(&stored) {
        Ok(object) => object,
        Err(error) => {
            let error = error.to_string();
            tracing::warn!(error, "ScheduledCapacity could not be parsed");
            return DONE;
        }
    };
    if object.metadata.deletion_timestamp.is_some() {
        return DONE;
    }
    let reconcile = Reconcile(OwnObject {
        context,
        informer: &informer,
        of_kind: &context.capacities,
        key: own,
        found: &found,
        stored: &stored,
    });
    let work = Box::pin(reconcile.run(object));
    reconcile.0.fenced(work).await
}

/// Why the objects of a cache are unknown; `None` also if their kind is not served, so that there are
/// none.
fn unlisted(
    source: &Source<'_>,
    informer: &KindInformer,
) -> Result<Option<Unknown>, Incomplete> {
    let unknown = source.unlisted(informer, &source.key.namespace)?;
    // A path that is missing for a moment does not release the Nodes of machines.
    let has_none = informer.projection == CachedKind::Override || !informer.was_listed();
    Ok(unknown.filter(|why| !(has_none && matches!(why, Unknown::NotServed { .. }))))
}

/// Reads an object with its managed fields.
#[derive(Debug)]
struct WithManagers;

impl Projection for WithManagers {
    fn mask(&self) -> &'static FieldMask {
        &FieldMask::All
    }
}

/// A reconcile of a ScheduledCapacity, as its cache shows it.
struct Reconcile<'a>(OwnObject<'a>);

impl Reconcile<'_> {
    async fn run(&self, mut object: ScheduledCapacity) -> ReconcileResult {
        let (mut facts, located) = match self.observe(&mut object).await {
            Ok(observed) => observed,
            // The list that is awaited enqueues it.
            Err(Incomplete::NotYet | Incomplete::NotCached) => {
                return self.0.of_kind.waiting();
            }
        };
        let now = self.0.of_kind.queue.now();
        let plan = self.plan(&object, &mut facts, &located, now).await;
        let sent = match &plan.write {
            None => None,
            Some(write) => match self.send(&located, write).await {
                Err(Fenced) => return DONE,
                Ok(sent) => Some(sent),
            },
        };
        let response = match sent {
            Some(Err(error)) if failure::code(&error) == Some(409) => {
                // The watch delivers the change.
                return ReconcileResult::Stale { requeue_at: None };
            }
            Some(Err(error)) => return self.failed(&object, &error, now).await,
            Some(Ok(response)) => Some(response),
            None => None,
        };
        let status = plan.status_after(response.as_ref());
        let requeue_at = if plan.repeats {
            Some(now)
        } else {
            plan.requeue_at
        };
        match self.report(&object, &status, now).await {
            OwnWrite::None | OwnWrite::Done => ReconcileResult::Succeeded { requeue_at },
            OwnWrite::Outdated => ReconcileResult::Stale { requeue_at },
            OwnWrite::Failed => ReconcileResult::Failed { requeue_at },
        }
    }

    async fn observe(
        &self,
        object: &mut ScheduledCapacity,
    ) -> Result<(CapacityFacts, Located), Incomplete> {
        let (context, own) = (self.0.context, self.0.key);
        let reads = LiveReads::default();
        let source = Source {
            context,
            key: own,
            freshness: Freshness::Cached,
            reads: &reads,
        };
        let spec = &mut object.spec.schedule;
        let mut schedule = schedule_inputs::without_overrides(&source, spec).await?;
        let overrides = context.override_cache();
        schedule.unknown = unlisted(&source, &overrides)?.or(schedule.unknown);
        if overrides.health(&own.namespace) == Health::Synced {
            let own = context.overrides.of_capacity(own);
            schedule.overrides = context.overrides.in_schedule(&own);
        }
        let (mut governor, mut governor_unknown) = (None, None);
        if let Some(node) = &object.spec.node_name {
            let machines = context.machines_of_nodes();
            governor_unknown = unlisted(&source, &machines)?;
            let term = machine_node_term(&own.namespace, node);
            governor = machines.store.found_by(&term).into_iter().next();
        }
        let located = locate(&source, object).await?;
        let facts = CapacityFacts {
            schedule,
            target: located.fact.clone(),
            governor: governor.map(|key| key.name.clone()),
            governor_unknown,
            rival: None,
        };
        Ok((facts, located))
    }

    /// Plans, and reads from the server what the plan asks for.
    async fn plan(
        &self,
        object: &ScheduledCapacity,
        facts: &mut CapacityFacts,
        located: &Located,
        now: Timestamp,
    ) -> CapacityPlan {
        let mut plan = plan_capacity(object, facts, now);
        let creates = matches!(plan.write, Some(CapacityWrite::Apply(_)))
            && matches!(facts.target, Fact::Known(None));
        if creates {
            // Only an object that is certainly not there is created.
            let found = located.get(self.0.context, None).await;
            facts.target = match found {
                Ok(found) => Fact::Known(found),
                Err(error) => Fact::Unknown(failure::unknown(&error)),
            };
            plan = plan_capacity(object, facts, now);
        }
        if plan.asks_for_rival {
            let found = located.get(self.0.context, Some(&WithManagers)).await;
            let found = found.ok().flatten().unwrap_or_default();
            let fields = object.spec.all_fields().into_iter();
            let managers =
                fields.map(|it| manager_of(&found, &it.field, name::FIELD_MANAGER));
            let rival = managers.into_iter().find(|it| !it.is_empty());
            facts.rival = Some(rival.unwrap_or_default());
            plan = plan_capacity(object, facts, now);
        }
        plan
    }

    async fn send(
        &self,
        located: &Located,
        write: &CapacityWrite,
    ) -> Result<kube::Result<Value>, Fenced> {
        let Located {
            place: Some(place), ..
        } = located
        else {
            return Err(Fenced);
        };
        let at = place.address(None);
        let api = &self.0.context.api;
        let (format, patch) = match write {
            CapacityWrite::Scale(patch) => {
                let sent = api.patch(&at, Some("scale"), PatchFormat::Merge, patch);
                return self.0.send(sent).await;
            }
            CapacityWrite::JsonPatch(patch) => (PatchFormat::Json, patch),
            CapacityWrite::Apply(object) => {
                let force = matches!(located.fact, Fact::Known(Some(_)));
                (PatchFormat::Apply { force }, object)
            }
        };
        let sent = self.0.send(api.patch(&at, None, format, patch)).await?;
        // So that the event of the write does not enqueue it again.
        if let (Ok(written), Fact::Known(Some(known))) = (&sent, &located.fact) {
            let version = known["metadata"]["resourceVersion"].as_str();
            let version = Version::new(version.unwrap_or_default());
            place.cache(&version, written);
        }
        Ok(sent)
    }

    /// Reports that the server refused a write.
    async fn failed(
        &self,
        object: &ScheduledCapacity,
        error: &kube::Error,
        now: Timestamp,
    ) -> ReconcileResult {
        let message = failure::message(error);
        self.0.context.outage.warn(
            format_args!(
                "write of the target of ScheduledCapacity {} failed",
                self.0.key
            ),
            &message,
        );
        let reason = match failure::code(error) {
            Some(403) => "WriteForbidden",
            Some(400 | 413 | 415 | 422) => "WriteRejected",
            _ => "WriteFailed",
        };
        let status = capacity_write_failed(object, reason, &message, now);
        self.report(object, &status, now).await;
        ReconcileResult::Failed { requeue_at: None }
    }

    /// Writes the status if it differs, and publishes the event about it.
    async fn report(
        &self,
        object: &ScheduledCapacity,
        status: &ScheduledCapacityStatus,
        now: Timestamp,
    ) -> OwnWrite {
        let written = self.0.write_status(status).await;
        let before = object.status.clone().unwrap_or_default();
        if written == OwnWrite::Done
            && let Some(to) = status.phase.filter(|_| status.phase != before.phase)
        {
            let listener = &self.0.context.options.listener;
            listener.capacity(&Transition {
                at: now,
                key: self.0.key.clone(),
                from: before.phase,
                to,
                message: status.message.clone().unwrap_or_default(),
            });
        }
        let event = capacity_event(&before, status);
        if let Some(event) = event.filter(|_| written == OwnWrite::Done) {
            self.0.publish(&event, now).await;
        }
        written
    }
}

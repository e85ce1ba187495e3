//! The controller of ScheduleOverrides: their status, and their deletion an hour after their end.
//! Their effect on machines is planned with each machine.

pub(crate) mod ended;
mod index;
pub(crate) mod overrides;

use std::sync::Arc;

use fivespot_api::{ClassLimits, OverrideMode, ScheduleOverride};
use fivespot_plan::{LimitingClass, plan_override};
use fivespot_runtime::Key;
use fivespot_runtime::cache::Health;
use fivespot_runtime::queue::ReconcileResult;
use serde::Deserialize;

use crate::context::Context;
use crate::kind::scheduled_machine_class;
use crate::observe::projection::CachedKind;
use crate::own_kind::DONE;
use crate::own_object::{Change, OwnObject};

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

/// Reconciles the override `own`.
pub(crate) async fn result(context: &Arc<Context>, own: &Key) -> ReconcileResult {
    let informer = context.override_cache();
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
        let capacities = own.context.capacity_cache();
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

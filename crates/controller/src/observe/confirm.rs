//! Live reads before objects are created that were planned from caches.

use std::sync::Arc;

use fivespot_api::spec_hash::SpecHash;
use fivespot_api::{ScheduledMachine, merge, name};
use fivespot_plan::{Action, Call, Fact, Freshness, Plan, Specs, Step};
use fivespot_runtime::Key;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::class;
use super::hosts;
use super::management::Source;
use crate::context::Context;
use crate::observe::live_reads::LiveReads;
use crate::provider_specs;

/// Whether the precondition of `plan` holds, if it has one. The ScheduledMachine is read live for
/// it, unless a write of this reconcile has just returned it. Its provider specs, which caches do
/// not keep, are put into the objects that are created.
pub(crate) async fn confirm(
    context: &Arc<Context>,
    key: &Key,
    reads: &LiveReads,
    plan: &mut Plan,
) -> bool {
    let Some(precondition) = &plan.precondition else {
        return true;
    };
    let source = Source {
        context,
        key,
        freshness: Freshness::Live,
        reads,
    };
    let informer = context.scheduled_machines.clone();
    // The live observation that follows meets the same error.
    let Fact::Known(Some(stored)) = source.live(&informer, &key.name).await else {
        return false;
    };
    let Ok(object) = ScheduledMachine::deserialize(&stored) else {
        return false;
    };
    if !precondition.holds(&object) {
        return false;
    }
    if precondition.host().is_some() && !hosts::is_claimed(&source, &object).await {
        return false;
    }
    if object.spec.class_ref.is_some() {
        return confirm_class(&source, object, &mut plan.actions).await;
    }
    if provider_specs::of(&stored) == Specs::Included {
        fill(&mut plan.actions, &stored, None);
    }
    true
}

/// Whether the machine may still use its class, whose provider specs are put into the objects that
/// are created if they still have the hash of the plan. Larger ones are compared when they are sent.
async fn confirm_class(
    source: &Source<'_>,
    mut object: ScheduledMachine,
    actions: &mut [Action],
) -> bool {
    let mut specs = Specs::Included;
    let resolved = class::resolve(source, &mut object, &mut specs).await;
    let class = object.spec.class.as_ref();
    let class = class.filter(|class| class.problem.is_none());
    let (Ok(None), Some(class)) = (resolved, class) else {
        return false;
    };
    if specs != Specs::Included {
        return true;
    }
    let Fact::Known(Some(stored)) = class::stored(source, &class.name).await else {
        return false;
    };
    let host = object.status.as_ref().and_then(|of| of.host.as_deref());
    let patch = class.pool.as_ref().zip(host);
    let patch = patch.and_then(|(pool, host)| pool.patch(host));
    // A recorded host that the class does not have any more is given back first.
    if host.is_some() && patch.is_none() {
        return false;
    }
    let mut hash = SpecHash::of(&object.spec);
    if let Some(patch) = patch {
        hash = hash.on_host(patch);
    }
    let is_planned = |action: &Action| match &action.request.call {
        Call::Create(object) => {
            let annotations = &object["metadata"]["annotations"];
            annotations[name::SPEC_HASH_ANNOTATION] == hash.as_str()
        }
        _ => true,
    };
    let mut created = actions
        .iter()
        .filter(|action| provider_specs::field(action.step).is_some());
    if !created.all(is_planned) {
        return false;
    }
    fill(actions, &stored, patch);
    true
}

/// Copies the provider specs of a ScheduledMachine into the objects that are created from them, the
/// infrastructure spec with the patch of the host.
/// Specs that are too large to be kept are read when the object is sent.
fn fill(actions: &mut [Action], stored: &Value, host: Option<&Map<String, Value>>) {
    for action in actions {
        if let Some(field) = provider_specs::field(action.step)
            && let Call::Create(object) = &mut action.request.call
        {
            let mut spec = stored["spec"][field]["spec"].clone();
            if let (Some(patch), Value::Object(spec)) = (host, &mut spec)
                && action.step == Step::CreateInfrastructure
            {
                merge(spec, patch);
            }
            object["spec"] = spec;
        }
    }
}

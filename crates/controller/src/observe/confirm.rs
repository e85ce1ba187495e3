//! Live reads before objects are created that were planned from caches.

use std::sync::Arc;

use fivespot_api::ScheduledMachine;
use fivespot_plan::{Action, Call, Fact, Freshness, Plan, Specs};
use fivespot_runtime::Key;
use serde::Deserialize as _;
use serde_json::Value;

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
    // The specs of a class are filled in when the object is sent, if they still have the hash.
    if object.spec.class_ref.is_some() {
        return true;
    }
    if provider_specs::of(&stored) == Specs::Included {
        fill(&mut plan.actions, &stored);
    }
    true
}

/// Copies the provider specs of a ScheduledMachine into the objects that are created from them.
/// Specs that are too large to be kept are read when the object is sent.
fn fill(actions: &mut [Action], stored: &Value) {
    for action in actions {
        if let Some(field) = provider_specs::field(action.step)
            && let Call::Create(object) = &mut action.request.call
        {
            object["spec"] = stored["spec"][field]["spec"].clone();
        }
    }
}

//! POST to a pod's `eviction` and `binding`.

use std::sync::Arc;

use fivespot_admission::policy::Operation;
use serde_json::{Value, json};

use super::delete::{self, delete_object};
use super::read;
use crate::answer::Answer;
use crate::budget;
use crate::call::Call;
use crate::intake;
use crate::meta;
use crate::route::Target;
use crate::state::State;
use crate::status::Status;
use crate::store::Key;

/// Deletes a pod if its disruption budget allows it.
pub(super) fn evict(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<Answer, Status> {
    let body = intake::object(call, "Eviction")?.value;
    let said = meta::name(&body);
    if !said.is_empty() && said != target.name {
        return Err(Status::bad_request(format!(
            "name in URL does not match name in Eviction object: {} != {said}",
            target.name
        )));
    }
    let mut options = delete::parse_options(&body["deleteOptions"])?;
    options.dry_run |= call.query.dry_run;
    let pod = read::existing(state, target)?;
    let rehearsal = options.dry_run;
    let asked = (call, target, Operation::Create);
    state.chain.validate(state, &asked, Some(&body), None)?;
    if !budget::may_ignore(&pod) {
        budget::spend(state, &pod, rehearsal)?;
    }
    if !rehearsal {
        mark(state, &pod);
    }
    let key = Key::new(&target.namespace, &target.name);
    delete_object(state, (state.shelves.pods, &key), &options)?;
    Ok(Answer::success(201, Value::Null))
}

/// Says in the pod's status why it goes.
fn mark(state: &mut State, pod: &Arc<Value>) {
    let mut pod = Value::clone(pod);
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": state.now(),
    });
    let status = meta::field(meta::fields(&mut pod), "status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(all) = conditions.as_array_mut() {
        all.retain(|it| it["type"] != "DisruptionTarget");
        all.push(condition);
    }
    let pods = state.shelves.pods;
    state.put(pods, pod);
}

/// Binds a pod to a node, once.
pub(super) fn bind(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<Answer, Status> {
    let body = intake::object(call, "Binding")?.value;
    let node = body["target"]["name"].as_str().unwrap_or_default();
    let pod = read::existing(state, target)?;
    let bound = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if node.is_empty() {
        return Err(Status::bad_request("target.name: Required value"));
    }
    if !bound.is_empty() {
        let why = format!("pod {} is already assigned to node {bound:?}", target.name);
        return Err(Status::conflict(&target.resource, &target.name, &why));
    }
    if !call.query.dry_run {
        let mut pod = Value::clone(&pod);
        let spec = meta::field(meta::fields(&mut pod), "spec");
        spec.insert("nodeName".to_owned(), node.into());
        let pods = state.shelves.pods;
        state.put(pods, pod);
    }
    Ok(Answer::success(201, Value::Null))
}

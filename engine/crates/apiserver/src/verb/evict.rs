//! POST to the `eviction` and `binding` subresources of a pod, and of a Binding.

mod budget;

use kubemu_admission::FieldError;
use kubemu_admission::policy::Operation;
use serde_json::{Value, json};

use super::delete::{self, delete_object};
use super::{place, read};
use crate::api_response::ApiResponse;
use crate::call::Call;
use crate::decode;
use crate::index::Location;
use crate::meta;
use crate::options::delete::parse_options;
use crate::plugin::Attributes;
use crate::resource::Resource;
use crate::route::Target;
use crate::state::State;
use crate::status::{Reason, Status};
use crate::store::Key;

/// Deletes a pod if its disruption budget allows it.
pub(super) fn evict(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let mut body = decode::object(call, "Eviction")?.value;
    let attributes = Attributes::new(call, target, Operation::Create);
    let chain = state.chain.clone();
    let mut notes = chain.admit(state, &attributes, Some(&mut body))?;
    check_name(target, &body, "Eviction")?;
    let mut options = parse_options(&body["deleteOptions"])?;
    options.dry_run |= call.query.dry_run;
    let rehearsal = options.dry_run;
    notes.extend(chain.validate(state, &attributes, Some(&body))?);
    state.check_complete()?;
    let pod = read::existing(state, target)?;
    if !budget::may_ignore(&pod) {
        budget::check_and_decrement(state, &pod, rehearsal)?;
    }
    delete::check_preconditions(&target.resource, &pod, &options)?;
    if !rehearsal {
        let condition = json!({"type": "DisruptionTarget", "status": "True",
            "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"});
        let mut marked = Value::clone(&pod);
        set_condition(state, &mut marked, condition);
        let pods = state.buckets.pods;
        let marked = state.put(pods, marked);
        if options.version.is_some() {
            options.version = Some(meta::version(&marked).to_owned());
        }
    }
    let key = Key::new(&target.namespace, &target.name);
    let location = Location::new(state.buckets.pods, key);
    delete_object(state, &location, &options)?;
    Ok(ApiResponse::success(201, Value::Null).admitted(notes))
}

/// Checks that the name in the posted object is that of the pod in the path.
fn check_name(target: &Target, body: &Value, kind: &str) -> Result<(), Status> {
    if meta::name(body) == target.name {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "name in URL does not match name in {kind} object"
    )))
}

/// Sets a condition of a pod's status with the current time; replaces the one of the same
/// type.
fn set_condition(state: &State, pod: &mut Value, mut condition: Value) {
    condition["lastProbeTime"] = Value::Null;
    condition["lastTransitionTime"] = state.now().into();
    let status = meta::field(meta::fields(pod), "status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(all) = conditions.as_array_mut() {
        all.retain(|it| it["type"] != condition["type"]);
        all.push(condition);
    }
}

/// Binds the pod of the path to a node; a pod can be bound only once.
pub(super) fn bind(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let body = decode::object(call, "Binding")?.value;
    assign(state, call, (target, target), body)
}

/// Binds the pod that a posted Binding names.
pub(super) fn bind_posted(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let resource = &target.resource;
    let (mut object, warnings) = decode::sent(&state.definitions, call, resource)?;
    place::set_namespace(target, &mut object)?;
    if meta::name(&object).is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    let posted = Target {
        name: meta::name(&object).to_owned(),
        ..target.clone()
    };
    let pods = state.registry.find("", "v1", "pods").cloned();
    let pod = Target {
        resource: pods.ok_or_else(Status::no_such_resource)?,
        ..posted.clone()
    };
    let mut response = assign(state, call, (&posted, &pod), object)?;
    response.warnings.splice(..0, warnings);
    Ok(response)
}

/// Assigns a pod to the node that a binding names, which was sent to the path of `posted`.
fn assign(
    state: &mut State,
    call: &Call,
    (posted, target): (&Target, &Target),
    mut body: Value,
) -> Result<ApiResponse, Status> {
    let attributes = Attributes::new(call, posted, Operation::Create);
    let chain = state.chain.clone();
    let mut notes = chain.admit(state, &attributes, Some(&mut body))?;
    check_name(target, &body, "Binding")?;
    let node = check_bound_to(&body["target"])?;
    notes.extend(chain.validate(state, &attributes, Some(&body))?);
    state.check_complete()?;
    let pod = read::existing(state, target)?;
    check_unbound(target, &pod)?;
    if !call.query.dry_run {
        let mut pod = Value::clone(&pod);
        let spec = meta::field(meta::fields(&mut pod), "spec");
        spec.insert("nodeName".to_owned(), node.into());
        for field in ["annotations", "labels"] {
            let actual = body["metadata"][field].as_object();
            for (key, value) in actual.into_iter().flatten() {
                let own = meta::field(meta::edit(&mut pod), field);
                own.insert(key.clone(), value.clone());
            }
        }
        let condition = json!({"type": "PodScheduled", "status": "True"});
        set_condition(state, &mut pod, condition);
        let pods = state.buckets.pods;
        state.put(pods, pod);
    }
    Ok(ApiResponse::success(201, Value::Null).admitted(notes))
}

/// The name of the node that a binding names.
///
/// # Errors
/// 500 for anything else, as from Kubernetes, which returns these errors as they are.
fn check_bound_to(target: &Value) -> Result<&str, Status> {
    let text = |name: &str| target[name].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let mut errors = Vec::new();
    if !matches!(kind, "" | "Node") {
        let known = ["Node", "<empty>"];
        errors.push(FieldError::not_supported("target.kind", kind.into(), known));
    }
    if name.is_empty() {
        errors.push(FieldError::required("target.name", ""));
    }
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let message = match texts.as_slice() {
        [] => return Ok(name),
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    Err(Status::new(500, Reason::Unknown, message))
}

/// 409 for a pod that is being deleted, has a node or must not be scheduled yet.
fn check_unbound(target: &Target, pod: &Value) -> Result<(), Status> {
    let name = &target.name;
    let bound = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    let obstacle = if meta::is_deleting(pod) {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !bound.is_empty() {
        format!("pod {name} is already assigned to node {bound:?}")
    } else if pod["spec"]["schedulingGates"]
        .as_array()
        .is_some_and(|it| !it.is_empty())
    {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    let mut binding = Resource::clone(&target.resource);
    binding.plural.push_str("/binding");
    Err(Status::conflict(&binding, name, &obstacle))
}

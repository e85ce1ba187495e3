//! POST of a new object.

use std::sync::Arc;

use http::Method;
use serde_json::Value;

use super::place::set_namespace;
use super::precondition::version_number;
use super::review;
use super::write::Draft;
use crate::api_response::ApiResponse;
use crate::apply::{self, Writer};
use crate::authorization::Action;
use crate::call::Call;
use crate::decode;
use crate::definition;
use crate::meta;
use crate::resource::Resource;
use crate::review::is_review;
use crate::route::Target;
use crate::state::State;
use crate::status::{Reason, Status};
use crate::store::Key;

pub(super) fn create(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let resource = &target.resource;
    if is_review(resource) {
        return review::reply(state, call, target);
    }
    let bucket = state.bucket(resource);
    if definition::terminating(state, bucket).is_some() {
        let message =
            "create not allowed while custom resource definition is terminating";
        return Err(Status::new(405, Reason::MethodNotAllowed, message));
    }
    let (mut object, warnings) = decode::sent(&state.definitions, call, resource)?;
    set_namespace(target, &mut object)?;
    let mut draft = Draft::new(object, None);
    draft.warnings = warnings;
    finish(state, call, target, draft)
}

/// The common part of a create by POST and by apply.
pub(super) fn finish(
    state: &mut State,
    call: &Call,
    target: &Target,
    mut draft: Draft,
) -> Result<ApiResponse, Status> {
    let resource = &target.resource;
    let version = meta::version(&draft.object).to_owned();
    if call.method == Method::POST {
        meta::clear_system_fields(&mut draft.object);
    }
    meta::clear(&mut draft.object, "resourceVersion");
    let mut target = target.clone();
    meta::name(&draft.object).clone_into(&mut target.name);
    if let Some(kind) = &resource.builtin {
        kind.default(&mut draft.object);
        kind.default_times(&mut draft.object, &state.now());
    }
    meta::drop_empty(&mut draft.object);
    if !draft.managed {
        let manager = call.manager();
        let writer = Writer {
            manager: &manager,
            subresource: "",
            now: state.instant(),
        };
        apply::tracked(resource, None, &mut draft.object, &writer);
    }
    draft.mutate(state, call, &target)?;
    if call.method != Method::POST {
        version_number(&version)?;
    }
    // Mutating plugins see neither a generated name nor the fields that the server sets in a
    // new object.
    if let Some(name) = generated_name(state, &draft.object) {
        meta::set(&mut draft.object, "name", name);
    }
    prepare(state, resource, &mut draft.object);
    if let Some(kind) = &resource.builtin {
        let found = kind.preparation_warnings(&draft.object);
        draft.warnings.extend(found);
    }
    set_initial_fields(&target, call, &mut draft.object);
    // A kind may generate the name.
    meta::name(&draft.object).clone_into(&mut target.name);
    draft.check_escalation(state, call, &target)?;
    draft.validate(state, call, &target)?;
    draft.admit(state, call, &target)?;
    check_unversioned(call, &version)?;
    let key = Key::new(&target.namespace, &target.name);
    let bucket = state.bucket(resource);
    if let Some(found) = state.get(bucket, &key) {
        let mut refused = Status::already_exists(resource, &target.name);
        if meta::is_deleting(found) {
            refused.message = format!("object is being deleted: {refused}");
        }
        return Err(refused);
    }
    target.resource = Arc::clone(resource);
    // The store would replace the version; what was not stored has that of the request.
    if call.query.dry_run && call.method == Method::POST && !version.is_empty() {
        meta::set(&mut draft.object, "resourceVersion", version);
    }
    draft.commit(state, call, &target)
}

/// The store rejects an object to create that has a resourceVersion; a dry run does not reach
/// this check. A value that is not a number is ignored, as in Kubernetes.
///
/// # Errors
/// 500 for a new object with a resourceVersion.
fn check_unversioned(call: &Call, version: &str) -> Result<(), Status> {
    let is_versioned = version.parse::<u64>().is_ok_and(|it| it != 0);
    if !is_versioned || call.method != Method::POST || call.query.dry_run {
        return Ok(());
    }
    let message = "resourceVersion should not be set on objects to be created";
    Err(Status::new(500, Reason::Unknown, message))
}

/// A generated name for an object with a `generateName` and no name.
fn generated_name(state: &mut State, object: &Value) -> Option<String> {
    let base = meta::text(object, "generateName");
    if base.is_empty() || !meta::name(object).is_empty() {
        return None;
    }
    // Kubernetes limits generated names to 63 characters.
    let base: String = base.chars().take(58).collect();
    Some(format!("{base}{}", state.random.suffix()))
}

fn prepare(state: &mut State, resource: &Resource, object: &mut Value) {
    meta::set(object, "uid", state.random.uid());
    meta::set(object, "creationTimestamp", state.now());
    // If the resource does not count generations, the client's value is kept, as in
    // Kubernetes.
    if resource.generation || resource.custom {
        meta::set(object, "generation", 1);
    }
}

/// Sets the initial fields of a new object, independent of the values sent by the client.
fn set_initial_fields(target: &Target, call: &Call, object: &mut Value) {
    let resource = &target.resource;
    match &resource.builtin {
        Some(kind) => {
            kind.prepare_create(object);
            if target.subresource.is_empty() {
                kind.complete(object);
            }
            kind.record_requester(object, &call.user);
        }
        None if resource.custom && resource.has_status() => {
            meta::fields(object).shift_remove("status");
        }
        None => {}
    }
}

/// Authorizes the creation of a missing object, which requires the verb `create`.
pub(super) fn may_create(state: &State, call: &Call) -> Result<(), Status> {
    let create = Action {
        verb: "create".to_owned(),
        ..Action::of(call)
    };
    state.rights().authorize(&call.user, &create)
}

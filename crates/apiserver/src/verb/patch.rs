//! PATCH in its four forms.

use serde_json::Value;

use super::write::Draft;
use super::{create, update};
use crate::answer::Answer;
use crate::apply::{self, Configuration, OnConflict, Writer};
use crate::authorization::{self, Action};
use crate::call::Call;
use crate::decode::{self, DecodeError};
use crate::meta;
use crate::patch::{self, Kind};
use crate::route::Target;
use crate::state::State;
use crate::status::{Details, Reason, Status};
use crate::store::{Key, Object};

pub(super) fn patch(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<Answer, Status> {
    let resource = &target.resource;
    let Some(kind) = kind(call, target)? else {
        return server_side_apply(state, call, target);
    };
    let body = decode::value(call);
    let body = body.map_err(|it| patch::undecodable(kind, &it.why))?;
    let old = current(state, target)?;
    let old = old.ok_or_else(|| Status::not_found(resource, &target.name))?;
    let mut object = patch::patched(kind, resource, &old, &body.value)?;
    let refuse = |why: &str| patch::refused(kind, resource, (&old, &body.value), why);
    if resource.custom {
        decode::check_version(state, resource, &object)?;
    } else if let Some(why) = patch::type_error(kind, resource, &mut object) {
        return Err(refuse(&why));
    }
    check_name(target, &object)?;
    let mut repeated = body.repeated;
    if kind == Kind::Json {
        let prefixed = |it: &mut String| *it = format!("json patch {it}");
        repeated.iter_mut().for_each(prefixed);
    }
    let found = decode::prune_and_default(state, resource, &mut object, repeated);
    let validation = call.query.field_validation;
    let warnings = decode::judge(validation, found, |why| refuse(&why))?;
    let mut draft = Draft::new(object, Some(old));
    draft.warnings = warnings;
    update::finish(state, call, target, draft)
}

/// The form of a patch; `None` for a server-side apply.
///
/// # Errors
/// 415 for a form that the resource does not take.
pub(super) fn kind(call: &Call, target: &Target) -> Result<Option<Kind>, Status> {
    let media = call.media_type();
    let accepted = patch::media_types(&target.resource);
    if !accepted.contains(&media.as_str()) {
        return Err(if target.resource.custom {
            Status::unsupported_media_type(accepted)
        } else {
            // The paths of built-in kinds are closed to other forms before they are read.
            Status::new(
                415,
                Reason::UnsupportedMediaType,
                "415: Unsupported Media Type",
            )
            .with_details(Details::default())
        });
    }
    Ok(match media.as_str() {
        "application/json-patch+json" => Some(Kind::Json),
        "application/merge-patch+json" => Some(Kind::Merge),
        "application/strategic-merge-patch+json" => Some(Kind::Strategic),
        _ => None,
    })
}

fn server_side_apply(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<Answer, Status> {
    let resource = &target.resource;
    let body = decode::value(call).map_err(DecodeError::bare)?;
    let sent = body.value;
    if !sent.is_object() {
        return Err(decode::not_an_object(&sent));
    }
    // Otherwise the configuration is taken as it is: what it leaves out is not applied.
    check_place(target, &sent)?;
    let old = current(state, target)?;
    let subresource = target.subresource.as_str();
    let manager = call.manager();
    let writer = Writer {
        manager: &manager,
        subresource,
        now: state.instant(),
    };
    let config = Configuration {
        object: &sent,
        on_conflict: OnConflict::of(call.query.force),
    };
    let mut object = apply::applied(resource, old.as_deref(), &config, &writer)?;
    fill_place(target, &mut object);
    // What the schema does not know is refused by then; repeated fields are left to say.
    let found = unknown_in_apply(state, target, &sent, body.repeated);
    let validation = call.query.field_validation;
    let refuse = |why: String| decode::unhandled(resource, &why);
    let warnings = decode::judge(validation, found, refuse)?;
    if !resource.custom {
        let read = decode::decode(resource, &mut object);
        read.map_err(|why| decode::unhandled(resource, &why))?;
    }
    decode::prune_and_default(state, resource, &mut object, Vec::new());
    let mut draft = Draft::new(object, old);
    draft.warnings = warnings;
    draft.managed = true;
    if draft.old.is_some() {
        update::finish(state, call, target, draft)
    } else if !subresource.is_empty() {
        Err(Status::not_found(resource, &target.name))
    } else if !meta::uid(&sent).is_empty() {
        let uid = meta::uid(&sent);
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object \
             was found"
        );
        Err(Status::conflict(resource, &target.name, &why))
    } else {
        may_create(state, call)?;
        create::finish(state, call, target, draft)
    }
}

/// A write to what is not there is a creation, which is a right of its own.
pub(super) fn may_create(state: &State, call: &Call) -> Result<(), Status> {
    let create = Action {
        verb: "create".to_owned(),
        ..Action::of(call)
    };
    authorization::demand(state, &call.user, &create)
}

/// Says what an applied configuration has that its kind does not know. The copy is thrown
/// away: defaults must not become part of what the manager applied.
fn unknown_in_apply(
    state: &State,
    target: &Target,
    sent: &Value,
    repeated: Vec<String>,
) -> Vec<String> {
    let mut copy = sent.clone();
    decode::prune_and_default(state, &target.resource, &mut copy, repeated)
}

fn current(state: &mut State, target: &Target) -> Result<Option<Object>, Status> {
    let bucket = state.bucket(&target.resource);
    let key = Key::new(&target.namespace, &target.name);
    let found = state.get(bucket, &key);
    found
        .map(|it| state.shown(&target.resource, it))
        .transpose()
}

/// An applied configuration may leave name and namespace to the path.
fn check_place(target: &Target, object: &Value) -> Result<(), Status> {
    let mut copy = object.clone();
    fill_place(target, &mut copy);
    check_name(target, &copy)
}

fn fill_place(target: &Target, object: &mut Value) {
    if meta::name(object).is_empty() {
        meta::set(object, "name", target.name.as_str());
    }
    if target.resource.namespaced && meta::namespace(object).is_empty() {
        meta::set(object, "namespace", target.namespace.as_str());
    }
}

fn check_name(target: &Target, object: &Value) -> Result<(), Status> {
    let (name, namespace) = (meta::name(object), meta::namespace(object));
    if name != target.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    if target.resource.namespaced && namespace != target.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the \
             request",
        ));
    }
    Ok(())
}

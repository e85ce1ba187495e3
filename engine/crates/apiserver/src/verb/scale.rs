//! The `scale` subresource: an object's replica count as an `autoscaling/v1` Scale.

pub(super) mod form;

use std::sync::{Arc, LazyLock};

use kubemu_admission::FieldError;
use kubemu_admission::object_meta::{self, NameRule, Scope};
use serde_json::Value;

use super::write::Draft;
use super::{patch, place, precondition, read, update};
use crate::api_response::{ApiResponse, Content};
use crate::apply::{self, Configuration, OnConflict, Writer};
use crate::call::Call;
use crate::decode::{self, DecodeError, Repeated};
use crate::kind::FinalizerRule;
use crate::meta;
use crate::openapi::definitions;
use crate::openapi::schema::Schema;
use crate::patch::{
    Kind, patched, refused, restored_type_error, truncate_numbers, type_error,
    undecodable,
};
use crate::resource::{Resource, Scale, Verb};
use crate::route::Target;
use crate::state::State;
use crate::status::{Status, invalid};
use form::{paths, scale};

/// Returns, replaces or patches the Scale of an object.
pub(super) fn perform(
    state: &mut State,
    call: &Call,
    target: &Target,
    verb: Verb,
) -> Result<ApiResponse, Status> {
    let paths = paths(&target.resource).ok_or_else(Status::no_such_resource)?;
    if verb == Verb::Get {
        read::check_version(state, call, target)?;
    }
    let mut warnings = Vec::new();
    let sent = match verb {
        Verb::Update => Some(sent(state, call, target, &mut warnings)?),
        _ => None,
    };
    let form = match verb {
        Verb::Patch => patch::kind(call, target)?,
        _ => None,
    };
    let old = read::existing(state, target)?;
    let old = state.in_version_of(&target.resource, &old)?;
    let mut current = scale(&old, paths);
    if verb == Verb::Get {
        return Ok(ApiResponse::new(200, Content::Plain(current)));
    }
    let path = &paths.spec_replicas_path;
    apply::scale::read_managers(&SCALE, &mut current, (&old, path));
    let manager = call.manager();
    let writer = Writer {
        manager: &manager,
        subresource: "scale",
        now: state.instant(),
    };
    let mut requested = match (sent, form) {
        (Some(sent), _) => {
            precondition::check_uid(&target.resource, &sent, meta::uid(&old))?;
            sent
        }
        (None, Some(form)) => {
            let (requested, found) = changed(state, call, (form, &current))?;
            warnings = found;
            requested
        }
        (None, None) => applied(call, target, &current, &writer)?,
    };
    place::check_place(target, &mut requested)?;
    if !target.resource.custom {
        check(target, &requested, meta::uid(&old))?;
    }
    if form.is_some() || verb == Verb::Update {
        apply::tracked(&SCALE, Some(&current), &mut requested, &writer);
    }
    let object = scaled(&target.resource, &old, (&requested, path));
    let mut draft = Draft::new(object, Some(old));
    draft.warnings = warnings;
    draft.managed = true;
    let response = update::finish(state, call, target, draft)?;
    Ok(as_scale(response, paths))
}

/// A response with the Scale of its object.
fn as_scale(mut response: ApiResponse, paths: &Scale) -> ApiResponse {
    if let Content::Object(_, object) = &response.content {
        response.content = Content::Plain(scale(&Arc::clone(object), paths));
    }
    response
}

/// An object with the replicas (at `path`) and the field managers of a Scale.
fn scaled(resource: &Resource, old: &Value, (requested, path): (&Value, &str)) -> Value {
    let replicas = requested["spec"]["replicas"].as_i64().unwrap_or_default();
    let mut object = old.clone();
    meta::copy(requested, &mut object, "resourceVersion");
    put(&mut object, path, replicas);
    apply::scale::write_managers(resource, requested, (&mut object, path));
    object
}

/// The resource of Scale objects, the same for all kinds.
static SCALE: LazyLock<Resource> = LazyLock::new(|| {
    let mut scale = Resource::new("autoscaling", "v1", "Scale", "");
    let schema = definitions::name_of("autoscaling", "v1", "Scale");
    scale.schema = schema.map(Schema::reference);
    scale
});

/// The Scale in the request.
///
/// # Errors
/// 400 if it cannot be decoded or has another name than the object.
fn sent(
    state: &State,
    call: &Call,
    target: &Target,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let body = decode::object(call, "Scale")?;
    let mut sent = body.value;
    // For custom objects Kubernetes does not register the kind Scale here.
    let as_unregistered = |refused: Status| {
        if !target.resource.custom {
            return refused;
        }
        let why = "no kind is registered for the type v1.Scale in scheme \
             \"pkg/runtime/scheme.go:111\"";
        Status::bad_request(why)
    };
    decode::check_kind(&state.definitions, call, &SCALE, &mut sent)
        .map_err(as_unregistered)?;
    let found =
        decode::prune_and_default(&state.definitions, &SCALE, &mut sent, body.repeated);
    let refuse = |why: String| as_unregistered(decode::unhandled(&SCALE, &why));
    *warnings =
        decode::apply_field_validation(call.query.field_validation, found, refuse)?;
    place::check_place(target, &mut sent)?;
    Ok(sent)
}

/// The Scale after a patch of the given format, and the warnings.
///
/// # Errors
/// The same as for a patch of a built-in kind.
fn changed(
    state: &State,
    call: &Call,
    (form, current): (Kind, &Value),
) -> Result<(Value, Vec<String>), Status> {
    let body = decode::value(call);
    let body = body.map_err(|it| undecodable(form, &it.why))?.value;
    let mut requested = patched(form, &SCALE, current, &body)?;
    let refuse = |why: &str| refused(form, &SCALE, (current, &body), why);
    if let Some(why) = patch::unreadable_kind(form, &SCALE, &requested) {
        return Err(refuse(&why));
    }
    if let Some(why) = type_error(form, &SCALE, (current, &body), &mut requested) {
        return Err(refuse(&why));
    }
    let found = decode::prune_and_default(
        &state.definitions,
        &SCALE,
        &mut requested,
        Repeated::default(),
    );
    let validation = call.query.field_validation;
    let warnings = decode::apply_field_validation(validation, found, |why| refuse(&why))?;
    Ok((requested, warnings))
}

/// The Scale after an applied configuration.
///
/// # Errors
/// The same as for any other object; 500 for a change of the Scale of a custom object, which
/// Kubernetes cannot apply.
fn applied(
    call: &Call,
    target: &Target,
    current: &Value,
    writer: &Writer<'_>,
) -> Result<Value, Status> {
    let body = decode::value(call).map_err(DecodeError::bare)?.value;
    if !body.is_object() {
        return Err(decode::not_an_object(&body));
    }
    let config = Configuration {
        object: &body,
        on_conflict: OnConflict::of(call.query.force),
    };
    let mut requested = apply::applied(&SCALE, Some(current), &config, writer)?;
    if target.resource.custom {
        let bare = |it: &Value| {
            let mut it = it.clone();
            meta::clear(&mut it, "managedFields");
            it
        };
        if bare(&requested) != bare(current) {
            return Err(apply::unconvertible_scale(&body));
        }
    }
    if let Some(why) = restored_type_error(&SCALE, &requested) {
        return Err(apply::unconvertible(&SCALE, &body, &why));
    }
    truncate_numbers(&SCALE, &mut requested);
    Ok(requested)
}

/// Validates the Scale of a built-in kind, whose object has the uid `had` (`ValidateScale`,
/// and the uid precondition after it).
///
/// # Errors
/// 422 for invalid metadata and for negative replicas, 409 for another uid.
fn check(target: &Target, requested: &Value, previous: &str) -> Result<(), Status> {
    let metadata = requested.get("metadata");
    let scope = Scope::Namespaced;
    let mut errors = object_meta::create(metadata, NameRule::DnsSubdomain, scope);
    errors.extend(FinalizerRule::Owned.errors(requested));
    let replicas = requested["spec"]["replicas"].as_i64().unwrap_or_default();
    if replicas < 0 {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("spec.replicas", replicas.into(), why));
    }
    if !errors.is_empty() {
        return Err(invalid(&SCALE, &target.name, &errors));
    }
    let Some(why) = precondition::uid_mismatch(requested, previous) else {
        return Ok(());
    };
    let mut scaled = Resource::clone(&target.resource);
    scaled.plural.push_str("/scale");
    Err(Status::conflict(&scaled, &target.name, &why))
}

fn put(object: &mut Value, path: &str, replicas: i64) {
    let keys: Vec<&str> = path.split('.').filter(|it| !it.is_empty()).collect();
    let Some((last, parents)) = keys.split_last() else {
        return;
    };
    let mut at = meta::fields(object);
    for key in parents {
        at = meta::field(at, key);
    }
    at.insert((*last).to_owned(), replicas.into());
}

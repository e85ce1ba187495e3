//! PATCH in its four formats.

use serde_json::Value;

use super::write::Draft;
use super::{create, place, update};
use crate::api_response::ApiResponse;
use crate::apply::{self, Configuration, OnConflict, Writer};
use crate::call::Call;
use crate::decode::{self, DecodeError, Repeated};
use crate::meta;
use crate::openapi::strictness::metadata_error;
use crate::patch::{self, Kind};
use crate::resource::Resource;
use crate::route::Target;
use crate::state::State;
use crate::status::{Details, Reason, Status};
use crate::store::{Key, Object};

pub(super) fn patch(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let resource = &target.resource;
    let Some(kind) = kind(call, target)? else {
        return server_side_apply(state, call, target);
    };
    let old = current(state, target)?;
    let old = old.ok_or_else(|| Status::not_found(resource, &target.name))?;
    let body = decode::value(call);
    let body = body.map_err(|it| patch::undecodable(kind, &it.why))?;
    let mut object = patch::patched(kind, resource, &old, &body.value)?;
    let unversioned =
        kind != Kind::Strategic && !resource.custom && has_no_version(&object);
    let refuse = |why: &str| patch::refused(kind, resource, (&old, &body.value), why);
    if let Some(why) = unreadable_kind(kind, resource, &object) {
        return Err(refuse(&why));
    }
    if unversioned {
        if let Some(why) = decode::internal_kind_error(resource, &object) {
            return Err(refuse(&why));
        }
        // Kubernetes decodes it as an internal type; all its fields are then unknown.
        let validation = call.query.field_validation;
        decode::apply_field_validation(validation, fields_of(&object), |why| {
            refuse(&why)
        })?;
        return Err(place::nameless(target));
    }
    if resource.custom {
        let wrong = patch::missing_kind(&object)
            .or_else(|| decode::version_error(&object))
            .or_else(|| metadata_error(&object["metadata"]));
        if let Some(why) = wrong {
            return Err(refuse(&why));
        }
    } else if let Some(why) =
        patch::type_error(kind, resource, (&old, &body.value), &mut object)
    {
        return Err(refuse(&why));
    }
    let mut repeated = body.repeated.into_first();
    if kind == Kind::Json {
        let prefixed = |it: &mut String| *it = format!("json patch {it}");
        repeated.iter_mut().for_each(prefixed);
    }
    let first = repeated.len();
    let mut found: Vec<String> =
        match decode::unknown_in_other_version(&state.definitions, resource, &object) {
            // Such an object is rejected during validation, together with its other errors.
            Some(unknown) => repeated.into_iter().chain(unknown).collect(),
            None => decode::prune_and_default(
                &state.definitions,
                resource,
                &mut object,
                repeated.into(),
            ),
        };
    patch::sort_unknown_fields(kind, resource, (&old, &body.value), &mut found);
    if kind != Kind::Strategic {
        decode::limit_errors(resource, &mut found, first);
    }
    let validation = call.query.field_validation;
    let warnings = decode::apply_field_validation(validation, found, |why| refuse(&why))?;
    place::check_place(target, &mut object)?;
    let mut draft = Draft::new(object, Some(old));
    draft.warnings = warnings;
    update::finish(state, call, target, draft)
}

/// The error of a patched object whose kind or version cannot be read. A strategic merge patch does
/// not read them.
pub(super) fn unreadable_kind(
    kind: Kind,
    resource: &Resource,
    object: &Value,
) -> Option<String> {
    if kind == Kind::Strategic {
        return None;
    }
    let unreadable = decode::unreadable_kind(object).map(|it| it.why);
    let version = || decode::version_error(object).filter(|_| !resource.custom);
    unreadable.or_else(version)
}

/// The patch format; `None` for server-side apply.
///
/// # Errors
/// 415 for a format that the resource does not support.
pub(super) fn kind(call: &Call, target: &Target) -> Result<Option<Kind>, Status> {
    let media = call.media_type();
    let accepted = patch::media_types(&target.resource);
    if !accepted.contains(&media.as_str()) {
        return Err(if target.resource.custom {
            Status::unsupported_media_type(accepted)
        } else {
            // For built-in kinds other formats are rejected before the body is read.
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
) -> Result<ApiResponse, Status> {
    let resource = &target.resource;
    let old = current(state, target)?;
    if old.is_none() && !may_be_made(target) {
        return Err(Status::not_found(resource, &target.name));
    }
    let body = decode::value(call).map_err(DecodeError::bare)?;
    let sent = body.value;
    if !sent.is_object() {
        return Err(decode::not_an_object(&sent));
    }
    let manager = call.manager();
    let writer = Writer {
        manager: &manager,
        subresource: target.subresource.as_str(),
        now: state.instant(),
    };
    let config = Configuration {
        object: &sent,
        on_conflict: OnConflict::of(call.query.force),
    };
    let mut object = apply::applied(resource, old.as_deref(), &config, &writer)?;
    if !resource.custom
        && let Some(why) = patch::restored_type_error(resource, &object)
    {
        return Err(apply::unconvertible(resource, &sent, &why));
    }
    if old.is_none() && !meta::uid(&sent).is_empty() {
        let uid = meta::uid(&sent);
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object \
             was found"
        );
        return Err(Status::conflict(resource, &target.name, &why));
    }
    place::check_place(target, &mut object)?;
    // Fields that the schema does not have have been rejected already; only duplicate fields
    // are left to report.
    let found = unknown_in_apply(state, target, &sent, body.repeated);
    let validation = call.query.field_validation;
    let refuse = |why: String| decode::unhandled(resource, &why);
    let warnings = decode::apply_field_validation(validation, found, refuse)?;
    if !resource.custom {
        patch::truncate_numbers(resource, &mut object);
        let read = decode::decode(resource, &mut object);
        read.map_err(|why| decode::unhandled(resource, &why))?;
    }
    decode::complete(&state.definitions, resource, &mut object);
    let mut draft = Draft::new(object, old);
    draft.warnings = warnings;
    draft.managed = true;
    if draft.old.is_some() {
        update::finish(state, call, target, draft)
    } else {
        create::may_create(state, call)?;
        create::finish(state, call, target, draft)
    }
}

/// Whether apply creates a missing object.
fn may_be_made(target: &Target) -> bool {
    let resource = &target.resource;
    let kind = resource.builtin.as_ref();
    target.subresource.is_empty()
        || resource.create_on_update
        || kind.is_some_and(|it| it.is_created_by_status_apply())
}

/// The strict decoding errors of an applied configuration. They are computed on a copy,
/// because defaults must not become part of the applied configuration.
fn unknown_in_apply(
    state: &State,
    target: &Target,
    sent: &Value,
    repeated: Repeated,
) -> Vec<String> {
    let mut copy = sent.clone();
    decode::prune_and_default(&state.definitions, &target.resource, &mut copy, repeated)
}

fn current(state: &mut State, target: &Target) -> Result<Option<Object>, Status> {
    let bucket = state.bucket(&target.resource);
    let key = Key::new(&target.namespace, &target.name);
    let found = state.get(bucket, &key);
    found
        .map(|it| state.in_version_of(&target.resource, it))
        .transpose()
}

/// Strict decoding errors for all fields of an object except apiVersion and kind.
fn fields_of(object: &Value) -> Vec<String> {
    let names = object.as_object().into_iter().flatten().map(|it| it.0);
    // Go encodes a patched object with sorted keys.
    let mut names: Vec<&String> = names.collect();
    names.retain(|it| !matches!(it.as_str(), "apiVersion" | "kind"));
    names.sort_unstable();
    let each = names.iter().map(|it| format!("unknown field \"{it}\""));
    each.collect()
}

/// Whether an object has no apiVersion.
fn has_no_version(object: &Value) -> bool {
    let version = &object["apiVersion"];
    version.is_null() || version == ""
}

//! PUT of an object, or of its status.

use http::Method;
use kubemu_admission::FieldError;
use serde_json::Value;

use super::place::check_place;
use super::precondition::{check_uid, version_number};
use super::write::Draft;
use super::{create, read};
use crate::api_response::ApiResponse;
use crate::apply::{self, Writer};
use crate::call::Call;
use crate::decode;
use crate::kind::pod;
use crate::meta;
use crate::resource::Resource;
use crate::route::Target;
use crate::state::State;
use crate::status::{Cause, Details, Reason, Status, invalid};
use crate::store::Object;

pub(super) fn update(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let resource = &target.resource;
    let (mut object, warnings) = decode::sent(&state.definitions, call, resource)?;
    check_place(target, &mut object)?;
    let old = match read::existing(state, target) {
        Ok(old) => Some(state.in_version_of(resource, &old)?),
        Err(_) if resource.create_on_update => None,
        Err(missing) => return Err(missing),
    };
    let mut draft = Draft::new(object, old);
    draft.warnings = warnings;
    if draft.old.is_some() {
        return finish(state, call, target, draft);
    }
    check_uid(resource, &draft.object, "")?;
    create::may_create(state, call)?;
    create::finish(state, call, target, draft)
}

/// 422 for a missing resourceVersion on an update that requires it. Kubernetes prints the
/// resource here, not the kind.
fn version_is_missing(resource: &Resource, name: &str) -> Status {
    let error = FieldError::invalid(
        "metadata.resourceVersion",
        0.into(),
        "must be specified for an update",
    );
    let mut refused = invalid(resource, name, std::slice::from_ref(&error));
    let what = resource.qualified();
    refused.message = format!("{what} \"{name}\" is invalid: {error}");
    if let Some(details) = &mut refused.details {
        details.kind.clone_from(&resource.plural);
    }
    refused
}

/// The common part of updates by PUT, patch and apply.
pub(super) fn finish(
    state: &mut State,
    call: &Call,
    target: &Target,
    mut draft: Draft,
) -> Result<ApiResponse, Status> {
    let resource = &target.resource;
    let Some(old) = draft.old.clone() else {
        return Err(Status::not_found(resource, &target.name));
    };
    let uid = meta::uid(&draft.object);
    if call.method == Method::PATCH {
        if !uid.is_empty() && uid != meta::uid(&old) {
            // For a built-in kind two checks report the error.
            let why = "field is immutable";
            let error = FieldError::invalid("metadata.uid", uid.into(), why);
            draft.metadata_errors = vec![error; if resource.custom { 1 } else { 2 }];
        }
    } else {
        check_uid(resource, &draft.object, meta::uid(&old))?;
    }
    let has_version = has_api_version(&draft.object);
    let version = meta::version(&draft.object).to_owned();
    if let Some(kind) = &resource.builtin {
        kind.default(&mut draft.object);
        kind.default_times(&mut draft.object, &state.now());
    }
    prepare(target, &mut draft.object, &old);
    meta::drop_empty(&mut draft.object);
    if !draft.managed {
        let manager = call.manager();
        let subresource = target.subresource.as_str();
        let writer = Writer {
            manager: &manager,
            subresource,
            now: state.instant(),
        };
        apply::tracked(resource, Some(&old), &mut draft.object, &writer);
    }
    // Fields that the server itself changes have no manager.
    if let Some(kind) = &resource.builtin {
        match target.subresource.as_str() {
            "finalize" => {}
            written @ ("status" | "approval") => {
                let now = state.now();
                kind.prepare_subresource(written, &mut draft.object, &old, &now);
            }
            _ => kind.prepare_update(&mut draft.object, &old),
        }
    }
    draft.mutate(state, call, target)?;
    check_version(resource, &draft, (&version, &old))?;
    if resource.custom && !has_version {
        return Err(unversioned());
    }
    count_generation(resource, &mut draft.object, &old);
    draft.check_escalation(state, call, target)?;
    draft.validate(state, call, target)?;
    draft.admit(state, call, target)?;
    draft.commit(state, call, target)
}

fn has_api_version(object: &Value) -> bool {
    object["apiVersion"]
        .as_str()
        .is_some_and(|it| !it.is_empty())
}

/// 500 for a custom object whose `apiVersion` was removed, as in Kubernetes, which needs it to name the
/// kind of the object.
fn unversioned() -> Status {
    let why = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
    let message = format!("Internal error occurred: {why}");
    Status::new(500, Reason::InternalError, message).with_details(Details {
        causes: vec![Cause::new("", "", why)],
        ..Details::default()
    })
}

/// Checks the resourceVersion in the request, which is a precondition of the write. An apply,
/// or an update of a kind that allows it, may omit the version.
fn check_version(
    resource: &Resource,
    draft: &Draft,
    (version, old): (&str, &Object),
) -> Result<(), Status> {
    let name = meta::name(old);
    match version_number(version)? {
        0 if resource.unconditional_update || draft.managed => Ok(()),
        0 => Err(version_is_missing(resource, name)),
        version if version.to_string() != meta::version(old) => {
            Err(Status::modified(resource, name))
        }
        _ => Ok(()),
    }
}

/// Restores the fields that this request may not change.
fn prepare(target: &Target, object: &mut Value, old: &Value) {
    let resource = &target.resource;
    for key in ["uid", "creationTimestamp", "generation", "resourceVersion"] {
        meta::copy(old, object, key);
    }
    if object["metadata"].get("deletionTimestamp").is_none() {
        meta::copy(old, object, "deletionTimestamp");
    }
    if object["metadata"]
        .get("deletionGracePeriodSeconds")
        .is_none()
    {
        meta::copy(old, object, "deletionGracePeriodSeconds");
    }
    match target.subresource.as_str() {
        "status" | "approval" => keep_all_but_status(resource, object, old),
        "finalize" => keep_all_but_finalizers(object, old),
        "ephemeralcontainers" | "resize" => keep_all_but_containers(target, object, old),
        _ => {
            if resource.has_status() {
                meta::copy_field(old, object, "status");
            }
        }
    }
}

/// A write to a part of a pod's containers changes nothing else, but the manager of the part is
/// recorded.
fn keep_all_but_containers(target: &Target, object: &mut Value, old: &Value) {
    let spec = pod::merged_containers(&target.subresource, &object["spec"], &old["spec"]);
    let managers = object.take();
    *object = old.clone();
    meta::copy(&managers, object, "managedFields");
    meta::fields(object).insert("spec".to_owned(), spec);
}

/// A write to a namespace's `finalize` only changes the finalizers in its spec.
fn keep_all_but_finalizers(object: &mut Value, old: &Value) {
    let finalizers = object["spec"]["finalizers"].clone();
    *object = old.clone();
    let spec = meta::field(meta::fields(object), "spec");
    spec.insert("finalizers".to_owned(), finalizers);
}

/// A status write only changes the status; for most built-in kinds, as in Kubernetes, also the
/// metadata.
fn keep_all_but_status(resource: &Resource, object: &mut Value, old: &Value) {
    let mut written = object.take();
    let status = taken(&mut written, "status");
    let mut metadata = taken(&mut written, "metadata").unwrap_or_default();
    let others = old.as_object().into_iter().flatten().map(|(key, value)| {
        let value = match key.as_str() {
            "metadata" if resource.custom => restored_metadata(&mut metadata, value),
            // What replaces these follows.
            "metadata" | "status" => Value::Null,
            _ => restored(&mut written, key, value),
        };
        (key.clone(), value)
    });
    *object = Value::Object(others.collect());
    let fields = meta::fields(object);
    match status {
        Some(status) => {
            fields.insert("status".to_owned(), status);
        }
        None => {
            fields.shift_remove("status");
        }
    }
    if !resource.custom {
        fields.insert("metadata".to_owned(), metadata);
        let kind = resource.builtin.as_ref();
        let kept = kind.map_or([].as_slice(), |it| it.status_metadata().kept());
        for key in kept {
            meta::copy(old, object, key);
        }
        return;
    }
    match taken(&mut metadata, "managedFields") {
        Some(managers) => meta::set(object, "managedFields", managers),
        None => meta::clear(object, "managedFields"),
    }
}

/// The value of a field, in whose place is a null then.
fn taken(value: &mut Value, key: &str) -> Option<Value> {
    value.get_mut(key).map(Value::take)
}

/// A field with its value from before. A patch leaves it as it was, which is cheaper to find out
/// than another copy is to make.
fn restored(written: &mut Value, key: &str, before: &Value) -> Value {
    match taken(written, key) {
        Some(same) if is_identical(&same, before) => same,
        _ => before.clone(),
    }
}

/// The metadata from before, with a null in place of the managed fields.
fn restored_metadata(written: &mut Value, before: &Value) -> Value {
    let Some(fields) = before.as_object() else {
        return before.clone();
    };
    let fields = fields.iter().map(|(key, before)| {
        let value = match key.as_str() {
            "managedFields" => Value::Null,
            _ => restored(written, key, before),
        };
        (key.clone(), value)
    });
    Value::Object(fields.collect())
}

/// Whether two values have the same text: their fields are in the same order. Those with a fraction
/// are not compared.
fn is_identical(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|((key, value), (same, before))| {
                    key == same && is_identical(value, before)
                })
        }
        (Value::Array(one), Value::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| is_identical(one, other))
        }
        (Value::Number(one), Value::Number(other)) => one == other && !one.is_f64(),
        (one, other) => one == other,
    }
}

/// Increases the generation if a field other than metadata and (if it is a subresource) status
/// changed.
fn count_generation(resource: &Resource, object: &mut Value, old: &Value) {
    if !resource.generation || !meaning(resource, object).ne(meaning(resource, old)) {
        return;
    }
    meta::set(object, "generation", meta::generation(old) + 1);
}

fn meaning<'a>(
    resource: &Resource,
    object: &'a Value,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let status = resource.has_status() || !resource.custom;
    let ignored = move |key: &str| {
        matches!(key, "metadata" | "apiVersion" | "kind") || (status && key == "status")
    };
    let mut fields: Vec<_> = object
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !ignored(key))
        .collect();
    fields.sort_by_key(|(key, _)| *key);
    fields.into_iter()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_write_keeps_everything_else_in_its_order() {
        let mut resource = Resource::new("g.io", "v1", "Thing", "things");
        resource.custom = true;
        let old = json!({"apiVersion": "g.io/v1", "kind": "Thing",
            "metadata": {"name": "a", "labels": {"b": "c"}, "managedFields": [1]},
            "spec": {"x": 0.0, "y": [{"z": 2, "w": 3}]}, "status": {"is": "old"}, "extra": 4});
        let specs = [
            old["spec"].clone(),
            json!({"y": [{"w": 3, "z": 2}], "x": 0.0}),
            json!({"x": -0.0, "y": [{"z": 2, "w": 3}]}),
            json!({"x": 2}),
            json!(null),
        ];
        for spec in specs {
            let mut object = json!({"spec": spec, "extra": 5, "status": {"is": "new"},
                "metadata": {"managedFields": [2], "labels": {}, "name": "a"}});
            keep_all_but_status(&resource, &mut object, &old);
            let mut expected = old.clone();
            expected["status"]["is"] = "new".into();
            expected["metadata"]["managedFields"] = json!([2]);
            assert_eq!(object.to_string(), expected.to_string());
        }
        let mut bare = json!({"metadata": {"name": "a"}});
        keep_all_but_status(&resource, &mut bare, &old);
        let mut expected = old;
        meta::fields(&mut expected).shift_remove("status");
        meta::clear(&mut expected, "managedFields");
        assert_eq!(bare.to_string(), expected.to_string());
    }
}

//! DELETE of one object or of a collection.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kubemu_admission::policy::Operation;
use serde_json::{Value, json};

use super::{list, read};
use crate::api_response::{ApiResponse, Content, List};
use crate::call::Call;
use crate::commit::is_finished;
use crate::definition;
use crate::index::Location;
use crate::meta;
use crate::options::delete::{FOREGROUND, ORPHAN, Options, Propagation, of_request};
use crate::plugin::Attributes;
use crate::resource::{GroupResource, Resource};
use crate::route::Target;
use crate::state::State;
use crate::status::{Reason, Status};
use crate::store::{Key, Object};

/// The outcome of a delete.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The deletion waits for finalizers, the grace period or the contents of a namespace.
    Pending(Object),
    /// The object was removed; this was its last state.
    Deleted(Object),
}

pub(super) fn delete(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let options = of_request(call)?;
    let result = delete_target(state, call, target, &options);
    warned(result, &target.resource, &options)
}

/// The result of a deletion, with the warning of the kind for a client that leaves out the
/// propagation policy.
fn warned(
    mut result: Result<ApiResponse, Status>,
    resource: &Resource,
    options: &Options,
) -> Result<ApiResponse, Status> {
    let kind = resource.builtin.as_ref();
    let warning = kind.map_or("", |it| it.deletion_warning());
    if options.propagation.is_none() && !warning.is_empty() {
        let warnings = match &mut result {
            Ok(response) => &mut response.warnings,
            Err(refused) => &mut refused.warnings,
        };
        warnings.insert(0, warning.to_owned());
    }
    result
}

fn delete_target(
    state: &mut State,
    call: &Call,
    target: &Target,
    options: &Options,
) -> Result<ApiResponse, Status> {
    let resource = &target.resource;
    let old = read::existing(state, target)?;
    check_preconditions(resource, &old, options)?;
    let is_pending = is_pending(&old, options);
    let old = state.in_version_of(resource, &old)?;
    if is_pending {
        return Ok(ApiResponse::object(resource, old));
    }
    let attributes = Attributes::new(call, target, Operation::Delete);
    let attributes = attributes.with_old(Some(&old));
    let chain = state.chain.clone();
    let mut notes = chain.admit(state, &attributes, None)?;
    notes.extend(chain.validate(state, &attributes, None)?);
    state.check_complete()?;
    let bucket = state.bucket(resource);
    let key = Key::new(&target.namespace, &target.name);
    let outcome = delete_object(state, &Location::new(bucket, key), options)?;
    let response = match outcome {
        Outcome::Pending(object) => {
            ApiResponse::object(resource, state.in_version_of(resource, &object)?)
        }
        Outcome::Deleted(object) if resource.returned_when_deleted => {
            ApiResponse::object(resource, state.in_version_of(resource, &object)?)
        }
        Outcome::Deleted(object) => ApiResponse::success(200, details(resource, &object)),
    };
    Ok(response.admitted(notes))
}

fn details(resource: &Resource, object: &Value) -> Value {
    let mut details = json!({"name": meta::name(object)});
    if !resource.group.is_empty() {
        details["group"] = resource.group.as_str().into();
    }
    details["kind"] = resource.plural.as_str().into();
    details["uid"] = meta::uid(object).into();
    details
}

pub(super) fn delete_collection(
    state: &mut State,
    call: &Call,
    target: &Target,
) -> Result<ApiResponse, Status> {
    let options = of_request(call)?;
    let result = delete_selected(state, call, target, &options);
    warned(result, &target.resource, &options)
}

fn delete_selected(
    state: &mut State,
    call: &Call,
    target: &Target,
    options: &Options,
) -> Result<ApiResponse, Status> {
    let resource = &target.resource;
    let bucket = state.bucket(resource);
    let selected = list::selected(state, call, target)?;
    // All objects are converted before the first is deleted.
    let shown = list::in_version_of(state, resource, &selected.items)?;
    // A list of an earlier version has objects that have changed since, or do not exist any more.
    let chosen: Vec<Object> = selected
        .items
        .iter()
        .filter_map(|it| state.get(bucket, &key_of(it)).cloned())
        .collect();
    let current = list::in_version_of(state, resource, &chosen)?;
    // The plugins are called for each object, without the name in the attributes.
    let chain = state.chain.clone();
    let verdicts: Vec<Result<(), Status>> = current
        .iter()
        .map(|it| {
            if is_pending(it, options) {
                return Ok(());
            }
            let attributes = Attributes::new(call, target, Operation::Delete);
            let attributes = attributes.with_old(Some(it));
            chain.admit(state, &attributes, None)?;
            chain.validate(state, &attributes, None).map(|_| ())
        })
        .collect();
    // The webhooks for all objects are called before the first object is deleted.
    state.check_complete()?;
    for (old, result) in chosen.iter().zip(verdicts) {
        result?;
        match delete_object(state, &Location::new(bucket, key_of(old)), options) {
            Ok(_) => {}
            Err(refused) if refused.reason == Reason::NotFound => {}
            Err(refused) => return Err(refused),
        }
    }
    // The response is the list, with the objects as they were before the delete.
    let list = List {
        items: shown,
        ..selected
    };
    Ok(ApiResponse::new(200, Content::List(list)))
}

fn key_of(object: &Value) -> Key {
    Key::new(meta::namespace(object), meta::name(object))
}

/// Deletes one object according to its kind, its finalizers and the options.
///
/// # Errors
/// 404 if it does not exist, 409 if a precondition fails.
pub(crate) fn delete_object(
    state: &mut State,
    location: &Location,
    options: &Options,
) -> Result<Outcome, Status> {
    let Location { bucket, key } = location;
    let bucket = *bucket;
    let Some(resource) = state.stored_resource(bucket).cloned() else {
        return Err(Status::no_such_resource());
    };
    let Some(old) = state.get(bucket, key).cloned() else {
        return Err(Status::not_found(&resource, &key.name));
    };
    check_preconditions(&resource, &old, options)?;
    if is_pending(&old, options) {
        return Ok(Outcome::Pending(old));
    }
    let mut object = Value::clone(&old);
    let is_definition = bucket == state.buckets.definitions;
    let propagation = if resource.storage == GroupResource::new("", "events") {
        // They have no dependents to wait for or to orphan.
        Some(Propagation::Background)
    } else if is_definition && !meta::is_deleting(&object) {
        // The first deletion is an update that begins the deletion of its objects.
        None
    } else {
        options
            .propagation
            .or_else(|| default_propagation(&resource, &object))
    };
    choose_finalizers(&mut object, propagation);
    set_deletion_timestamp(state, &resource, &mut object, options);
    let is_gone = is_finished(&object);
    // What nothing keeps goes as it is, except for pods, which are marked before.
    let pods = GroupResource::new("", "pods");
    if is_gone && resource.storage != pods {
        object = Value::clone(&old);
    }
    if is_gone
        && !options.dry_run
        && let Some(last) = state.remove(bucket, key)
    {
        meta::copy(&last, &mut object, "resourceVersion");
    }
    Ok(match (is_gone, options.dry_run) {
        (true, _) => Outcome::Deleted(Arc::new(object)),
        (false, true) => Outcome::Pending(Arc::new(object)),
        (false, false) => Outcome::Pending(state.put(bucket, object)),
    })
}

/// The grace period of an object that is being deleted; 0 if it has none.
fn current_grace_seconds(object: &Value) -> i64 {
    let metadata = &object["metadata"];
    let seconds = metadata["deletionGracePeriodSeconds"].as_i64();
    seconds.filter(|_| meta::is_deleting(object)).unwrap_or(0)
}

/// Whether the grace period of an object already runs and the options do not shorten it. Such a
/// delete changes nothing and passes no admission (`rest.BeforeDelete` of Kubernetes).
fn is_pending(object: &Value, options: &Options) -> bool {
    let current = current_grace_seconds(object);
    let requested = options.requested_grace_seconds();
    current > 0 && requested.is_none_or(|it| it >= current)
}

/// Shortens the running grace period to the requested one, counted from the first delete. The
/// deadline is never in the past. If it would be, the period is one second, unless 0 was
/// requested: the kubelet still confirms the end of the pod.
fn shorten_grace_period(state: &State, object: &mut Value, options: &Options) {
    let current = current_grace_seconds(object);
    let deadline = meta::text(object, "deletionTimestamp").parse::<Timestamp>();
    let requested = options.requested_grace_seconds();
    let (Some(mut requested), Ok(deadline)) = (requested, deadline) else {
        return;
    };
    let earlier = SignedDuration::from_secs(current.saturating_sub(requested));
    let now = state.clock.now();
    let mut deadline = deadline.saturating_sub(earlier).unwrap_or(now);
    if deadline < now {
        deadline = now;
        requested = requested.min(1);
    }
    meta::set(object, "deletionTimestamp", meta::time(deadline));
    meta::set(object, "deletionGracePeriodSeconds", requested);
}

/// Sets the deletion timestamp and the grace period, or shortens the current grace period.
fn set_deletion_timestamp(
    state: &State,
    resource: &Resource,
    object: &mut Value,
    options: &Options,
) {
    if meta::is_deleting(object) {
        if current_grace_seconds(object) > 0 {
            shorten_grace_period(state, object, options);
        }
        return;
    }
    let grace = resource.builtin.as_ref().map_or(0, |kind| {
        kind.grace_period_seconds(object, options.grace_seconds)
    });
    let due = state
        .clock
        .now()
        .saturating_add(SignedDuration::from_secs(grace));
    let due = due.unwrap_or_else(|_| state.clock.now());
    meta::set(object, "deletionTimestamp", meta::time(due));
    let is_namespace = resource.storage == GroupResource::new("", "namespaces");
    let definitions = state.store.known_bucket(&resource.storage);
    if definitions == Some(state.buckets.definitions) {
        // This is not a regular delete: the definition is updated to wait for its objects.
        definition::begin_termination(object, &state.now());
        return;
    }
    if !is_namespace {
        meta::set(object, "deletionGracePeriodSeconds", grace);
    }
    if meta::generation(object) > 0 {
        meta::set(object, "generation", meta::generation(object) + 1);
    }
    if is_namespace {
        object["status"] = json!({"phase": "Terminating"});
    }
}

/// The propagation policy of the kind, unless the object has a finalizer of one
/// (`shouldOrphanDependents` of the registry).
fn default_propagation(resource: &Resource, object: &Value) -> Option<Propagation> {
    let orphans = resource.builtin.as_ref()?.orphans_dependents();
    let has_own = meta::finalizers(object).any(|it| it == ORPHAN || it == FOREGROUND);
    (orphans && !has_own).then_some(Propagation::Orphan)
}

/// Sets the finalizers that tell the garbage collector the propagation policy. Without a
/// policy the existing ones are kept.
fn choose_finalizers(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else {
        return;
    };
    let (add, drop): (Option<&str>, &[&str]) = match propagation {
        Propagation::Background => (None, &[ORPHAN, FOREGROUND]),
        Propagation::Foreground => (Some(FOREGROUND), &[ORPHAN]),
        Propagation::Orphan => (Some(ORPHAN), &[FOREGROUND]),
    };
    if meta::finalizers(object).any(|it| drop.contains(&it)) {
        meta::retain_finalizers(object, |it| !drop.contains(&it));
    }
    if let Some(name) = add {
        meta::add_finalizer(object, name);
    }
}

/// 409 if the object does not match the preconditions of the options.
pub(super) fn check_preconditions(
    resource: &Resource,
    old: &Value,
    options: &Options,
) -> Result<(), Status> {
    let name = meta::name(old);
    let differ = |what: &str, requested: &str, previous: &str, since: &str| {
        let kind = resource.kind.as_str();
        if matches!(kind, "Namespace" | "CustomResourceDefinition") && !resource.custom {
            // These kinds check them before their finalizers.
            let why = format!(
                "Precondition failed: {what} in precondition: {requested}, {what} in object \
                 meta: {previous}"
            );
            return Err(Status::conflict(resource, name, &why));
        }
        let why = format!(
            "the {what} in the precondition ({requested}) does not match the {what} in record \
             ({previous}). The object might have been {since}"
        );
        Err(Status::conflict_of_kind(resource, name, &why))
    };
    if let Some(uid) = &options.uid
        && uid != meta::uid(old)
    {
        return differ("UID", uid, meta::uid(old), "deleted and then recreated");
    }
    if let Some(version) = &options.version
        && version != meta::version(old)
    {
        return differ("ResourceVersion", version, meta::version(old), "modified");
    }
    Ok(())
}

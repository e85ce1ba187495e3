//! Deletes objects that have lost their owners, and completes the deletion of owners.
//!
//! The decisions are those of Kubernetes' garbage collector
//! (pkg/controller/garbagecollector/garbagecollector.go).

use serde_json::{Value, json};

use super::Controller;
use crate::index::Location;
use crate::meta;
use crate::options::delete::{FOREGROUND, ORPHAN};
use crate::state::State;
use crate::status::Status;
use crate::store::{Bucket, Key, Object};
use crate::work_queue::WorkItem;

/// Reconciles every dependent of an owner.
pub(super) fn reconcile_dependents(state: &mut State, uid: &str) {
    let found: Vec<Location> = state.index.dependents(uid).cloned().collect();
    for location in found {
        reconcile(state, &location);
    }
}

/// The state of an owner reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerState {
    /// The owner exists.
    Exists,
    /// The owner is gone, or never existed.
    Absent,
    /// The owner exists and waits for its dependents to be deleted.
    WaitsForDependents,
}

/// Decides about one object. A rejected request is retried after a write that may change the
/// outcome.
pub(super) fn reconcile(state: &mut State, location: &Location) {
    if let Err(refused) = reconcile_object(state, location) {
        tracing::debug!(%refused, name = %location.key.name, "garbage collection rejected");
        let item = WorkItem::Collect(location.clone());
        state.queue.retry_later(item);
    }
}

fn reconcile_object(state: &mut State, location: &Location) -> Result<(), Status> {
    let bucket = location.bucket;
    let Some(object) = state.get(bucket, &location.key).cloned() else {
        return Ok(());
    };
    if meta::is_deleting(&object) {
        return if meta::has_finalizer(&object, ORPHAN) {
            orphan(state, bucket, &object)
        } else if meta::has_finalizer(&object, FOREGROUND) {
            wait_for_dependents(state, bucket, &object)
        } else {
            Ok(())
        };
    }
    let owners = meta::owners(&object);
    if owners.is_empty() {
        return Ok(());
    }
    let states = owners.iter().map(|it| owner_state(state, &object, it));
    let Some(states) = states.collect::<Option<Vec<OwnerState>>>() else {
        return Ok(());
    };
    if states.contains(&OwnerState::Exists) {
        if states.iter().all(|it| *it == OwnerState::Exists) {
            return Ok(());
        }
        return drop_owners(state, bucket, &object, |index| {
            states.get(index) == Some(&OwnerState::Exists)
        });
    }
    let has_dependents = state.index.dependents(meta::uid(&object)).next().is_some();
    let propagation =
        if states.contains(&OwnerState::WaitsForDependents) && has_dependents {
            // Blocking references among dependents could otherwise deadlock.
            unblock_dependents(state, &object)?;
            "Foreground"
        } else if meta::has_finalizer(&object, ORPHAN) {
            "Orphan"
        } else if meta::has_finalizer(&object, FOREGROUND) {
            "Foreground"
        } else {
            "Background"
        };
    let options = json!({
        "preconditions": {"uid": meta::uid(&object)},
        "propagationPolicy": propagation,
    });
    COLLECTOR.delete(state, location, options)
}

const COLLECTOR: Controller = Controller::GarbageCollector;

/// The state of an owner reference. `None` if it cannot be resolved: the kind is not served, or the
/// kind is namespaced and the object is cluster-scoped.
fn owner_state(state: &State, object: &Value, owner: &Value) -> Option<OwnerState> {
    let text = |key: &str| owner[key].as_str().unwrap_or_default();
    let (group, version) = meta::group_and_version(owner);
    let resource = state.registry.of_kind(group, version, text("kind"))?;
    let namespace = match (resource.namespaced, meta::namespace(object)) {
        (false, _) => "",
        (true, "") => return None,
        (true, namespace) => namespace,
    };
    let bucket = state.store.known_bucket(&resource.storage);
    let found = bucket.and_then(|it| state.get(it, &Key::new(namespace, text("name"))));
    Some(match found {
        Some(found) if meta::uid(found) == text("uid") => {
            if meta::is_deleting(found) && meta::has_finalizer(found, FOREGROUND) {
                OwnerState::WaitsForDependents
            } else {
                OwnerState::Exists
            }
        }
        _ => OwnerState::Absent,
    })
}

/// Removes the owner references whose index does not satisfy the predicate.
fn drop_owners(
    state: &mut State,
    bucket: Bucket,
    object: &Object,
    keep: impl Fn(usize) -> bool,
) -> Result<(), Status> {
    let owners = meta::owners(object).iter().enumerate();
    let remaining: Vec<Value> = owners
        .filter(|(index, _)| keep(*index))
        .map(|(_, it)| it.clone())
        .collect();
    let remaining = if remaining.is_empty() {
        Value::Null
    } else {
        remaining.into()
    };
    set_owners(state, bucket, object, remaining)
}

fn set_owners(
    state: &mut State,
    bucket: Bucket,
    object: &Value,
    owners: Value,
) -> Result<(), Status> {
    let key = Key::new(meta::namespace(object), meta::name(object));
    let patch =
        json!({"metadata": {"uid": meta::uid(object), "ownerReferences": owners}});
    COLLECTOR.patch(state, &Location::new(bucket, key), patch)
}

/// Removes a finalizer from an object.
fn drop_finalizer(
    state: &mut State,
    bucket: Bucket,
    object: &Value,
    name: &str,
) -> Result<(), Status> {
    let key = Key::new(meta::namespace(object), meta::name(object));
    let remaining: Vec<&str> =
        meta::finalizers(object).filter(|it| *it != name).collect();
    let patch = json!({"metadata": {"uid": meta::uid(object), "finalizers": remaining}});
    COLLECTOR.patch(state, &Location::new(bucket, key), patch)
}

/// Removes the owner's references from its dependents, and its `orphan` finalizer.
fn orphan(state: &mut State, bucket: Bucket, owner: &Object) -> Result<(), Status> {
    let uid = meta::uid(owner).to_owned();
    let dependents: Vec<Location> = state.index.dependents(&uid).cloned().collect();
    let mut all = Ok(());
    for Location { bucket, key } in dependents {
        if let Some(dependent) = state.get(bucket, &key).cloned() {
            let owners = meta::owners(&dependent);
            let other: Vec<bool> =
                owners.iter().map(|it| it["uid"] != uid.as_str()).collect();
            let dropped = drop_owners(state, bucket, &dependent, |index| {
                other.get(index).copied().unwrap_or_default()
            });
            all = all.and(dropped);
        }
    }
    all?;
    drop_finalizer(state, bucket, owner, ORPHAN)
}

/// Removes the finalizer of an owner that is deleted in the foreground if no dependent blocks it.
fn wait_for_dependents(
    state: &mut State,
    bucket: Bucket,
    owner: &Object,
) -> Result<(), Status> {
    let uid = meta::uid(owner);
    let dependents: Vec<Location> = state.index.dependents(uid).cloned().collect();
    let blocks = |location: &Location| {
        let dependent = state.get(location.bucket, &location.key);
        dependent.is_some_and(|it| {
            let mut own = meta::owners(it).iter().filter(|it| it["uid"] == uid);
            own.any(|it| it["blockOwnerDeletion"] == true)
        })
    };
    if dependents.iter().any(blocks) {
        return Ok(());
    }
    drop_finalizer(state, bucket, owner, FOREGROUND)
}

/// Sets `blockOwnerDeletion` to false in the references of an object that will be deleted in the
/// foreground, if one of its dependents is already deleted so and could wait for it.
fn unblock_dependents(state: &mut State, object: &Object) -> Result<(), Status> {
    let uid = meta::uid(object);
    let circle = state.index.dependents(uid).any(|Location { bucket, key }| {
        let dependent = state.get(*bucket, key);
        dependent.is_some_and(|it| {
            meta::is_deleting(it) && meta::has_finalizer(it, FOREGROUND)
        })
    });
    if !circle {
        return Ok(());
    }
    let Some(bucket) = state.index.by_uid(uid).map(|it| it.bucket) else {
        return Ok(());
    };
    let mut owners = meta::owners(object).to_vec();
    for owner in &mut owners {
        meta::fields(owner).insert("blockOwnerDeletion".to_owned(), false.into());
    }
    set_owners(state, bucket, object, owners.into())
}

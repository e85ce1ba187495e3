//! Collects what has lost its owners, and sees owners through to their end.
//!
//! The decisions are those of Kubernetes' garbage collector
//! (pkg/controller/garbagecollector/garbagecollector.go).

use std::sync::Arc;

use serde_json::Value;

use crate::apply::{self, Writer};
use crate::chore::Chore;
use crate::index::Place;
use crate::meta;
use crate::state::State;
use crate::store::{Change, Key, Object, Shelf};
use crate::verb::delete::{FOREGROUND, ORPHAN, Options, Propagation, delete_object};

/// Notes what a write may have made collectable.
pub(crate) fn note(state: &mut State, change: &Arc<Change>) {
    let place = |change: &Change| Chore::Collect(change.shelf, change.key.clone());
    match (&change.before, &change.after) {
        (_, Some(after)) => {
            let waits = meta::is_deleting(after)
                && meta::finalizers(after).any(|it| it == FOREGROUND || it == ORPHAN);
            let doubtful = meta::owners(after)
                .iter()
                .any(|owner| !is_as_named(state, after, owner));
            if waits || doubtful {
                state.chores.note(place(change));
            }
            if waits {
                let uid = meta::uid(after).to_owned();
                state.chores.note(Chore::Dependents(uid));
            }
            if let Some(before) = &change.before
                && before["metadata"]["ownerReferences"]
                    != after["metadata"]["ownerReferences"]
            {
                state.chores.note(place(change));
                note_owners(state, before);
            }
        }
        (Some(before), None) => {
            state
                .chores
                .note(Chore::Dependents(meta::uid(before).to_owned()));
            note_owners(state, before);
        }
        (None, None) => {}
    }
}

/// Whether an owner is where and what the reference to it says.
fn is_as_named(state: &State, dependent: &Value, owner: &Value) -> bool {
    let uid = owner["uid"].as_str().unwrap_or_default();
    let Some((shelf, key)) = state.index.by_uid(uid) else {
        return false;
    };
    let in_reach =
        key.namespace.is_empty() || *key.namespace == *meta::namespace(dependent);
    let (group, _) = group_and_version(owner);
    let is_kind = state
        .kept(*shelf)
        .is_some_and(|it| owner["kind"] == it.kind.as_str() && group == it.storage.group);
    in_reach && is_kind && owner["name"] == *key.name
}

/// Owners that wait for their dependents look again when one has gone or let go.
fn note_owners(state: &mut State, object: &Value) {
    for owner in meta::owners(object) {
        let uid = owner["uid"].as_str().unwrap_or_default();
        let Some((shelf, key)) = state.index.by_uid(uid).cloned() else {
            continue;
        };
        if state
            .get(shelf, &key)
            .is_some_and(|it| meta::is_deleting(it))
        {
            state.chores.note(Chore::Collect(shelf, key));
        }
    }
}

/// Looks at every dependent of an owner.
pub(crate) fn look_at_dependents(state: &mut State, uid: &str) {
    let found: Vec<Place> = state.index.dependents(uid).cloned().collect();
    for (shelf, key) in found {
        look_at(state, shelf, &key);
    }
}

/// What a reference to an owner is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worth {
    /// The owner is there.
    Solid,
    /// The owner is gone, or was never there.
    Dangling,
    /// The owner is there and waits for its dependents to go.
    Waiting,
}

/// Decides about one object.
pub(crate) fn look_at(state: &mut State, shelf: Shelf, key: &Key) {
    let Some(object) = state.get(shelf, key).cloned() else {
        return;
    };
    if meta::is_deleting(&object) {
        if meta::has_finalizer(&object, ORPHAN) {
            orphan(state, shelf, &object);
        } else if meta::has_finalizer(&object, FOREGROUND) {
            wait_for_dependents(state, shelf, &object);
        }
        return;
    }
    let owners = meta::owners(&object);
    if owners.is_empty() {
        return;
    }
    let worths = owners.iter().map(|it| worth(state, &object, it));
    let Some(worths) = worths.collect::<Option<Vec<Worth>>>() else {
        return;
    };
    if worths.contains(&Worth::Solid) {
        if worths.iter().any(|it| *it != Worth::Solid) {
            drop_owners(state, shelf, &object, |index| {
                worths.get(index) == Some(&Worth::Solid)
            });
        }
        return;
    }
    let has_dependents = state.index.dependents(meta::uid(&object)).next().is_some();
    let propagation = if worths.contains(&Worth::Waiting) && has_dependents {
        // Blocking references among dependents could wait for each other for ever.
        unblock_dependents(state, &object);
        Some(Propagation::Foreground)
    } else if meta::has_finalizer(&object, ORPHAN) {
        Some(Propagation::Orphan)
    } else if meta::has_finalizer(&object, FOREGROUND) {
        Some(Propagation::Foreground)
    } else {
        Some(Propagation::Background)
    };
    let uid = Some(meta::uid(&object).to_owned());
    let options = Options {
        uid,
        propagation,
        ..Options::default()
    };
    // The object was there a moment ago, under this very lock.
    let _ = delete_object(state, (shelf, key), &options);
}

/// `None` where nothing can be decided about an object that has such a reference: the kind is
/// not served and cannot be looked up, or is one that lives in namespaces while the object
/// lives in none.
fn worth(state: &State, object: &Value, owner: &Value) -> Option<Worth> {
    let text = |key: &str| owner[key].as_str().unwrap_or_default();
    let (group, version) = group_and_version(owner);
    let resource = state.registry.of_kind(group, version, text("kind"))?;
    let namespace = match (resource.namespaced, meta::namespace(object)) {
        (false, _) => "",
        (true, "") => return None,
        (true, namespace) => namespace,
    };
    let shelf = state.store.known_shelf(&resource.storage);
    let found = shelf.and_then(|it| state.get(it, &Key::new(namespace, text("name"))));
    Some(match found {
        Some(found) if meta::uid(found) == text("uid") => {
            if meta::is_deleting(found) && meta::has_finalizer(found, FOREGROUND) {
                Worth::Waiting
            } else {
                Worth::Solid
            }
        }
        _ => Worth::Dangling,
    })
}

fn group_and_version(owner: &Value) -> (&str, &str) {
    let said = owner["apiVersion"].as_str().unwrap_or_default();
    said.rsplit_once('/').unwrap_or(("", said))
}

/// Removes the owner references whose index does not pass.
fn drop_owners(
    state: &mut State,
    shelf: Shelf,
    object: &Object,
    keep: impl Fn(usize) -> bool,
) {
    let owners = meta::owners(object).iter().enumerate();
    let left: Vec<Value> = owners
        .filter(|(index, _)| keep(*index))
        .map(|(_, it)| it.clone())
        .collect();
    let mut changed = Value::clone(object);
    if left.is_empty() {
        meta::clear(&mut changed, "ownerReferences");
    } else {
        meta::set(&mut changed, "ownerReferences", left);
    }
    if let Some(resource) = state.kept(shelf) {
        let writer = Writer {
            manager: "kube-controller-manager",
            subresource: "",
            now: state.clock.now(),
        };
        apply::tracked(resource, Some(object), &mut changed, &writer);
    }
    state.put(shelf, changed);
}

/// The dependents forget the owner, and the owner no longer waits.
fn orphan(state: &mut State, shelf: Shelf, owner: &Object) {
    let uid = meta::uid(owner).to_owned();
    let dependents: Vec<Place> = state.index.dependents(&uid).cloned().collect();
    for (shelf, key) in dependents {
        if let Some(dependent) = state.get(shelf, &key).cloned() {
            let owners = meta::owners(&dependent);
            let other: Vec<bool> =
                owners.iter().map(|it| it["uid"] != uid.as_str()).collect();
            drop_owners(state, shelf, &dependent, |index| {
                other.get(index).copied().unwrap_or_default()
            });
        }
    }
    let mut owner = Value::clone(owner);
    meta::retain_finalizers(&mut owner, |it| it != ORPHAN);
    state.put_or_finish(shelf, owner);
}

/// An owner that is deleted in the foreground goes when no dependent blocks it.
fn wait_for_dependents(state: &mut State, shelf: Shelf, owner: &Object) {
    let uid = meta::uid(owner);
    let dependents: Vec<Place> = state.index.dependents(uid).cloned().collect();
    let blocks = |place: &Place| {
        let dependent = state.get(place.0, &place.1);
        dependent.is_some_and(|it| {
            let mut own = meta::owners(it).iter().filter(|it| it["uid"] == uid);
            own.any(|it| it["blockOwnerDeletion"] == true)
        })
    };
    if dependents.iter().any(blocks) {
        return;
    }
    let mut owner = Value::clone(owner);
    meta::retain_finalizers(&mut owner, |it| it != FOREGROUND);
    state.put_or_finish(shelf, owner);
}

/// Takes `blockOwnerDeletion` from the references of an object that is to be deleted in
/// the foreground, where one of its dependents already is and so could wait for it.
fn unblock_dependents(state: &mut State, object: &Object) {
    let uid = meta::uid(object);
    let circle = state.index.dependents(uid).any(|(shelf, key)| {
        let dependent = state.get(*shelf, key);
        dependent.is_some_and(|it| {
            meta::is_deleting(it) && meta::has_finalizer(it, FOREGROUND)
        })
    });
    if !circle {
        return;
    }
    let Some((shelf, _)) = state.index.by_uid(uid).cloned() else {
        return;
    };
    let mut object = Value::clone(object);
    let owners = object["metadata"]["ownerReferences"].as_array_mut();
    for owner in owners.into_iter().flatten() {
        meta::fields(owner).insert("blockOwnerDeletion".to_owned(), false.into());
    }
    state.put(shelf, object);
}

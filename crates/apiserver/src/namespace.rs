//! Namespaces: what may be put into them, and how they end.

use fivespot_admission::policy::Operation;
use serde_json::{Value, json};

use crate::meta;
use crate::resource::GroupResource;
use crate::route::Target;
use crate::state::State;
use crate::status::{Cause, Reason, Status};
use crate::store::{Key, Range};
use crate::verb::delete::{Options, Propagation, delete_object};

/// Those that are there from the start; all but the last cannot be deleted.
pub(crate) const INITIAL: [&str; 4] =
    ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Makes a namespace unless it is there.
pub(crate) fn ensure(state: &mut State, name: &str) {
    let shelf = state.shelves.namespaces;
    if state.get(shelf, &Key::new("", name)).is_some() {
        return;
    }
    let uid = state.random.uid();
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "uid": uid,
            "creationTimestamp": state.now(),
            "labels": {"kubernetes.io/metadata.name": name},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    });
    state.put(shelf, namespace);
}

/// Whether a namespace is being deleted.
pub(crate) fn is_ending(state: &State, name: &str) -> bool {
    let found = state.get(state.shelves.namespaces, &Key::new("", name));
    !name.is_empty() && found.is_some_and(|it| meta::is_deleting(it))
}

/// Refuses new objects in namespaces that are missing or ending, and the deletion of those
/// that every cluster has (plugin NamespaceLifecycle).
///
/// # Errors
/// 404 or 403 in Kubernetes' words.
pub(crate) fn admit(
    state: &State,
    target: &Target,
    operation: Operation,
) -> Result<(), Status> {
    let resource = &target.resource;
    if resource.storage == GroupResource::new("", "namespaces") {
        let kept = ["default", "kube-system", "kube-public"];
        if operation == Operation::Delete && kept.contains(&target.name.as_str()) {
            let why = "this namespace may not be deleted";
            return Err(Status::forbidden(resource, &target.name, why));
        }
        return Ok(());
    }
    if operation != Operation::Create || target.namespace.is_empty() {
        return Ok(());
    }
    let name = &target.namespace;
    let Some(namespace) = state.get(state.shelves.namespaces, &Key::new("", name)) else {
        let message = format!("namespaces \"{name}\" not found");
        return Err(Status::new(404, Reason::NotFound, message).with_details(
            crate::status::Details {
                name: name.clone(),
                kind: "namespaces".to_owned(),
                ..crate::status::Details::default()
            },
        ));
    };
    if meta::is_deleting(namespace) && target.subresource.is_empty() {
        let why = format!(
            "unable to create new content in namespace {name} because it is being terminated"
        );
        let mut refused = Status::forbidden(resource, &target.name, &why);
        let message = format!("namespace {name} is being terminated");
        let cause = Cause::new("NamespaceTerminating", "metadata.namespace", message);
        if let Some(details) = &mut refused.details {
            details.causes = vec![cause];
        }
        return Err(refused);
    }
    Ok(())
}

/// Deletes what is left in an ending namespace; lets the namespace go when nothing is.
pub(crate) fn empty(state: &mut State, name: &str) {
    if !is_ending(state, name) {
        return;
    }
    let mut left = false;
    for shelf in state.namespaced() {
        let range = Range {
            namespace: Some(name),
            after: None,
        };
        let found: Vec<(Key, bool)> = match state.store.list(shelf, &range, None) {
            Ok(found) => found
                .map(|(key, it)| (key.clone(), meta::is_deleting(it)))
                .collect(),
            Err(_) => continue,
        };
        for (key, deleting) in found {
            if !deleting {
                let propagation = Some(Propagation::Background);
                let options = Options {
                    propagation,
                    ..Options::default()
                };
                // The outcome shows itself in what is still there.
                let _ = delete_object(state, (shelf, &key), &options);
            }
            left |= state.get(shelf, &key).is_some();
        }
    }
    if !left {
        finalize(state, name);
    }
}

fn finalize(state: &mut State, name: &str) {
    let shelf = state.shelves.namespaces;
    let Some(namespace) = state.get(shelf, &Key::new("", name)) else {
        return;
    };
    let mut namespace = Value::clone(namespace);
    let spec = meta::field(meta::fields(&mut namespace), "spec");
    if let Some(all) = spec.get_mut("finalizers").and_then(Value::as_array_mut) {
        all.retain(|it| it != "kubernetes");
    }
    state.put_or_finish(shelf, namespace);
}

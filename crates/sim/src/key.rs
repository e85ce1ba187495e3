//! The keys that a change enqueues.

use fivespot_capi::key::CLUSTER_NAME;
use serde_json::Value;

use crate::crd::{BOOTSTRAP, INFRASTRUCTURE, Served};
use crate::machine::controlling;
use crate::node;
use crate::object::{annotation, is_deleting, label, name, namespace, text};
use crate::write::{NODES, PODS, Resource};

/// The key of one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) resource: Resource,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(resource: Resource, namespace: &str, name: &str) -> Self {
        Self {
            resource,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    pub(crate) fn of(resource: Resource, object: &Value) -> Self {
        Self::new(resource, namespace(object), name(object))
    }
}

/// The resources whose changes the simulator watches.
pub(crate) fn watched(served: Served) -> Vec<Resource> {
    let mut all = vec![
        served.clusters(),
        served.machines(),
        INFRASTRUCTURE,
        NODES,
        PODS,
    ];
    all.extend(BOOTSTRAP);
    all
}

/// The keys that a change of `object` enqueues, except the Machines of a Cluster and the pods
/// of a Node, which require a list.
pub(crate) fn affected(served: Served, resource: Resource, object: &Value) -> Vec<Key> {
    let mut keys = vec![Key::of(resource, object)];
    let machine =
        |namespace: &str, name: &str| Key::new(served.machines(), namespace, name);
    if resource == served.machines() {
        keys.extend(referred(served, object));
        // Only a Cluster that is being deleted waits for its Machines to be gone.
        if is_deleting(object) {
            keys.extend(
                label(object, CLUSTER_NAME).map(|cluster| {
                    Key::new(served.clusters(), namespace(object), cluster)
                }),
            );
        }
    } else if resource == NODES {
        keys.extend(
            annotation(object, node::MACHINE)
                .and_then(|value| value.split_once('/'))
                .map(|(namespace, name)| machine(namespace, name)),
        );
    } else if resource != PODS && resource != served.clusters() {
        keys.extend(
            controlling(object).map(|(namespace, name)| machine(namespace, name)),
        );
    }
    keys
}

/// The provider objects that a Machine refers to.
pub(crate) fn referred(served: Served, machine: &Value) -> Vec<Key> {
    ["/spec/bootstrap/configRef", "/spec/infrastructureRef"]
        .iter()
        .filter_map(|pointer| {
            let reference = machine.pointer(pointer)?;
            let resource = served.referred(reference)?;
            Some(Key::new(
                resource,
                namespace(machine),
                text(reference, "/name")?,
            ))
        })
        .collect()
}

//! The keys that a change enqueues.

use fivespot_capi::key::CLUSTER_NAME;
use serde_json::Value;

use crate::crd::{BOOTSTRAP, CapiResources, INFRASTRUCTURE};
use crate::machine::controlling_machine;
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
pub(crate) fn watched_resources(capi: CapiResources) -> Vec<Resource> {
    let mut all = vec![
        capi.clusters(),
        capi.machines(),
        INFRASTRUCTURE,
        NODES,
        PODS,
    ];
    all.extend(BOOTSTRAP);
    all
}

/// The keys that a change of `object` enqueues, except the Machines of a Cluster and the pods
/// of a Node, which require a list.
pub(crate) fn affected_keys(
    capi: CapiResources,
    resource: Resource,
    object: &Value,
) -> Vec<Key> {
    let mut keys = vec![Key::of(resource, object)];
    let machine =
        |namespace: &str, name: &str| Key::new(capi.machines(), namespace, name);
    if resource == capi.machines() {
        keys.extend(provider_keys(capi, object));
        // Only a Cluster that is being deleted waits for its Machines to be gone.
        if is_deleting(object) {
            keys.extend(
                label(object, CLUSTER_NAME)
                    .map(|cluster| Key::new(capi.clusters(), namespace(object), cluster)),
            );
        }
    } else if resource == NODES {
        keys.extend(
            annotation(object, node::MACHINE)
                .and_then(|value| value.split_once('/'))
                .map(|(namespace, name)| machine(namespace, name)),
        );
    } else if resource != PODS && resource != capi.clusters() {
        keys.extend(
            controlling_machine(object).map(|(namespace, name)| machine(namespace, name)),
        );
    }
    keys
}

/// The provider objects that a Machine refers to.
pub(crate) fn provider_keys(capi: CapiResources, machine: &Value) -> Vec<Key> {
    ["/spec/bootstrap/configRef", "/spec/infrastructureRef"]
        .iter()
        .filter_map(|pointer| {
            let reference = machine.pointer(pointer)?;
            let resource = capi.provider_of(reference)?;
            Some(Key::new(
                resource,
                namespace(machine),
                text(reference, "/name")?,
            ))
        })
        .collect()
}

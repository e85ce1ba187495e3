//! The writes of a step of the simulation.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::object::{name, namespace};

/// A resource of the API that the simulator reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Resource {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) kind: &'static str,
}

const fn core(plural: &'static str, kind: &'static str) -> Resource {
    Resource {
        group: "",
        version: "v1",
        plural,
        kind,
    }
}

pub(crate) const NODES: Resource = core("nodes", "Node");
pub(crate) const PODS: Resource = core("pods", "Pod");
pub(crate) const SECRETS: Resource = core("secrets", "Secret");

impl Resource {
    /// The path of the collection; that of all namespaces if `namespace` is empty.
    pub(crate) fn collection(&self, namespace: &str) -> String {
        let root = match self.group {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        match namespace {
            "" => format!("{root}/{}", self.plural),
            namespace => format!("{root}/namespaces/{namespace}/{}", self.plural),
        }
    }

    /// The path of one object.
    pub(crate) fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(namespace))
    }

    /// The resource's `apiVersion`.
    pub(crate) fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// One write. Patches are JSON merge patches with the resourceVersion that the step observed,
/// so that a step with stale input writes nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Write {
    Create {
        collection: String,
        object: Value,
    },
    Patch {
        path: String,
        body: Value,
    },
    Delete {
        path: String,
        uid: String,
        grace_seconds: Option<i64>,
    },
    Evict {
        namespace: String,
        pod: String,
    },
}

/// The result of a step: writes in order, and when to requeue the key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Step {
    pub(crate) writes: Vec<Write>,
    pub(crate) requeue_at: Option<Timestamp>,
}

impl Step {
    /// No writes and no requeue.
    pub(crate) fn idle() -> Self {
        Self::default()
    }

    /// No writes; requeue at `due`.
    pub(crate) fn at(due: Timestamp) -> Self {
        Self {
            writes: Vec::new(),
            requeue_at: Some(due),
        }
    }

    pub(crate) fn write(write: Write) -> Self {
        Self {
            writes: vec![write],
            requeue_at: None,
        }
    }

    /// Patches metadata or spec of the observed `object`.
    pub(crate) fn patch(resource: Resource, object: &Value, body: Value) -> Self {
        let path = resource.object(namespace(object), name(object));
        Self::write(Write::Patch {
            path,
            body: guarded(object, body),
        })
    }

    /// Patches the status of the observed `object`.
    pub(crate) fn patch_status(
        resource: Resource,
        object: &Value,
        status: Value,
    ) -> Self {
        let path = format!(
            "{}/status",
            resource.object(namespace(object), name(object))
        );
        let body = guarded(object, json!({"status": status}));
        Self::write(Write::Patch { path, body })
    }

    /// Deletes the observed object, with its uid as a precondition.
    pub(crate) fn delete(resource: Resource, object: &Value) -> Self {
        let path = resource.object(namespace(object), name(object));
        let uid = crate::object::uid(object).to_owned();
        Self::write(Write::Delete {
            path,
            uid,
            grace_seconds: None,
        })
    }
}

fn guarded(object: &Value, mut body: Value) -> Value {
    body["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
    body
}

//! Builds patches of existing Machines.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{Machine, draft};

/// A change to a Machine: annotations set or removed, timeouts set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachinePatch {
    /// Annotations; the value `None` removes one.
    pub annotations: BTreeMap<String, Option<String>>,
    /// For how long Cluster API should drain, and then wait for volumes.
    pub drain_timeout: Option<Duration>,
}

impl MachinePatch {
    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The JSON merge patch (RFC 7386) for exactly this state of `machine`. It contains uid and
    /// resourceVersion, so that the server rejects it with a conflict if the Machine was recreated
    /// or has changed.
    pub fn json(&self, machine: &Machine) -> Value {
        let mut meta = Map::new();
        meta.insert("uid".to_owned(), json!(machine.meta.uid));
        meta.insert(
            "resourceVersion".to_owned(),
            json!(machine.meta.resource_version),
        );
        if !self.annotations.is_empty() {
            meta.insert("annotations".to_owned(), json!(self.annotations));
        }
        let mut patch = Map::new();
        patch.insert("metadata".to_owned(), Value::Object(meta));
        if let Some(timeout) = self.drain_timeout {
            let fields = draft::timeouts(machine.contract, timeout);
            patch.insert("spec".to_owned(), Value::Object(fields));
        }
        Value::Object(patch)
    }
}

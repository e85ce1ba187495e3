//! A change to a Machine that is there.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{Machine, draft};

/// A change to a Machine: annotations set or removed, timeouts set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachinePatch {
    /// Annotations; none as a value removes one.
    pub annotations: BTreeMap<String, Option<String>>,
    /// How long Cluster API shall drain and, again, wait for volumes.
    pub drain_timeout: Option<Duration>,
}

impl MachinePatch {
    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The JSON merge patch (RFC 7386) for this very state of `machine`: uid and resourceVersion
    /// are in it, so that the server refuses it with a conflict once the Machine is another one
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

//! Builds the JSON of Machines to create.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{Contract, Owner, Reference, duration, key};

/// The desired state of a Machine to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineDraft {
    /// Name.
    pub name: String,
    /// Namespace.
    pub namespace: String,
    /// Labels; the cluster label is added.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Owner references; that of a controller also blocks the owner's foreground deletion.
    pub owners: Vec<Owner>,
    /// The Cluster it belongs to.
    pub cluster_name: String,
    /// The bootstrap object.
    pub bootstrap: Reference,
    /// The infrastructure object.
    pub infrastructure: Reference,
    /// For how long Cluster API should drain, and then wait for volumes.
    pub drain_timeout: Duration,
    /// The Kubernetes version; omitted if `None`.
    pub version: Option<String>,
    /// The failure domain; omitted if `None`.
    pub failure_domain: Option<String>,
}

impl MachineDraft {
    /// The Machine as JSON of a contract version. Never fails. Empty parts are omitted, because
    /// v1beta2 rejects them.
    ///
    /// Timeouts are written by [`timeouts`]. In v1beta1 a reference needs a version: if it has
    /// none, the contract's own is written, which is correct for providers of that contract.
    pub fn json(&self, contract: Contract) -> Value {
        let mut labels = self.labels.clone();
        labels.insert(key::CLUSTER_NAME.to_owned(), self.cluster_name.clone());
        let mut meta = Map::new();
        meta.insert("name".to_owned(), json!(self.name));
        meta.insert("namespace".to_owned(), json!(self.namespace));
        meta.insert("labels".to_owned(), json!(labels));
        if !self.annotations.is_empty() {
            meta.insert("annotations".to_owned(), json!(self.annotations));
        }
        if !self.owners.is_empty() {
            let owners: Vec<_> = self.owners.iter().map(Owner::json).collect();
            meta.insert("ownerReferences".to_owned(), Value::Array(owners));
        }
        let mut spec = Map::new();
        spec.insert("clusterName".to_owned(), json!(self.cluster_name));
        let bootstrap = self.reference(&self.bootstrap, contract);
        spec.insert("bootstrap".to_owned(), json!({ "configRef": bootstrap }));
        let infrastructure = self.reference(&self.infrastructure, contract);
        spec.insert("infrastructureRef".to_owned(), infrastructure);
        spec.extend(timeouts(contract, self.drain_timeout));
        let texts = [
            ("version", &self.version),
            ("failureDomain", &self.failure_domain),
        ];
        for (field, text) in texts {
            if let Some(text) = text {
                spec.insert(field.to_owned(), json!(text));
            }
        }
        json!({
            "apiVersion": contract.api_version(),
            "kind": "Machine",
            "metadata": meta,
            "spec": spec,
        })
    }

    fn reference(&self, to: &Reference, contract: Contract) -> Value {
        match contract {
            Contract::V1Beta1 => json!({
                "apiVersion": to.api_version()
                    .unwrap_or_else(|| format!("{}/{}", to.group, contract.name())),
                "kind": to.kind,
                "name": to.name,
                "namespace": self.namespace,
            }),
            Contract::V1Beta2 => {
                json!({ "apiGroup": to.group, "kind": to.kind, "name": to.name })
            }
        }
    }
}

impl Owner {
    /// The reference as JSON. That of a controller blocks the owner's deletion; others omit the
    /// field, which needs no permission on the owner's finalizers.
    pub fn json(&self) -> Value {
        let mut reference = json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
        });
        if self.is_controller {
            reference["controller"] = Value::Bool(true);
            reference["blockOwnerDeletion"] = Value::Bool(true);
        }
        reference
    }
}

/// The fields of a Machine's `spec` that limit drain and volume detachment.
///
/// Cluster API treats 0 as "no limit", so a timeout of less than a second is written as one
/// second. Longer ones are truncated to whole seconds, and to 2^31 - 1, the maximum of v1beta2.
pub fn timeouts(contract: Contract, timeout: Duration) -> Map<String, Value> {
    let seconds = effective(timeout).as_secs();
    let fields = match contract {
        Contract::V1Beta1 => {
            let length = duration::print(Duration::from_secs(seconds));
            json!({ "nodeDrainTimeout": length, "nodeVolumeDetachTimeout": length })
        }
        Contract::V1Beta2 => json!({ "deletion": {
            "nodeDrainTimeoutSeconds": seconds,
            "nodeVolumeDetachTimeoutSeconds": seconds,
        } }),
    };
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The timeout that is written to Cluster API for the desired one: whole seconds, at least one.
pub fn effective(timeout: Duration) -> Duration {
    Duration::from_secs(timeout.as_secs().clamp(1, i32::MAX.unsigned_abs().into()))
}

//! The CustomResourceDefinitions of the simulated resources.
//!
//! Provider resources accept any `spec` and `status`. Cluster and Machine validate what Cluster
//! API's own CRDs and webhooks validate and a client can get wrong.

use fivespot_capi::Contract;
use serde_json::{Value, json};

use crate::write::Resource;

const CLUSTER_GROUP: &str = "cluster.x-k8s.io";

/// The resources of Cluster API itself, in the simulated contract version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapiResources {
    pub(crate) contract: Contract,
}

/// Provider kinds: two groups for the bootstrap kind, because the admission guide's
/// example names it in `k0smotron.io`.
pub(crate) const BOOTSTRAP: [Resource; 2] = [
    provider(
        "bootstrap.cluster.x-k8s.io",
        "k0sworkerconfigs",
        "K0sWorkerConfig",
    ),
    provider("k0smotron.io", "k0sworkerconfigs", "K0sWorkerConfig"),
];
pub(crate) const INFRASTRUCTURE: Resource = provider(
    "infrastructure.cluster.x-k8s.io",
    "remotemachines",
    "RemoteMachine",
);

const fn provider(
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
) -> Resource {
    Resource {
        group,
        version: "v1beta1",
        plural,
        kind,
    }
}

impl CapiResources {
    pub(crate) fn clusters(self) -> Resource {
        self.core("clusters", "Cluster")
    }

    pub(crate) fn machines(self) -> Resource {
        self.core("machines", "Machine")
    }

    fn core(self, plural: &'static str, kind: &'static str) -> Resource {
        Resource {
            group: CLUSTER_GROUP,
            version: self.contract.name(),
            plural,
            kind,
        }
    }

    /// The provider resource of a Machine's reference.
    pub(crate) fn provider_of(self, reference: &Value) -> Option<Resource> {
        let group = self.group_of(reference)?;
        let kind = crate::object::text(reference, "/kind")?;
        BOOTSTRAP
            .into_iter()
            .chain([INFRASTRUCTURE])
            .find(|resource| resource.group == group && resource.kind == kind)
    }
}

/// The CustomResourceDefinitions of Cluster API and of the simulated provider.
pub fn definitions(contract: Contract) -> Vec<Value> {
    let capi = CapiResources { contract };
    let mut all = vec![
        definition(
            capi.clusters(),
            "cl",
            &[contract.name()],
            cluster_schema(contract),
        ),
        definition(
            capi.machines(),
            "ma",
            &[contract.name()],
            machine_schema(contract),
        ),
    ];
    for resource in BOOTSTRAP.into_iter().chain([INFRASTRUCTURE]) {
        all.push(definition(
            resource,
            "",
            &["v1beta1", "v1beta2"],
            provider_schema(),
        ));
    }
    all
}

fn definition(
    resource: Resource,
    short: &str,
    versions: &[&str],
    schema: Value,
) -> Value {
    let Resource {
        group,
        plural,
        kind,
        ..
    } = resource;
    let singular = kind.to_lowercase();
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(index, version)| {
            json!({
                "name": version,
                "served": true,
                "storage": index == 0,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
                "additionalPrinterColumns": columns(kind),
            })
        })
        .collect();
    let short_names: Vec<&str> = [short]
        .into_iter()
        .filter(|name| !name.is_empty())
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "labels": {
                "cluster.x-k8s.io/provider": "5spot-sim",
                "cluster.x-k8s.io/v1beta1": "v1beta1",
                "cluster.x-k8s.io/v1beta2": "v1beta2",
            },
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": singular,
                "shortNames": short_names,
                "categories": ["cluster-api"],
            },
            "versions": versions,
        },
    })
}

fn columns(kind: &str) -> Value {
    let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    let age =
        json!({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
    match kind {
        "Machine" => json!([
            column("Cluster", ".spec.clusterName"),
            column("Node Name", ".status.nodeRef.name"),
            column("Phase", ".status.phase"),
            age,
        ]),
        "Cluster" => json!([column("Phase", ".status.phase"), age]),
        _ => json!([
            column(
                "Cluster",
                ".metadata.labels['cluster\\.x-k8s\\.io/cluster-name']"
            ),
            age
        ]),
    }
}

fn passed_through(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn provider_schema() -> Value {
    json!({"type": "object", "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": passed_through("The desired state of the object."),
        "status": passed_through("The observed state, reported by the provider."),
    }})
}

fn cluster_schema(contract: Contract) -> Value {
    let mut schema = provider_schema();
    schema["properties"]["spec"] = json!({
        "type": "object",
        "description": "The desired state of the Cluster.",
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "paused": {
                "type": "boolean",
                "description": "Whether reconciliation of the Cluster is paused.",
            },
        },
    });
    schema["description"] = json!(format!("A simulated Cluster ({}).", contract.name()));
    schema
}

fn machine_schema(contract: Contract) -> Value {
    let mut schema = provider_schema();
    let name = |description: &str| json!({"type": "string", "minLength": 1, "maxLength": 63, "description": description});
    schema["required"] = json!(["spec"]);
    schema["properties"]["spec"] = json!({
        "type": "object",
        "description": "The desired state of the Machine.",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["bootstrap", "clusterName", "infrastructureRef"],
        "properties": {
            "clusterName": name("The Cluster that the Machine belongs to; immutable."),
            "bootstrap": {
                "type": "object",
                "description": "The source of the bootstrap data of the Machine.",
                "properties": {
                    "configRef": reference(contract),
                    "dataSecretName": {"type": "string", "maxLength": 253},
                },
                "x-kubernetes-validations": [{
                    "rule": "has(self.configRef) || has(self.dataSecretName)",
                    "message": "either configRef or dataSecretName must be set",
                }],
            },
            "infrastructureRef": reference(contract),
            "providerID": {"type": "string", "minLength": 1, "maxLength": 512},
            "version": {"type": "string", "minLength": 1, "maxLength": 256},
            "failureDomain": {"type": "string", "minLength": 1, "maxLength": 256},
        },
        "x-kubernetes-validations": [{
            "rule": "self.clusterName == oldSelf.clusterName",
            "message": "field is immutable",
            "fieldPath": ".clusterName",
        }],
    });
    match contract {
        Contract::V1Beta1 => {
            schema["properties"]["spec"]["properties"]["nodeDrainTimeout"] =
                json!({"type": "string", "description": "The timeout of the drain."});
        }
        Contract::V1Beta2 => {
            schema["properties"]["spec"]["properties"]["deletion"] = json!({
                "type": "object",
                "minProperties": 1,
                "description": "Options for the deletion of the Machine.",
                "properties": {
                    "nodeDrainTimeoutSeconds": {"type": "integer", "format": "int32", "minimum": 0},
                    "nodeVolumeDetachTimeoutSeconds": {"type": "integer", "format": "int32", "minimum": 0},
                    "nodeDeletionTimeoutSeconds": {"type": "integer", "format": "int32", "minimum": 0},
                },
            });
        }
    }
    schema
}

fn reference(contract: Contract) -> Value {
    let text = || json!({"type": "string", "minLength": 1, "maxLength": 253});
    match contract {
        Contract::V1Beta1 => json!({
            "type": "object",
            "properties": {
                "apiVersion": text(), "kind": text(), "name": text(), "namespace": text(),
                "uid": text(),
            },
        }),
        Contract::V1Beta2 => json!({
            "type": "object",
            "required": ["apiGroup", "kind", "name"],
            "properties": {"apiGroup": text(), "kind": text(), "name": text()},
        }),
    }
}

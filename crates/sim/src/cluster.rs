//! The Cluster controller: a cluster whose control plane exists from the start.

use std::sync::Arc;

use fivespot_capi::Contract;
use fivespot_capi::key::CLUSTER_NAME;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::contract::Condition;
use crate::crd::CapiResources;
use crate::object::{
    annotation, finalizers, is_deleting, is_true, name, namespace, owners, uid,
};
use crate::write::{SECRETS, Step, Write};

const FINALIZER: &str = "cluster.cluster.x-k8s.io";

/// With the value `never`, the simulated control plane does not come up.
const CONTROL_PLANE: &str = "sim.5spot.finos.org/control-plane";

/// The inputs of the next step of a Cluster.
pub(crate) struct ClusterInput<'a> {
    pub(crate) cluster: &'a Value,
    /// The Machines labelled with the cluster's name.
    pub(crate) machines: &'a [Arc<Value>],
    /// Whether the kubeconfig Secret exists.
    pub(crate) has_kubeconfig: bool,
    /// The kubeconfig of the workload cluster, if there is one.
    pub(crate) kubeconfig: Option<&'a str>,
}

pub(crate) fn step(
    capi: CapiResources,
    input: &ClusterInput<'_>,
    now: Timestamp,
) -> Step {
    let cluster = input.cluster;
    if is_deleting(cluster) {
        return delete(capi, input);
    }
    if is_true(cluster, "/spec/paused") {
        return Step::idle();
    }
    if !finalizers(cluster).contains(&FINALIZER) {
        let body = json!({"metadata": {"finalizers": with(cluster, FINALIZER)}});
        return Step::patch(capi.clusters(), cluster, body);
    }
    if annotation(cluster, CONTROL_PLANE) == Some("never") {
        return Step::idle();
    }
    let status = status(capi, cluster, now);
    if cluster.get("status") != Some(&status) {
        return Step::patch_status(capi.clusters(), cluster, status);
    }
    match input.kubeconfig {
        Some(kubeconfig) if !input.has_kubeconfig => {
            create_kubeconfig(capi, cluster, kubeconfig)
        }
        _ => Step::idle(),
    }
}

/// Deletes the Machines that the Cluster owns, and waits for all that have its label.
fn delete(capi: CapiResources, input: &ClusterInput<'_>) -> Step {
    let cluster = input.cluster;
    let mut step = Step::idle();
    for machine in input
        .machines
        .iter()
        .filter(|machine| !is_deleting(machine))
    {
        if owners(machine)
            .iter()
            .any(|owner| owner["uid"] == uid(cluster))
        {
            step.writes
                .extend(Step::delete(capi.machines(), machine).writes);
        }
    }
    if input.machines.is_empty() && finalizers(cluster).contains(&FINALIZER) {
        let body = json!({"metadata": {"finalizers": without(cluster, FINALIZER)}});
        return Step::patch(capi.clusters(), cluster, body);
    }
    step
}

fn status(capi: CapiResources, cluster: &Value, now: Timestamp) -> Value {
    let mut status = cluster.get("status").cloned().unwrap_or_else(|| json!({}));
    let held = |kind, reason| Condition {
        kind,
        holds: true,
        reason,
        message: "",
    };
    status["phase"] = json!("Provisioned");
    match capi.contract {
        Contract::V1Beta1 => {
            status["infrastructureReady"] = json!(true);
            status["controlPlaneReady"] = json!(true);
        }
        Contract::V1Beta2 => {
            status["initialization"] = json!({"infrastructureProvisioned": true, "controlPlaneInitialized": true});
        }
    }
    let conditions = [
        held("ControlPlaneInitialized", "Initialized"),
        held("InfrastructureReady", "Ready"),
        held("Ready", "Ready"),
    ];
    status["conditions"] = capi.conditions(cluster, &conditions, now);
    status
}

fn create_kubeconfig(capi: CapiResources, cluster: &Value, kubeconfig: &str) -> Step {
    let (namespace, name) = (namespace(cluster), name(cluster));
    let mut owner = crate::object::plain_owner(cluster);
    owner["apiVersion"] = json!(capi.clusters().api_version());
    owner["kind"] = json!(capi.clusters().kind);
    Step::write(Write::Create {
        collection: SECRETS.collection(namespace),
        object: json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": format!("{name}-kubeconfig"),
                "namespace": namespace,
                "labels": {CLUSTER_NAME: name},
                "ownerReferences": [owner],
            },
            "type": "cluster.x-k8s.io/secret",
            "stringData": {"value": kubeconfig},
        }),
    })
}

/// The finalizers of `object` and `finalizer`.
pub(crate) fn with<'a>(object: &'a Value, finalizer: &'a str) -> Vec<&'a str> {
    let mut all = finalizers(object);
    all.push(finalizer);
    all
}

/// The finalizers of `object` except `finalizer`; `null`, which removes the field, if none
/// remain.
pub(crate) fn without(object: &Value, finalizer: &str) -> Value {
    let remaining: Vec<&str> = finalizers(object)
        .into_iter()
        .filter(|other| *other != finalizer)
        .collect();
    if remaining.is_empty() {
        Value::Null
    } else {
        json!(remaining)
    }
}

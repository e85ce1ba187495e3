//! The Machine controller for a Machine that is not being deleted.
//!
//! The order of writes is that of Cluster API's own Machine controller. Writes that Cluster API
//! sends separately are separate here too, so that a watch shows every intermediate state.

use std::sync::Arc;

use fivespot_capi::Contract;
use fivespot_capi::key::{CLUSTER_NAME, MACHINE_FINALIZER, PAUSED};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::cluster::with;
use crate::contract::{Condition, seconds};
use crate::crd::CapiResources;
use crate::object::{
    annotation, controller, controlling_owner, finalizers, instant, is_deleting, is_true,
    label, list, map, name, namespace, owners, plain_owner, text, uid,
};
use crate::write::{NODES, Resource, Step, Write};
use crate::{node, removal};

/// A Machine with one of these labels belongs to a set, and no other controller adopts it.
const SET_LABELS: [&str; 3] = [
    "cluster.x-k8s.io/set-name",
    "cluster.x-k8s.io/pool-name",
    "cluster.x-k8s.io/control-plane-name",
];

/// How long after its creation a Machine of the Cluster gets its finalizer and is reconciled.
const CLAIMS_AFTER: &str = "sim.5spot.finos.org/claims-after";

/// From the host being provisioned to its Node appearing.
const NODE_JOIN_TIME: SignedDuration = SignedDuration::from_secs(3);

/// The inputs of the next step of a Machine.
pub(crate) struct MachineInput<'a> {
    pub(crate) machine: &'a Value,
    pub(crate) cluster: Option<&'a Value>,
    pub(crate) bootstrap: Option<(Resource, &'a Value)>,
    pub(crate) infrastructure: Option<(Resource, &'a Value)>,
    /// The Node with the Machine's name.
    pub(crate) node: Option<&'a Value>,
    /// The pods bound to that Node; listed only while the Machine is being deleted.
    pub(crate) pods: &'a [Arc<Value>],
}

impl MachineInput<'_> {
    /// The Node, if its providerID is the Machine's.
    pub(crate) fn own_node(&self) -> Option<&Value> {
        let requested = text(self.machine, "/spec/providerID")?;
        self.node
            .filter(|node| text(node, "/spec/providerID") == Some(requested))
    }
}

pub(crate) fn step(
    capi: CapiResources,
    input: &MachineInput<'_>,
    now: Timestamp,
) -> Step {
    let machine = input.machine;
    let Some(cluster) = input.cluster else {
        return Step::idle();
    };
    if !finalizers(machine).contains(&MACHINE_FINALIZER) && !is_deleting(machine) {
        let body = json!({"metadata": {"finalizers": with(machine, MACHINE_FINALIZER)}});
        return Step::patch(capi.machines(), machine, body);
    }
    if let Some(due) = reconciled_from(cluster, machine).filter(|due| *due > now) {
        return Step::at(due);
    }
    let paused =
        is_true(cluster, "/spec/paused") || annotation(machine, PAUSED).is_some();
    if let Some(step) = set_paused(capi, machine, paused, now) {
        return step;
    }
    if paused {
        return Step::idle();
    }
    if let Some(step) = adopt(capi, machine, cluster) {
        return step;
    }
    match set_provider_owners(machine, input) {
        Ok(None) => {}
        Ok(Some(step)) => return step,
        // Cluster API fails the whole reconcile here, also that of a deletion.
        Err(ControlledByOther) => return Step::idle(),
    }
    // Also while the Machine is being deleted: a provider may need the spec to remove its
    // finalizer.
    if let Some(step) = copy_provider_spec(capi, input) {
        return step;
    }
    if is_deleting(machine) {
        return removal::step(capi, input, now);
    }
    if let Some(step) = create_node(capi, input, now) {
        return step;
    }
    let status = status(capi, input, now);
    if machine.get("status") != Some(&status) {
        return Step::patch_status(capi.machines(), machine, status);
    }
    Step::idle()
}

/// From when on a Machine of a Cluster with the annotation is reconciled.
fn reconciled_from(cluster: &Value, machine: &Value) -> Option<Timestamp> {
    let delay: SignedDuration = annotation(cluster, CLAIMS_AFTER)?.parse().ok()?;
    let created = instant(machine, "/metadata/creationTimestamp")?;
    created.checked_add(delay).ok()
}

/// Sets the `Paused` condition of the newer contract; the older one has none.
fn set_paused(
    capi: CapiResources,
    machine: &Value,
    paused: bool,
    now: Timestamp,
) -> Option<Step> {
    if capi.contract == Contract::V1Beta1 {
        return None;
    }
    let current = list(machine, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == Some("Paused"))
        .and_then(|condition| text(condition, "/status"));
    let (status, reason) = if paused {
        ("True", "Paused")
    } else {
        ("False", "NotPaused")
    };
    if current == Some(status) {
        return None;
    }
    let condition = Condition {
        kind: "Paused",
        holds: paused,
        reason,
        message: "",
    };
    let conditions = capi.conditions(machine, &[condition], now);
    Some(Step::patch_status(
        capi.machines(),
        machine,
        json!({"conditions": conditions}),
    ))
}

fn adopt(capi: CapiResources, machine: &Value, cluster: &Value) -> Option<Step> {
    let owned_by_cluster = owners(machine)
        .iter()
        .any(|owner| owner["uid"] == uid(cluster));
    let in_a_set = SET_LABELS.iter().any(|key| label(machine, key).is_some());
    let mut metadata = Map::new();
    if controller(machine).is_none()
        && !owned_by_cluster
        && !in_a_set
        && !is_deleting(machine)
    {
        let mut all = owners(machine).to_vec();
        all.push(plain_owner(cluster));
        metadata.insert("ownerReferences".to_owned(), json!(all));
    }
    if label(machine, CLUSTER_NAME) != Some(name(cluster)) {
        metadata.insert("labels".to_owned(), json!({CLUSTER_NAME: name(cluster)}));
    }
    let body = json!({"metadata": metadata});
    (!metadata_is_empty(&body)).then(|| Step::patch(capi.machines(), machine, body))
}

fn metadata_is_empty(body: &Value) -> bool {
    body["metadata"].as_object().is_none_or(Map::is_empty)
}

/// Another object controls a provider object of the Machine.
struct ControlledByOther;

/// Makes the Machine control its provider objects.
fn set_provider_owners(
    machine: &Value,
    input: &MachineInput<'_>,
) -> Result<Option<Step>, ControlledByOther> {
    for (resource, object) in [input.bootstrap, input.infrastructure]
        .into_iter()
        .flatten()
    {
        match controller(object) {
            Some(owner) if owner["uid"] == uid(machine) => {}
            Some(_) => return Err(ControlledByOther),
            // Also if the object or the Machine is being deleted: a provider does nothing for
            // an object that no Machine owns.
            None => {
                let mut all = owners(object).to_vec();
                all.retain(|owner| owner["uid"] != uid(machine));
                all.push(controlling_owner(machine));
                let cluster = text(machine, "/spec/clusterName");
                let body = json!({"metadata": {
                    "ownerReferences": all,
                    "labels": {CLUSTER_NAME: cluster},
                }});
                return Ok(Some(Step::patch(resource, object, body)));
            }
        }
    }
    Ok(None)
}

/// Copies what the providers report into the Machine's spec.
fn copy_provider_spec(capi: CapiResources, input: &MachineInput<'_>) -> Option<Step> {
    let machine = input.machine;
    let mut spec = Map::new();
    let data_secret = input
        .bootstrap
        .filter(|(_, object)| is_bootstrap_ready(capi, object))
        .and_then(|(_, object)| text(object, "/status/dataSecretName"));
    if let Some(secret) = data_secret
        && text(machine, "/spec/bootstrap/dataSecretName") != Some(secret)
    {
        spec.insert("bootstrap".to_owned(), json!({"dataSecretName": secret}));
    }
    let provider_id = input
        .infrastructure
        .filter(|(_, object)| is_infrastructure_ready(capi, object))
        .and_then(|(_, object)| text(object, "/spec/providerID"));
    if let Some(id) = provider_id
        && text(machine, "/spec/providerID") != Some(id)
    {
        spec.insert("providerID".to_owned(), json!(id));
    }
    let body = json!({"spec": spec});
    body["spec"]
        .as_object()
        .is_some_and(|spec| !spec.is_empty())
        .then(|| Step::patch(capi.machines(), machine, body))
}

/// Registers the Node, some seconds after its host was provisioned.
fn create_node(
    capi: CapiResources,
    input: &MachineInput<'_>,
    now: Timestamp,
) -> Option<Step> {
    let machine = input.machine;
    let id = text(machine, "/spec/providerID")?;
    if input.node.is_some() {
        return propagate_labels(input);
    }
    // A Node that existed and was deleted is not created again.
    if text(machine, "/status/nodeRef/name").is_some() {
        return None;
    }
    let (_, infrastructure) = input.infrastructure?;
    let since = provisioned_since(capi, infrastructure)?;
    let due = since + NODE_JOIN_TIME;
    if due > now {
        return Some(Step::at(due));
    }
    Some(Step::write(Write::Create {
        collection: NODES.collection(""),
        object: node::node_of_machine(machine, id, now),
    }))
}

/// Keeps the labels of the Machine that Cluster API propagates on its Node.
fn propagate_labels(input: &MachineInput<'_>) -> Option<Step> {
    let node = input.own_node()?;
    let requested = node::propagated(&map(input.machine, "/metadata/labels"));
    let has = map(node, "/metadata/labels");
    let missing: Map<String, Value> = requested
        .into_iter()
        .filter(|(key, value)| has.get(key) != Some(value))
        .collect();
    (!missing.is_empty())
        .then(|| Step::patch(NODES, node, json!({"metadata": {"labels": missing}})))
}

pub(crate) fn is_bootstrap_ready(capi: CapiResources, object: &Value) -> bool {
    match capi.contract {
        Contract::V1Beta1 => is_true(object, "/status/ready"),
        Contract::V1Beta2 => is_true(object, "/status/initialization/dataSecretCreated"),
    }
}

pub(crate) fn is_infrastructure_ready(capi: CapiResources, object: &Value) -> bool {
    match capi.contract {
        Contract::V1Beta1 => is_true(object, "/status/ready"),
        Contract::V1Beta2 => is_true(object, "/status/initialization/provisioned"),
    }
}

fn provisioned_since(capi: CapiResources, infrastructure: &Value) -> Option<Timestamp> {
    if !is_infrastructure_ready(capi, infrastructure) {
        return None;
    }
    list(infrastructure, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == Some("Ready"))
        .and_then(|condition| instant(condition, "/lastTransitionTime"))
}

/// The Machine's whole status, from the observed objects.
pub(crate) fn status(
    capi: CapiResources,
    input: &MachineInput<'_>,
    now: Timestamp,
) -> Value {
    let machine = input.machine;
    let mut status = machine.get("status").cloned().unwrap_or_else(|| json!({}));
    let bootstrapped = text(machine, "/spec/bootstrap/dataSecretName").is_some();
    let provisioned = text(machine, "/spec/providerID").is_some();
    if provisioned && let Some((_, infrastructure)) = input.infrastructure {
        status["addresses"] = infrastructure["status"]["addresses"].clone();
    }
    match capi.contract {
        Contract::V1Beta1 => {
            status["bootstrapReady"] = json!(bootstrapped);
            status["infrastructureReady"] = json!(provisioned);
        }
        Contract::V1Beta2 => {
            status["initialization"] = json!({
                "bootstrapDataSecretCreated": bootstrapped,
                "infrastructureProvisioned": provisioned,
            });
        }
    }
    let node = input.own_node();
    if let Some(node) = node {
        status["nodeRef"] = capi.node_ref(node);
        status["nodeInfo"] = node["status"]["nodeInfo"].clone();
    }
    let phase = phase(
        machine,
        bootstrapped,
        provisioned,
        status.get("nodeRef").is_some(),
    );
    if status.get("phase") != Some(&json!(phase)) {
        status["phase"] = json!(phase);
        status["lastUpdated"] = json!(seconds(now));
    }
    let conditions = conditions(capi, bootstrapped, provisioned, node);
    status["conditions"] = capi.conditions(machine, &conditions, now);
    status["observedGeneration"] = machine["metadata"]["generation"].clone();
    status
}

fn phase(
    machine: &Value,
    bootstrapped: bool,
    provisioned: bool,
    has_node: bool,
) -> &'static str {
    match (is_deleting(machine), has_node, provisioned, bootstrapped) {
        (true, ..) => "Deleting",
        (_, true, true, _) => "Running",
        (_, _, true, _) => "Provisioned",
        (_, _, _, true) => "Provisioning",
        _ => "Pending",
    }
}

fn conditions(
    capi: CapiResources,
    bootstrapped: bool,
    provisioned: bool,
    node: Option<&Value>,
) -> Vec<Condition<'static>> {
    let node_ready = node.is_some_and(node::is_ready);
    let all = bootstrapped && provisioned && node_ready;
    let bootstrap = match capi.contract {
        Contract::V1Beta1 => "BootstrapReady",
        Contract::V1Beta2 => "BootstrapConfigReady",
    };
    let condition = |kind, holds, yes, no| Condition {
        kind,
        holds,
        reason: if holds { yes } else { no },
        message: "",
    };
    let mut conditions = vec![
        condition("Ready", all, "Ready", "NotReady"),
        condition(bootstrap, bootstrapped, "Ready", "WaitingForDataSecret"),
        condition(
            "InfrastructureReady",
            provisioned,
            "Ready",
            "WaitingForInfrastructure",
        ),
        condition("NodeHealthy", node_ready, "NodeHealthy", "NodeNotHealthy"),
    ];
    if capi.contract == Contract::V1Beta2 {
        conditions.push(condition("Available", all, "Available", "NotReady"));
        conditions.push(condition(
            "NodeReady",
            node_ready,
            "NodeReady",
            "NodeNotReady",
        ));
    }
    conditions
}

/// The Machine in the controller reference of a provider object.
pub(crate) fn controlling_machine(object: &Value) -> Option<(&str, &str)> {
    let owner =
        controller(object).filter(|owner| text(owner, "/kind") == Some("Machine"))?;
    Some((namespace(object), text(owner, "/name")?))
}

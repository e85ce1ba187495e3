//! The simulated provider: a bootstrap kind that writes a Secret, and an infrastructure
//! kind that takes a few seconds to provision and to reset its host.
//!
//! Like k0smotron's RemoteMachine, the infrastructure object puts its finalizer on at
//! once and needs its Machine to go: without one, it stays for ever.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::cluster::{with, without};
use crate::contract::{Condition, Contract};
use crate::crd::Served;
use crate::machine::{is_bootstrap_ready, is_infrastructure_ready};
use crate::object::{finalizers, instant, is_deleting, is_true, name, namespace, text};
use crate::write::{Resource, SECRETS, Step, Write};

const FINALIZER: &str = "remotemachine.k0smotron.io/finalizer";
const BOOTSTRAPPING: SignedDuration = SignedDuration::from_secs(1);
const PROVISIONING: SignedDuration = SignedDuration::from_secs(4);
const RESETTING: SignedDuration = SignedDuration::from_secs(3);

/// What the next step of a provider object is decided from.
pub(crate) struct Seen<'a> {
    pub(crate) resource: Resource,
    pub(crate) object: &'a Value,
    /// The Machine that controls the object.
    pub(crate) machine: Option<&'a Value>,
    pub(crate) cluster: Option<&'a Value>,
    /// Whether the bootstrap data Secret exists.
    pub(crate) has_secret: bool,
}

impl Seen<'_> {
    fn is_ready_to_work(&self, contract: Contract) -> bool {
        self.cluster.is_some_and(|cluster| {
            contract.is_initialised(cluster) && !is_true(cluster, "/spec/paused")
        })
    }
}

/// The next step of a bootstrap object.
pub(crate) fn bootstrap(served: Served, seen: &Seen<'_>, now: Timestamp) -> Step {
    let object = seen.object;
    let contract = served.contract;
    if is_deleting(object) || seen.machine.is_none() || !seen.is_ready_to_work(contract) {
        return Step::idle();
    }
    if is_bootstrap_ready(contract, object) {
        return Step::idle();
    }
    if let Some(due) = since(object, "/metadata/creationTimestamp", BOOTSTRAPPING)
        && due > now
    {
        return Step::at(due);
    }
    if !seen.has_secret {
        // Secrets are not watched: the step after this one is looked for at once.
        return Step {
            look_again: Some(now),
            ..create_secret(seen)
        };
    }
    let mut status = json!({"dataSecretName": name(object)});
    match contract {
        Contract::V1Beta1 => status["ready"] = json!(true),
        Contract::V1Beta2 => {
            status["initialization"] = json!({"dataSecretCreated": true});
        }
    }
    status["conditions"] = ready(contract, object, now);
    Step::patch_status(seen.resource, object, status)
}

fn create_secret(seen: &Seen<'_>) -> Step {
    let (namespace, name) = (namespace(seen.object), name(seen.object));
    Step::write(Write::Create {
        collection: SECRETS.collection(namespace),
        object: json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "ownerReferences": [crate::object::controlling_owner(seen.object)],
            },
            "type": "cluster.x-k8s.io/secret",
            "stringData": {"value": "#cloud-config\n"},
        }),
    })
}

/// The next step of an infrastructure object.
pub(crate) fn infrastructure(served: Served, seen: &Seen<'_>, now: Timestamp) -> Step {
    let object = seen.object;
    if is_deleting(object) {
        return reset(served.contract, seen, now);
    }
    if !finalizers(object).contains(&FINALIZER) {
        let body = json!({"metadata": {"finalizers": with(object, FINALIZER)}});
        return Step::patch(seen.resource, object, body);
    }
    if !may_work(served.contract, seen)
        || is_infrastructure_ready(served.contract, object)
    {
        return Step::idle();
    }
    if let Some(due) = since(object, "/metadata/creationTimestamp", PROVISIONING)
        && due > now
    {
        return Step::at(due);
    }
    let address = text(object, "/spec/address").unwrap_or("127.0.0.1");
    if text(object, "/spec/providerID").is_none() {
        let port = object
            .pointer("/spec/port")
            .and_then(Value::as_u64)
            .unwrap_or(22);
        let id = format!("remote-machine://{address}:{port}");
        return Step::patch(seen.resource, object, json!({"spec": {"providerID": id}}));
    }
    let mut status = json!({"addresses": [{"type": "InternalIP", "address": address}]});
    match served.contract {
        Contract::V1Beta1 => status["ready"] = json!(true),
        Contract::V1Beta2 => {
            status["initialization"] = json!({"provisioned": true});
        }
    }
    status["conditions"] = ready(served.contract, object, now);
    Step::patch_status(seen.resource, object, status)
}

/// Resets the host, then lets the object go.
fn reset(contract: Contract, seen: &Seen<'_>, now: Timestamp) -> Step {
    if !finalizers(seen.object).contains(&FINALIZER) || !may_work(contract, seen) {
        return Step::idle();
    }
    match since(seen.object, "/metadata/deletionTimestamp", RESETTING) {
        Some(due) if due > now => Step::at(due),
        _ => {
            let body =
                json!({"metadata": {"finalizers": without(seen.object, FINALIZER)}});
            Step::patch(seen.resource, seen.object, body)
        }
    }
}

/// The provider does nothing without a Machine that has its bootstrap data.
fn may_work(contract: Contract, seen: &Seen<'_>) -> bool {
    let bootstrapped = seen
        .machine
        .is_some_and(|machine| text(machine, "/spec/bootstrap/dataSecretName").is_some());
    bootstrapped && seen.is_ready_to_work(contract)
}

fn since(object: &Value, pointer: &str, span: SignedDuration) -> Option<Timestamp> {
    instant(object, pointer)?.checked_add(span).ok()
}

fn ready(contract: Contract, object: &Value, now: Timestamp) -> Value {
    let condition = Condition {
        kind: "Ready",
        holds: true,
        reason: "Ready",
        message: "",
    };
    contract.conditions(object, &[condition], now)
}

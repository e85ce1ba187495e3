//! The simulated provider: a bootstrap kind that writes a Secret, and an infrastructure
//! kind that takes a few seconds to provision and to reset its host.
//!
//! Like k0smotron's RemoteMachine, the infrastructure object gets its finalizer at once and
//! needs its Machine to be removed: without one, it stays forever.

use fivespot_capi::Contract;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::cluster::{with, without};
use crate::contract::Condition;
use crate::crd::CapiResources;
use crate::machine::{is_bootstrap_ready, is_infrastructure_ready};
use crate::object::{
    annotation, finalizers, instant, is_deleting, is_true, name, namespace, text,
};
use crate::write::{Resource, SECRETS, Step, Write};

const FINALIZER: &str = "remotemachine.k0smotron.io/finalizer";
const BOOTSTRAP_TIME: SignedDuration = SignedDuration::from_secs(1);
const PROVISION_TIME: SignedDuration = SignedDuration::from_secs(4);
const RESET_TIME: SignedDuration = SignedDuration::from_secs(3);
/// The time between two attempts after a failure.
const RETRY_DELAY: SignedDuration = SignedDuration::from_secs(10);
/// The annotation that makes the host of a RemoteMachine, or all hosts of a Cluster, `unreachable`.
const HOST: &str = "sim.5spot.finos.org/host";

/// The inputs of the next step of a provider object.
pub(crate) struct ProviderInput<'a> {
    pub(crate) resource: Resource,
    pub(crate) object: &'a Value,
    /// The Machine that controls the object.
    pub(crate) machine: Option<&'a Value>,
    pub(crate) cluster: Option<&'a Value>,
    /// Whether the bootstrap data Secret exists.
    pub(crate) has_secret: bool,
    /// The Secret with the SSH key that the object names, if it does not exist.
    pub(crate) missing_key: Option<&'a str>,
}

impl ProviderInput<'_> {
    fn is_ready_to_work(&self, capi: CapiResources) -> bool {
        self.cluster.is_some_and(|cluster| {
            capi.is_initialised(cluster) && !is_true(cluster, "/spec/paused")
        })
    }
}

/// The next step of a bootstrap object.
pub(crate) fn bootstrap(
    capi: CapiResources,
    input: &ProviderInput<'_>,
    now: Timestamp,
) -> Step {
    let object = input.object;
    if is_deleting(object) || input.machine.is_none() || !input.is_ready_to_work(capi) {
        return Step::idle();
    }
    if is_bootstrap_ready(capi, object) {
        return Step::idle();
    }
    if let Some(due) = since(object, "/metadata/creationTimestamp", BOOTSTRAP_TIME)
        && due > now
    {
        return Step::at(due);
    }
    if !input.has_secret {
        // Secrets are not watched, so the next step is requeued at once.
        return Step {
            requeue_at: Some(now),
            ..create_secret(input)
        };
    }
    let mut status = json!({"dataSecretName": name(object)});
    match capi.contract {
        Contract::V1Beta1 => status["ready"] = json!(true),
        Contract::V1Beta2 => {
            status["initialization"] = json!({"dataSecretCreated": true});
        }
    }
    status["conditions"] = ready(capi, object, now);
    Step::patch_status(input.resource, object, status)
}

fn create_secret(input: &ProviderInput<'_>) -> Step {
    let (namespace, name) = (namespace(input.object), name(input.object));
    Step::write(Write::Create {
        collection: SECRETS.collection(namespace),
        object: json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "ownerReferences": [crate::object::controlling_owner(input.object)],
            },
            "type": "cluster.x-k8s.io/secret",
            "stringData": {"value": "#cloud-config\n"},
        }),
    })
}

/// The next step of an infrastructure object.
pub(crate) fn infrastructure(
    capi: CapiResources,
    input: &ProviderInput<'_>,
    now: Timestamp,
) -> Step {
    let object = input.object;
    if is_deleting(object) {
        return reset(capi, input, now);
    }
    if !finalizers(object).contains(&FINALIZER) {
        let body = json!({"metadata": {"finalizers": with(object, FINALIZER)}});
        return Step::patch(input.resource, object, body);
    }
    if !may_work(capi, input) || is_infrastructure_ready(capi, object) {
        return Step::idle();
    }
    if let Some(due) = since(object, "/metadata/creationTimestamp", PROVISION_TIME)
        && due > now
    {
        return Step::at(due);
    }
    if let Some(failure) = missing_key(input).or_else(|| unreachable(input)) {
        return report(capi, input, (failure, now));
    }
    let (address, port) = host(object);
    if text(object, "/spec/providerID").is_none() {
        let id = format!("remote-machine://{address}:{port}");
        return Step::patch(input.resource, object, json!({"spec": {"providerID": id}}));
    }
    let mut status = failure_status(capi, &Value::Null, &Value::Null);
    status["addresses"] = json!([{"type": "InternalIP", "address": address}]);
    match capi.contract {
        Contract::V1Beta1 => status["ready"] = json!(true),
        Contract::V1Beta2 => {
            status["initialization"] = json!({"provisioned": true});
        }
    }
    status["conditions"] = ready(capi, object, now);
    Step::patch_status(input.resource, object, status)
}

/// Resets the host, then removes the finalizer.
fn reset(capi: CapiResources, input: &ProviderInput<'_>, now: Timestamp) -> Step {
    if !finalizers(input.object).contains(&FINALIZER) || !may_work(capi, input) {
        return Step::idle();
    }
    if let Some(failure) = missing_key(input) {
        return report(capi, input, (failure, now));
    }
    match since(input.object, "/metadata/deletionTimestamp", RESET_TIME) {
        Some(due) if due > now && unreachable(input).is_none() => Step::at(due),
        _ => {
            let body =
                json!({"metadata": {"finalizers": without(input.object, FINALIZER)}});
            Step::patch(input.resource, input.object, body)
        }
    }
}

/// Address and port of the host. Each machine of a pool gets another host, which has its name.
fn host(object: &Value) -> (&str, u64) {
    let port = object.pointer("/spec/port").and_then(Value::as_u64);
    let of_pool = text(object, "/spec/pool").and(text(object, "/metadata/name"));
    let address = text(object, "/spec/address").or(of_pool);
    (address.unwrap_or("127.0.0.1"), port.unwrap_or(22))
}

fn missing_key(input: &ProviderInput<'_>) -> Option<String> {
    input
        .missing_key
        .map(|name| format!("secrets \"{name}\" not found"))
}

fn unreachable(input: &ProviderInput<'_>) -> Option<String> {
    let annotated = [Some(input.object), input.cluster].into_iter().flatten();
    let mut hosts = annotated.map(|object| annotation(object, HOST));
    let is_unreachable = hosts.any(|host| host == Some("unreachable"));
    let (address, port) = host(input.object);
    is_unreachable.then(|| {
        format!("ssh dial: dial tcp {address}:{port}: connect: connection refused")
    })
}

/// Reports a failure, and retries later.
fn report(
    capi: CapiResources,
    input: &ProviderInput<'_>,
    (failure, now): (String, Timestamp),
) -> Step {
    let requeue_at = now.checked_add(RETRY_DELAY).unwrap_or(now);
    let (reason, message) = (json!("ProvisionFailed"), json!(failure));
    let at = match capi.contract {
        Contract::V1Beta1 => "/status/failureMessage",
        Contract::V1Beta2 => "/status/deprecated/v1beta1/failureMessage",
    };
    if input.object.pointer(at) == Some(&message) {
        return Step::at(requeue_at);
    }
    let status = failure_status(capi, &reason, &message);
    Step {
        requeue_at: Some(requeue_at),
        ..Step::patch_status(input.resource, input.object, status)
    }
}

/// A failure in the fields of the contract version; nulls remove it.
fn failure_status(capi: CapiResources, reason: &Value, message: &Value) -> Value {
    let failure = json!({"failureReason": reason, "failureMessage": message});
    match capi.contract {
        Contract::V1Beta1 => failure,
        Contract::V1Beta2 => json!({"deprecated": {"v1beta1": failure}}),
    }
}

/// Whether there is a Machine with bootstrap data; otherwise the provider does nothing.
fn may_work(capi: CapiResources, input: &ProviderInput<'_>) -> bool {
    let bootstrapped = input
        .machine
        .is_some_and(|machine| text(machine, "/spec/bootstrap/dataSecretName").is_some());
    bootstrapped && input.is_ready_to_work(capi)
}

fn since(object: &Value, pointer: &str, span: SignedDuration) -> Option<Timestamp> {
    instant(object, pointer)?.checked_add(span).ok()
}

fn ready(capi: CapiResources, object: &Value, now: Timestamp) -> Value {
    let condition = Condition {
        kind: "Ready",
        holds: true,
        reason: "Ready",
        message: "",
    };
    capi.conditions(object, &[condition], now)
}

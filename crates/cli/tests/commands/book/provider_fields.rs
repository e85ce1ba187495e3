//! The example policy about fields of providers, evaluated by the admission engine.

use std::fs;
use std::sync::Arc;

use fivespot_api::name;
use kubemu_admission::KubeVersion;
use kubemu_admission::policy::{Binding, GroupVersionKind, Policies, Policy, Request};
use serde_json::{Value, json};

use super::ROOT;

fn policies() -> Policies {
    let path = format!("{ROOT}/examples/policies/provider-fields.yaml");
    let text = fs::read_to_string(path).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let [policy, binding] = documents.as_slice() else {
        panic!("a policy and its binding");
    };
    let policy = Policy::compile(policy, KubeVersion::default()).unwrap();
    let binding = Binding::compile(binding).unwrap();
    Policies::new([Arc::new(policy)], [Arc::new(binding)])
}

/// The denials of the policy for an object with these specs. Empty if it is admitted.
fn denials(bootstrap: &Value, infrastructure: &Value) -> Vec<String> {
    denied(&json!({
        "apiVersion": name::API_VERSION,
        "kind": name::KIND,
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
            "clusterName": "prod",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
                "kind": "K0sWorkerConfig",
                "spec": bootstrap,
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
                "kind": "RemoteMachine",
                "spec": infrastructure,
            },
        },
    }))
}

/// The denials of the policy for an object.
fn denied(object: &Value) -> Vec<String> {
    let kind = GroupVersionKind {
        group: name::GROUP,
        version: name::VERSION,
        kind: name::KIND,
    };
    let request = Request::create(kind, name::PLURAL, object);
    let decision = policies().decide(&request, &());
    let all = decision.denials.into_iter();
    all.map(|denial| denial.message).collect()
}

#[test]
fn a_machine_with_a_class_is_admitted() {
    let object = json!({
        "apiVersion": name::API_VERSION,
        "kind": name::KIND,
        "metadata": {"name": "worker", "namespace": "default"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
            "classRef": {"name": "desks"},
        },
    });
    assert_eq!(denied(&object), [""; 0]);
}

#[test]
fn a_plain_worker_within_the_network_is_admitted() {
    let bootstrap = json!({"version": "v1.30.0+k0s.0"});
    let infrastructure = json!({
        "address": "192.168.1.100", "port": 22, "user": "admin", "useSudo": true,
        "sshKeyRef": {"name": "key"},
    });
    assert_eq!(denials(&bootstrap, &infrastructure), [""; 0]);
    assert_eq!(denials(&json!({}), &json!({})), [""; 0]);
}

#[test]
fn every_field_that_runs_code_is_refused_in_both_versions() {
    let of_bootstrap = [
        "preStartCommands",
        "postStartCommands",
        "preK0sCommands",
        "postK0sCommands",
        "files",
        "args",
        "downloadURL",
        "customUserDataRef",
        "ignition",
        "provisioner",
    ];
    let of_infrastructure = ["customCleanUpCommands", "cleanUpCommands", "provisionJob"];
    let bootstrap = of_bootstrap.map(|field| ("bootstrapSpec", field));
    let infrastructure = of_infrastructure.map(|field| ("infrastructureSpec", field));
    for (role, field) in bootstrap.into_iter().chain(infrastructure) {
        let set = json!({ field: ["anything"] });
        let denials = match role {
            "bootstrapSpec" => denials(&set, &json!({})),
            _ => denials(&json!({}), &set),
        };
        let [denial] = denials.as_slice() else {
            panic!("{role} {field}: {denials:?}");
        };
        let message =
            format!("spec.{role}.spec.{field}: must not be set in this cluster");
        assert!(denial.ends_with(&message), "{denial}");
    }
}

#[test]
fn addresses_outside_the_network_and_pools_are_refused() {
    for infrastructure in [
        json!({"address": "203.0.113.7"}),
        json!({"address": "host.example.com"}),
        json!({"address": "192.168.1.100", "pool": "racks"}),
        json!({"pool": "racks"}),
    ] {
        let denials = denials(&json!({}), &infrastructure);
        assert_eq!(denials.len(), 1, "{infrastructure}: {denials:?}");
    }
}

//! What a kube-apiserver creates when it starts, besides namespaces, roles and its own Service: the
//! system PriorityClasses, the day from which it tracks token Secrets, the authority of client
//! certificates for the servers that extend it, the ServiceCIDR of `--service-cluster-ip-range`, the
//! endpoints of its own Service, the suggested and the mandatory configuration of API Priority and
//! Fairness, and an APIService for each group that it serves.

mod flow_control;
pub(crate) mod object;

use std::mem;

use serde_json::{Value, json};

use crate::discovery;
use crate::initial::object::{Initial, SERVER_MANAGER};
use crate::kind::priority_class::SYSTEM_CLASSES;
use crate::meta;
use crate::random::Random;
use crate::state::State;

/// The name of the server's own Service, and of what belongs to it.
const OWN: &str = "kubernetes";

/// Creates those that are missing. `client_authority` has signed the certificates of clients, PEM.
pub(crate) fn install(state: &mut State, client_authority: Option<&str>) {
    // Their uids are drawn apart, so that those of the objects of clients do not depend on them.
    let own = Random::new(!state.seed);
    let of_clients = mem::replace(&mut state.random, own);
    install_all(state);
    if let Some(authority) = client_authority {
        authentication(state, authority);
    }
    state.random = of_clients;
}

fn install_all(state: &mut State) {
    for (name, value, description) in SYSTEM_CLASSES {
        let class = Initial {
            group: "scheduling.k8s.io",
            plural: "priorityclasses",
            manager: SERVER_MANAGER,
            object: json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                "metadata": {"name": name, "generation": 1}, "value": value,
                "description": description, "preemptionPolicy": "PreemptLowerPriority"}),
        };
        state.ensure(class, None);
    }
    token_tracking(state);
    service_cidr(state);
    own_endpoints(state);
    flow_control::install(state);
    api_services(state);
}

/// Since when the server notes the use of token Secrets: kube-controller-manager removes unused ones a
/// year later.
fn token_tracking(state: &mut State) {
    let today = state.clock.now().strftime("%Y-%m-%d").to_string();
    let name = "kube-apiserver-legacy-service-account-token-tracking";
    config_map(state, name, json!({"since": today}));
}

/// How servers that extend this one, and controllers with a port of their own, verify the
/// certificates of their clients. A front proxy, of which they would find the rest here, does not
/// exist.
fn authentication(state: &mut State, authority: &str) {
    let data = json!({"client-ca-file": authority});
    config_map(state, "extension-apiserver-authentication", data);
}

/// A ConfigMap of the server in `kube-system`.
fn config_map(state: &mut State, name: &str, data: Value) {
    let map = Initial {
        group: "",
        plural: "configmaps",
        manager: SERVER_MANAGER,
        object: json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "kube-system"}, "data": data}),
    };
    state.ensure(map, None);
}

fn service_cidr(state: &mut State) {
    let network = Initial {
        group: "networking.k8s.io",
        plural: "servicecidrs",
        manager: SERVER_MANAGER,
        object: json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
            "metadata": {"name": OWN}, "spec": {"cidrs": ["10.0.0.0/24"]}}),
    };
    let ready = json!({"type": "Ready", "status": "True",
        "message": "Kubernetes default Service CIDR is ready",
        "lastTransitionTime": state.now()});
    let status = ("kubernetes-service-cidr-controller", ready);
    state.ensure(network, Some(status));
}

/// The endpoints of the server's own Service. A server that listens on loopback has no address that they admit, and one in a
/// process does not listen: they have an address of a network that exists only in documents
/// (RFC 5737), so that nobody reaches something else by it.
fn own_endpoints(state: &mut State) {
    let address = "192.0.2.1";
    let port = json!({"name": "https", "port": 6443, "protocol": "TCP"});
    let endpoints = json!({"apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": OWN, "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}},
        "subsets": [{"addresses": [{"ip": address}], "ports": [port]}]});
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": OWN, "namespace": "default", "generation": 1,
            "labels": {"kubernetes.io/service-name": OWN}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
        "ports": [port]});
    for (group, plural, object) in [
        ("", "endpoints", endpoints),
        ("discovery.k8s.io", "endpointslices", slice),
    ] {
        let initial = Initial {
            group,
            plural,
            manager: SERVER_MANAGER,
            object,
        };
        state.ensure(initial, None);
    }
}

/// An APIService for every group and version of the built-in kinds.
fn api_services(state: &mut State) {
    let registry = state.registry.clone();
    for group in registry.groups() {
        let Some(priority) = discovery::priority(group) else {
            continue;
        };
        for version in registry.versions(group) {
            let version_priority = match (group, version) {
                ("", _) => 1,
                ("autoscaling", "v2") => 30,
                ("flowcontrol.apiserver.k8s.io" | "resource.k8s.io", _) => 21,
                _ => 15,
            };
            let mut spec = json!({"group": group, "version": version,
                "groupPriorityMinimum": priority, "versionPriority": version_priority});
            if group.is_empty() {
                meta::fields(&mut spec).shift_remove("group");
            }
            let service = Initial {
                group: "apiregistration.k8s.io",
                plural: "apiservices",
                manager: SERVER_MANAGER,
                object: json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                    "metadata": {"name": format!("{version}.{group}"),
                        "labels": {"kube-aggregator.kubernetes.io/automanaged": "onstart"}},
                    "spec": spec,
                    "status": {"conditions": [{"type": "Available", "status": "True",
                        "lastTransitionTime": state.now(), "reason": "Local",
                        "message": "Local APIServices are always available"}]}}),
            };
            state.ensure(service, None);
        }
    }
}

//! Creates the service account and the CA config map of every namespace
//! (pkg/controller/serviceaccount, pkg/controller/certificates/rootcacertpublisher).

use serde_json::{Value, json};

use crate::apply::{self, Writer};
use crate::initial::object::{Initial, SERVER_MANAGER};
use crate::meta;
use crate::state::State;
use crate::store::Key;
use crate::trigger::namespace_bootstrap::{
    ACCOUNT, AUTHORITY, DESCRIPTION, SERVICE, publishes,
};

/// The field manager of what kube-controller-manager creates.
const MANAGER: &str = "kube-controller-manager";

/// Creates the missing objects of a namespace and restores its CA certificate, unless it is being
/// deleted.
pub(crate) fn reconcile(state: &mut State, namespace: &str) {
    let found = state.get(state.buckets.namespaces, &Key::new("", namespace));
    if found.is_none_or(|it| meta::is_deleting(it)) {
        return;
    }
    if !state.bare_namespaces {
        fill(state, namespace);
    }
    if namespace == "default" {
        ensure(state, own_service());
    }
}

/// Creates what kube-controller-manager creates in a namespace.
fn fill(state: &mut State, namespace: &str) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": ACCOUNT, "namespace": namespace}});
    ensure(state, account);
    if let Some(authority) = state.authority.clone() {
        let note = "Contains a CA bundle that can be used to verify the kube-apiserver when \
                    using internal endpoints such as the internal service IP or \
                    kubernetes.default.svc. No other usage is guaranteed across \
                    distributions of Kubernetes clusters.";
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": AUTHORITY, "namespace": namespace,
                "annotations": {DESCRIPTION: note}},
            "data": {"ca.crt": *authority}});
        restore(state, &map, &authority);
        ensure(state, map);
    }
}

/// The service of the API server itself, with the default address of `--service-cluster-ip-range`.
/// No server listens there: no pods run.
fn own_service() -> Value {
    json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
            "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP",
                "targetPort": 6443}],
            "sessionAffinity": "None", "type": "ClusterIP"},
        "status": {"loadBalancer": {}}})
}

/// Writes the data and the description of `wanted` into the changed config map of the CA
/// certificate.
fn restore(state: &mut State, wanted: &Value, authority: &str) {
    let key = Key::new(meta::namespace(wanted), AUTHORITY);
    let bucket = state.buckets.maps;
    let Some(old) = state.get(bucket, &key).cloned() else {
        return;
    };
    let resource = state.registry.find("", "v1", "configmaps").cloned();
    let Some(resource) = resource.filter(|_| !publishes(&old, authority)) else {
        return;
    };
    let mut map = Value::clone(&old);
    map["data"] = wanted["data"].clone();
    let annotations = meta::field(meta::edit(&mut map), "annotations");
    let description = wanted["metadata"]["annotations"][DESCRIPTION].clone();
    annotations.insert(DESCRIPTION.to_owned(), description);
    let writer = Writer {
        manager: MANAGER,
        subresource: "",
        now: state.clock.now(),
    };
    apply::tracked(&resource, Some(&old), &mut map, &writer);
    state.put(bucket, map);
}

fn ensure(state: &mut State, object: Value) {
    let (plural, manager) = match object["kind"].as_str() {
        Some("ConfigMap") => ("configmaps", MANAGER),
        Some("ServiceAccount") => ("serviceaccounts", MANAGER),
        _ => ("services", SERVER_MANAGER),
    };
    let initial = Initial {
        group: "",
        plural,
        manager,
        object,
    };
    state.ensure(initial, None);
}

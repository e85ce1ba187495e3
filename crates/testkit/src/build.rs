//! Builders of the objects that tests need, and fixed instants.

use jiff::Timestamp;
use serde_json::{Value, json};

/// Parses a time of a test.
///
/// # Panics
/// If it is not RFC 3339, because the test is wrong then.
#[expect(clippy::expect_used, reason = "a panic fails the test")]
pub fn instant(text: &str) -> Timestamp {
    text.parse().expect("an RFC 3339 instant")
}

/// A ScheduledMachine named `name` in namespace `default` and cluster `production-cluster`. Its
/// schedule is weekdays from 09:00 to 18:00 in New York; all timeouts are five minutes.
pub fn scheduled_machine(name: &str) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledMachine",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "clusterName": "production-cluster",
            "schedule": {
                "daysOfWeek": ["mon-fri"],
                "hoursOfDay": ["9-17"],
                "timezone": "America/New_York",
            },
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                "kind": "K0sWorkerConfig",
                "spec": {"version": "v1.30.0+k0s.0"},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "RemoteMachine",
                "spec": {"address": format!("{name}.example"), "port": 22},
            },
            "gracefulShutdownTimeout": "5m",
            "nodeDrainTimeout": "5m",
        },
    })
}

/// The Cluster that [`scheduled_machine`] belongs to.
pub fn cluster_object(contract: fivespot_sim::Contract) -> Value {
    json!({
        "apiVersion": contract.api_version(),
        "kind": "Cluster",
        "metadata": {"name": "production-cluster", "namespace": "default"},
        "spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}}},
    })
}

/// A pod of the app `app`, bound to `node`, in namespace `default`.
pub fn pod(name: &str, app: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
        "spec": {
            "nodeName": node,
            "containers": [{"name": app, "image": "registry.example/app:1"}],
        },
    })
}

//! A cluster in which one ScheduledMachine is at work.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{Cluster, cluster_object, instant, machine_path, pod};

/// A Friday on which the window of [`scheduled_machine`](crate::scheduled_machine) closes:
/// ten minutes before it does.
pub const BEFORE_CLOSING: &str = "2026-03-06T22:50:00Z";

/// The instant at which it closes.
pub const CLOSING: &str = "2026-03-06T23:00:00Z";

impl Cluster {
    /// Applies `machine` and the Cluster that it names, and waits until it is Active. An
    /// operator runs, and the window is open.
    pub async fn bring_up(&self, machine: &Value) -> Value {
        self.apply(&cluster_object(self.contract())).await;
        self.apply(machine).await;
        let name = machine["metadata"]["name"].as_str().unwrap_or_default();
        self.wait_for_phase(name, "Active", self.within(SignedDuration::from_mins(1)))
            .await
    }

    /// The instant that lies `span` ahead, as a limit to waiting.
    pub fn within(&self, span: SignedDuration) -> Timestamp {
        self.clock()
            .now()
            .saturating_add(span)
            .unwrap_or(Timestamp::MAX)
    }

    /// Binds a pod of the app `shop` to `node` and waits until it runs.
    pub async fn run_pod(&self, name: &str, node: &str) {
        self.apply(&pod(name, "shop", node)).await;
        let path = pod_path(name);
        let limit = self.within(SignedDuration::from_mins(1));
        self.wait_for(&path, limit, |pod| pod["status"]["phase"] == "Running")
            .await;
    }

    /// Forbids to evict a pod of the app `shop` while fewer than two run.
    pub async fn hold_last_pod(&self) {
        self.apply(&json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "shop"}}},
        }))
        .await;
    }

    /// The status of the ScheduledMachine `name`, or null.
    pub async fn status(&self, name: &str) -> Value {
        let mut object = self.get(&machine_path(name)).await.unwrap_or(Value::Null);
        object["status"].take()
    }

    /// Lets time pass until `to`, an RFC 3339 instant.
    pub async fn pass_to(&self, to: &str) {
        self.pass_until(instant(to)).await;
    }
}

/// The condition `kind` in a status, or null.
pub fn condition(status: &Value, kind: &str) -> Value {
    let conditions = status["conditions"].as_array();
    conditions
        .and_then(|all| all.iter().find(|condition| condition["type"] == kind))
        .cloned()
        .unwrap_or_default()
}

/// The path of the pod `name` in namespace `default`.
pub fn pod_path(name: &str) -> String {
    format!("/api/v1/namespaces/default/pods/{name}")
}

/// The path of the Node `name`.
pub fn node_path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

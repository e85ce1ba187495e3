//! A cluster with one ScheduledMachine in operation.

use fivespot_capi::key::EXCLUDE_NODE_DRAINING;
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::request::Form;
use crate::{
    Backend, Cluster, Contract, cluster_object, instant, machine_path, path_of, pod,
    rights,
};

/// Ten minutes before [`CLOSING`], on the same Friday.
pub const BEFORE_CLOSING: &str = "2026-03-06T22:50:00Z";

/// When the window of [`scheduled_machine`](crate::scheduled_machine) closes on that Friday.
pub const CLOSING: &str = "2026-03-06T23:00:00Z";

/// The path of the budget of [`Cluster::hold_last_pod`].
const SHOP_BUDGET: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/shop";

/// The finalizer of [`Cluster::hold`].
const HOLD: &str = "example.com/hold";

impl Cluster {
    /// Applies [`cluster_object`]. Waits until a real Cluster is ready, which does not need the
    /// operator's clock.
    pub async fn add_cluster(&self) {
        self.apply(&cluster_object(self.contract())).await;
        if Backend::chosen() == Backend::Kubernetes {
            let path = self.cluster_path();
            let is_up = async || {
                let cluster = self.get(&path).await.unwrap_or_default();
                let status = &cluster["status"];
                condition(status, "ControlPlaneInitialized")["status"] == "True"
                    && (status["infrastructureReady"] == true
                        || status["initialization"]["infrastructureProvisioned"] == true)
            };
            self.eventually(is_up).await;
        }
    }

    /// Creates a DaemonSet with the name, and returns its uid, for pods that it owns.
    pub async fn daemon_set(&self, name: &str) -> Value {
        let labels = json!({"daemon-set": name});
        let created = self
            .create(&json!({
                "apiVersion": "apps/v1",
                "kind": "DaemonSet",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {
                        "metadata": {"labels": labels},
                        "spec": pod(name, name, "")["spec"],
                    },
                },
            }))
            .await;
        created.map_or(Value::Null, |created| created["metadata"]["uid"].clone())
    }

    /// Applies `machine` and its Cluster, and waits until it is Active. An operator must run,
    /// and the window must be open.
    pub async fn bring_up(&self, machine: &Value) -> Value {
        self.add_cluster().await;
        self.apply(machine).await;
        let name = machine["metadata"]["name"].as_str().unwrap_or_default();
        // A real Cluster API does not use the operator's clock.
        let limit = match Backend::chosen() {
            Backend::Embedded => SignedDuration::from_mins(1),
            Backend::Kubernetes => SignedDuration::from_secs(5),
        };
        self.wait_for_phase(name, "Active", self.deadline_in(limit))
            .await
    }

    /// Waits at most one minute until `holds` is true for the object at `path`.
    pub async fn wait_briefly(
        &self,
        path: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let limit = self.deadline_in(SignedDuration::from_mins(1));
        self.wait_for(path, limit, holds).await
    }

    /// Keeps the object at `path` from being removed after its deletion, so that it can be
    /// inspected.
    pub async fn hold(&self, path: &str) {
        let object = self.get(path).await.unwrap_or_default();
        let mut finalizers = object["metadata"]["finalizers"].clone();
        match finalizers.as_array_mut() {
            Some(all) => all.push(json!(HOLD)),
            None => finalizers = json!([HOLD]),
        }
        let patch = json!({"metadata": {"finalizers": finalizers}});
        self.patch(path, &patch).await;
    }

    /// Ends [`hold`](Self::hold). It waits until the other finalizers are removed.
    pub async fn release(&self, path: &str) {
        let only_ours =
            |object: &Value| object["metadata"]["finalizers"] == json!([HOLD]);
        self.wait_briefly(path, only_ours).await;
        self.patch(path, &json!({"metadata": {"finalizers": []}}))
            .await;
    }

    /// Keeps the operator's rights in the namespace that the test calls `name` during its
    /// deletion. No effect if the rights apply in every namespace.
    pub async fn hold_rights(&self, name: &str) {
        for path in self.rights_in(name) {
            self.hold(&path).await;
        }
    }

    /// Ends [`hold_rights`](Self::hold_rights).
    pub async fn release_rights(&self, name: &str) {
        for path in self.rights_in(name) {
            self.release(&path).await;
        }
    }

    fn rights_in(&self, name: &str) -> Vec<String> {
        if Backend::chosen() == Backend::Embedded {
            return Vec::new();
        }
        let namespace = self.namespace(name);
        let all = rights::in_namespaces(
            std::slice::from_ref(&namespace),
            self.names().providers(),
        );
        all.iter()
            .filter(|object| object["metadata"]["namespace"] == namespace.as_str())
            .map(|object| {
                let mut object = object.clone();
                object["metadata"]["namespace"] = json!(name);
                path_of(&object)
            })
            .collect()
    }

    /// The path of the Cluster of [`cluster_object`].
    pub fn cluster_path(&self) -> String {
        path_of(&cluster_object(self.contract()))
    }

    /// The drain timeout of a Machine, in the form of its contract.
    ///
    /// # Panics
    /// If it has none.
    #[expect(clippy::expect_used, reason = "a panic fails the test")]
    pub fn drain_timeout(&self, machine: &Value) -> SignedDuration {
        let spec = &machine["spec"];
        let timeout = match self.contract() {
            Contract::V1Beta1 => spec["nodeDrainTimeout"]
                .as_str()
                .and_then(|text| text.parse().ok()),
            Contract::V1Beta2 => spec["deletion"]["nodeDrainTimeoutSeconds"]
                .as_i64()
                .map(SignedDuration::from_secs),
        };
        timeout.expect("a drain timeout")
    }

    /// Deletes the objects that a real Cluster API would otherwise continue to reconcile: the
    /// Cluster, the Machine of the ScheduledMachine `name`, and its Node. Call it after the
    /// last operator has stopped; it does not wait. An embedded cluster ends on its own.
    pub async fn delete_leftovers(&self, name: &str) {
        if Backend::chosen() == Backend::Embedded {
            return;
        }
        let [_, _, machine] = self.owned_paths(name);
        let undrained = json!({"metadata": {"annotations": {EXCLUDE_NODE_DRAINING: ""}}});
        let released = json!({"metadata": {"finalizers": []}});
        let object = machine_path(name);
        // Requests for objects that are gone are rejected.
        let _ = self.try_patch(&machine, &undrained).await;
        let _ = self.try_patch(&object, &released).await;
        for path in [object, self.cluster_path(), node_path(name)] {
            let options = (Form::Json, &Value::Null);
            let _ = self.send(Method::DELETE, &path, options).await;
        }
    }

    /// The current time plus `span`, as a limit for waiting.
    pub fn deadline_in(&self, span: SignedDuration) -> Timestamp {
        self.clock()
            .now()
            .saturating_add(span)
            .unwrap_or(Timestamp::MAX)
    }

    /// Binds a pod of the app `shop` to `node` and waits until it runs.
    pub async fn run_pod(&self, name: &str, node: &str) {
        self.apply(&pod(name, "shop", node)).await;
        let path = pod_path(name);
        let limit = self.deadline_in(SignedDuration::from_mins(1));
        self.wait_for(&path, limit, |pod| pod["status"]["phase"] == "Running")
            .await;
    }

    /// Creates a disruption budget that prevents evictions of pods of the app `shop` below two.
    pub async fn hold_last_pod(&self) {
        self.apply(&json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "shop"}}},
        }))
        .await;
        if Backend::chosen() == Backend::Kubernetes {
            let knows_of_pod = async || {
                let budget = self.get(SHOP_BUDGET).await.unwrap_or_default();
                budget["status"]["currentHealthy"].as_u64() > Some(0)
            };
            self.eventually(knows_of_pod).await;
        }
    }

    /// Ends [`hold_last_pod`](Self::hold_last_pod).
    pub async fn release_last_pod(&self) {
        self.delete(SHOP_BUDGET).await;
    }

    /// The status of the ScheduledMachine `name`, or null.
    pub async fn status(&self, name: &str) -> Value {
        let mut object = self.get(&machine_path(name)).await.unwrap_or(Value::Null);
        object["status"].take()
    }

    /// Advances the clock until `to`, an RFC 3339 time.
    pub async fn advance_to(&self, to: &str) {
        self.advance_until(instant(to)).await;
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

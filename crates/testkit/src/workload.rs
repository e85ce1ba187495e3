//! Objects in the workload cluster, if it is a separate server.

use http::Method;
use serde_json::Value;

use crate::Cluster;
use crate::request::{self, Form};
use crate::traffic;

/// The resources that tests use only in the workload cluster.
const RESOURCES: [&str; 5] = [
    "configmaps",
    "daemonsets",
    "nodes",
    "poddisruptionbudgets",
    "pods",
];

/// Whether the object at `path` is in the workload cluster.
pub(crate) fn is_workload_path(path: &str) -> bool {
    let (path, _) = path.split_once('?').unwrap_or((path, ""));
    RESOURCES.contains(&traffic::resource(path))
}

#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a panic fails the test"
)]
impl Cluster {
    /// Applies an object, whose kind is in both clusters, such as a role, to the workload
    /// cluster.
    pub async fn apply_to_workload(&self, object: &Value) {
        let object = self.names().object(object);
        if let Err(error) = request::apply(self.workload(), &object).await {
            panic!("{object}: {error}");
        }
    }

    /// Deletes the object at `path` from the workload cluster.
    pub async fn delete_from_workload(&self, path: &str) {
        let path = self.names().path(path);
        let body = (Form::Json, &Value::Null);
        request::send(self.workload(), Method::DELETE, &path, body)
            .await
            .expect("the deletion is accepted");
    }
}

#[cfg(test)]
mod tests {
    use super::is_workload_path;

    #[test]
    fn nodes_and_pods_are_in_the_workload_cluster_and_machines_are_not() {
        for path in [
            "/api/v1/nodes",
            "/api/v1/nodes/worker/status",
            "/api/v1/namespaces/a/pods/x/eviction",
            "/api/v1/namespaces/a/pods?fieldManager=test&force=true",
            "/apis/policy/v1/namespaces/a/poddisruptionbudgets/shop",
        ] {
            assert!(is_workload_path(path), "{path}");
        }
        for path in [
            "/api/v1/namespaces/nodes",
            "/api/v1/namespaces/a/secrets/pods",
            "/apis/cluster.x-k8s.io/v1beta2/namespaces/a/machines/nodes",
            "/version",
        ] {
            assert!(!is_workload_path(path), "{path}");
        }
    }
}

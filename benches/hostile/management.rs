//! The management cluster: an API server in this process, on a socket.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fivespot_apiserver::{
    Audit, AuditEvent, Client, Credentials, Options, Patch, Server,
};
use fivespot_clock::Clock;
use fivespot_sim::Contract;
use fivespot_testkit::{cluster_object, scheduled_machine};
use jiff::{SignedDuration, Timestamp, ToSpan as _, Unit};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::BoxError;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CLUSTERS: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters";
const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";
const SCHEDULED: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// How long before its window opens a machine is created.
const LEAD: SignedDuration = SignedDuration::from_secs(20);

/// The API server. Dropping it stops it.
pub(crate) struct Management {
    client: Client,
    created: Arc<Mutex<Vec<Timestamp>>>,
    task: AbortHandle,
}

impl Drop for Management {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Management {
    /// Starts one with the CRDs of Cluster API and 5-Spot, and a Cluster that is ready for
    /// machines. Writes a kubeconfig to this path.
    pub(crate) async fn start(kubeconfig: &Path) -> Result<Self, BoxError> {
        let created: Arc<Mutex<Vec<Timestamp>>> = Arc::default();
        let shared = created.clone();
        let mut options = Options::new(Clock::system());
        options.audit = Some(Audit::new(move |event: &AuditEvent| {
            let is_machine = event.resource == "machines" && event.subresource.is_empty();
            if event.verb == "create" && is_machine && event.code == 201 {
                let mut created = shared.lock().unwrap_or_else(PoisonError::into_inner);
                created.push(event.at);
            }
        }));
        let server = Server::new(options)?;
        let client = server.client();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let credentials = Credentials::generate()?;
        let text = credentials.kubeconfig(listener.local_addr()?, "management");
        std::fs::write(kubeconfig, text)?;
        let task = tokio::spawn(async move {
            let ended = server.serve(listener, &credentials, std::future::pending());
            if let Err(error) = ended.await {
                eprintln!("the API server has ended: {error}");
            }
        });
        let own = Self {
            client,
            created,
            task: task.abort_handle(),
        };
        // The operator's Lease is in its own namespace.
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "5spot-system"}});
        own.create("/api/v1/namespaces", namespace).await?;
        own.create(DEFINITIONS, fivespot_api::crd::render(36))
            .await?;
        for definition in fivespot_sim::definitions(Contract::V1Beta2) {
            own.create(DEFINITIONS, definition).await?;
        }
        own.create(CLUSTERS, cluster_object(Contract::V1Beta2))
            .await?;
        let status = json!({"status": {"initialization": {
            "infrastructureProvisioned": true, "controlPlaneInitialized": true,
        }}});
        let cluster = format!("{CLUSTERS}/production-cluster/status");
        own.merge(&cluster, status).await?;
        Ok(own)
    }

    async fn create(&self, path: &str, object: Value) -> Result<(), BoxError> {
        let created = self.client.create(path, object).await;
        created
            .map(|_| ())
            .map_err(|refusal| format!("{path}: {refusal:?}").into())
    }

    async fn merge(&self, path: &str, patch: Value) -> Result<(), BoxError> {
        let patched = self.client.patch(path, Patch::Merge(patch)).await;
        patched
            .map(|_| ())
            .map_err(|refusal| format!("{path}: {refusal:?}").into())
    }

    /// Adds a machine that is not wanted, whose bootstrap object would have this spec.
    pub(crate) async fn add_large(
        &self,
        number: u32,
        spec: Value,
    ) -> Result<(), BoxError> {
        let mut object = scheduled_machine(&format!("large-{number}"));
        object["spec"]["schedule"]["enabled"] = json!(false);
        object["spec"]["bootstrapSpec"]["spec"] = spec;
        self.create(SCHEDULED, object).await
    }

    /// Adds an unrelated machine whose window opens soon. Returns the instant.
    pub(crate) async fn add_unrelated(&self) -> Result<Timestamp, BoxError> {
        let soon = Clock::system().now() + LEAD;
        let edge = soon.round(Unit::Minute)?;
        let edge = if edge < soon {
            edge.checked_add(1.minute())?
        } else {
            edge
        };
        let mut object = scheduled_machine("unrelated");
        let cron = edge.strftime("%-M %-H * * *").to_string();
        object["spec"]["schedule"] = json!({"cron": cron, "duration": "10m"});
        self.create(SCHEDULED, object).await?;
        Ok(edge)
    }

    /// Adds a machine that is always wanted, with the kubeconfig of its workload cluster.
    pub(crate) async fn add_victim(&self, kubeconfig: &str) -> Result<(), BoxError> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
            "metadata": {
                "name": "production-cluster-kubeconfig", "namespace": "default",
                "labels": {"cluster.x-k8s.io/cluster-name": "production-cluster"},
            },
            "stringData": {"value": kubeconfig},
        });
        self.create(SECRETS, secret).await?;
        let mut object = scheduled_machine("victim");
        object["spec"]["schedule"] = json!({"cron": "* * * * *", "duration": "1h"});
        self.create(SCHEDULED, object).await
    }

    /// Waits for the victim's Machine, and sets a Node in its status. The operator then reads the
    /// Node from the workload cluster.
    pub(crate) async fn join_victim(&self) -> Result<(), BoxError> {
        let path = format!("{MACHINES}/victim");
        let mut tries = 0;
        while self.client.get(&path).await.is_err() {
            tries += 1;
            if tries > 150 {
                return Err("the victim's Machine was not created".into());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let spec = json!({"spec": {"providerID": "sim://victim"}});
        self.merge(&path, spec).await?;
        let status = json!({"status": {
            "phase": "Running", "nodeRef": {"name": "node-0"},
        }});
        self.merge(&format!("{path}/status"), status).await
    }

    /// How late the Machine was created whose window opened at `edge`. `None` if it was not
    /// created.
    pub(crate) fn lateness(&self, edge: Timestamp) -> Option<Duration> {
        let created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        let first = created.iter().filter(|at| **at >= edge).min()?;
        Duration::try_from(first.duration_since(edge)).ok()
    }
}

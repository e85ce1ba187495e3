//! The management cluster: an API server in this process, on a socket.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use benches::ApiServer;
use fivespot_api::{RESOURCES, name};
use fivespot_sim::Contract;
use fivespot_testkit::{cluster_object, scheduled_machine};
use jiff::{SignedDuration, Timestamp, ToSpan as _, Unit};
use kubemu_apiserver::{AuditEvent, Patch};
use kubemu_clock::Clock;
use serde_json::{Value, json};

use crate::BoxError;

const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machines";
const SCHEDULED: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// The namespace of the tenant whose objects cost something. Further ones begin with it.
pub(crate) const TENANT: &str = "tenant";
/// The namespace of the tenant whose machines must not be late.
pub(crate) const OTHER: &str = "other";

/// The path of a kind of 5-Spot, or of another provider of schedules, in a namespace.
pub(crate) fn collection(namespace: &str, plural: &str) -> String {
    let ours = RESOURCES.iter().find(|of| of.plural == plural);
    let group = ours.map_or(name::SPOT_GROUP, |of| of.group);
    format!("/apis/{group}/v1alpha1/namespaces/{namespace}/{plural}")
}

/// The path of a Deployment of [`Management::create_deployment`].
pub(crate) fn deployment_path(namespace: &str, number: u32) -> String {
    format!("{DEPLOYMENTS}/{namespace}/deployments/tenant-{number}")
}

/// The path of all classes.
pub(crate) const CLASSES: &str = "/apis/5spot.finos.org/v1alpha1/scheduledmachineclasses";

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces";

/// How long before its window opens a machine is created.
const LEAD: SignedDuration = SignedDuration::from_secs(20);
/// How long the operator's Lease is valid without a renewal: the default.
const LEASE_DURATION: Duration = Duration::from_secs(15);

/// What the API server was asked for.
#[derive(Debug, Default)]
struct Seen {
    /// When Machines were created: the namespace and the instant of each.
    machines: Vec<(String, Timestamp)>,
    /// When Leases were created or renewed.
    renewals: Vec<Timestamp>,
    /// The requests of the operator for each namespace, without watches.
    requests: BTreeMap<String, u64>,
}

/// The API server. Dropping it stops it.
pub(crate) struct Management {
    server: ApiServer,
    seen: Arc<Mutex<Seen>>,
}

/// The kind of another provider of schedules.
fn provider_definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "manualschedules.spotschedules.5spot.finos.org"},
        "spec": {
            "group": "spotschedules.5spot.finos.org", "scope": "Namespaced",
            "names": {"kind": "ManualSchedule", "plural": "manualschedules"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

impl Management {
    /// Starts one with the CRDs of Cluster API and 5-Spot, and a Cluster that is ready for
    /// machines. Writes a kubeconfig to this path.
    pub(crate) async fn start(kubeconfig: &Path) -> Result<Self, BoxError> {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let shared = seen.clone();
        let audit = move |event: &AuditEvent| {
            let mut seen = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let is_done = (200..300).contains(&event.code);
            let is_machine = event.resource == "machines" && event.subresource.is_empty();
            if event.verb == "create" && is_machine && event.code == 201 {
                seen.machines.push((event.namespace.clone(), event.at));
            }
            if event.resource == "leases" && event.is_write() && is_done {
                seen.renewals.push(event.at);
            }
            if event.user != ApiServer::USER && event.verb != "watch" {
                *seen.requests.entry(event.namespace.clone()).or_default() += 1;
            }
        };
        let definitions = fivespot_sim::definitions(Contract::V1Beta2);
        let definitions = definitions.into_iter().chain([provider_definition()]);
        let server = ApiServer::start(kubeconfig, definitions, audit).await?;
        let own = Self { server, seen };
        own.add_cluster("default").await?;
        for namespace in [TENANT, OTHER] {
            own.add_namespace(namespace).await?;
        }
        Ok(own)
    }

    /// A namespace with a Cluster that is ready for machines.
    pub(crate) async fn add_namespace(&self, namespace: &str) -> Result<(), BoxError> {
        let object = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace}});
        self.server.create("/api/v1/namespaces", object).await?;
        self.add_cluster(namespace).await
    }

    /// A Cluster that is ready for machines.
    async fn add_cluster(&self, namespace: &str) -> Result<(), BoxError> {
        let path =
            format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/{namespace}/clusters");
        let mut object = cluster_object(Contract::V1Beta2);
        object["metadata"]["namespace"] = json!(namespace);
        self.server.create(&path, object).await?;
        let status = json!({"status": {"initialization": {
            "infrastructureProvisioned": true, "controlPlaneInitialized": true,
        }}});
        let cluster = format!("{path}/production-cluster/status");
        self.merge(&cluster, status).await
    }

    /// Creates an object of a kind of 5-Spot in a namespace.
    pub(crate) async fn create_in(
        &self,
        namespace: &str,
        plural: &str,
        mut object: Value,
    ) -> Result<(), BoxError> {
        object["metadata"]["namespace"] = json!(namespace);
        self.server
            .create(&collection(namespace, plural), object)
            .await
    }

    /// Creates the class of the tenant.
    pub(crate) async fn create_class(&self, object: Value) -> Result<(), BoxError> {
        self.server.create(CLASSES, object).await
    }

    /// Creates a Deployment without replicas.
    pub(crate) async fn create_deployment(
        &self,
        namespace: &str,
        number: u32,
    ) -> Result<(), BoxError> {
        let labels = json!({"app": "target"});
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": format!("tenant-{number}"), "namespace": namespace},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "app", "image": "registry.example/app:1"}]},
                },
            },
        });
        let path = format!("{DEPLOYMENTS}/{namespace}/deployments");
        self.server.create(&path, object).await
    }

    /// Reads an object.
    pub(crate) async fn read(&self, path: &str) -> Result<Value, BoxError> {
        let found = self.server.client().get(path).await;
        found
            .map(|object| object.as_ref().clone())
            .map_err(|refusal| format!("{path}: {refusal:?}").into())
    }

    /// Lets another holder have the operator's Lease for longer than any row takes.
    pub(crate) async fn hold_lease(&self, now: Timestamp) -> Result<(), BoxError> {
        let now = format!("{now:.6}");
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name::LEADER_LEASE},
            "spec": {
                "holderIdentity": "earlier", "leaseDurationSeconds": 3600,
                "acquireTime": now, "renewTime": now, "leaseTransitions": 0,
            },
        });
        self.server.create(LEASES, lease).await
    }

    /// Ends what [`Self::hold_lease`] has begun.
    pub(crate) async fn release_lease(&self) -> Result<(), BoxError> {
        let path = format!("{LEASES}/{}", name::LEADER_LEASE);
        let released = json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}});
        self.merge(&path, released).await
    }

    /// Changes an object, by a merge patch.
    pub(crate) async fn merge(&self, path: &str, patch: Value) -> Result<(), BoxError> {
        let patched = self.server.client().patch(path, Patch::Merge(patch)).await;
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
        self.server.create(SCHEDULED, object).await
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
        self.server.create(SCHEDULED, object).await?;
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
        self.server.create(SECRETS, secret).await?;
        let mut object = scheduled_machine("victim");
        object["spec"]["schedule"] = json!({"cron": "* * * * *", "duration": "1h"});
        self.server.create(SCHEDULED, object).await
    }

    /// Waits for the victim's Machine, and sets a Node in its status. The operator then reads the
    /// Node from the workload cluster.
    pub(crate) async fn join_victim(&self) -> Result<(), BoxError> {
        let path = format!("{MACHINES}/victim");
        let mut tries = 0;
        while self.server.client().get(&path).await.is_err() {
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
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let first = seen
            .machines
            .iter()
            .map(|of| of.1)
            .filter(|at| *at >= edge)
            .min()?;
        Duration::try_from(first.duration_since(edge)).ok()
    }

    /// How late the latest of these edges of the other tenant was met, by the order of its
    /// Machines. `None` if fewer Machines than edges were created.
    pub(crate) fn latest(&self, edges: &[Timestamp]) -> Option<Duration> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let of_other = seen.machines.iter().filter(|of| of.0 == OTHER);
        let mut created: Vec<Timestamp> = of_other.map(|of| of.1).collect();
        created.sort_unstable();
        if created.len() < edges.len() {
            return None;
        }
        let late = edges.iter().zip(&created);
        late.map(|(edge, at)| {
            Duration::try_from(at.duration_since(*edge)).unwrap_or_default()
        })
        .max()
    }

    /// The longest time without a renewal of the Lease between these instants. `None` if it is
    /// longer than the Lease's duration.
    pub(crate) fn longest_renewal(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> Option<Duration> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let within = seen
            .renewals
            .iter()
            .filter(|at| **at > from && **at < until);
        let mut instants: Vec<Timestamp> = within.copied().collect();
        instants.push(until);
        let mut before = from;
        let mut longest = Duration::ZERO;
        for at in instants {
            let gap = Duration::try_from(at.duration_since(before)).unwrap_or_default();
            longest = longest.max(gap);
            before = at;
        }
        (longest < LEASE_DURATION).then_some(longest)
    }

    /// The requests of the operator for the namespaces of the tenant so far, without watches.
    pub(crate) fn requests_about_the_tenant(&self) -> u64 {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let of_tenant = seen
            .requests
            .iter()
            .filter(|(it, _)| it.starts_with(TENANT));
        of_tenant.map(|(_, count)| count).sum()
    }
}

//! The namespaces and the Cluster of a run: created before it, deleted after it.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use fivespot_api::name;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{self, pinned_kind};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::clusters::{Clusters, ProviderObject, request_failure};
use super::collection::Collection;
use crate::Failure;
use crate::cluster::error_message;
use crate::document::Document;

/// The prefix of the names of runs.
const PREFIX: &str = "5spot-conformance-";
/// The interval between two checks whether an object exists.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// The group of Cluster and Machine.
const CLUSTER_GROUP: &str = "cluster.x-k8s.io";

/// The Cluster that the machines of a run join.
#[derive(Clone, Debug)]
pub(super) enum TargetCluster {
    /// An existing Cluster in this namespace.
    Existing { namespace: String, cluster: String },
    /// A Cluster that is created from these objects, in a new namespace.
    New {
        objects: Vec<Document>,
        cluster: String,
    },
}

impl TargetCluster {
    /// The target that creates the Cluster among the manifests.
    ///
    /// # Errors
    /// The manifests do not contain exactly one Cluster.
    pub(super) fn from_manifests(objects: Vec<Document>) -> Result<Self, Failure> {
        let is_cluster = |it: &&Document| {
            it.text("/kind") == "Cluster"
                && it.text("/apiVersion").split('/').next() == Some(CLUSTER_GROUP)
        };
        let mut clusters = objects.iter().filter(is_cluster);
        let (Some(cluster), None) = (clusters.next(), clusters.next()) else {
            let why = "they do not contain exactly one Cluster of cluster.x-k8s.io";
            return Err(Failure::new("reading the manifests of --setup", why)
                .remedy("put the Cluster and what it needs into them"));
        };
        let cluster = cluster.text("/metadata/name").to_owned();
        Ok(Self::New { objects, cluster })
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Existing { cluster, .. } | Self::New { cluster, .. } => cluster,
        }
    }
}

/// The objects that were created for a run in the management cluster.
pub(super) struct Environment {
    client: Client,
    pub(super) namespace: String,
    /// The name of the run, and of the namespaces that are created for it.
    pub(super) id: String,
    /// The Cluster, if it was created for the run.
    own_cluster: Option<(ApiResource, String)>,
}

impl Environment {
    /// Creates the namespace and the objects of the target.
    ///
    /// # Errors
    /// The server refuses a request. The failure has its message.
    pub(super) async fn create(
        client: Client,
        target: &TargetCluster,
    ) -> Result<Self, Failure> {
        let id = new_name();
        let (objects, cluster) = match target {
            TargetCluster::New { objects, cluster } => (objects, cluster),
            TargetCluster::Existing { namespace, .. } => {
                return Ok(Self {
                    client,
                    namespace: namespace.clone(),
                    id,
                    own_cluster: None,
                });
            }
        };
        let namespaces = Collection::of::<Namespace>(&client, None);
        let made = namespaces.post(&namespace(&id)).await;
        made.map_err(|why| request_failure("creating a namespace", why))?;
        let mut environment = Self {
            namespace: id.clone(),
            id,
            client,
            own_cluster: None,
        };
        for object in objects {
            if let Err(failure) = environment.add(object, cluster).await {
                // The first failure is reported; objects that cannot be deleted after it are not.
                let _ = environment.delete(Duration::from_secs(30)).await;
                return Err(failure);
            }
        }
        Ok(environment)
    }

    async fn add(&mut self, document: &Document, cluster: &str) -> Result<(), Failure> {
        let resource = resource_of(&self.client, document).await?;
        let mut object = document.object.clone();
        object["metadata"]["namespace"] = json!(self.namespace);
        let api = Collection::new(&self.client, Some(&self.namespace), &resource);
        let what = format!("creating {} of {}", resource.kind, document.origin);
        let created = api.post(&object).await;
        created.map_err(|why| request_failure(&what, why))?;
        if resource.kind == "Cluster" && resource.group == CLUSTER_GROUP {
            self.own_cluster = Some((resource, cluster.to_owned()));
        }
        Ok(())
    }

    /// Deletes the Cluster, then the namespace, if they were created for the run, and waits until
    /// they are gone.
    ///
    /// # Errors
    /// A description of the objects that are left.
    pub(super) async fn delete(&self, timeout: Duration) -> Result<(), String> {
        // A namespace that was created for the run has its name.
        if self.namespace != self.id {
            return Ok(());
        }
        let namespace = &self.namespace;
        if let Some((resource, cluster)) = &self.own_cluster {
            let clusters = Collection::new(&self.client, Some(namespace), resource);
            clusters.delete(cluster).await?;
            poll_until(timeout, async || {
                matches!(clusters.get(cluster).await, Ok(None))
            })
            .await
            .map_err(|()| format!("Cluster {cluster} of namespace {namespace}"))?;
        }
        let namespaces = Collection::of::<Namespace>(&self.client, None);
        namespaces.delete(namespace).await?;
        poll_until(timeout, async || {
            matches!(namespaces.get(namespace).await, Ok(None))
        })
        .await
        .map_err(|()| format!("namespace {namespace}"))
    }
}

/// A unique name for a run. It is not generated by the server, because the servers of the in-memory
/// provider do not support generateName.
fn new_name() -> String {
    let letters = b"bcdfghjklmnpqrstvwxz2456789";
    let mut number = RandomState::new().build_hasher().finish();
    let mut name = PREFIX.to_owned();
    for _ in 0..5 {
        let count = letters.len() as u64;
        let index = usize::try_from(number % count).unwrap_or_default();
        name.push(char::from(letters[index]));
        number /= count;
    }
    name
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Polls until the condition holds.
///
/// # Errors
/// The condition did not hold within the timeout.
pub(super) async fn poll_until(
    timeout: Duration,
    holds: impl AsyncFn() -> bool,
) -> Result<(), ()> {
    let begun = Instant::now();
    while !holds().await {
        if begun.elapsed() >= timeout {
            return Err(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// The API resource of an object, by discovery.
///
/// # Errors
/// The kind is not served.
async fn resource_of(
    client: &Client,
    document: &Document,
) -> Result<ApiResource, Failure> {
    let version = document.text("/apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = GroupVersionKind::gvk(group, version, document.text("/kind"));
    let found = pinned_kind(client, &kind).await;
    found.map(|(resource, _)| resource).map_err(|error| {
        Failure::new(format!("reading {}", document.origin), error_message(error))
            .remedy("correct apiVersion and kind, or install the provider")
    })
}

/// The provider object of a file.
///
/// # Errors
/// There is not exactly one, or its kind is not served.
pub(super) async fn provider_object(
    client: &Client,
    documents: &[Document],
) -> Result<ProviderObject, Failure> {
    let [document] = documents else {
        let origin = documents
            .first()
            .map_or("the file", |it| it.origin.as_str());
        return Err(Failure::new(
            format!("reading {origin}"),
            format!("{} objects instead of one", documents.len()),
        )
        .remedy("give a file with one object: apiVersion, kind and spec"));
    };
    let object = json!({
        "apiVersion": document.object["apiVersion"],
        "kind": document.object["kind"],
        "spec": match &document.object["spec"] {
            Value::Null => json!({}),
            spec => spec.clone(),
        },
    });
    Ok(ProviderObject {
        resource: resource_of(client, document).await?,
        object,
    })
}

/// The API resource of Machines, in the version that the server prefers.
///
/// # Errors
/// Cluster API or 5-Spot is not installed.
pub(super) async fn machine_resource(client: &Client) -> Result<ApiResource, Failure> {
    let missing = |what: &str| {
        Failure::new("reading the cluster", format!("{what} is not installed"))
            .remedy("install it; `5spot check` shows what else is missing")
    };
    let found = discovery::group(client, name::GROUP).await;
    found.map_err(|_| missing("5-Spot"))?;
    let group = discovery::group(client, CLUSTER_GROUP).await;
    let group = group.map_err(|_| missing("Cluster API"))?;
    let found = group.recommended_kind("Machine");
    Ok(found.ok_or_else(|| missing("Cluster API"))?.0)
}

/// Waits until the workload cluster responds, and creates the namespace of the pods there.
///
/// # Errors
/// The reason why it does not respond.
pub(super) async fn workload_client(
    environment: &Environment,
    cluster: &str,
    timeout: Duration,
) -> Result<Client, Failure> {
    let begun = Instant::now();
    loop {
        match create_namespace_in(environment, cluster).await {
            Ok(client) => return Ok(client),
            Err(_) if begun.elapsed() < timeout => {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            Err(why) => {
                return Err(Failure::new(format!("reaching Cluster {cluster}"), why)
                    .remedy(
                        "wait until its control plane is up, or name another with --cluster",
                    ));
            }
        }
    }
}

/// Creates the namespace in the workload cluster. The management cluster may be the workload
/// cluster and have the namespace already.
async fn create_namespace_in(
    environment: &Environment,
    cluster: &str,
) -> Result<Client, String> {
    let found =
        Clusters::workload_of(&environment.client, &environment.namespace, cluster).await;
    let client = found.map_err(|why| format!("Secret {cluster}-kubeconfig: {why}"))?;
    let namespaces = Collection::of::<Namespace>(&client, None);
    namespaces.post(&namespace(&environment.id)).await?;
    Ok(client)
}

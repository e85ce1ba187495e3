//! The namespaces and the Cluster of a run: made before it, deleted after it.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use fivespot_api::name;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{self, pinned_kind};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::collection::Collection;
use super::site::{Provided, Site, refused};
use crate::Failure;
use crate::cluster::error_message;
use crate::document::Document;

/// What the names of runs begin with.
const PREFIX: &str = "5spot-conformance-";
/// How often it is looked whether something has come or gone.
const INTERVAL: Duration = Duration::from_millis(250);
/// The group of Cluster and Machine.
const CLUSTER_GROUP: &str = "cluster.x-k8s.io";

/// Where the machines of a run join.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// A Cluster that is there, in this namespace.
    Existing { namespace: String, cluster: String },
    /// A Cluster that is created from these objects, in a namespace of its own.
    Own {
        objects: Vec<Document>,
        cluster: String,
    },
}

impl Place {
    /// The place of a Cluster among manifests.
    ///
    /// # Errors
    /// There is not exactly one Cluster among them.
    pub(super) fn own(objects: Vec<Document>) -> Result<Self, Failure> {
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
        Ok(Self::Own { objects, cluster })
    }

    pub(super) fn cluster(&self) -> &str {
        match self {
            Self::Existing { cluster, .. } | Self::Own { cluster, .. } => cluster,
        }
    }
}

/// What has been created for a run in the management cluster.
pub(super) struct Ground {
    client: Client,
    pub(super) namespace: String,
    /// The name of the run, and of the namespaces that are created for it.
    pub(super) id: String,
    /// The Cluster, where it was created for the run.
    own: Option<(ApiResource, String)>,
}

impl Ground {
    /// Creates what the place needs.
    ///
    /// # Errors
    /// The server refuses something: its words.
    pub(super) async fn create(client: Client, place: &Place) -> Result<Self, Failure> {
        let id = new_name();
        let (objects, cluster) = match place {
            Place::Own { objects, cluster } => (objects, cluster),
            Place::Existing { namespace, .. } => {
                return Ok(Self {
                    client,
                    namespace: namespace.clone(),
                    id,
                    own: None,
                });
            }
        };
        let namespaces = Collection::of::<Namespace>(&client, None);
        let made = namespaces.post(&namespace(&id)).await;
        made.map_err(|why| refused("creating a namespace", why))?;
        let mut ground = Self {
            namespace: id.clone(),
            id,
            client,
            own: None,
        };
        for object in objects {
            if let Err(failure) = ground.add(object, cluster).await {
                // The failure is worth more than what cannot be deleted after it.
                let _ = ground.delete(Duration::from_secs(30)).await;
                return Err(failure);
            }
        }
        Ok(ground)
    }

    async fn add(&mut self, document: &Document, cluster: &str) -> Result<(), Failure> {
        let resource = resource_of(&self.client, document).await?;
        let mut object = document.object.clone();
        object["metadata"]["namespace"] = json!(self.namespace);
        let api = Collection::new(&self.client, Some(&self.namespace), &resource);
        let what = format!("creating {} of {}", resource.kind, document.origin);
        let created = api.post(&object).await;
        created.map_err(|why| refused(&what, why))?;
        if resource.kind == "Cluster" && resource.group == CLUSTER_GROUP {
            self.own = Some((resource, cluster.to_owned()));
        }
        Ok(())
    }

    /// Deletes the Cluster, then the namespace, if they were created for the run, and waits until
    /// they are gone.
    ///
    /// # Errors
    /// What is left.
    pub(super) async fn delete(&self, timeout: Duration) -> Result<(), String> {
        let Some((resource, cluster)) = &self.own else {
            return Ok(());
        };
        let clusters = Collection::new(&self.client, Some(&self.namespace), resource);
        let namespaces = Collection::of::<Namespace>(&self.client, None);
        clusters.delete(cluster).await?;
        let namespace = &self.namespace;
        until(timeout, async || {
            matches!(clusters.get(cluster).await, Ok(None))
        })
        .await
        .map_err(|()| format!("Cluster {cluster} of namespace {namespace}"))?;
        namespaces.delete(namespace).await?;
        until(timeout, async || {
            matches!(namespaces.get(namespace).await, Ok(None))
        })
        .await
        .map_err(|()| format!("namespace {namespace}"))
    }
}

/// A name for a run that no other has. It is not left to the server: the in-memory provider's
/// servers generate none.
fn new_name() -> String {
    let letters = b"bcdfghjklmnpqrstvwxz2456789";
    let mut number = RandomState::new().build_hasher().finish();
    let mut name = PREFIX.to_owned();
    for _ in 0..5 {
        let count = letters.len() as u64;
        let place = usize::try_from(number % count).unwrap_or_default();
        name.push(char::from(letters[place]));
        number /= count;
    }
    name
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Asks again and again until the answer is yes.
///
/// # Errors
/// It was not in time.
pub(super) async fn until(
    timeout: Duration,
    holds: impl AsyncFn() -> bool,
) -> Result<(), ()> {
    let begun = Instant::now();
    while !holds().await {
        if begun.elapsed() >= timeout {
            return Err(());
        }
        tokio::time::sleep(INTERVAL).await;
    }
    Ok(())
}

/// The resource of an object, by discovery.
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
pub(super) async fn provided(
    client: &Client,
    documents: &[Document],
) -> Result<Provided, Failure> {
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
    Ok(Provided {
        resource: resource_of(client, document).await?,
        object,
    })
}

/// The resource of Machines, in the version that the server prefers.
///
/// # Errors
/// Cluster API or 5-Spot is not installed.
pub(super) async fn machines(client: &Client) -> Result<ApiResource, Failure> {
    let missing = |what: &str| {
        Failure::new("reading the cluster", format!("{what} is not installed"))
            .remedy("install it; `5spot check` says what else is missing")
    };
    let found = discovery::group(client, name::GROUP).await;
    found.map_err(|_| missing("5-Spot"))?;
    let group = discovery::group(client, CLUSTER_GROUP).await;
    let group = group.map_err(|_| missing("Cluster API"))?;
    let found = group.recommended_kind("Machine");
    Ok(found.ok_or_else(|| missing("Cluster API"))?.0)
}

/// Waits until the workload cluster answers, and creates the namespace of the pods there.
///
/// # Errors
/// Why it does not answer.
pub(super) async fn workload(
    ground: &Ground,
    cluster: &str,
    timeout: Duration,
) -> Result<Client, Failure> {
    let begun = Instant::now();
    loop {
        match namespace_in(ground, cluster).await {
            Ok(client) => return Ok(client),
            Err(_) if begun.elapsed() < timeout => tokio::time::sleep(INTERVAL).await,
            Err(why) => {
                return Err(Failure::new(format!("reaching Cluster {cluster}"), why)
                    .remedy(
                        "wait until its control plane is up, or name another with --cluster",
                    ));
            }
        }
    }
}

/// The management cluster may be the workload cluster, and have the namespace already.
async fn namespace_in(ground: &Ground, cluster: &str) -> Result<Client, String> {
    let found = Site::workload_of(&ground.client, &ground.namespace, cluster).await;
    let client = found.map_err(|why| format!("Secret {cluster}-kubeconfig: {why}"))?;
    let namespaces = Collection::of::<Namespace>(&client, None);
    namespaces.post(&namespace(&ground.id)).await?;
    Ok(client)
}

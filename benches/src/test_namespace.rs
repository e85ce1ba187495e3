//! A namespace of the cluster that $KUBECONFIG names, for one measurement.

use std::error::Error;

use fivespot_testkit::{Contract, cluster_object, path_of};
use http::{Method, Request};
use kube::{Client, Config};
use serde_json::{Value, json};

/// The content type of a server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

/// The content type of JSON objects.
const JSON: &str = "application/json";

/// Sends one request with a body of this content type, and returns what the server answers.
///
/// # Errors
/// The server refuses it, cannot be reached, or responds with something other than JSON.
pub async fn send(
    client: &Client,
    (method, content): (Method, &str),
    path: &str,
    body: &Value,
) -> Result<Value, Box<dyn Error + Send + Sync>> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content)
        .body(body.to_string().into_bytes())?;
    Ok(client.request(request).await?)
}

async fn apply(
    client: &Client,
    object: &Value,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let path = format!("{}?fieldManager=bench&force=true", path_of(object));
    send(client, (Method::PATCH, APPLY), &path, object).await?;
    Ok(())
}

/// The path of the collection that an object belongs to.
pub fn collection(object: &Value) -> String {
    let path = path_of(object);
    path.rsplit_once('/')
        .map_or_else(String::new, |(collection, _)| collection.to_owned())
}

/// The namespace, and a client with the rights of $KUBECONFIG.
#[derive(Clone)]
pub struct TestNamespace {
    client: Client,
    namespace: String,
}

impl TestNamespace {
    /// Installs the CRD with its policy, and creates a namespace whose name begins with `prefix`.
    ///
    /// # Errors
    /// There is no kubeconfig, or the server refuses a request.
    pub async fn create_new(prefix: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let client = Client::try_from(Config::infer().await?)?;
        for object in fivespot_api::manifest::installed(36) {
            apply(&client, &object).await?;
        }
        let named = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"generateName": format!("{prefix}-")},
        });
        let named =
            send(&client, (Method::POST, JSON), "/api/v1/namespaces", &named).await?;
        let namespace = named["metadata"]["name"].as_str().unwrap_or_default();
        Ok(Self {
            client,
            namespace: namespace.to_owned(),
        })
    }

    /// Installs the CRDs of Cluster API, for a cluster without Cluster API.
    ///
    /// # Errors
    /// The server refuses one.
    pub async fn install_cluster_api_crds(
        &self,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        for definition in fivespot_sim::definitions(Contract::V1Beta2) {
            apply(&self.client, &definition).await?;
        }
        Ok(())
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Creates a Cluster with this name, like the one that
    /// [`scheduled_machine`](fivespot_testkit::scheduled_machine) names.
    ///
    /// # Errors
    /// The server refuses it.
    pub async fn add_cluster(
        &self,
        name: &str,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut cluster = cluster_object(Contract::V1Beta2);
        cluster["metadata"]["name"] = json!(name);
        self.create(cluster).await?;
        Ok(())
    }

    /// Creates an object in the namespace.
    ///
    /// # Errors
    /// The server refuses it.
    pub async fn create(
        &self,
        mut object: Value,
    ) -> Result<Value, Box<dyn Error + Send + Sync>> {
        object["metadata"]["namespace"] = json!(self.namespace);
        let path = collection(&object);
        send(&self.client, (Method::POST, JSON), &path, &object).await
    }

    /// Patches an object of the namespace.
    ///
    /// # Errors
    /// The server refuses it.
    pub async fn merge(
        &self,
        path: &str,
        patch: &Value,
    ) -> Result<Value, Box<dyn Error + Send + Sync>> {
        let content = "application/merge-patch+json";
        send(&self.client, (Method::PATCH, content), path, patch).await
    }

    /// Returns the object at a path.
    ///
    /// # Errors
    /// The server refuses the request, or the object does not exist.
    pub async fn get(&self, path: &str) -> Result<Value, Box<dyn Error + Send + Sync>> {
        let request = Request::builder().uri(path).body(Vec::new())?;
        Ok(self.client.request(request).await?)
    }

    /// The path of the namespace's ScheduledMachines.
    pub fn machines_path(&self) -> String {
        let namespace = &self.namespace;
        format!("/apis/5spot.finos.org/v1alpha1/namespaces/{namespace}/scheduledmachines")
    }

    /// The number of ScheduledMachines of the namespace that are reported in this phase.
    ///
    /// # Errors
    /// The server refuses to list them.
    pub async fn in_phase(
        &self,
        phase: &str,
    ) -> Result<usize, Box<dyn Error + Send + Sync>> {
        let list = self.get(&self.machines_path()).await?;
        let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
        let there = items.iter().filter(|item| item["status"]["phase"] == phase);
        Ok(there.count())
    }
}

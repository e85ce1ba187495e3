//! The client of one API server. Only this module and its submodules send requests.

mod response;
mod watch;

use std::fmt;
use std::sync::Arc;

use http::{Method, Request, Response};
use kube::Client;
use kube::api::ApiResource;
use kube::client::Body;
use kube::core::Status;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::cache::{FieldMask, LEAN, Projection, TooLarge, ValueLimit};
pub use watch::{EventStream, Page, WatchEvent};

/// The media type of all responses but those with [metadata only](Projection::is_metadata_only).
const JSON: &str = "application/json";

/// The URL of an object, by its kind and its names, and what of it is read.
#[derive(Clone, Copy, Debug)]
pub struct Address<'a> {
    /// The kind.
    pub resource: &'a ApiResource,
    /// The namespace; `None` for a cluster-scoped kind.
    pub namespace: Option<&'a str>,
    /// The name; empty for the collection.
    pub name: &'a str,
    /// How it is read; `None` for all of it.
    pub projection: Option<&'a dyn Projection>,
}

impl Address<'_> {
    fn path(&self) -> String {
        let ApiResource {
            group,
            version,
            plural,
            ..
        } = self.resource;
        let root = match group.as_str() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        let namespaced = match self.namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{plural}"),
        };
        match self.name {
            "" => namespaced,
            name => format!("{namespaced}/{name}"),
        }
    }

    /// Parses the part of an object that is read.
    fn parse(&self, text: &[u8]) -> kube::Result<Value> {
        let limit = ValueLimit::default();
        let read = self.mask().read_within(text, &limit);
        let object = read.map_err(|error| response::parse_error(&error))?;
        self.check(&limit)?;
        Ok(object)
    }

    /// Returns an error if an object has more values than are accepted.
    fn check(&self, limit: &ValueLimit) -> kube::Result<()> {
        let rejects = |of: &dyn Projection| of.rejects_too_many_values();
        if limit.is_exceeded() && self.projection.is_some_and(rejects) {
            return Err(TooLarge::Values.into());
        }
        Ok(())
    }

    /// The media type for the `Accept` header.
    fn accept(&self, response: Form) -> &'static str {
        match (self.projection, response) {
            (Some(projection), Form::List) if projection.is_metadata_only() => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            }
            (Some(projection), Form::Object) if projection.is_metadata_only() => {
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
            }
            _ => JSON,
        }
    }

    fn mask(&self) -> &'static FieldMask {
        self.projection.map_or(&LEAN, Projection::mask)
    }
}

/// The format of the body of a PATCH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchFormat {
    /// A JSON merge patch (RFC 7386).
    Merge,
    /// A JSON patch (RFC 6902): a list of operations.
    Json,
    /// The object as it is applied, with the fields that this client manages.
    Apply {
        /// Whether fields that another client manages are taken over.
        force: bool,
    },
}

impl PatchFormat {
    /// The media type.
    fn content(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Json => "application/json-patch+json",
            Self::Apply { .. } => "application/apply-patch+yaml",
        }
    }
}

/// The form of a response.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Objects, one after another.
    Object,
    /// A list of objects.
    List,
}

/// The client of one API server.
#[derive(Clone)]
pub struct ApiClient {
    client: Client,
    /// The field manager.
    manager: &'static str,
    /// Limits how many large responses are read at a time.
    large_response_permits: Arc<Semaphore>,
}

impl fmt::Debug for ApiClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiClient")
    }
}

impl ApiClient {
    /// The server that `client` connects to. The field manager of writes is `manager`.
    pub fn new(client: Client, manager: &'static str) -> Self {
        Self {
            client,
            manager,
            large_response_permits: Arc::new(Semaphore::new(
                response::MAX_CONCURRENT_LARGE,
            )),
        }
    }

    /// Reads the current object (a quorum read); `None` if it does not exist.
    ///
    /// # Errors
    /// Includes a 404 that is not about the object: a path that is not served, in this version or
    /// at this moment, is no evidence of what is stored.
    pub async fn get(&self, at: &Address<'_>) -> kube::Result<Option<Value>> {
        let mut found = self.get_parsed(at).await;
        if let (Ok(Some(object)), Some(projection)) = (&mut found, at.projection) {
            projection.complete(object);
        }
        found
    }

    /// The same without [completing](Projection::complete), as far as it is
    /// [kept](Projection::mask).
    pub async fn get_parsed(&self, at: &Address<'_>) -> kube::Result<Option<Value>> {
        // No object can have such a name, and it must not lead to another path.
        if !is_segment(at.name) {
            return Ok(None);
        }
        let response = self.parsed(Method::GET, &at.path(), Vec::new(), at).await;
        match response {
            Err(kube::Error::Api(status))
                if status.code == 404 && !is_about(&status, at.name) =>
            {
                Err(kube::Error::Api(status))
            }
            response => found(response),
        }
    }

    /// Reads any document that the server serves under `path`; `None` for a 404.
    pub async fn document(&self, path: &str) -> kube::Result<Option<Value>> {
        let response = self.exchange(Method::GET, path, Vec::new(), JSON).await;
        let response = match response {
            Ok(response) => {
                response::read_to_end(response, &self.large_response_permits).await
            }
            Err(error) => Err(error),
        };
        found(response.and_then(|response| {
            let read = LEAN.read(&response.bytes);
            read.map_err(|error| response::parse_error(&error))
        }))
    }

    /// Creates an object. Unknown fields are rejected rather than dropped: a machine must not be
    /// created without what its owner wrote.
    pub async fn create(&self, at: &Address<'_>, object: &Value) -> kube::Result<Value> {
        self.create_text(at, bytes(object)).await
    }

    /// Creates an object that is already text.
    pub async fn create_text(
        &self,
        at: &Address<'_>,
        object: Vec<u8>,
    ) -> kube::Result<Value> {
        let path = format!(
            "{}?fieldManager={}&fieldValidation=Strict",
            at.path(),
            self.manager
        );
        self.send(Method::POST, &path, object, at).await
    }

    /// Applies a JSON merge patch (RFC 7386) to an object, or to its `subresource`.
    pub async fn patch(
        &self,
        at: &Address<'_>,
        subresource: Option<&str>,
        patch: &Value,
    ) -> kube::Result<Value> {
        let tail = subresource
            .map(|name| format!("/{name}"))
            .unwrap_or_default();
        let path = format!("{}{tail}?fieldManager={}", at.path(), self.manager);
        self.send(Method::PATCH, &path, bytes(patch), at).await
    }

    /// Patches an object in another format than [`patch`](Self::patch).
    pub async fn patch_as(
        &self,
        format: PatchFormat,
        at: &Address<'_>,
        patch: &Value,
    ) -> kube::Result<Value> {
        let force = match format {
            PatchFormat::Apply { force: true } => "&force=true",
            PatchFormat::Apply { force: false }
            | PatchFormat::Merge
            | PatchFormat::Json => "",
        };
        let path = format!("{}?fieldManager={}{force}", at.path(), self.manager);
        let content = format.content();
        let response = self
            .exchange_as(content, Method::PATCH, &path, bytes(patch), JSON)
            .await?;
        let response =
            response::read_to_end(response, &self.large_response_permits).await?;
        at.parse(&response.bytes)
    }

    /// Deletes the object of that uid with background propagation, and a pod with a grace period
    /// in seconds if one is given. Returns the object if it still must be finalized, otherwise a
    /// Status.
    pub async fn delete(
        &self,
        at: &Address<'_>,
        uid: &str,
        grace: Option<u32>,
    ) -> kube::Result<Value> {
        let mut options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        });
        if let Some(seconds) = grace {
            options["gracePeriodSeconds"] = json!(seconds);
        }
        self.send(Method::DELETE, &at.path(), bytes(&options), at)
            .await
    }

    /// Replaces an object, if it still has the version that `object` contains.
    pub async fn replace(&self, at: &Address<'_>, object: &Value) -> kube::Result<Value> {
        let path = format!("{}?fieldManager={}", at.path(), self.manager);
        self.send(Method::PUT, &path, bytes(object), at).await
    }

    /// Deletes the object of that uid, if it still has that version.
    pub async fn delete_version(
        &self,
        at: &Address<'_>,
        uid: &str,
        version: &str,
    ) -> kube::Result<Value> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid, "resourceVersion": version},
        });
        self.send(Method::DELETE, &at.path(), bytes(&options), at)
            .await
    }

    /// Requests the eviction of the pod of that uid, with the pod's own grace period.
    ///
    /// The body is written here, because kube's own request misnames the delete options, and an
    /// API server then ignores the precondition.
    pub async fn evict(&self, at: &Address<'_>, uid: &str) -> kube::Result<Value> {
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": at.name, "namespace": at.namespace},
            "deleteOptions": {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": uid},
            },
        });
        let path = format!("{}/eviction", at.path());
        // The response is a Status, or the eviction itself.
        let at = Address {
            projection: None,
            ..*at
        };
        let response = self
            .send(Method::POST, &path, bytes(&eviction), &at)
            .await?;
        // For a pod with two disruption budgets, Kubernetes returns 201 with a refusal in the
        // body.
        let refusal = Status::deserialize(&response).ok();
        match refusal.filter(Status::is_failure) {
            Some(refusal) => Err(kube::Error::Api(Box::new(refusal))),
            None => Ok(response),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        at: &Address<'_>,
    ) -> kube::Result<Value> {
        let mut object = self.parsed(method, path, body, at).await?;
        if let Some(projection) = at.projection {
            projection.complete(&mut object);
        }
        Ok(object)
    }

    async fn parsed(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        at: &Address<'_>,
    ) -> kube::Result<Value> {
        let response = self.exchange(method, path, body, JSON).await?;
        let response =
            response::read_to_end(response, &self.large_response_permits).await?;
        at.parse(&response.bytes)
    }

    /// Sends a request. A refusal is returned as an error.
    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        accept: &str,
    ) -> kube::Result<Response<Body>> {
        let content = if method == Method::PATCH {
            PatchFormat::Merge.content()
        } else {
            JSON
        };
        self.exchange_as(content, method, path, body, accept).await
    }

    async fn exchange_as(
        &self,
        content: &'static str,
        method: Method,
        path: &str,
        body: Vec<u8>,
        accept: &str,
    ) -> kube::Result<Response<Body>> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::ACCEPT, accept);
        if !body.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, content);
        }
        let request = request
            .body(Body::from(body))
            .map_err(kube::Error::HttpError)?;
        let response = self.client.send(request).await?;
        if response.status().is_client_error() || response.status().is_server_error() {
            return Err(response::read_error(response).await);
        }
        Ok(response)
    }
}

/// Whether an untrusted text can be one segment of a path.
pub fn is_segment(text: &str) -> bool {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || "-._~:".contains(letter);
    !matches!(text, "" | "." | "..") && text.chars().all(is_plain)
}

fn found(response: kube::Result<Value>) -> kube::Result<Option<Value>> {
    match response {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a refusal names the object. The refusal of an unknown path names none.
fn is_about(status: &Status, name: &str) -> bool {
    let details = status.details.as_ref();
    details.is_some_and(|details| details.name == name)
}

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

#[cfg(test)]
mod tests;

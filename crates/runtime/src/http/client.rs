//! The client of one API server. Only this module and its submodules send requests.

mod response;
mod watch;

use std::fmt;
use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Response, StatusCode};
use kube::Client;
use kube::api::ApiResource;
use kube::client::Body;
use kube::core::Status;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::cache::{FieldMask, LEAN, Projection, TooLarge, ValueLimit};
pub(super) use response::RESPONSE_TIMEOUT;
use response::{CompleteResponse, Deadline};
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

    /// A request for it, or for its subresource, with that query.
    fn request(
        &self,
        verb: &'static str,
        subresource: Option<&str>,
        query: &str,
    ) -> Request {
        let tail = subresource.map_or_else(String::new, |name| format!("/{name}"));
        let resource = format!("{}{tail}", self.resource.plural);
        Request::new(verb, resource, format!("{}{tail}{query}", self.path()))
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

/// A request before it is sent.
struct Request {
    /// As in Kubernetes' authorization.
    verb: &'static str,
    /// What the metrics call its object: the kind's plural, with the subresource.
    resource: String,
    /// With the query.
    path: String,
    /// The media type of the body.
    content: &'static str,
    body: Vec<u8>,
    /// The media type of the response.
    accept: &'static str,
}

impl Request {
    fn new(verb: &'static str, resource: String, path: String) -> Self {
        Self {
            verb,
            resource,
            path,
            content: JSON,
            body: Vec::new(),
            accept: JSON,
        }
    }

    fn method(&self) -> Method {
        match self.verb {
            "create" => Method::POST,
            "update" => Method::PUT,
            "patch" => Method::PATCH,
            "delete" => Method::DELETE,
            _ => Method::GET,
        }
    }

    fn build(self) -> Result<http::Request<Body>, http::Error> {
        let mut request = http::Request::builder()
            .method(self.method())
            .uri(self.path)
            .header(ACCEPT, self.accept);
        if !self.body.is_empty() {
            request = request.header(CONTENT_TYPE, self.content);
        }
        request.body(Body::from(self.body))
    }
}

/// A request that was sent, and whether it was answered.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The verb, as in Kubernetes' authorization.
    pub verb: &'static str,
    /// The plural of the kind, followed by `/` and the subresource if there is one; `discovery` for
    /// a [document](ApiClient::document).
    pub resource: &'a str,
    /// The HTTP status; an error if no response arrived in time.
    pub answer: Result<StatusCode, &'a kube::Error>,
}

/// Is called with each request of a client, watches included, once the response begins.
pub type ExchangeObserver = Arc<dyn Fn(&Exchange<'_>) + Send + Sync>;

/// What must hold of an object for its deletion, and how it is deleted.
#[derive(Clone, Copy, Debug)]
pub struct Deletion<'a> {
    /// The uid that it must have.
    pub uid: &'a str,
    /// The version that it must have; `None` for any.
    pub version: Option<&'a str>,
    /// The grace period of a pod, in seconds; `None` for the pod's own.
    pub grace: Option<u32>,
}

impl<'a> Deletion<'a> {
    /// That of the object of that uid, in any version.
    pub fn of(uid: &'a str) -> Self {
        Self {
            uid,
            version: None,
            grace: None,
        }
    }

    /// The same, of that version alone.
    #[must_use]
    pub fn in_version(self, version: &'a str) -> Self {
        Self {
            version: Some(version),
            ..self
        }
    }
}

/// The client of one API server. It does not wait forever: a response must be complete 30 s after
/// its request, and a watch must have begun by then. Other responses than lists and watches have
/// at most [4 MiB](crate::http::MAX_OBJECT_BYTES), as has each object of a list and each event of
/// a watch. A silent watch ends five seconds after the server should have ended it, which is after
/// 290 s.
#[derive(Clone)]
pub struct ApiClient {
    client: Client,
    /// The field manager.
    manager: &'static str,
    observer: Option<ExchangeObserver>,
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
            observer: None,
            large_response_permits: Arc::new(Semaphore::new(
                response::MAX_CONCURRENT_LARGE,
            )),
        }
    }

    /// The same, with each request shown to `observer`.
    #[must_use]
    pub fn observed_by(self, observer: ExchangeObserver) -> Self {
        Self {
            observer: Some(observer),
            ..self
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
        let response = self.receive(at.request("get", None, "")).await;
        match response.and_then(|response| at.parse(&response.bytes)) {
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
        let request = Request::new("get", "discovery".to_owned(), path.to_owned());
        let response = self.receive(request).await;
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
        let query = format!("?fieldManager={}&fieldValidation=Strict", self.manager);
        let request = at.request("create", None, &query);
        self.write(at, request, object).await
    }

    /// Applies a patch to an object, or to its `subresource`.
    pub async fn patch(
        &self,
        at: &Address<'_>,
        subresource: Option<&str>,
        format: PatchFormat,
        patch: &Value,
    ) -> kube::Result<Value> {
        let force = match format {
            PatchFormat::Apply { force: true } => "&force=true",
            _ => "",
        };
        let query = format!("?fieldManager={}{force}", self.manager);
        let request = Request {
            content: format.content(),
            ..at.request("patch", subresource, &query)
        };
        self.write(at, request, bytes(patch)).await
    }

    /// Deletes an object with background propagation, if it is what `deletion` says. Returns the
    /// object if it still must be finalized, otherwise a Status.
    pub async fn delete(
        &self,
        at: &Address<'_>,
        deletion: Deletion<'_>,
    ) -> kube::Result<Value> {
        let mut options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": deletion.uid},
        });
        if let Some(version) = deletion.version {
            options["preconditions"]["resourceVersion"] = json!(version);
        }
        if let Some(seconds) = deletion.grace {
            options["gracePeriodSeconds"] = json!(seconds);
        }
        let request = at.request("delete", None, "");
        self.write(at, request, bytes(&options)).await
    }

    /// Replaces an object, if it still has the version that `object` contains.
    pub async fn replace(&self, at: &Address<'_>, object: &Value) -> kube::Result<Value> {
        let query = format!("?fieldManager={}", self.manager);
        let request = at.request("update", None, &query);
        self.write(at, request, bytes(object)).await
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
        // The response is a Status, or the eviction itself.
        let at = Address {
            projection: None,
            ..*at
        };
        let request = at.request("create", Some("eviction"), "");
        let response = self.write(&at, request, bytes(&eviction)).await?;
        // For a pod with two disruption budgets, Kubernetes returns 201 with a refusal in the
        // body.
        let refusal = Status::deserialize(&response).ok();
        match refusal.filter(Status::is_failure) {
            Some(refusal) => Err(kube::Error::Api(Box::new(refusal))),
            None => Ok(response),
        }
    }

    /// Sends a request with that body, and returns the object of the response.
    async fn write(
        &self,
        at: &Address<'_>,
        request: Request,
        body: Vec<u8>,
    ) -> kube::Result<Value> {
        let response = self.receive(Request { body, ..request }).await?;
        let mut object = at.parse(&response.bytes)?;
        if let Some(projection) = at.projection {
            projection.complete(&mut object);
        }
        Ok(object)
    }

    /// Sends a request, and reads the response to its end.
    async fn receive(&self, request: Request) -> kube::Result<CompleteResponse<'_>> {
        let deadline = Deadline::of_request();
        let response = self.exchange(request, deadline).await?;
        let permits = &self.large_response_permits;
        deadline
            .bound(response::read_to_end(response, permits))
            .await
    }

    /// Sends a request. A refusal is returned as an error.
    async fn exchange(
        &self,
        request: Request,
        deadline: Deadline,
    ) -> kube::Result<Response<Body>> {
        let (verb, resource) = (request.verb, request.resource.clone());
        let request = request.build().map_err(kube::Error::HttpError)?;
        let response = deadline.bound(self.client.send(request)).await;
        if let Some(observer) = &self.observer {
            observer(&Exchange {
                verb,
                resource: &resource,
                answer: response.as_ref().map(Response::status),
            });
        }
        let response = response?;
        if response.status().is_client_error() || response.status().is_server_error() {
            return Err(response::read_error(response, deadline).await);
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

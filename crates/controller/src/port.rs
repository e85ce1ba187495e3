//! Requests to one API server: the only place that sends any, watches aside.

use std::fmt;

use http::{Method, Request};
use kube::Client;
use kube::api::ApiResource;
use kube::core::Status;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use fivespot_api::name::FIELD_MANAGER;

use crate::lean::Lean;

/// Where an object is: its kind's URL, and its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address<'a> {
    /// The kind.
    pub(crate) resource: &'a ApiResource,
    /// The namespace; none for a cluster-scoped kind.
    pub(crate) namespace: Option<&'a str>,
    /// The name; empty for the collection.
    pub(crate) name: &'a str,
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
}

/// One API server.
#[derive(Clone)]
pub(crate) struct Port(Client);

impl fmt::Debug for Port {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Port")
    }
}

impl Port {
    /// The server that `client` talks to.
    pub(crate) fn new(client: Client) -> Self {
        Self(client)
    }

    /// The client itself, for watches.
    pub(crate) fn client(&self) -> Client {
        self.0.clone()
    }

    /// The object as it is now (a quorum read); none where there is no such object.
    ///
    /// # Errors
    /// Also a 404 that is not about the object: a path that is not served, in this version or
    /// at this moment, says nothing about what is stored.
    pub(crate) async fn get(&self, at: &Address<'_>) -> kube::Result<Option<Value>> {
        // Nothing can have such a name, and it must not lead anywhere else.
        if !is_segment(at.name) {
            return Ok(None);
        }
        let answer = self.send(Method::GET, &at.path(), Vec::new()).await;
        match answer {
            Err(kube::Error::Api(status))
                if status.code == 404 && !is_about(&status, at.name) =>
            {
                Err(kube::Error::Api(status))
            }
            answer => found(answer),
        }
    }

    /// Any document that the server shows under `path`; none for a 404.
    pub(crate) async fn document(&self, path: &str) -> kube::Result<Option<Value>> {
        found(self.send(Method::GET, path, Vec::new()).await)
    }

    /// The objects that a field selector chooses, as they are now.
    pub(crate) async fn list(
        &self,
        at: &Address<'_>,
        fields: &str,
    ) -> kube::Result<Vec<Value>> {
        let path = format!("{}?fieldSelector={}", at.path(), escaped(fields));
        let list: List = self.read(Method::GET, &path, Vec::new()).await?;
        let items = list.items.unwrap_or_default();
        Ok(items.into_iter().map(|Lean(item)| item).collect())
    }

    /// Creates an object. Fields that the server does not know are refused rather than
    /// dropped: a machine must not come up without what its owner wrote.
    pub(crate) async fn create(
        &self,
        at: &Address<'_>,
        object: &Value,
    ) -> kube::Result<Value> {
        let path = format!(
            "{}?fieldManager={FIELD_MANAGER}&fieldValidation=Strict",
            at.path()
        );
        self.send(Method::POST, &path, bytes(object)).await
    }

    /// Applies a JSON merge patch (RFC 7386) to an object, or to its `subresource`.
    pub(crate) async fn patch(
        &self,
        at: &Address<'_>,
        subresource: Option<&str>,
        patch: &Value,
    ) -> kube::Result<Value> {
        let tail = subresource
            .map(|name| format!("/{name}"))
            .unwrap_or_default();
        let path = format!("{}{tail}?fieldManager={FIELD_MANAGER}", at.path());
        self.send(Method::PATCH, &path, bytes(patch)).await
    }

    /// Deletes the object of that uid, in the background, a pod with a grace period in seconds
    /// where one is given. Answers with the object where it
    /// still has to be finalized, else with a Status.
    pub(crate) async fn delete(
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
        self.send(Method::DELETE, &at.path(), bytes(&options)).await
    }

    /// Replaces an object, if it still is of the version that `object` names.
    pub(crate) async fn replace(
        &self,
        at: &Address<'_>,
        object: &Value,
    ) -> kube::Result<Value> {
        let path = format!("{}?fieldManager={FIELD_MANAGER}", at.path());
        self.send(Method::PUT, &path, bytes(object)).await
    }

    /// Deletes the object of that uid, if it still is of that version.
    pub(crate) async fn delete_version(
        &self,
        at: &Address<'_>,
        (uid, version): (&str, &str),
    ) -> kube::Result<Value> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid, "resourceVersion": version},
        });
        self.send(Method::DELETE, &at.path(), bytes(&options)).await
    }

    /// Asks for the eviction of the pod of that uid, with the pod's own grace period.
    ///
    /// Written out, because kube's own request misnames the delete options, and an API server
    /// then overlooks the precondition.
    pub(crate) async fn evict(&self, at: &Address<'_>, uid: &str) -> kube::Result<Value> {
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
        let answer = self.send(Method::POST, &path, bytes(&eviction)).await?;
        // Of a pod with two disruption budgets Kubernetes answers 201 with a refusal in it.
        let refusal = Status::deserialize(&answer).ok();
        match refusal.filter(Status::is_failure) {
            Some(refusal) => Err(kube::Error::Api(Box::new(refusal))),
            None => Ok(answer),
        }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> kube::Result<Value> {
        let Lean(answer) = self.read(method, path, body).await?;
        Ok(answer)
    }

    async fn read<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> kube::Result<T> {
        let content = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::ACCEPT, "application/json");
        if !body.is_empty() {
            request = request.header(http::header::CONTENT_TYPE, content);
        }
        let request = request.body(body).map_err(kube::Error::HttpError)?;
        self.0.request(request).await
    }
}

/// A list, of which only the objects are read.
#[derive(Deserialize)]
struct List {
    items: Option<Vec<Lean>>,
}

/// Whether a text that somebody else has written can stand in a path, as one part of it.
pub(crate) fn is_segment(text: &str) -> bool {
    let is_plain =
        |letter: char| letter.is_ascii_alphanumeric() || "-._~:".contains(letter);
    !matches!(text, "" | "." | "..") && text.chars().all(is_plain)
}

fn found(answer: kube::Result<Value>) -> kube::Result<Option<Value>> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a refusal names the object; that of an unknown path names none.
fn is_about(status: &Status, name: &str) -> bool {
    let details = status.details.as_ref();
    details.is_some_and(|details| details.name == name)
}

fn bytes(body: &Value) -> Vec<u8> {
    body.to_string().into_bytes()
}

/// A selector as it may stand in a query: names, dots, `=` and `,` need no more than this.
fn escaped(selector: &str) -> String {
    selector.replace('=', "%3D").replace(',', "%2C")
}

#[cfg(test)]
mod tests;

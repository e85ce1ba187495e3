//! Requests for the objects of one kind. Errors are detected by status code, because not every
//! server of a workload cluster sends a Status with an error; that of the in-memory provider does
//! not.

use http::header::CONTENT_TYPE;
use http::request::Builder;
use http::{Request, StatusCode};
use kube::api::DynamicObject;
use kube::client::Body;
use kube::core::ApiResource;
use kube::{Client, Resource as _};
use serde_json::{Value, json};

use crate::cluster::error_message;

/// The result of a request, or the reason of its failure.
pub(super) type RequestResult<T> = Result<T, String>;

/// The largest number of characters of an error response that are shown.
const MAX_ERROR_CHARS: usize = 512;

/// The objects of one kind, in a namespace if the kind is namespaced.
#[derive(Clone)]
pub(super) struct Collection {
    client: Client,
    path: String,
}

impl Collection {
    pub(super) fn new(
        client: &Client,
        namespace: Option<&str>,
        resource: &ApiResource,
    ) -> Self {
        Self {
            client: client.clone(),
            path: DynamicObject::url_path(resource, namespace),
        }
    }

    /// The objects of a built-in kind.
    pub(super) fn of<K>(client: &Client, namespace: Option<&str>) -> Self
    where
        K: kube::Resource<DynamicType = ()>,
    {
        Self::new(client, namespace, &ApiResource::erase::<K>(&()))
    }

    /// Gets the object of that name. `None` if it does not exist.
    pub(super) async fn get(&self, name: &str) -> RequestResult<Option<Value>> {
        let request = Request::get(self.path_of(name));
        match self.send(request, None).await? {
            response if response.status == StatusCode::NOT_FOUND => Ok(None),
            response => response.into_object().map(Some),
        }
    }

    /// Lists the objects with this label.
    pub(super) async fn list(&self, label: &str) -> RequestResult<Vec<Value>> {
        let label = label.replace('=', "%3D");
        let request = Request::get(format!("{}?labelSelector={label}", self.path));
        let list = self.send(request, None).await?.into_object()?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Creates an object. An existing object is not an error, because a request whose response was
    /// lost is sent again.
    pub(super) async fn post(&self, object: &Value) -> RequestResult<()> {
        let request = Request::post(&self.path).header(CONTENT_TYPE, "application/json");
        match self.send(request, Some(object)).await? {
            response if response.status == StatusCode::CONFLICT => Ok(()),
            response => response.into_object().map(drop),
        }
    }

    /// Sends a merge patch to an object.
    pub(super) async fn merge(&self, name: &str, change: &Value) -> RequestResult<()> {
        let request = Request::patch(self.path_of(name))
            .header(CONTENT_TYPE, "application/merge-patch+json");
        let response = self.send(request, Some(change)).await?;
        response.into_object().map(drop)
    }

    /// Deletes an object. A missing object is not an error.
    pub(super) async fn delete(&self, name: &str) -> RequestResult<()> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
        });
        let request =
            Request::delete(self.path_of(name)).header(CONTENT_TYPE, "application/json");
        match self.send(request, Some(&options)).await? {
            response if response.status == StatusCode::NOT_FOUND => Ok(()),
            response => response.into_object().map(drop),
        }
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    async fn send(
        &self,
        request: Builder,
        body: Option<&Value>,
    ) -> RequestResult<Response> {
        let body = body.map_or_else(Body::empty, |it| it.to_string().into_bytes().into());
        let request = request.body(body).map_err(|error| error.to_string())?;
        let response = self.client.send(request).await.map_err(error_message)?;
        let status = response.status();
        let bytes = response.into_body().collect_bytes().await;
        let bytes = bytes.map_err(|error| error.to_string())?;
        Ok(Response {
            status,
            body: bytes.to_vec(),
        })
    }
}

struct Response {
    status: StatusCode,
    body: Vec<u8>,
}

impl Response {
    /// The object of a successful response.
    ///
    /// # Errors
    /// The message of an error response, or the beginning of its body.
    fn into_object(self) -> RequestResult<Value> {
        let object = serde_json::from_slice::<Value>(&self.body).unwrap_or_default();
        if self.status.is_success() {
            return Ok(object);
        }
        if let Some(message) = object["message"].as_str() {
            return Err(message.to_owned());
        }
        let text = String::from_utf8_lossy(&self.body);
        let text: String = text.chars().take(MAX_ERROR_CHARS).collect();
        Err(format!("{}: {text}", self.status))
    }
}

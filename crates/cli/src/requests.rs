//! Requests to a cluster by API paths, for commands that handle many kinds. Errors are detected by
//! status code, because not every server of a workload cluster sends a Status with an error, or an
//! object with a success; that of the in-memory provider does not.

use std::time::Duration;

use http::StatusCode;
use http::header::CONTENT_TYPE;
use http::request::{Builder, Request};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::cluster::error_message;

/// The largest number of objects of one list.
const LIMIT: usize = 100_000;
/// The number of objects in a page of a list.
const PAGE: usize = 500;
/// How long a response may take, of which a page has megabytes.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// The largest number of characters of an error response that are shown.
const MAX_ERROR_CHARS: usize = 512;

/// The result of a request for a path.
#[derive(Clone, Debug)]
pub(crate) enum Response {
    /// The object.
    Found(Value),
    /// There is no object, or its kind is not served.
    NotFound,
    /// The request failed. Contains the message.
    Failed(String),
}

/// The status and the body of a response, or why there is none.
type Answer = Result<(StatusCode, Vec<u8>), String>;

impl Response {
    fn of(answer: Answer) -> Self {
        let (status, bytes) = match answer {
            Ok((StatusCode::NOT_FOUND, _)) => return Self::NotFound,
            Ok(answer) => answer,
            Err(why) => return Self::Failed(why),
        };
        let object = serde_json::from_slice::<Value>(&bytes).unwrap_or_default();
        if status.is_success() {
            return Self::Found(object);
        }
        if let Some(message) = object["message"].as_str() {
            return Self::Failed(message.to_owned());
        }
        let text = String::from_utf8_lossy(&bytes);
        let text: String = text.chars().take(MAX_ERROR_CHARS).collect();
        Self::Failed(format!("{status}: {text}"))
    }

    /// That the request was answered. A missing object is not an error.
    pub(crate) fn done(self) -> Result<(), String> {
        match self {
            Self::Found(_) | Self::NotFound => Ok(()),
            Self::Failed(why) => Err(why),
        }
    }

    /// The object. A missing one is an error.
    pub(crate) fn found(self) -> Result<Value, String> {
        match self {
            Self::Found(object) => Ok(object),
            Self::NotFound => Err("not found".to_owned()),
            Self::Failed(why) => Err(why),
        }
    }
}

/// Sends requests to one cluster.
#[derive(Clone)]
pub(crate) struct Requests(pub(crate) Client);

impl Requests {
    /// Gets the object at a path.
    pub(crate) async fn get(&self, path: &str) -> Response {
        self.send(Request::get(path), None).await
    }

    /// Creates an object. An existing object is not an error, because a request whose response was
    /// lost is sent again.
    pub(crate) async fn post(&self, path: &str, object: &Value) -> Response {
        let request = Request::post(path).header(CONTENT_TYPE, "application/json");
        match self.answer(request, Some(object)).await {
            Ok((StatusCode::CONFLICT, _)) => Response::Found(Value::Null),
            answer => Response::of(answer),
        }
    }

    /// Deletes the object at a path; `propagation` says what happens to its dependents.
    pub(crate) async fn delete(&self, path: &str, propagation: &str) -> Response {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation,
        });
        let request = Request::delete(path).header(CONTENT_TYPE, "application/json");
        self.send(request, Some(&options)).await
    }

    /// Sends a merge patch to the object at a path.
    pub(crate) async fn merge(&self, path: &str, change: &Value) -> Response {
        let request =
            Request::patch(path).header(CONTENT_TYPE, "application/merge-patch+json");
        self.send(request, Some(change)).await
    }

    /// Lists all objects of a collection. Empty if its kind is not served.
    ///
    /// # Errors
    /// The server refuses to list them, or there are too many. The error is the message.
    pub(crate) async fn list(&self, path: &str) -> Result<Vec<Value>, String> {
        self.list_where(path, "").await
    }

    /// Lists the objects that a label selector selects.
    ///
    /// # Errors
    /// As for [`list`](Self::list).
    pub(crate) async fn list_where(
        &self,
        path: &str,
        selector: &str,
    ) -> Result<Vec<Value>, String> {
        let selector = selector.replace('=', "%3D").replace(',', "%2C");
        let first = format!("{path}?limit={PAGE}&labelSelector={selector}");
        let mut all = Vec::new();
        let mut next = String::new();
        loop {
            let page = match self.get(&format!("{first}{next}")).await {
                Response::Found(page) => page,
                Response::NotFound => return Ok(all),
                Response::Failed(why) => return Err(why),
            };
            let items = page["items"].as_array();
            all.extend(items.into_iter().flatten().cloned());
            match page["metadata"]["continue"].as_str() {
                None | Some("") => return Ok(all),
                Some(_) if all.len() >= LIMIT => {
                    return Err(format!("more than {LIMIT} objects"));
                }
                Some(token) => next = format!("&continue={token}"),
            }
        }
    }

    async fn send(&self, request: Builder, body: Option<&Value>) -> Response {
        Response::of(self.answer(request, body).await)
    }

    async fn answer(&self, request: Builder, body: Option<&Value>) -> Answer {
        let answered =
            tokio::time::timeout(RESPONSE_TIMEOUT, self.exchange(request, body)).await;
        answered.unwrap_or_else(|_| {
            Err("the server did not complete its response within a minute".to_owned())
        })
    }

    async fn exchange(&self, request: Builder, body: Option<&Value>) -> Answer {
        let body = body.map_or_else(Body::empty, |it| it.to_string().into_bytes().into());
        let request = request.body(body).map_err(|error| error.to_string())?;
        let response = self.0.send(request).await.map_err(error_message)?;
        let status = response.status();
        let bytes = response.into_body().collect_bytes().await;
        let bytes = bytes.map_err(|error| error.to_string())?;
        Ok((status, bytes.to_vec()))
    }
}

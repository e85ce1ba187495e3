//! Reads and changes a cluster by API paths, for commands that handle many kinds.

use http::Request;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kubemu_clock::Clock;
use serde_json::{Value, json};

use crate::Failure;
use crate::cluster::{self, Source};

/// The largest number of objects of one list.
const LIMIT: usize = 100_000;
/// The number of objects in a page of a list.
const PAGE: usize = 500;

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

/// A client for a cluster whose version was read.
pub(crate) struct Reader {
    client: Client,
    /// The minor version of Kubernetes 1.
    pub(crate) minor: u32,
    /// The version in full.
    pub(crate) version: String,
    /// The current time of this cluster.
    pub(crate) now: Timestamp,
    /// The time that the server told, if it did.
    pub(crate) server_time: Option<Timestamp>,
    /// By how much the server's clock is ahead of that of this host, if it told its time.
    pub(crate) clock_difference: Option<SignedDuration>,
}

impl Reader {
    /// Connects, and reads the server's version.
    ///
    /// # Errors
    /// The server does not respond.
    pub(crate) async fn connect(source: &Source) -> Result<Self, Failure> {
        let config = source.config().await?;
        let address = source.address(&config);
        let client = Client::try_from(config).map_err(cluster::no_client)?;
        Self::of(client, &address).await
    }

    /// Creates a reader with a client for the cluster at that address.
    ///
    /// # Errors
    /// The server does not respond.
    pub(crate) async fn of(client: Client, address: &str) -> Result<Self, Failure> {
        let version = client.apiserver_version().await;
        let version = version.map_err(|error| cluster::unreachable(address, &error))?;
        let digits: String = version
            .minor
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let server_time = cluster::server_time(&client).await;
        let local_time = Clock::system().now();
        Ok(Self {
            client,
            minor: digits.parse().unwrap_or_default(),
            version: version.git_version,
            now: cluster::now_at(server_time),
            server_time,
            clock_difference: server_time.map(|at| at.duration_since(local_time)),
        })
    }

    /// Gets the object at a path.
    pub(crate) async fn get(&self, path: &str) -> Response {
        let request = Request::get(path).body(Vec::new());
        match request {
            Ok(request) => Response::of(self.client.request(request).await),
            Err(error) => Response::Failed(error.to_string()),
        }
    }

    /// Deletes the object at a path, and keeps its dependents if `propagation` is `Orphan`. A
    /// missing object is not an error.
    ///
    /// # Errors
    /// The server refuses. The error is its message.
    pub(crate) async fn delete(
        &self,
        path: &str,
        propagation: &str,
    ) -> Result<(), String> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation,
        });
        self.send(Request::delete(path), "application/json", &options)
            .await
    }

    /// Sends a merge patch to the object at a path. A missing object is not an error.
    ///
    /// # Errors
    /// The server refuses. The error is its message.
    pub(crate) async fn merge(&self, path: &str, change: &Value) -> Result<(), String> {
        self.send(Request::patch(path), "application/merge-patch+json", change)
            .await
    }

    async fn send(
        &self,
        request: http::request::Builder,
        kind: &str,
        body: &Value,
    ) -> Result<(), String> {
        let request = request
            .header(http::header::CONTENT_TYPE, kind)
            .body(body.to_string().into_bytes());
        let request = request.map_err(|error| error.to_string())?;
        match Response::of(self.client.request(request).await) {
            Response::Found(_) | Response::NotFound => Ok(()),
            Response::Failed(why) => Err(why),
        }
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

    /// Whether a user is authorized for a request.
    ///
    /// # Errors
    /// The server does not evaluate it. The error is its message.
    pub(crate) async fn is_allowed(
        &self,
        user: &str,
        attributes: Value,
    ) -> Result<bool, String> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user,
                "groups": ["system:serviceaccounts", "system:authenticated"],
                "resourceAttributes": attributes,
            },
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let request = Request::post(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(review.to_string().into_bytes());
        let request = request.map_err(|error| error.to_string())?;
        let review: Value = self
            .client
            .request(request)
            .await
            .map_err(cluster::error_message)?;
        let is_allowed = review["status"]["allowed"].as_bool();
        is_allowed.ok_or_else(|| "the response has no status.allowed".to_owned())
    }
}

impl Response {
    fn of(response: Result<Value, kube::Error>) -> Self {
        match response {
            Ok(found) => Self::Found(found),
            Err(kube::Error::Api(status)) if status.code == 404 => Self::NotFound,
            Err(error) => Self::Failed(cluster::error_message(error)),
        }
    }
}

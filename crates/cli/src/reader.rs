//! A cluster that is looked at and changed by paths, for commands that concern many kinds.

use http::Request;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::Failure;
use crate::cluster::{self, Source};

/// The most objects that one list is read of.
const LIMIT: usize = 100_000;
/// How many are read at a time.
const PAGE: usize = 500;

/// What was found at a path.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The object.
    Found(Value),
    /// There is none, or its kind is not served.
    Missing,
    /// The server did not say, and why.
    Refused(String),
}

/// A cluster that answers.
pub(crate) struct Reader {
    client: Client,
    /// The minor version of Kubernetes 1.
    pub(crate) minor: u32,
    /// The version in full.
    pub(crate) version: String,
    /// The present instant, as this cluster has it.
    pub(crate) now: Timestamp,
}

impl Reader {
    /// Connects, and asks for the version.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) async fn connect(source: &Source) -> Result<Self, Failure> {
        let config = source.config().await?;
        let address = source.address(&config);
        let client = Client::try_from(config).map_err(cluster::no_client)?;
        Self::of(client, &address).await
    }

    /// The same with a client of the cluster at that address.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) async fn of(client: Client, address: &str) -> Result<Self, Failure> {
        let version = client.apiserver_version().await;
        let version = version.map_err(|error| cluster::unreachable(address, &error))?;
        let digits: String = version
            .minor
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let now = cluster::now(&client).await;
        Ok(Self {
            client,
            minor: digits.parse().unwrap_or_default(),
            version: version.git_version,
            now,
        })
    }

    /// What is at a path.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        let request = Request::get(path).body(Vec::new());
        match request {
            Ok(request) => Answer::of(self.client.request(request).await),
            Err(error) => Answer::Refused(error.to_string()),
        }
    }

    /// Deletes what is at a path, without its dependents where `propagation` is `Orphan`. That there
    /// is nothing is no error.
    ///
    /// # Errors
    /// The server refuses: its words.
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

    /// Merges a change into what is at a path. That there is nothing is no error.
    ///
    /// # Errors
    /// The server refuses: its words.
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
        match Answer::of(self.client.request(request).await) {
            Answer::Found(_) | Answer::Missing => Ok(()),
            Answer::Refused(why) => Err(why),
        }
    }

    /// Every object of a collection; none where its kind is not served.
    ///
    /// # Errors
    /// The server does not list it: its words, or that there are too many.
    pub(crate) async fn list(&self, path: &str) -> Result<Vec<Value>, String> {
        self.list_where(path, "").await
    }

    /// The same of those that a label selector selects.
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
                Answer::Found(page) => page,
                Answer::Missing => return Ok(all),
                Answer::Refused(why) => return Err(why),
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

    /// Whether a user may do something; none where the server does not say.
    pub(crate) async fn may(&self, user: &str, attributes: Value) -> Option<bool> {
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
            .body(Body::from(review.to_string().into_bytes()));
        let answer = self.client.send(request.ok()?).await.ok()?;
        if !answer.status().is_success() {
            return None;
        }
        let body = answer.into_body().collect_bytes().await.ok()?;
        let review: Value = serde_json::from_slice(&body).ok()?;
        review["status"]["allowed"].as_bool()
    }
}

impl Answer {
    fn of(answer: Result<Value, kube::Error>) -> Self {
        match answer {
            Ok(found) => Self::Found(found),
            Err(kube::Error::Api(status)) if status.code == 404 => Self::Missing,
            Err(error) => Self::Refused(cluster::error_message(error)),
        }
    }
}

//! A cluster with its version and its clock, for commands that handle many kinds.

use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kubemu_clock::Clock;
use serde_json::{Value, json};

use crate::Failure;
use crate::cluster::{self, Source};
use crate::requests::Requests;

/// A client for a cluster whose version was read.
pub(crate) struct Reader {
    pub(crate) requests: Requests,
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
            requests: Requests(client),
            minor: digits.parse().unwrap_or_default(),
            version: version.git_version,
            now: cluster::now_at(server_time),
            server_time,
            clock_difference: server_time.map(|at| at.duration_since(local_time)),
        })
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
        let review = self.requests.post(path, &review).await.found()?;
        let is_allowed = review["status"]["allowed"].as_bool();
        is_allowed.ok_or_else(|| "the response has no status.allowed".to_owned())
    }
}

//! Requests as a ServiceAccount, with a token that the cluster has issued.

use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::util::MapRequestLayer;
use tower::{Layer as _, Service};

use crate::Cluster;
use crate::cluster::BackendState;
use crate::request::{self, Form};
use crate::shared_cluster::SharedCluster;

impl Cluster {
    /// A client with a token of the ServiceAccount `account` in `namespace` of the workload
    /// cluster, like that of a pod: bound to the object `bound`, if given.
    pub async fn client_of(
        &self,
        (namespace, account): (&str, &str),
        bound: Option<&Value>,
    ) -> Client {
        let token = issue(self.workload(), (namespace, account), bound).await;
        match self.backend() {
            BackendState::Embedded(embedded) => {
                with_token(embedded.server.in_process(), &token)
            }
            BackendState::Kubernetes(_) => {
                SharedCluster::get().await.workload().with_token(&token)
            }
        }
    }

    /// A client with a token of the ServiceAccount `account` in `namespace` of the management
    /// cluster.
    pub async fn management_client_of(
        &self,
        (namespace, account): (&str, &str),
    ) -> Client {
        let token = issue(&self.client(), (namespace, account), None).await;
        match self.backend() {
            BackendState::Embedded(embedded) => {
                with_token(embedded.server.in_process(), &token)
            }
            BackendState::Kubernetes(_) => {
                SharedCluster::get().await.management().with_token(&token)
            }
        }
    }
}

/// A token of a ServiceAccount, bound to the object `bound`, if given.
#[expect(clippy::expect_used, reason = "a panic fails the test")]
async fn issue(
    client: &Client,
    (namespace, account): (&str, &str),
    bound: Option<&Value>,
) -> String {
    let mut token_request = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600},
    });
    if let Some(bound) = bound {
        token_request["spec"]["boundObjectRef"] = json!({
            "apiVersion": bound["apiVersion"],
            "kind": bound["kind"],
            "name": bound["metadata"]["name"],
            "uid": bound["metadata"]["uid"],
        });
    }
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
    let response =
        request::send(client, Method::POST, &path, (Form::Json, &token_request));
    let issued = response.await.expect("a token is issued");
    let token = issued["status"]["token"].as_str();
    token.expect("a token").to_owned()
}

/// A client that sends `token` with its requests.
fn with_token<S, B>(service: S, token: &str) -> Client
where
    S: Service<Request<Body>, Response = http::Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<tower::BoxError>,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    let header = HeaderValue::from_str(&format!("Bearer {token}")).ok();
    let service = MapRequestLayer::new(move |mut request: Request<Body>| {
        if let Some(header) = &header {
            request.headers_mut().insert(AUTHORIZATION, header.clone());
        }
        request
    })
    .layer(service);
    Client::new(service, "default")
}

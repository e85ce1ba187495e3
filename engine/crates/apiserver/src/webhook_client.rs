//! A client of webhooks: their endpoints, and calls to them (pkg/util/webhook in k8s.io/apiserver).

mod verifier;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::store::{Bucket, Key, Store};
use verifier::Verifier;

/// The maximum size of a response body in bytes.
const MAX_RESPONSE_SIZE: usize = 64 * 1024 * 1024;

/// The address, CA and credentials of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Endpoint {
    /// The name that the webhook's certificate must have.
    pub(crate) name: String,
    /// The URL in error messages, without a query.
    pub(crate) url: String,
    /// Host and port to connect to, or why there is no address.
    pub(crate) address: Result<String, String>,
    pub(crate) path: String,
    /// The CA certificates that verify the webhook; PEM.
    pub(crate) bundle: Vec<u8>,
    /// The credentials that the server sends.
    pub(crate) credentials: Credentials,
}

/// The services that endpoints name.
pub(crate) struct Services<'a> {
    pub(crate) store: &'a Store,
    pub(crate) bucket: Bucket,
}

impl Services<'_> {
    /// The address of a service of type ExternalName. All other services lead to pods, which do not
    /// run here.
    fn resolved(&self, key: &Key, port: u64) -> Result<String, String> {
        let name = &*key.name;
        let service = self.store.get(self.bucket, key);
        let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
        if service["spec"]["type"] != "ExternalName" {
            return Err(format!("no endpoints available for service {name:?}"));
        }
        let host = text(&service["spec"], "externalName");
        Ok(format!("{host}:{port}"))
    }
}

/// The credentials of the server for a webhook; empty if it does not authenticate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Credentials {
    /// A certificate and its key; PEM.
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
    /// A bearer token.
    pub(crate) token: String,
}

impl Endpoint {
    /// Reads a `clientConfig`, and resolves the service that it names.
    ///
    /// # Errors
    /// The `caBundle` or the URL is invalid.
    pub(crate) fn of(services: &Services<'_>, client: &Value) -> Result<Self, String> {
        let bundle = STANDARD.decode(text(client, "caBundle"));
        let bundle = bundle.map_err(|error| error.to_string())?;
        if let Some(url) = client["url"].as_str() {
            return Self::at(url, bundle);
        }
        let service = &client["service"];
        let (namespace, name) = (text(service, "namespace"), text(service, "name"));
        let port = service["port"].as_u64().unwrap_or(443);
        let path = cleaned(text(service, "path"));
        let host = format!("{name}.{namespace}.svc");
        let key = Key::new(namespace, name);
        Ok(Self {
            url: format!("https://{host}:{port}{path}"),
            name: host,
            address: services.resolved(&key, port),
            path,
            bundle,
            credentials: Credentials::default(),
        })
    }

    /// The endpoint at a URL.
    ///
    /// # Errors
    /// The text is not a URL.
    pub(crate) fn at(url: &str, bundle: Vec<u8>) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|_| format!("{url:?} is not a URL"))?;
        let host = uri.host().unwrap_or_default();
        let port = uri.port_u16().unwrap_or(443);
        let path = cleaned(uri.path());
        let scheme = uri.scheme_str().unwrap_or("https");
        let authority = uri.authority().map_or(host, |it| it.as_str());
        Ok(Self {
            name: host.trim_matches(['[', ']']).to_owned(),
            url: format!("{scheme}://{authority}{path}"),
            address: Ok(format!("{host}:{port}")),
            path,
            bundle,
            credentials: Credentials::default(),
        })
    }

    /// Posts a review, and returns the response.
    ///
    /// # Errors
    /// Why the call failed, with the message of a Kubernetes API server.
    pub(crate) async fn post(
        &self,
        review: &Value,
        timeout: Duration,
    ) -> Result<Value, String> {
        let seconds = timeout.as_secs();
        let url = format!("{}?timeout={seconds}s", self.url);
        let result = tokio::time::timeout(timeout, self.exchange(review, seconds)).await;
        match result {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(Failure::ErrorStatus(why))) => Err(why),
            Ok(Err(Failure::Unreachable(why))) => Err(format!("Post {url:?}: {why}")),
            Err(_) => Err(format!("Post {url:?}: context deadline exceeded")),
        }
    }

    async fn exchange(&self, review: &Value, seconds: u64) -> Result<Value, Failure> {
        let connection_error =
            |error: &dyn std::fmt::Display| Failure::Unreachable(error.to_string());
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}?timeout={seconds}s", self.path))
            .header(HOST, &self.name)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json");
        if !self.credentials.token.is_empty() {
            let token = format!("Bearer {}", self.credentials.token);
            request = request.header(AUTHORIZATION, token);
        }
        let request = request
            .body(Full::new(Bytes::from(review.to_string())))
            .map_err(|error| connection_error(&error))?;
        let stream = self
            .connect()
            .await
            .map_err(|error| connection_error(&error))?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
        let (mut sender, connection) =
            handshake.await.map_err(|error| connection_error(&error))?;
        let exchange = async {
            let response = sender.send_request(request).await;
            let response = response.map_err(|error| connection_error(&error))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_RESPONSE_SIZE)
                .collect()
                .await;
            let body = body.map_err(|error| connection_error(&error))?.to_bytes();
            if !status.is_success() {
                return Err(Failure::ErrorStatus(format!(
                    "the server responded with the status code {}",
                    status.as_u16()
                )));
            }
            serde_json::from_slice(&body).map_err(|error| connection_error(&error))
        };
        // The connection must be polled until the exchange is complete.
        tokio::select! {
            response = exchange => response,
            Err(error) = connection => Err(connection_error(&error)),
        }
    }

    async fn connect(
        &self,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, String> {
        let bundle = CertificateDer::pem_slice_iter(&self.bundle).collect();
        let bundle: Vec<_> = Result::map_err(bundle, |error| error.to_string())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = Verifier::new(bundle, provider.signature_verification_algorithms)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let Credentials {
            certificate, key, ..
        } = &self.credentials;
        let config = if certificate.is_empty() {
            config.with_no_client_auth()
        } else {
            let chain = CertificateDer::pem_slice_iter(certificate).collect();
            let chain: Vec<_> = Result::map_err(chain, |error| error.to_string())?;
            let key = PrivateKeyDer::from_pem_slice(key);
            let key = key.map_err(|error| error.to_string())?;
            let config = config.with_client_auth_cert(chain, key);
            config.map_err(|error| error.to_string())?
        };
        let name = ServerName::try_from(self.name.clone());
        let name = name.map_err(|error| error.to_string())?;
        let address = self.address.as_ref().map_err(Clone::clone)?;
        let stream = TcpStream::connect(address).await;
        let stream = stream
            .map_err(|error| format!("dial tcp {address}: {}", unconnected(&error)))?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await;
        stream.map_err(|error| verifier::message(&error))
    }
}

/// The path that client-go makes of that of a URL, as Go's `path.Join` does: controller-runtime's
/// envtest writes `https://127.0.0.1:9443//validate`.
fn cleaned(path: &str) -> String {
    let mut kept = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            other => kept.push(other),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Why a connection failed, as Go prints it.
fn unconnected(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}

/// Why a call failed.
enum Failure {
    /// The webhook sent an error response.
    ErrorStatus(String),
    /// The webhook sent no valid response.
    Unreachable(String),
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

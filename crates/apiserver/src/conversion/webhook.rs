//! Webhooks that convert custom objects
//! (pkg/apiserver/conversion/webhook_converter.go of k8s.io/apiextensions-apiserver).

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{Method, Request, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::meta;
use crate::state::State;
use crate::store::Key;

/// How long a webhook has to answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Most bytes of its answer.
const MOST: usize = 64 * 1024 * 1024;

/// Where a webhook is, and how it is known again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Webhook {
    /// The name that its certificate has to have.
    name: String,
    /// Host and port to connect to.
    address: String,
    path: String,
    /// The authorities of its certificate; PEM.
    bundle: Vec<u8>,
}

impl Webhook {
    /// Reads `spec.conversion.webhook`, and looks up the service that it names.
    ///
    /// # Errors
    /// Why it cannot be called.
    pub(crate) fn of(state: &State, webhook: &Value) -> Result<Self, String> {
        let client = &webhook["clientConfig"];
        let bundle = STANDARD.decode(text(client, "caBundle"));
        let bundle = bundle.map_err(|error| error.to_string())?;
        if let Some(url) = client["url"].as_str() {
            let uri: Uri = url.parse().map_err(|_| format!("{url:?} is no URL"))?;
            let host = uri.host().unwrap_or_default();
            let port = uri.port_u16().unwrap_or(443);
            return Ok(Self {
                name: host.trim_matches(['[', ']']).to_owned(),
                address: format!("{host}:{port}"),
                path: uri.path().to_owned(),
                bundle,
            });
        }
        let service = &client["service"];
        let (namespace, name) = (text(service, "namespace"), text(service, "name"));
        let port = service["port"].as_u64().unwrap_or(443);
        let path = text(service, "path").trim_start_matches('/');
        Ok(Self {
            name: format!("{name}.{namespace}.svc"),
            address: resolved(state, (namespace, name), port)?,
            path: format!("/{path}"),
            bundle,
        })
    }

    /// Has objects converted to `api_version`.
    ///
    /// # Errors
    /// Why they are not.
    pub(crate) async fn convert(
        &self,
        objects: &[Arc<Value>],
        api_version: &str,
    ) -> Result<Vec<Value>, String> {
        let called = self.call(objects, api_version);
        let timed = tokio::time::timeout(TIMEOUT, called).await;
        let review = timed.map_err(|_| "context deadline exceeded".to_owned())??;
        let response = &review["response"];
        if response["uid"] != UID {
            return Err(format!(
                "expected response.uid={UID:?}, got {}",
                response["uid"]
            ));
        }
        if response["result"]["status"] != "Success" {
            let message = text(&response["result"], "message");
            return Err(if message.is_empty() {
                "no message from the webhook".to_owned()
            } else {
                message.to_owned()
            });
        }
        let converted = response["convertedObjects"].as_array();
        let converted = converted.map(Vec::as_slice).unwrap_or_default();
        if converted.len() != objects.len() {
            return Err(format!(
                "expected {} converted objects, got {}",
                objects.len(),
                converted.len()
            ));
        }
        let both = objects.iter().zip(converted);
        both.map(|(before, after)| checked(before, after, api_version))
            .collect()
    }

    async fn call(
        &self,
        objects: &[Arc<Value>],
        api_version: &str,
    ) -> Result<Value, String> {
        let url = format!("https://{}{}?timeout=30s", self.name, self.path);
        let failed = |why: String| format!("Post {url:?}: {why}");
        let objects: Vec<&Value> = objects.iter().map(|it| &**it).collect();
        let review = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": UID, "desiredAPIVersion": api_version,
                "objects": objects},
        });
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}?timeout=30s", self.path))
            .header(HOST, &self.name)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json")
            .body(Full::new(Bytes::from(review.to_string())))
            .map_err(|error| failed(error.to_string()))?;
        let stream = self.connect().await.map_err(&failed)?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
        let (mut sender, connection) =
            handshake.await.map_err(|error| failed(error.to_string()))?;
        let exchange = async {
            let response = sender.send_request(request).await;
            let response = response.map_err(|error| failed(error.to_string()))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MOST).collect().await;
            let body = body.map_err(|error| failed(error.to_string()))?.to_bytes();
            if !status.is_success() {
                return Err(format!(
                    "the server responded with the status code {}",
                    status.as_u16()
                ));
            }
            serde_json::from_slice(&body).map_err(|error| failed(error.to_string()))
        };
        // The connection is driven as long as the exchange needs it.
        tokio::select! {
            answer = exchange => answer,
            Err(error) = connection => Err(failed(error.to_string())),
        }
    }

    async fn connect(
        &self,
    ) -> Result<tokio_rustls::client::TlsStream<TcpStream>, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&self.bundle) {
            let certificate = certificate.map_err(|error| error.to_string())?;
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(self.name.clone());
        let name = name.map_err(|error| error.to_string())?;
        let address = &self.address;
        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|error| format!("dial tcp {address}: {error}"))?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await;
        stream.map_err(|error| format!("tls: {error}"))
    }
}

/// The one request of a review is its own: nothing is asked twice at a time.
const UID: &str = "00000000-0000-4000-8000-000000000001";

/// Where a service leads that has a name outside the cluster. All others lead to pods, which do
/// not run here.
fn resolved(
    state: &State,
    (namespace, name): (&str, &str),
    port: u64,
) -> Result<String, String> {
    let key = Key::new(namespace, name);
    let service = state.get(state.buckets.services, &key);
    let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
    if service["spec"]["type"] != "ExternalName" {
        return Err(format!("no endpoints available for service {name:?}"));
    }
    let host = text(&service["spec"], "externalName");
    Ok(format!("{host}:{port}"))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// A converted object, which is still the same one; of its metadata a webhook may change labels
/// and annotations alone.
fn checked(before: &Value, after: &Value, api_version: &str) -> Result<Value, String> {
    let (said, kind) = (text(after, "apiVersion"), text(after, "kind"));
    if said != api_version {
        return Err(format!(
            "invalid converted object: invalid apiVersion: expected {api_version}, got {said}"
        ));
    }
    if kind != text(before, "kind") {
        return Err(format!(
            "invalid converted object: invalid kind: expected {}, got {kind}",
            text(before, "kind")
        ));
    }
    for field in ["name", "namespace", "uid"] {
        let (had, has) = (meta::text(before, field), meta::text(after, field));
        if had != has {
            return Err(format!(
                "invalid metadata of the converted object: metadata.{field} changed from \
                 {had:?} to {has:?}"
            ));
        }
    }
    let mut object = after.clone();
    let mut metadata = before["metadata"].clone();
    for field in ["labels", "annotations"] {
        let fields = meta::fields(&mut metadata);
        match after["metadata"].get(field) {
            Some(value) => {
                fields.insert(field.to_owned(), value.clone());
            }
            None => {
                fields.shift_remove(field);
            }
        }
    }
    object["metadata"] = metadata;
    Ok(object)
}

//! A webhook on a free port, clients that trust a CA, and CAs.
#![allow(dead_code, reason = "each test uses its part")]

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fivespot_webhook::serve::ReviewObserver;
use fivespot_webhook::{Certificate, Reviewer, Validator, serve};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The name by which API servers reach the webhook.
pub(crate) const NAME: &str = "webhook.5spot-system.svc";

/// A CA with a certificate that it has signed; PEM.
pub(crate) struct Authority {
    pub(crate) bundle: String,
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn install(&self, certificate: &Certificate) {
        let (chain, key) = (self.chain.as_bytes(), self.key.as_bytes());
        certificate.exchange(chain, key).unwrap();
    }
}

pub(crate) fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.distinguished_name.push(DnType::CommonName, name);
    let own = KeyPair::generate().unwrap();
    let bundle = params.self_signed(&own).unwrap().pem();
    let issuer = Issuer::new(params, own);
    let key = KeyPair::generate().unwrap();
    let serving = CertificateParams::new([NAME.to_owned()]).unwrap();
    Authority {
        bundle,
        chain: serving.signed_by(&key, &issuer).unwrap().pem(),
        key: key.serialize_pem(),
    }
}

/// The review that an API server sends for an example under `examples/admission`.
pub(crate) fn review(file: &str) -> Value {
    let path = format!(
        "{}/../../examples/admission/{file}.yaml",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(path).unwrap();
    let object: Value = serde_saphyr::from_str(&text).unwrap();
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "7f0b2891-916f-4ed6-b7cd-27bff1815a8c",
            "kind": {"group": "5spot.finos.org", "version": "v1alpha1",
                "kind": "ScheduledMachine"},
            "resource": {"group": "5spot.finos.org", "version": "v1alpha1",
                "resource": "scheduledmachines"},
            "name": object["metadata"]["name"],
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": {"username": "jane"},
            "object": object,
            "oldObject": null,
        },
    })
}

/// A webhook that is served until it is dropped.
pub(crate) struct Webhook {
    address: SocketAddr,
    bundle: String,
    stop: oneshot::Sender<()>,
    serving: tokio::task::JoinHandle<()>,
}

impl Webhook {
    pub(crate) async fn start() -> Self {
        let authority = authority("first");
        let certificate = Certificate::default();
        authority.install(&certificate);
        Self::with(certificate, &authority).await
    }

    pub(crate) async fn observed(observer: Arc<dyn ReviewObserver>) -> Self {
        let authority = authority("first");
        let certificate = Certificate::default();
        authority.install(&certificate);
        Self::serve(certificate, &authority, observer).await
    }

    pub(crate) async fn with(certificate: Certificate, authority: &Authority) -> Self {
        Self::serve(certificate, authority, Arc::new(())).await
    }

    async fn serve(
        certificate: Certificate,
        authority: &Authority,
        observer: Arc<dyn ReviewObserver>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let reviewer = Reviewer {
            validator: Arc::new(Validator::new(&["Deny"]).unwrap()),
            targets: None,
            classes: None,
            observer,
        };
        let serving = tokio::spawn(async move {
            let stopped = async { _ = stopped.await };
            serve(listener, &certificate, reviewer, stopped)
                .await
                .unwrap();
        });
        Self {
            address,
            bundle: authority.bundle.clone(),
            stop,
            serving,
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client {
            own: Ipv4Addr::LOCALHOST.into(),
            address: self.address,
            bundle: self.bundle.clone(),
        }
    }

    pub(crate) fn stop(self) -> impl Future<Output = ()> {
        self.stop.send(()).unwrap();
        async { self.serving.await.unwrap() }
    }
}

/// A client that trusts one bundle.
#[derive(Clone)]
pub(crate) struct Client {
    /// From where it connects.
    own: IpAddr,
    address: SocketAddr,
    bundle: String,
}

impl Client {
    pub(crate) fn new(address: SocketAddr, bundle: &str) -> Self {
        Self {
            own: Ipv4Addr::LOCALHOST.into(),
            address,
            bundle: bundle.to_owned(),
        }
    }

    pub(crate) fn sent_from(mut self, own: Ipv4Addr) -> Self {
        self.own = own.into();
        self
    }

    pub(crate) fn trusting(mut self, bundle: &str) -> Self {
        bundle.clone_into(&mut self.bundle);
        self
    }

    async fn connect_by(&self, protocols: &[&[u8]]) -> std::io::Result<Connection> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.bundle.as_bytes()) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let socket = TcpSocket::new_v4()?;
        socket.bind((self.own, 0).into())?;
        let stream = socket.connect(self.address).await?;
        let name = ServerName::try_from(NAME).unwrap();
        let connector = TlsConnector::from(Arc::new(tls));
        Ok(Connection(connector.connect(name, stream).await?))
    }

    /// A connection on which nothing is sent.
    pub(crate) async fn connect_tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// An HTTP/2 connection on which nothing is requested.
    pub(crate) async fn connect_http_2(&self) -> Connection {
        let mut connection = self.connect_by(&[b"h2"]).await.unwrap();
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &settings].concat();
        connection.0.write_all(&preface).await.unwrap();
        // The connection is established when the server has sent its own settings.
        let mut head = [0; 9];
        connection.0.read_exact(&mut head).await.unwrap();
        assert_eq!(head[3], 4, "a frame of settings");
        connection
    }

    pub(crate) async fn try_connect(&self) -> std::io::Result<Connection> {
        self.connect_by(&[]).await
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.try_connect().await.unwrap()
    }

    pub(crate) async fn send_review(&self, review: &Value) -> (u16, String) {
        self.connect().await.send_review(review).await
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        media: &str,
        body: &str,
    ) -> (u16, String) {
        let mut connection = self.connect().await;
        let length = body.len();
        connection
            .head(method, path, media, &format!("content-length: {length}"))
            .await;
        // The response may arrive before the whole body has been sent.
        let _ = connection.0.write_all(body.as_bytes()).await;
        connection.answer().await
    }

    pub(crate) async fn send_in_pieces(&self, length: usize) -> (u16, String) {
        let mut connection = self.connect().await;
        let (path, media) = (fivespot_api::name::WEBHOOK_PATH, "application/json");
        connection
            .head("POST", path, media, "transfer-encoding: chunked")
            .await;
        let piece = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
        for _ in 0..=length / 0x10000 {
            if connection.0.write_all(piece.as_bytes()).await.is_err() {
                break;
            }
        }
        connection.answer().await
    }
}

pub(crate) struct Connection(TlsStream<TcpStream>);

impl Connection {
    async fn head(&mut self, method: &str, path: &str, media: &str, length: &str) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {NAME}\r\ncontent-type: {media}\r\n\
             connection: close\r\n{length}\r\n\r\n"
        );
        self.0.write_all(head.as_bytes()).await.unwrap();
    }

    pub(crate) async fn begin(&mut self, length: usize, first: &str) {
        let length = format!("content-length: {length}");
        self.head(
            "POST",
            fivespot_api::name::WEBHOOK_PATH,
            "application/json",
            &length,
        )
        .await;
        self.0.write_all(first.as_bytes()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    pub(crate) async fn end(&mut self, rest: &str) -> (u16, String) {
        self.0.write_all(rest.as_bytes()).await.unwrap();
        self.answer().await
    }

    pub(crate) async fn send_review(&mut self, review: &Value) -> (u16, String) {
        let text = review.to_string();
        self.begin(text.len(), &text).await;
        self.answer().await
    }

    async fn answer(&mut self) -> (u16, String) {
        let mut answer = Vec::new();
        // A server that rejects a body closes without reading all of it.
        let _ = self.0.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let code = head.split(' ').nth(1).unwrap().parse().unwrap();
        (code, body.to_owned())
    }
}

/// A temporary directory, removed on drop.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("5spot-webhook-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Replaces the files as the kubelet does: a link to a directory is renamed over the old one.
    pub(crate) fn link(&self, authority: &Authority, version: &str) {
        use std::os::unix::fs::symlink;
        let versioned = self.0.join(format!("..{version}"));
        std::fs::create_dir(&versioned).unwrap();
        std::fs::write(versioned.join("tls.crt"), &authority.chain).unwrap();
        std::fs::write(versioned.join("tls.key"), &authority.key).unwrap();
        for file in ["tls.crt", "tls.key"] {
            if !self.0.join(file).is_symlink() {
                symlink(format!("..data/{file}"), self.0.join(file)).unwrap();
            }
        }
        let link = self.0.join("..data_tmp");
        symlink(&versioned, &link).unwrap();
        std::fs::rename(&link, self.0.join("..data")).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Retries until `holds` returns true. A test that waits forever is ended by its runner.
pub(crate) async fn eventually(mut holds: impl AsyncFnMut() -> bool) {
    while !holds().await {
        tokio::task::yield_now().await;
    }
}

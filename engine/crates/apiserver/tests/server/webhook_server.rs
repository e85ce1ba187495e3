//! A webhook behind TLS.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use rustls_pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A TLS webhook on a loopback address, and the reviews that it has received.
pub(crate) struct WebhookServer {
    pub(crate) address: SocketAddr,
    /// The CA of its certificate, in base64.
    pub(crate) bundle: String,
    pub(crate) reviews: Arc<Mutex<Vec<Value>>>,
}

impl WebhookServer {
    /// A webhook that responds with the result of `respond`. For null it never responds.
    pub(crate) async fn start(
        respond: impl Fn(&Value) -> Value + Clone + Send + 'static,
    ) -> Self {
        Self::start_with(certificate(), respond).await
    }

    /// The same with a self-signed certificate, which is its own CA bundle.
    pub(crate) async fn start_with(
        certificate: CertificateParams,
        respond: impl Fn(&Value) -> Value + Clone + Send + 'static,
    ) -> Self {
        let key_pair = KeyPair::generate().unwrap();
        let certificate = certificate.self_signed(&key_pair).unwrap();
        let key = PrivatePkcs8KeyDer::from(key_pair.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let reviews: Arc<Mutex<Vec<Value>>> = Arc::default();
        let received = reviews.clone();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let (respond, received) = (respond.clone(), received.clone());
                tokio::spawn(async move {
                    let review = read_body(&mut stream).await;
                    received.lock().unwrap().push(review.clone());
                    let respond = respond(&review);
                    if respond.is_null() {
                        std::future::pending::<()>().await;
                    }
                    let body = respond.to_string();
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                        body.len()
                    );
                    stream.write_all(head.as_bytes()).await.unwrap();
                    stream.write_all(body.as_bytes()).await.unwrap();
                    stream.shutdown().await.unwrap();
                });
            }
        });
        Self {
            address,
            bundle: STANDARD.encode(certificate.pem()),
            reviews,
        }
    }

    /// The `clientConfig` of the webhook at a path.
    pub(crate) fn by_url(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.bundle})
    }

    /// The number of received reviews.
    pub(crate) fn calls(&self) -> usize {
        self.reviews.lock().unwrap().len()
    }
}

/// A certificate for the names of the webhook.
fn certificate() -> CertificateParams {
    let names = ["127.0.0.1", "hooks.tools.svc"].map(str::to_owned);
    CertificateParams::new(names).unwrap()
}

/// The same with `CA:TRUE`, as from `openssl req -x509`.
pub(crate) fn authority() -> CertificateParams {
    let mut params = certificate();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// Reads the body of an HTTP/1 request.
async fn read_body(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Value {
    let mut bytes = Vec::new();
    loop {
        bytes.push(stream.read_u8().await.unwrap());
        if bytes.ends_with(b"\r\n\r\n") {
            break;
        }
    }
    let head = String::from_utf8(bytes).unwrap().to_lowercase();
    assert!(head.starts_with("post /"), "{head}");
    assert!(head.contains("?timeout="), "{head}");
    let (_, length) = head.split_once("content-length: ").unwrap();
    let length = length.split_once("\r\n").unwrap().0.parse().unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

//! Clients that try to block other clients. Each of them reconnects when it is cut off.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fivespot_testkit::scheduled_machine;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::BoxError;

/// The timeout of an honest client.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The start of every HTTP/2 connection: the preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// The address of the webhook, and the certificate to trust.
#[derive(Clone)]
pub(crate) struct Webhook {
    address: SocketAddr,
    /// The address of the client.
    client: Ipv4Addr,
    certificate: CertificateDer<'static>,
}

impl Webhook {
    /// A webhook that will listen at this address. Writes its certificate and key into the folder.
    pub(crate) fn prepare(address: SocketAddr, folder: &Path) -> Result<Self, BoxError> {
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("tls.crt"), own.cert.pem())?;
        std::fs::write(folder.join("tls.key"), own.signing_key.serialize_pem())?;
        Ok(Self {
            address,
            client: Ipv4Addr::LOCALHOST,
            certificate: own.cert.der().clone(),
        })
    }

    async fn connect(&self, protocol: &[u8]) -> Result<TlsStream<TcpStream>, BoxError> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        let socket = TcpSocket::new_v4()?;
        socket.bind((self.client, 0).into())?;
        let stream = socket.connect(self.address).await?;
        let name = ServerName::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST));
        let connector = TlsConnector::from(Arc::new(config));
        Ok(connector.connect(name, stream).await?)
    }

    /// Sends a small review as an API server does. Returns the duration.
    pub(crate) async fn send_review(&self) -> Option<Duration> {
        self.review(&review_of(&machine())).await
    }

    /// Sends a review again and again, each time on a new connection.
    async fn repeat(self, body: Arc<str>) {
        loop {
            if let Ok(mut stream) = self.connect(b"http/1.1").await {
                let _ = post(&mut stream, body.as_bytes()).await;
                let _ = stream.read(&mut [0; 64]).await;
            } else {
                sleep(Duration::from_millis(100)).await;
            }
        }
    }

    /// Sends a review. Returns the duration. `None` if the status is not 200.
    async fn review(&self, body: &str) -> Option<Duration> {
        let begun = Instant::now();
        let exchange = async {
            let mut stream = self.connect(b"http/1.1").await?;
            post(&mut stream, body.as_bytes()).await?;
            let mut response = [0; 12];
            stream.read_exact(&mut response).await?;
            if &response != b"HTTP/1.1 200" {
                return Err("the webhook did not respond with 200".into());
            }
            Ok::<_, BoxError>(())
        };
        let result = timeout(TIMEOUT, exchange).await.ok()?;
        result.ok()?;
        Some(begun.elapsed())
    }
}

/// A machine that every rule accepts.
fn machine() -> Value {
    let mut object = scheduled_machine("asked");
    object["spec"]["bootstrapSpec"]["spec"] = json!({"version": "v1.30.0"});
    object
}

/// A review of the creation of a machine.
fn review_of(object: &Value) -> String {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "name": "asked", "namespace": "default",
            "kind": {"group": "5spot.finos.org", "version": "v1alpha1",
                     "kind": "ScheduledMachine"},
            "resource": {"group": "5spot.finos.org", "version": "v1alpha1",
                         "resource": "scheduledmachines"},
            "userInfo": {"username": "tenant"}, "object": object, "oldObject": null,
        },
    })
    .to_string()
}

fn head(length: usize) -> String {
    format!(
        "POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n"
    )
}

async fn post(stream: &mut TlsStream<TcpStream>, body: &[u8]) -> io::Result<()> {
    stream.write_all(head(body.len()).as_bytes()).await?;
    stream.write_all(body).await?;
    stream.flush().await
}

/// Starts this many clients, one for each call of `once`.
fn spawn<F>(number: usize, once: impl Fn() -> F) -> JoinSet<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    (0..number).map(|_| once()).collect()
}

/// Connections on which nothing is sent.
pub(crate) fn silent(number: usize, address: SocketAddr) -> JoinSet<()> {
    spawn(number, move || async move {
        loop {
            if let Ok(mut stream) = TcpStream::connect(address).await {
                // Waits until it is cut off.
                let _ = stream.read(&mut [0; 16]).await;
            }
            sleep(Duration::from_millis(100)).await;
        }
    })
}

/// HTTP/2 connections that send no request and respond to pings.
pub(crate) fn idle(number: usize, webhook: &Webhook) -> JoinSet<()> {
    spawn(number, || {
        let webhook = webhook.clone();
        async move {
            loop {
                let _ = idle_once(&webhook).await;
                sleep(Duration::from_millis(100)).await;
            }
        }
    })
}

async fn idle_once(webhook: &Webhook) -> Result<(), BoxError> {
    let mut stream = webhook.connect(b"h2").await?;
    stream.write_all(PREFACE).await?;
    stream.flush().await?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut body = vec![0; usize::try_from(length)?];
        stream.read_exact(&mut body).await?;
        let (is_settings, is_ping, is_answer) =
            (head[3] == 4, head[3] == 6, head[4] & 1 == 1);
        if is_answer || !(is_settings || is_ping) {
            continue;
        }
        head[4] = 1;
        if is_settings {
            (head[1], head[2]) = (0, 0);
            body.clear();
        }
        stream.write_all(&head).await?;
        stream.write_all(&body).await?;
        stream.flush().await?;
    }
}

/// Reviews of which a byte is sent every second.
pub(crate) fn slow(number: usize, webhook: &Webhook) -> JoinSet<()> {
    spawn(number, || {
        let webhook = webhook.clone();
        async move {
            loop {
                let _ = slow_once(&webhook).await;
                sleep(Duration::from_millis(100)).await;
            }
        }
    })
}

async fn slow_once(webhook: &Webhook) -> Result<(), BoxError> {
    let mut stream = webhook.connect(b"http/1.1").await?;
    stream.write_all(head(1 << 20).as_bytes()).await?;
    loop {
        stream.write_all(b" ").await?;
        stream.flush().await?;
        sleep(Duration::from_secs(1)).await;
    }
}

/// Reviews of 6.5 MiB, just below the limit of the webhook, that consist of small numbers. Fails if
/// the webhook does not evaluate them.
pub(crate) async fn dense(
    number: usize,
    webhook: &Webhook,
) -> Result<JoinSet<()>, BoxError> {
    let mut object = machine();
    object["spec"]["bootstrapSpec"]["spec"] = json!({"list": vec![0; 13 << 18]});
    let body: Arc<str> = review_of(&object).into();
    if webhook.review(&body).await.is_none() {
        return Err("the webhook has not evaluated a dense review".into());
    }
    Ok(spawn(number, || webhook.clone().repeat(body.clone())))
}

/// Reviews of 5 MB with 40,000 annotations for the Machine, from each of these addresses one after
/// the other.
pub(crate) fn annotated(addresses: &[Ipv4Addr], webhook: &Webhook) -> JoinSet<()> {
    let value = "x".repeat(80);
    let annotations =
        (0..40_000).map(|number| (format!("example.com/{number:08}"), &value));
    let mut object = machine();
    object["spec"]["machineTemplate"]["annotations"] = annotations
        .map(|(key, value)| (key, json!(value)))
        .collect();
    let body: Arc<str> = review_of(&object).into();
    let clients = addresses.iter().map(|client| Webhook {
        client: *client,
        ..webhook.clone()
    });
    clients.map(|client| client.repeat(body.clone())).collect()
}

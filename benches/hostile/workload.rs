//! A hostile workload cluster over HTTP/1.1.

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use crate::BoxError;

/// The kind of its responses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ResponseMode {
    /// A list of Nodes that does not end.
    Endless,
    /// A thousand Nodes with annotations of 250 KB each.
    LargeNodes,
    /// An error of 20 MiB for every request.
    LargeErrors,
}

/// The server. Dropping it stops it.
pub(crate) struct Workload {
    pub(crate) kubeconfig: String,
    task: AbortHandle,
}

impl Drop for Workload {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Workload {
    /// Starts the server.
    pub(crate) async fn start(mode: ResponseMode) -> Result<Self, BoxError> {
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der())?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![own.cert.der().clone()], key)?;
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": {
                "server": format!("https://{}", listener.local_addr()?),
                "certificate-authority-data": STANDARD.encode(own.cert.pem()),
            }}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        });
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // An error of the connection is ignored: the client may close it early.
                    let _ = serve_connection(acceptor.accept(stream).await?, mode).await;
                    Ok::<_, io::Error>(())
                });
            }
        });
        Ok(Self {
            kubeconfig: kubeconfig.to_string(),
            task: task.abort_handle(),
        })
    }
}

/// Responds to one request after another.
async fn serve_connection<S>(mut stream: S, mode: ResponseMode) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut received = Vec::new();
    loop {
        let end = loop {
            let end = received.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                break end + 4;
            }
            if stream.read_buf(&mut received).await? == 0 {
                return Ok(());
            }
        };
        let head = String::from_utf8_lossy(&received[..end]).into_owned();
        received.drain(..end);
        let line = head.lines().next().unwrap_or_default();
        respond(&mut stream, mode, line).await?;
    }
}

async fn respond<S>(stream: &mut S, mode: ResponseMode, request: &str) -> io::Result<()>
where
    S: AsyncWrite + Unpin,
{
    let is_list = request.contains("/api/v1/nodes?") && !request.contains("watch=");
    match mode {
        ResponseMode::LargeErrors => {
            let body = "x".repeat(20 << 20);
            send(stream, "500 Internal Server Error", body.as_bytes()).await
        }
        ResponseMode::Endless if is_list => {
            let page = page(0..20, 100, "more");
            send(stream, "200 OK", page.as_bytes()).await
        }
        ResponseMode::LargeNodes if is_list => {
            let begun = request
                .split_once("continue=")
                .and_then(|(_, rest)| rest.split(['&', ' ']).next()?.parse().ok());
            let begun: usize = begun.unwrap_or(0);
            let end = begun + 100;
            let next = if end < 1_000 {
                end.to_string()
            } else {
                String::new()
            };
            let page = page(begun..end, 250_000, &next);
            send(stream, "200 OK", page.as_bytes()).await
        }
        ResponseMode::LargeNodes | ResponseMode::Endless
            if request.contains("watch=") =>
        {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                .await?;
            stream.flush().await?;
            std::future::pending().await
        }
        ResponseMode::LargeNodes | ResponseMode::Endless => {
            let items = r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}"#;
            send(stream, "200 OK", items.as_bytes()).await
        }
    }
}

async fn send<S>(stream: &mut S, status: &str, body: &[u8]) -> io::Result<()>
where
    S: AsyncWrite + Unpin,
{
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body).await?;
    stream.flush().await
}

/// A page of Nodes, each with an annotation of this many bytes.
fn page(numbers: std::ops::Range<usize>, size: usize, next: &str) -> String {
    let text = "x".repeat(size);
    let nodes = numbers.map(|number| {
        json!({
            "metadata": {
                "name": format!("node-{number}"), "uid": format!("uid-{number}"),
                "resourceVersion": "1",
                "annotations": {"5spot.finos.org/applied-taints": text},
            },
            "spec": {"providerID": "sim://victim"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        })
    });
    json!({
        "kind": "NodeList", "apiVersion": "v1",
        "metadata": {"resourceVersion": "1", "continue": next},
        "items": nodes.collect::<Vec<_>>(),
    })
    .to_string()
}

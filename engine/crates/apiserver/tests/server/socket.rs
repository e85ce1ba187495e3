//! The server on a socket: TLS, tokens, and only local clients.

use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::Arc;

use flate2::read::GzDecoder;
use kubemu_apiserver::{ClientCertificate, Credentials, serve};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use crate::fixture::{MAPS, server};

struct RunningServer {
    address: SocketAddr,
    credentials: Credentials,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), serve::Error>>,
}

async fn start_server() -> RunningServer {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let credentials = Credentials::generate().unwrap();
    let (stop, stopped) = oneshot::channel();
    let own = credentials.clone();
    let task = tokio::spawn(async move {
        let stop = async {
            let _ = stopped.await;
        };
        server().serve(listener, &own, stop).await
    });
    RunningServer {
        address,
        credentials,
        stop,
        task,
    }
}

/// The response to a GET, with its headers.
async fn get(running: &RunningServer, path: &str, authorization: &str) -> String {
    get_as(running, path, (authorization, None)).await
}

/// The same from a client with a certificate.
async fn get_as(
    running: &RunningServer,
    path: &str,
    client: (&str, Option<&ClientCertificate>),
) -> String {
    let get = format!("GET {path}");
    String::from_utf8(exchange(running, &get, client).await).unwrap()
}

/// The bytes of the response to a method and a path.
async fn exchange(
    running: &RunningServer,
    request: &str,
    (authorization, certificate): (&str, Option<&ClientCertificate>),
) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    let authority = running.credentials.authority_pem().as_bytes();
    roots
        .add(CertificateDer::from_pem_slice(authority).unwrap())
        .unwrap();
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match certificate {
        None => config.with_no_client_auth(),
        Some(shown) => {
            let chain = CertificateDer::from_pem_slice(shown.certificate.as_bytes());
            let key = PrivateKeyDer::from_pem_slice(shown.key.as_bytes());
            let chain = vec![chain.unwrap()];
            config.with_client_auth_cert(chain, key.unwrap()).unwrap()
        }
    };
    let stream = TcpStream::connect(running.address).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap();
    let request = format!(
        "{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{authorization}\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The connection of a client with a rejected certificate is closed without a response.
    let _ = stream.read_to_end(&mut answer).await;
    answer
}

/// The head and the body of a response to the administrator.
async fn get_parts(
    running: &RunningServer,
    path: &str,
    headers: &str,
) -> (String, Vec<u8>) {
    let token = running.credentials.token();
    let headers = format!("authorization: Bearer {token}\r\n{headers}");
    let get = format!("GET {path}");
    let answer = exchange(running, &get, (&headers, None)).await;
    let mut ends = answer.windows(4).enumerate();
    let (end, _) = ends.find(|(_, it)| *it == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    (head, answer[end + 4..].to_vec())
}

#[tokio::test]
async fn large_responses_are_compressed_for_clients_that_accept_gzip() {
    let running = start_server().await;
    let large = "/openapi/v3/api/v1";
    let (head, plain) = get_parts(&running, large, "").await;
    assert!(!head.contains("content-encoding"), "{head}");
    assert!(plain.len() > 128 * 1024, "{}", plain.len());
    let gzip = "accept-encoding: br, gzip\r\n";
    let (head, compressed) = get_parts(&running, large, gzip).await;
    assert!(head.contains("content-encoding: gzip"), "{head}");
    assert!(head.contains("vary: Accept-Encoding"), "{head}");
    assert!(
        head.contains(&format!("content-length: {}", compressed.len())),
        "{head}"
    );
    assert!(compressed.len() < plain.len() / 4, "{}", compressed.len());
    let mut read = Vec::new();
    GzDecoder::new(&*compressed).read_to_end(&mut read).unwrap();
    assert!(read == plain);
    for (path, headers) in [
        ("/api/v1/nodes", gzip),
        (large, "accept-encoding: gzip;q=0\r\n"),
    ] {
        let (head, _) = get_parts(&running, path, headers).await;
        assert!(!head.contains("content-encoding"), "{head}");
    }
    running.stop.send(()).unwrap();
    running.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_certificate_authenticates_a_client() {
    let running = start_server().await;
    let issue = |name: &str, group| running.credentials.issue(name, group).unwrap();
    let admin = issue("somebody", Some("system:masters"));
    let right = get_as(&running, "/api/v1/nodes", ("", Some(&admin))).await;
    assert!(right.starts_with("HTTP/1.1 200"), "{right}");
    let jane = issue("jane", Some("dev"));
    let refused = get_as(&running, "/api/v1/nodes", ("", Some(&jane))).await;
    assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
    assert!(
        refused.contains("User \\\"jane\\\" cannot list"),
        "{refused}"
    );
    let token = running.credentials.token().to_owned();
    let bearer = format!("authorization: Bearer {token}\r\n");
    let both = get_as(&running, "/api/v1/nodes", (&bearer, Some(&jane))).await;
    assert!(both.contains("User \\\"jane\\\" cannot list"), "{both}");
    let foreign = Credentials::generate().unwrap();
    let foreign = foreign.issue("somebody", Some("system:masters")).unwrap();
    let cut = get_as(&running, "/api/v1/nodes", ("", Some(&foreign))).await;
    assert!(!cut.contains("200 OK"), "{cut}");
    running.stop.send(()).unwrap();
    running.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn only_the_token_authenticates() {
    let running = start_server().await;
    let token = running.credentials.token().to_owned();
    let bearer = format!("authorization: Bearer {token}\r\n");
    let right = get(&running, "/api/v1/nodes", &bearer).await;
    assert!(right.starts_with("HTTP/1.1 200"), "{right}");
    let wrong = "authorization: Bearer x\r\n";
    let refused = get(&running, "/api/v1/nodes", wrong).await;
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    assert!(refused.contains("\"reason\":\"Unauthorized\""), "{refused}");
    for none in ["", "authorization: Basic eDp5\r\n"] {
        let refused = get(&running, "/api/v1/nodes", none).await;
        assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
        assert!(
            refused.contains("User \\\"system:anonymous\\\" cannot list"),
            "{refused}"
        );
    }
    assert!(
        get(&running, "/readyz", "")
            .await
            .starts_with("HTTP/1.1 200")
    );
    running.stop.send(()).unwrap();
    running.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_body_that_does_not_come_is_awaited_no_longer_than_the_timeout_of_the_request()
{
    let running = start_server().await;
    let headers = format!(
        "authorization: Bearer {}\r\ncontent-length: 10\r\n",
        running.credentials.token()
    );
    let post = format!("POST {MAPS}?timeout=50ms");
    let answer = exchange(&running, &post, (&headers, None)).await;
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
    assert!(
        answer.contains("request did not complete within the allotted timeout"),
        "{answer}"
    );
    running.stop.send(()).unwrap();
    running.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn stopping_a_server_does_not_wait_for_idle_clients() {
    let running = start_server().await;
    let idle = TcpStream::connect(running.address).await.unwrap();
    running.stop.send(()).unwrap();
    running.task.await.unwrap().unwrap();
    drop(idle);
}

#[tokio::test]
async fn only_loopback_addresses_are_accepted_for_listening() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let credentials = Credentials::generate().unwrap();
    let refused = server()
        .serve(listener, &credentials, std::future::pending())
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "the API server listens only on loopback addresses, not on {address}; use \
             127.0.0.1"
        )
    );
}

#[test]
fn a_kubeconfig_has_server_ca_token_and_certificate() {
    let credentials = Credentials::generate().unwrap();
    let text = credentials.kubeconfig("127.0.0.1:6443".parse().unwrap(), "dev");
    let config: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(
        config["clusters"][0]["cluster"]["server"],
        "https://127.0.0.1:6443"
    );
    let user = &config["users"][0]["user"];
    assert_eq!(user["token"], credentials.token());
    for field in ["client-certificate-data", "client-key-data"] {
        assert!(user[field].is_string(), "{field}");
    }
    assert_eq!(config["current-context"], "dev");
    assert_eq!(config["contexts"][0]["context"]["cluster"], "dev");
    let text =
        credentials.certificate_kubeconfig("127.0.0.1:6443".parse().unwrap(), "dev");
    let config: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(config["users"][0]["user"].get("token"), None);
}

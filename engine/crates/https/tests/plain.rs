//! Probes get a response, whatever other connections are open.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use kubemu_https::Plain;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How long a probe waits at most.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

async fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Plain { listener };
    tokio::spawn(server.serve(|_, _| Response::new(Full::new(Bytes::from("ok")))));
    address
}

async fn probe(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let question = "GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    stream.write_all(question.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn a_probe_is_answered_within_a_second_beside_silent_and_slow_connections() {
    let address = server().await;
    let mut others = Vec::new();
    for number in 0..200 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(b"GET /heal").await.unwrap();
        }
        others.push(stream);
        let answer = tokio::time::timeout(PROBE_TIMEOUT, probe(address)).await;
        assert!(answer.unwrap().starts_with("HTTP/1.1 200 "), "{number}");
    }
}

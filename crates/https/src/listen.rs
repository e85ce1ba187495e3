//! New connections.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// How long nothing is accepted after that failed: too many open files pass when others close.
const RESPITE: Duration = Duration::from_millis(100);

/// The next connection, and who it is from.
pub(crate) async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(RESPITE).await;
            }
        }
    }
}

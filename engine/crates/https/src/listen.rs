//! Accepts connections.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// How long to wait after a failed accept: with too many open files, it succeeds again once others
/// are closed.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// The next connection, and the address of its peer.
pub(crate) async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

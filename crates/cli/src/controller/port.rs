//! The ports on which the operator is looked into.

use std::net::{IpAddr, SocketAddr};

use fivespot_controller::{Detail, Instruments, serve};
use tokio::net::TcpListener;

use crate::Failure;

/// Where metrics and health are served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    /// The address of both.
    pub(crate) address: IpAddr,
    /// The port of the metrics; 0 for a free one.
    pub(crate) metrics: u16,
    /// The port of the health; 0 for a free one.
    pub(crate) health: u16,
}

/// The ports, open.
#[derive(Debug)]
pub(crate) struct Listening {
    metrics: TcpListener,
    health: TcpListener,
}

impl Ports {
    /// Opens both.
    ///
    /// # Errors
    /// A port is taken or not permitted, by the name of its flag.
    pub(crate) async fn listen(self) -> Result<Listening, Failure> {
        let metrics = bind("--metrics-port", self.address, self.metrics);
        let health = bind("--health-port", self.address, self.health);
        Ok(Listening {
            metrics: metrics.await?,
            health: health.await?,
        })
    }
}

impl Listening {
    /// Serves both until the process ends.
    pub(crate) fn serve(self, instruments: &Instruments) {
        let address = |listener: &TcpListener| listener.local_addr().ok();
        tracing::info!(
            metrics = ?address(&self.metrics),
            health = ?address(&self.health),
            "ports are open"
        );
        let own = instruments.clone();
        let answer = move |path: &str, _: Detail| own.on_metrics_port(path);
        tokio::spawn(serve(self.metrics, answer));
        let own = instruments.clone();
        let answer = move |path: &str, detail: Detail| own.on_health_port(path, detail);
        tokio::spawn(serve(self.health, answer));
    }
}

/// Listens at an address.
///
/// # Errors
/// The port is taken or not permitted, by the name of its flag.
pub(crate) async fn bind(
    flag: &str,
    address: IpAddr,
    port: u16,
) -> Result<TcpListener, Failure> {
    let socket = SocketAddr::new(address, port);
    TcpListener::bind(socket).await.map_err(|error| {
        Failure::new(flag, format!("{socket} cannot be listened on: {error}"))
            .remedy("give another port, or 0 for a free one")
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[tokio::test]
    async fn a_port_that_is_taken_is_told_by_its_flag() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let taken = TcpListener::bind((loopback, 0)).await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let ports = Ports {
            address: loopback,
            metrics: 0,
            health: port,
        };
        let failure = ports.listen().await.unwrap_err().to_string();
        let said = failure.replace(&port.to_string(), "PORT");
        insta::assert_snapshot!(said, @"--health-port: 127.0.0.1:PORT cannot be listened on: Address already in use (os error 98); give another port, or 0 for a free one");
    }
}

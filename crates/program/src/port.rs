//! The metrics and health ports of the operator and the webhook.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use fivespot_api::port;
use kubemu_https::{Detail, ProbeResponse, serve_probes};
use tokio::net::TcpListener;

use crate::Failure;

/// Where metrics and health are served.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Ports {
    /// Address for all ports
    #[arg(
        long = "bind-address",
        env = "BIND_ADDRESS",
        value_name = "IP",
        default_value_t = IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    )]
    pub address: IpAddr,
    /// Port of /metrics; 0 selects a free port
    #[arg(
        long = "metrics-port",
        env = "METRICS_PORT",
        value_name = "PORT",
        default_value_t = port::METRICS
    )]
    metrics: u16,
    /// Port of /healthz and /readyz; 0 selects a free port
    #[arg(
        long = "health-port",
        env = "HEALTH_PORT",
        value_name = "PORT",
        default_value_t = port::HEALTH
    )]
    health: u16,
}

/// The open listeners of the ports.
#[derive(Debug)]
pub struct Listening {
    metrics: TcpListener,
    health: TcpListener,
}

impl Ports {
    /// Opens both ports.
    ///
    /// # Errors
    /// A port is in use or not permitted. The failure names the flag.
    pub async fn listen(self) -> Result<Listening, Failure> {
        let metrics = bind("--metrics-port", self.address, self.metrics);
        let health = bind("--health-port", self.address, self.health);
        Ok(Listening {
            metrics: metrics.await?,
            health: health.await?,
        })
    }
}

impl Listening {
    /// Serves both ports until the process ends.
    pub fn serve<M, H>(self, on_metrics: M, on_health: H)
    where
        M: Fn(&str) -> ProbeResponse + Clone + Send + 'static,
        H: Fn(&str, Detail) -> ProbeResponse + Clone + Send + 'static,
    {
        let address = |listener: &TcpListener| {
            listener.local_addr().ok().map(tracing::field::display)
        };
        tracing::info!(
            metrics = address(&self.metrics),
            health = address(&self.health),
            "listening"
        );
        let on_metrics = move |path: &str, _: Detail| on_metrics(path);
        tokio::spawn(serve_probes(self.metrics, on_metrics));
        tokio::spawn(serve_probes(self.health, on_health));
    }
}

/// Listens on an address.
///
/// # Errors
/// The port is in use or not permitted. The failure names the flag.
pub async fn bind(
    flag: &str,
    address: IpAddr,
    port: u16,
) -> Result<TcpListener, Failure> {
    let socket = SocketAddr::new(address, port);
    TcpListener::bind(socket).await.map_err(|error| {
        Failure::new(flag, format!("cannot listen on {socket}: {error}"))
            .remedy("choose another port, or 0 for a free one")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_that_is_in_use_is_reported_with_its_flag() {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let taken = TcpListener::bind((loopback, 0)).await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let ports = Ports {
            address: loopback,
            metrics: 0,
            health: port,
        };
        let failure = ports.listen().await.unwrap_err().to_string();
        let message = failure.replace(&port.to_string(), "PORT");
        insta::assert_snapshot!(message, @"--health-port: cannot listen on 127.0.0.1:PORT: Address already in use (os error 98); choose another port, or 0 for a free one");
    }
}

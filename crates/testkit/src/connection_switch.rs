//! A switch for the connection to the server.

use std::future::{Future, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::Request;
use kube::Client;
use kube::client::Body;

use crate::{Delivery, ProxiedRequest, Proxy, RequestOutcome, WatchStart};

/// A switch for the connection to the server, which is connected at first. While it is
/// disconnected, no request reaches the server, and a watch breaks at its next event. Clones share
/// their state.
#[derive(Clone, Debug, Default)]
pub struct ConnectionSwitch(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_disconnected: AtomicBool,
    refused: AtomicU64,
}

impl ConnectionSwitch {
    /// Disconnects; no effect if it is disconnected.
    pub fn disconnect(&self) {
        self.0.is_disconnected.store(true, Ordering::Relaxed);
    }

    /// Connects again; no effect if it is connected.
    pub fn connect(&self) {
        self.0.is_disconnected.store(false, Ordering::Relaxed);
    }

    /// Whether it is disconnected.
    pub fn is_disconnected(&self) -> bool {
        self.0.is_disconnected.load(Ordering::Relaxed)
    }

    /// A client whose requests are refused while this is disconnected. A watch that has begun goes on.
    pub fn client(&self, inner: Client) -> Client {
        let switch = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (switch, inner) = (switch.clone(), inner.clone());
            async move {
                if switch.is_disconnected() {
                    switch.0.refused.fetch_add(1, Ordering::Relaxed);
                    return Err(tower::BoxError::from(io::Error::from(
                        io::ErrorKind::ConnectionRefused,
                    )));
                }
                inner.send(request).await.map_err(tower::BoxError::from)
            }
        });
        Client::new(service, "default")
    }

    /// How many requests of such clients were refused.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }
}

impl Proxy for ConnectionSwitch {
    fn request<'a>(
        &'a self,
        _: &'a ProxiedRequest,
    ) -> Pin<Box<dyn Future<Output = RequestOutcome> + Send + 'a>> {
        let is_disconnected = self.is_disconnected();
        Box::pin(ready(if is_disconnected {
            RequestOutcome::Reset
        } else {
            RequestOutcome::Pass
        }))
    }

    fn watch_start(&self, _: &ProxiedRequest) -> WatchStart {
        if self.is_disconnected() {
            WatchStart::Refuse(503)
        } else {
            WatchStart::Pass
        }
    }

    fn event(&self, _: &ProxiedRequest, _: &[u8]) -> Delivery {
        if self.is_disconnected() {
            Delivery::Break
        } else {
            Delivery::Pass
        }
    }
}

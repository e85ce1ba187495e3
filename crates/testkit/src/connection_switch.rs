//! A switch for the connection to the server.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Delivery, ProxiedRequest, Proxy, RequestOutcome, WatchStart};

/// A switch for the connection to the server, which is connected at first. While it is
/// disconnected, no request reaches the server, and a watch breaks at its next event. Clones share
/// their state.
#[derive(Clone, Debug, Default)]
pub struct ConnectionSwitch(Arc<AtomicBool>);

impl ConnectionSwitch {
    /// Disconnects; no effect if it is disconnected.
    pub fn disconnect(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Connects again; no effect if it is connected.
    pub fn connect(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether it is disconnected.
    pub fn is_disconnected(&self) -> bool {
        self.0.load(Ordering::Relaxed)
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

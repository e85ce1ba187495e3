//! Logs once that a server does not respond.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use tower::service_fn;

/// Whether a server responds. That it does not affects every object, and is one line in the log;
/// that it responds again is another.
#[derive(Debug)]
pub struct Outage {
    /// The name of the server in the log.
    server: &'static str,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Requests without a response since the last one that had a response.
    failed: u64,
}

impl Outage {
    /// The state of a server that has not failed yet. `server` is its name in the log.
    pub fn new(server: &'static str) -> Self {
        Self {
            server,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the last request got no response.
    pub fn is_active(&self) -> bool {
        self.state().failed > 0
    }

    fn record_failure(&self, why: &dyn fmt::Display) {
        let mut state = self.state();
        state.failed = state.failed.saturating_add(1);
        if state.failed == 1 {
            tracing::warn!(error = %why, "{} does not respond", self.server);
        }
    }

    fn record_response(&self) {
        let failed = std::mem::take(&mut self.state().failed);
        if failed > 0 {
            tracing::info!(failed, "{} responds again", self.server);
        }
    }

    /// Logs that an operation failed. It is not a warning if the server does not respond, which
    /// has been logged already.
    pub fn warn(&self, what: fmt::Arguments<'_>, error: &str) {
        if self.is_active() {
            tracing::debug!(error, "{what}");
        } else {
            tracing::warn!(error, "{what}");
        }
    }
}

/// A client like `client` that records in `outage` whether the server responds.
pub fn track_outages(client: Client, outage: &Arc<Outage>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let outage = outage.clone();
    // Always ready: sending waits for its turn.
    let service = service_fn(move |request: Request<Body>| {
        let (client, outage) = (client.clone(), outage.clone());
        async move {
            let response = client.send(request).await;
            match &response {
                Err(error) => outage.record_failure(error),
                Ok(response) if is_gateway(response) => {
                    outage.record_failure(&response.status());
                }
                Ok(_) => outage.record_response(),
            }
            response
        }
    });
    Client::new(service, namespace)
}

/// Whether a response is that of a gateway: the server itself did not respond.
fn is_gateway<T>(response: &Response<T>) -> bool {
    matches!(
        response.status(),
        StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

//! Logs once that a server does not respond.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::StatusCode;

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

    /// Records the HTTP status of a response, or why none arrived.
    pub fn record(&self, answer: Result<StatusCode, &kube::Error>) {
        match answer {
            Err(error) => self.record_failure(error),
            Ok(code) if is_of_gateway(code) => self.record_failure(&code),
            Ok(_) => self.record_response(),
        }
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

/// Whether a response is that of a gateway: the server itself did not respond.
fn is_of_gateway(code: StatusCode) -> bool {
    matches!(
        code,
        StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

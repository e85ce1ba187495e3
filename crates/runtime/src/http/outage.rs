//! Saying once that a server does not answer.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use tower::service_fn;

/// Whether a server answers. That it does not concerns every object, and is one line in the log;
/// that it does again is another.
#[derive(Debug)]
pub struct Outage {
    /// What the server is called in the log.
    server: &'static str,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that got no answer since the last that did.
    failed: u64,
}

impl Outage {
    /// That of a server that has not failed yet, with what it is called in the log.
    pub fn of(server: &'static str) -> Self {
        Self {
            server,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the last request got no answer.
    pub fn is_on(&self) -> bool {
        self.state().failed > 0
    }

    fn has_failed(&self, why: &dyn fmt::Display) {
        let mut state = self.state();
        state.failed = state.failed.saturating_add(1);
        if state.failed == 1 {
            tracing::warn!(error = %why, "{} does not answer", self.server);
        }
    }

    fn has_answered(&self) {
        let failed = std::mem::take(&mut self.state().failed);
        if failed > 0 {
            tracing::info!(failed, "{} answers again", self.server);
        }
    }

    /// Says in the log that something did not work: not as a warning where that is because the
    /// server does not answer, which has been said.
    pub fn warn(&self, what: fmt::Arguments<'_>, error: &str) {
        if self.is_on() {
            tracing::debug!(error, "{what}");
        } else {
            tracing::warn!(error, "{what}");
        }
    }
}

/// `client`, whose answers are noted.
pub fn noted(client: Client, outage: &Arc<Outage>) -> Client {
    let namespace = client.default_namespace().to_owned();
    let outage = outage.clone();
    // Ready at any time: sending waits for its turn.
    let service = service_fn(move |request: Request<Body>| {
        let (client, outage) = (client.clone(), outage.clone());
        async move {
            let answer = client.send(request).await;
            match &answer {
                Err(error) => outage.has_failed(error),
                Ok(answer) if is_none(answer) => outage.has_failed(&answer.status()),
                Ok(_) => outage.has_answered(),
            }
            answer
        }
    });
    Client::new(service, namespace)
}

/// Whether an answer is that of whoever stands before the server: there was none from itself.
fn is_none<T>(answer: &Response<T>) -> bool {
    matches!(
        answer.status(),
        StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

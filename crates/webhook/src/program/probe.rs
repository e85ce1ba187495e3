//! The metrics and health ports of the webhook.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kubemu_clock::Clock;
use kubemu_https::{Detail, ProbeResponse};

use crate::certificate_controller::RenewalHealth;
use crate::{Certificate, Metrics};

/// The state of the webhook that its metrics and health ports report. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Probes {
    pub(super) metrics: Arc<Metrics>,
    pub(super) certificate: Certificate,
    pub(super) renewal_health: RenewalHealth,
    pub(super) is_shutting_down: Arc<AtomicBool>,
}

impl Probes {
    /// Marks the replica as not ready, so that API servers stop sending requests to it.
    pub(super) fn shut_down(&self) {
        self.is_shutting_down.store(true, Ordering::Relaxed);
    }

    pub(super) fn on_metrics_port(&self, path: &str) -> ProbeResponse {
        match path {
            "/metrics" => {
                ProbeResponse::metrics(self.metrics.text(self.renewal_health.expiry()))
            }
            _ => ProbeResponse::not_found(),
        }
    }

    pub(super) fn on_health_port(&self, path: &str, detail: Detail) -> ProbeResponse {
        match path {
            "/healthz" | "/livez" => ProbeResponse::text(200, "ok\n"),
            "/readyz" => self.readiness(detail),
            _ => ProbeResponse::not_found(),
        }
    }

    /// Ready if there is a valid certificate. Problems with its renewal are reported but do not
    /// make the replica unready.
    fn readiness(&self, detail: Detail) -> ProbeResponse {
        let has_ended = self
            .renewal_health
            .expiry()
            .is_some_and(|ends| ends <= Clock::system().now());
        let problem = if self.is_shutting_down.load(Ordering::Relaxed) {
            Some("shutting down")
        } else if !self.certificate.is_set() {
            Some("no certificate yet")
        } else if has_ended {
            Some("the certificate has expired")
        } else {
            None
        };
        let code = if problem.is_some() { 503 } else { 200 };
        if detail == Detail::Brief {
            let verdict = if code == 200 { "ok\n" } else { "not ready\n" };
            return ProbeResponse::text(code, verdict);
        }
        let mut body = match problem {
            Some(why) => format!("[-]certificate failed: {why}\n"),
            None => "[+]certificate ok\n".to_owned(),
        };
        for renewal in self.renewal_health.problems() {
            let _ = writeln!(body, "[!]certificate renewal: {renewal}");
        }
        ProbeResponse::text(code, body)
    }
}

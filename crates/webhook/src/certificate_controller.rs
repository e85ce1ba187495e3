//! Reconciles the Secret with the CAs and the certificate, and the caBundle of the webhook
//! configuration, with the [rotation](crate::rotation).
//!
//! Any number of replicas do so at once. The Secret is replaced with its resourceVersion: of two
//! concurrent writes one fails, that replica reads what the other has written, and has nothing to
//! do. A replica always serves what is stored, so that all serve the same.

mod observed;
mod write;

use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::watch_object;
use kubemu_clock::Clock;

use crate::certificate::Certificate;
use crate::rotation::Certificates;
use observed::Observed;

/// How long to wait before a failed write is retried.
const RETRY_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// What is maintained, and with which names.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace of the Secret.
    pub namespace: String,
    /// The Secret. It must exist, with or without data; it is not created, because the permission
    /// to create Secrets is the permission to get a token of any service account.
    pub secret: String,
    /// The ValidatingWebhookConfiguration.
    pub configuration: String,
    /// The webhooks in it with a `caBundle` that is maintained.
    pub webhooks: Vec<String>,
    /// The names by which API servers reach this webhook.
    pub names: Vec<String>,
}

/// Problems of the certificate renewal, empty if there are none. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct RenewalHealth(Arc<Mutex<HealthState>>);

#[derive(Debug, Default)]
struct HealthState {
    problems: Vec<String>,
    expiry: Option<Timestamp>,
}

impl RenewalHealth {
    /// The current problems, in sentences.
    pub fn problems(&self) -> Vec<String> {
        self.with_state(|state| state.problems.clone())
    }

    /// When the certificate that is served expires.
    pub fn expiry(&self) -> Option<Timestamp> {
        self.with_state(|state| state.expiry)
    }

    fn with_state<T>(&self, access: impl FnOnce(&mut HealthState) -> T) -> T {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records the problems, and logs the new ones.
    fn set_problems(&self, problems: Vec<String>) {
        self.with_state(|state| {
            for problem in &problems {
                if !state.problems.contains(problem) {
                    tracing::warn!(problem, "certificate renewal failed");
                }
            }
            state.problems = problems;
        });
    }
}

/// The controller of one replica.
pub struct CertificateController {
    settings: Settings,
    secrets: Api<Secret>,
    configurations: Api<ValidatingWebhookConfiguration>,
    clock: Clock,
    certificate: Certificate,
    health: RenewalHealth,
}

impl CertificateController {
    /// Creates the controller; [`run`](Self::run) starts it.
    pub fn new(
        client: kube::Client,
        settings: Settings,
        clock: Clock,
        certificate: &Certificate,
    ) -> Self {
        Self {
            secrets: Api::namespaced(client.clone(), &settings.namespace),
            configurations: Api::all(client),
            settings,
            clock,
            certificate: certificate.clone(),
            health: RenewalHealth::default(),
        }
    }

    /// The problems and the expiry, which are updated while the controller runs.
    pub fn health(&self) -> RenewalHealth {
        self.health.clone()
    }

    /// Maintains both until dropped. Watches, and sleeps until the next step of the rotation.
    pub async fn run(self) -> Infallible {
        let mut secrets = pin!(
            watch_object(self.secrets.clone(), &self.settings.secret).default_backoff()
        );
        let name = &self.settings.configuration;
        let mut configurations =
            pin!(watch_object(self.configurations.clone(), name).default_backoff());
        let (mut secret, mut configuration) = (Observed::default(), Observed::default());
        loop {
            let due = self.reconcile(&mut secret, &mut configuration).await;
            let timer = self.clock.sleep_until(due);
            tokio::select! {
                Some(event) = secrets.next() => secret.take(event),
                Some(event) = configurations.next() => configuration.take(event),
                () = timer => {}
            }
        }
    }

    /// Reconciles both objects, and returns when to do so again if nothing changes.
    async fn reconcile(
        &self,
        secret: &mut Observed<Secret>,
        configuration: &mut Observed<ValidatingWebhookConfiguration>,
    ) -> Timestamp {
        let mut problems = Vec::new();
        problems.extend(configuration.problem(
            "ValidatingWebhookConfiguration",
            &self.settings.configuration,
        ));
        problems.extend(secret.problem("Secret", &self.settings.secret));
        let due = match secret.object() {
            None => Timestamp::MAX,
            Some(stored) => {
                let stored = stored.clone();
                let rotated = self.rotate(stored, secret, configuration).await;
                rotated.unwrap_or_else(|problem| {
                    problems.push(problem);
                    self.retry_time()
                })
            }
        };
        self.health.set_problems(problems);
        due
    }

    fn retry_time(&self) -> Timestamp {
        let retry_time = self.clock.now().saturating_add(RETRY_AFTER);
        retry_time.unwrap_or(Timestamp::MAX)
    }

    async fn rotate(
        &self,
        stored: Secret,
        secret: &mut Observed<Secret>,
        configuration: &mut Observed<ValidatingWebhookConfiguration>,
    ) -> Result<Timestamp, String> {
        let stored_certificates = write::stored_certificates(&stored);
        let trusted = configuration.object();
        let trusted =
            trusted.and_then(|it| write::trusted_bundle(it, &self.settings.webhooks));
        let trusted = trusted.unwrap_or_default();
        let (next, due) = stored_certificates
            .next(&self.settings.names, &trusted, self.clock.now())
            .map_err(|error| error.to_string())?;
        if next != stored_certificates {
            match write::replace(&self.secrets, stored, &next).await? {
                // Another replica was first; the watch delivers what is stored.
                None => return Ok(self.retry_time()),
                Some(written) => {
                    tracing::info!("certificates renewed");
                    secret.set(written);
                }
            }
        }
        self.activate(&next)?;
        if let Some(found) = configuration.object() {
            let bundle = next.bundle();
            let patch = write::bundle_patch(found, &self.settings.webhooks, &bundle)?;
            if let Some(patch) = patch {
                let written = write::apply(&self.configurations, found, patch).await?;
                match written {
                    None => return Ok(self.retry_time()),
                    Some(written) => {
                        tracing::info!("caBundle of the webhook configuration updated");
                        configuration.set(written);
                        // A step may have waited until this bundle is trusted.
                        let now = self.clock.now();
                        let again = next.next(&self.settings.names, &bundle, now);
                        return Ok(again.map_or(due, |(_, due)| due));
                    }
                }
            }
        }
        Ok(due)
    }

    fn activate(&self, stored_certificates: &Certificates) -> Result<(), String> {
        let Some((chain, key)) = stored_certificates.serving() else {
            return Ok(());
        };
        let exchanged = self.certificate.exchange(chain.as_bytes(), key.as_bytes());
        exchanged.map_err(|error| error.to_string())?;
        self.health
            .with_state(|state| state.expiry = stored_certificates.expiry());
        Ok(())
    }
}

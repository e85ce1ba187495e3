//! `5spot-webhook`: the admission policy as a program, for API servers without ValidatingAdmissionPolicy.

mod probe;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use fivespot_api::{RESOURCES, name, port};
use fivespot_program::cluster::Source;
use fivespot_program::port::{Ports, bind};
use fivespot_program::signals::Signals;
use fivespot_program::{Failure, Outcome, cluster, log, service};
use kube::Client;
use kubemu_clock::Clock;
use tokio::sync::oneshot;

use crate::certificate_controller::{self, CertificateController, RenewalHealth};
use crate::mounted::MountedCertificate;
use crate::{Authorization, Certificate, Metrics, Reviewer, Validator};
use probe::Probes;

/// The name of the program, which is also that of its image.
pub const NAME: &str = "5spot-webhook";

/// Serve the admission policy as a webhook.
///
/// For clusters without ValidatingAdmissionPolicy, which is enabled by default since Kubernetes
/// 1.30. It rejects the same objects as the policy, with the same messages. `5spot generate
/// webhook` prints the manifests.
///
/// Creates its own CA and certificate, stores them in a Secret, renews them before they expire, and
/// sets the caBundle of the webhook configuration. With --certificate-dir it serves the certificate
/// in that directory, and connects to the cluster for --capacity-targets and --classes alone.
///
/// Exit codes: 0 stopped by a signal after the requests in progress finished, 1 shutdown was
/// interrupted by a second signal, 2 error at start (a flag, the kubeconfig, a port, a
/// certificate).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  5spot-webhook
  5spot-webhook --certificate-dir /etc/webhook/certificate
  5spot-webhook --validation-actions Warn,Audit
  5spot-webhook --kubeconfig ~/.kube/config --bind-address 127.0.0.1 --serving-name 127.0.0.1")]
pub struct Args {
    #[command(flatten)]
    source: Source,
    /// Directory with tls.crt and tls.key, such as a mounted Secret; they are not renewed, but
    /// reloaded when they change
    #[arg(long, value_name = "DIR")]
    certificate_dir: Option<PathBuf>,
    #[command(flatten)]
    actions: ValidationActions,
    /// ConfigMap with the kinds that a ScheduledCapacity may name as its target, in the namespace of
    /// --namespace. Who writes a ScheduledCapacity must be allowed to write its target, which the API
    /// server is asked. Without this flag, no ScheduledCapacity is admitted
    #[arg(long, value_name = "NAME")]
    capacity_targets: Option<String>,
    /// Ask the API server whether who names a ScheduledMachineClass may use it. Without this flag, no
    /// machine is admitted that names a class
    #[arg(long)]
    classes: bool,
    /// Namespace of the Secret and the Service
    #[arg(
        long,
        env = "POD_NAMESPACE",
        value_name = "NAME",
        default_value = name::SYSTEM_NAMESPACE
    )]
    namespace: String,
    /// Secret that stores the CAs and the certificate; it must exist
    #[arg(long, value_name = "NAME", default_value = name::WEBHOOK)]
    secret: String,
    /// Service through which API servers reach the webhook
    #[arg(long, value_name = "NAME", default_value = name::WEBHOOK_SERVICE)]
    service: String,
    /// Additional names or addresses under which API servers reach the webhook
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    serving_name: Vec<String>,
    /// ValidatingWebhookConfiguration whose caBundle is maintained
    #[arg(long, value_name = "NAME", default_value = name::WEBHOOK_CONFIGURATION)]
    configuration: String,
    /// Port for requests of API servers; 0 selects a free port
    #[arg(long, value_name = "PORT", default_value_t = port::WEBHOOK)]
    port: u16,
    #[command(flatten)]
    ports: Ports,
    /// How long to continue serving after the signal, until API servers stop sending requests to
    /// this replica
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    shutdown_delay_secs: u16,
    #[command(flatten)]
    log: log::Settings,
}

/// What the webhook does with an object that violates a rule.
#[derive(Debug, clap::Args)]
pub struct ValidationActions {
    /// What to do with an object that violates a rule, as in a ValidatingAdmissionPolicyBinding:
    /// Deny, Warn, Audit
    #[arg(
        long,
        value_name = "ACTION,...",
        value_delimiter = ',',
        default_value = "Deny"
    )]
    pub validation_actions: Vec<String>,
}

impl ValidationActions {
    /// The validator with these actions.
    ///
    /// # Errors
    /// An action does not exist, or two of them exclude each other.
    pub fn validator(&self) -> Result<Validator, Failure> {
        Validator::new(&self.validation_actions).map_err(|error| {
            Failure::new("--validation-actions", error).remedy(
                "give Deny, Warn or Audit, or Audit together with one of the others",
            )
        })
    }
}

/// Runs the program with the arguments of this process, and returns its exit code.
pub fn main() -> ExitCode {
    service::main::<Args>(NAME, run)
}

/// The flags of the program.
pub fn command() -> clap::Command {
    service::command::<Args>(NAME)
}

/// Serves until a signal.
///
/// # Errors
/// A flag, the kubeconfig, a port or the certificate cannot be used.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    let validator = args.actions.validator()?;
    log::start(args.log);
    cluster::block_on(operate(args, validator))
}

async fn operate(args: &Args, validator: Validator) -> Result<Outcome, Failure> {
    let mut signals = Signals::listen()?;
    let https = bind("--port", args.ports.address, args.port).await?;
    let ports = args.ports.listen().await?;
    let certificate = Certificate::default();
    let client = args.client().await?;
    let renewal_health = maintain_certificate(args, &certificate, client.as_ref())?;
    let probes = Probes {
        metrics: Arc::new(Metrics::default()),
        certificate: certificate.clone(),
        renewal_health,
        ..Probes::default()
    };
    let (metrics, health) = (probes.clone(), probes.clone());
    ports.serve(
        move |path| metrics.on_metrics_port(path),
        move |path, detail| health.on_health_port(path, detail),
    );
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        address = ?https.local_addr().ok(),
        "webhook started"
    );
    let (stop, stopped) = oneshot::channel::<()>();
    let reviewer = Reviewer {
        validator: Arc::new(validator),
        targets: args.targets(client.as_ref())?,
        classes: args.classes(client.as_ref())?,
        observer: probes.metrics.clone(),
    };
    let stopped = async { _ = stopped.await };
    let serving = crate::serve(https, &certificate, reviewer, stopped);
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        () = signals.received() => {}
        ended = &mut serving => return ended
            .map(|()| Outcome::No)
            .map_err(|error| Failure::new("serving", error).remedy("start it again")),
    }
    tracing::info!("received a signal, shutting down");
    probes.shut_down();
    let delay = Duration::from_secs(u64::from(args.shutdown_delay_secs));
    let mut stop = Some(stop);
    let mut rest = std::pin::pin!(tokio::time::sleep(delay));
    loop {
        tokio::select! {
            () = signals.received() => return Ok(Outcome::No),
            () = &mut rest, if stop.is_some() => drop(stop.take()),
            _ = &mut serving => return Ok(Outcome::Yes),
        }
    }
}

/// Ensures that there is a certificate, and keeps it valid. Returns the health of the renewal,
/// which is only set if 5-Spot itself renews the certificate.
fn maintain_certificate(
    args: &Args,
    certificate: &Certificate,
    client: Option<&Client>,
) -> Result<RenewalHealth, Failure> {
    if let Some(directory) = &args.certificate_dir {
        let mounted =
            MountedCertificate::open(directory, certificate).map_err(|error| {
                Failure::new("--certificate-dir", error)
                    .remedy("give a directory with tls.crt and tls.key")
            })?;
        tokio::spawn(mounted.reload_on_change());
        return Ok(RenewalHealth::default());
    }
    let Some(client) = client else {
        return Ok(RenewalHealth::default());
    };
    let controller = CertificateController::new(
        client.clone(),
        args.certificate_settings(),
        Clock::system(),
        certificate,
    );
    let renewal_health = controller.health();
    tokio::spawn(controller.run());
    Ok(renewal_health)
}

impl Args {
    /// A client for the cluster, if it is needed.
    async fn client(&self) -> Result<Option<Client>, Failure> {
        let asks = self.capacity_targets.is_some() || self.classes;
        if self.certificate_dir.is_some() && !asks {
            return Ok(None);
        }
        let config = self.source.config_or_in_cluster().await?;
        let client = Client::try_from(config).map_err(cluster::no_client)?;
        Ok(Some(client))
    }

    /// Who is asked about the targets of capacities, if someone is.
    fn targets(&self, client: Option<&Client>) -> Result<Option<Authorization>, Failure> {
        let (Some(client), Some(name)) = (client, &self.capacity_targets) else {
            return Ok(None);
        };
        let targets = Authorization::of_targets(client.clone(), (&self.namespace, name));
        targets.map(Some).map_err(|error| {
            Failure::new("--capacity-targets", error).remedy("report this as a bug")
        })
    }

    /// Who is asked about the use of classes, if someone is.
    fn classes(&self, client: Option<&Client>) -> Result<Option<Authorization>, Failure> {
        let Some(client) = client.filter(|_| self.classes) else {
            return Ok(None);
        };
        let classes = Authorization::of_classes(client.clone());
        classes.map(Some).map_err(|error| {
            Failure::new("--classes", error).remedy("report this as a bug")
        })
    }

    fn certificate_settings(&self) -> certificate_controller::Settings {
        let (service, namespace) = (&self.service, &self.namespace);
        let own = [
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
        ];
        certificate_controller::Settings {
            namespace: namespace.clone(),
            secret: self.secret.clone(),
            configuration: self.configuration.clone(),
            webhooks: RESOURCES.iter().map(|it| it.webhook.to_owned()).collect(),
            names: own.into_iter().chain(self.serving_name.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests;

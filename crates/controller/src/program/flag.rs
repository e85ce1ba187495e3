//! The flags and environment variables of the operator, and the settings from them.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::{NonZeroU32, NonZeroUsize};

use fivespot_api::name;
use fivespot_program::cluster::Source;
use fivespot_program::port::Ports;
use fivespot_program::{Failure, duration, log};
use fivespot_schedule::Duration;
use jiff::SignedDuration;
use kube::Client;
use kubemu_clock::Clock;

use crate::kubeconfig::Allowed;
use crate::{
    Controllers, Coordination, Lease, LeaseTiming, LeaseTimingError, Namespaces,
    NodeAccess, Options,
};

/// Run the operator until it receives a signal.
///
/// The cluster is that of --kubeconfig, $KUBECONFIG or ~/.kube/config; in a pod, that of the pod's
/// service account. One of several replicas is elected leader and the others are on standby, unless
/// --instance-count divides the work among them.
///
/// Exit codes: 0 stopped by a signal after the reconciles in progress finished, 1 shutdown was
/// interrupted (by a second signal, or after 20 seconds), 2 error at start (a flag, the kubeconfig,
/// a port).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  5spot-controller --kubeconfig ~/.kube/config --context management
  5spot-controller --namespaces team-a,team-b --node-access management
  5spot-controller --enable-leader-election=false")]
pub struct Args {
    #[command(flatten)]
    pub(crate) source: Source,
    /// Namespaces to watch [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    namespaces: Vec<String>,
    /// What to reconcile: machines (ScheduledMachines and ScheduleOverrides), capacity
    /// (ScheduledCapacities)
    #[arg(
        long,
        value_enum,
        value_name = "NAME,...",
        value_delimiter = ',',
        default_values_t = [Controller::Machines, Controller::Capacity]
    )]
    controllers: Vec<Controller>,
    /// How to reach the nodes of a cluster
    #[arg(long, value_enum, default_value_t)]
    node_access: NodeAccess,
    /// Accept kubeconfig Secrets whose server URL has a path, as those of Rancher do. A user
    /// who can write such a Secret chooses the URLs that the operator requests from that server
    #[arg(long)]
    allow_workload_server_path: bool,
    /// Accept kubeconfig Secrets whose server is a loopback or link-local address, or a name that
    /// resolves to one. A user who can write such a Secret can make the operator send requests to
    /// services of its own host
    #[arg(long)]
    allow_loopback_workload_server: bool,
    /// How many ScheduledMachines are reconciled concurrently, of one namespace at most half as many
    #[arg(long, value_name = "NUMBER", default_value = "256")]
    max_concurrent: NonZeroUsize,
    /// How many machines may start per minute, highest priority first. Counted by each process: a
    /// replica that starts or takes over begins with the full number [default: no limit]
    #[arg(long, value_name = "NUMBER")]
    max_starts_per_minute: Option<NonZeroU32>,
    /// Remove the finalizer of a deleted ScheduledMachine whose machine could not be removed within
    /// 24 hours. The remaining objects must then be deleted by hand
    #[arg(
        long,
        env = "FORCE_FINALIZER_ON_TIMEOUT",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    force_finalizer_on_timeout: bool,
    /// Stop a reclaimed machine with a ScheduleOverride for this long, from 1m to 336h, instead of
    /// setting spec.schedule.enabled to false, which GitOps tools undo. With spec.reclaim.return it
    /// is the latest return, 24h by default
    #[arg(long, value_name = "DURATION", value_parser = reclaim_override)]
    reclaim_by_override: Option<Duration>,
    /// Act only while holding the Lease, so that several replicas can run. A replica that is
    /// started with false writes nothing while another replica holds the Lease
    #[arg(
        long,
        env = "ENABLE_LEADER_ELECTION",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    enable_leader_election: bool,
    /// Name of the Lease. The shipped policy admits only names that begin with 5spot-
    #[arg(
        long,
        env = "LEASE_NAME",
        value_name = "NAME",
        default_value = name::LEADER_LEASE
    )]
    lease_name: String,
    /// Namespace of the Lease
    #[arg(
        long,
        env = "POD_NAMESPACE",
        value_name = "NAME",
        default_value = name::SYSTEM_NAMESPACE
    )]
    lease_namespace: String,
    /// How long other replicas wait before they take over the Lease
    #[arg(
        long,
        env = "LEASE_DURATION_SECONDS",
        value_name = "SECONDS",
        default_value_t = 15
    )]
    lease_duration_secs: u32,
    /// How long after the last renewal the holder stops writing
    #[arg(
        long,
        env = "LEASE_RENEW_DEADLINE_SECONDS",
        value_name = "SECONDS",
        default_value_t = 10
    )]
    lease_renew_deadline_secs: u32,
    /// Interval between renewals of the Lease
    #[arg(
        long,
        env = "LEASE_RETRY_PERIOD_SECONDS",
        value_name = "SECONDS",
        default_value_t = 2
    )]
    lease_retry_period_secs: u32,
    /// If more than 1, the ScheduledMachines are divided among all running replicas, however many
    /// run, and leader election is off
    #[arg(
        long,
        env = "OPERATOR_INSTANCE_COUNT",
        value_name = "NUMBER",
        default_value = "1"
    )]
    instance_count: NonZeroU32,
    /// Name of this replica if POD_NAME is not set
    #[arg(
        long,
        env = "OPERATOR_INSTANCE_ID",
        value_name = "NAME",
        default_value = "0"
    )]
    instance_id: String,
    #[command(flatten)]
    pub(crate) ports: Ports,
    #[command(flatten)]
    pub(crate) log: log::Settings,
}

/// A controller of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Controller {
    Machines,
    Capacity,
}

/// The pod that the operator runs in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pod {
    /// Its name. `None` outside of a pod.
    pub(crate) name: Option<String>,
}

impl Pod {
    /// Reads the environment.
    pub(crate) fn of_environment() -> Self {
        let name = std::env::var("POD_NAME").ok();
        Self {
            name: name.filter(|name| !name.is_empty()),
        }
    }
}

/// The settings from the flags, without a client for the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Settings<'a> {
    flags: &'a Args,
    namespaces: Namespaces,
    coordination: Coordination,
    identity: String,
}

impl Args {
    /// Checks the flags.
    ///
    /// # Errors
    /// A flag or a combination of flags is invalid. The failure names the flag.
    pub(crate) fn settings(&self, pod: Pod) -> Result<Settings<'_>, Failure> {
        let namespaces = match self.namespaces.as_slice() {
            [] => Namespaces::All,
            names => Namespaces::Only(checked_namespaces(names)?),
        };
        let identity = self.identity(pod)?;
        Ok(Settings {
            flags: self,
            namespaces,
            coordination: self.coordination()?,
            identity,
        })
    }

    fn identity(&self, pod: Pod) -> Result<String, Failure> {
        if !is_label(&self.instance_id) {
            return Err(not_a_label("--instance-id", &self.instance_id));
        }
        let identity = pod
            .name
            .unwrap_or_else(|| format!("5spot-{}", self.instance_id));
        if is_subdomain(&identity) && identity.len() <= 180 {
            return Ok(identity);
        }
        Err(
            Failure::new("POD_NAME", format!("{identity:?} is not a valid pod name"))
                .remedy("set it from the field metadata.name, or leave it unset"),
        )
    }

    fn coordination(&self) -> Result<Coordination, Failure> {
        for (flag, name) in [
            ("--lease-name", &self.lease_name),
            ("--lease-namespace", &self.lease_namespace),
        ] {
            if !is_label(name) {
                return Err(not_a_label(flag, name));
            }
        }
        let lease = Lease {
            namespace: self.lease_namespace.clone(),
            name: self.lease_name.clone(),
            timing: self.timing()?,
        };
        let count = self.instance_count;
        Ok(if count.get() > 1 {
            Coordination::Shards { lease, count }
        } else if self.enable_leader_election {
            Coordination::Leader(lease)
        } else {
            Coordination::Unelected(lease)
        })
    }

    fn timing(&self) -> Result<LeaseTiming, Failure> {
        let (duration, deadline, retry) = (
            self.lease_duration_secs,
            self.lease_renew_deadline_secs,
            self.lease_retry_period_secs,
        );
        let seconds = |seconds: u32| SignedDuration::from_secs(i64::from(seconds));
        LeaseTiming::new(seconds(duration), seconds(deadline), seconds(retry)).map_err(
            |error| match error {
                LeaseTimingError::DurationTooLong => {
                    Failure::new("--lease-duration-secs", format!("{duration} exceeds one hour"))
                        .remedy("give at most 3600")
                }
                LeaseTimingError::DurationTooShort => Failure::new(
                    "--lease-duration-secs",
                    format!("{duration} is not at least 5 seconds more than --lease-renew-deadline-secs {deadline}"),
                )
                .remedy(format!("give at least {}", u64::from(deadline) + 5)),
                LeaseTimingError::DeadlineTooShort => Failure::new(
                    "--lease-renew-deadline-secs",
                    format!("{deadline} leaves no time for a second attempt after --lease-retry-period-secs {retry}"),
                )
                .remedy(format!("give more than {retry}")),
                LeaseTimingError::RetryTooShort => {
                    Failure::new("--lease-retry-period-secs", format!("{retry} is too often"))
                        .remedy("give at least 1")
                }
            },
        )
    }
}

impl Settings<'_> {
    /// The operator's options with that client.
    pub(crate) fn options(self, client: Client) -> Options {
        let flags = self.flags;
        let mut options = Options::new(client, Clock::system());
        options.namespaces = self.namespaces;
        options.controllers = Controllers {
            machines: flags.controllers.contains(&Controller::Machines),
            capacity: flags.controllers.contains(&Controller::Capacity),
        };
        options.node_access = flags.node_access;
        options.workload_servers = Allowed {
            path: flags.allow_workload_server_path,
            local: flags.allow_loopback_workload_server,
        };
        options.max_concurrent = flags.max_concurrent;
        options.coordination = self.coordination;
        options.claim_namespace.clone_from(&flags.lease_namespace);
        options.max_starts_per_minute = flags.max_starts_per_minute;
        options.force_finalizer_on_timeout = flags.force_finalizer_on_timeout;
        options.reclaim_override = flags.reclaim_by_override.map(Into::into);
        // Replicas that fail at the same time must not retry at the same time.
        let mut seed = DefaultHasher::new();
        (&self.identity, std::process::id()).hash(&mut seed);
        options.seed = seed.finish();
        options.identity = self.identity;
        options
    }
}

/// Parses how long a reclaim stops a machine with an override.
///
/// # Errors
/// The text is not a duration, or not a valid length of an override.
pub fn reclaim_override(text: &str) -> Result<Duration, String> {
    let span = duration(text)?;
    let longest = Duration::hours(14 * 24);
    if span < Duration::minutes(1) || span > longest {
        return Err("must be from 1m to 336h".to_owned());
    }
    Ok(span)
}

fn checked_namespaces(names: &[String]) -> Result<BTreeSet<String>, Failure> {
    match names.iter().find(|name| !is_label(name)) {
        Some(wrong) => Err(not_a_label("--namespaces", wrong)),
        None => Ok(names.iter().cloned().collect()),
    }
}

fn not_a_label(flag: &str, text: &str) -> Failure {
    Failure::new(flag, format!("{text:?} is not a valid Kubernetes name")).remedy(
        "use at most 63 lower-case letters, digits and '-', with a letter or digit at both ends",
    )
}

/// Whether a text is a DNS label (RFC 1123).
fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= 63
        && text.bytes().all(|byte| is_inner(byte) || byte == b'-')
        && text.bytes().next().is_some_and(is_inner)
        && text.bytes().last().is_some_and(is_inner)
}

/// Whether a text is a DNS subdomain (RFC 1123).
fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests;

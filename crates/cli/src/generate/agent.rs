//! `5spot generate agent`: the manifests for emergency reclaim in a workload cluster.

use std::collections::BTreeSet;

use fivespot_api::manifest::GeneratedFile;
use fivespot_install::agent::host::{Host, Part};
use fivespot_install::agent::{Detection, KernelVersion, Matching, Settings, Signal};
use fivespot_install::file;
use fivespot_schedule::Duration;

use super::image::{AGENT, ImageArgs};
use super::rbac::is_dns_label;
use super::{Output, failed};
use crate::Failure;

/// The emergency reclaim agent, for workload clusters whose machines have killIfCommands
///
/// Includes three admission policies: one limits the agent to its own Node (without it the agent
/// does nothing), one limits the agents that --host is for to their objects, and the other allows
/// only the operator, the agent and cluster administrators to write 5-Spot's annotations on Nodes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  5spot generate agent --image registry.example/5spot-reclaim-agent:0.1.0 | kubectl apply -f -
  5spot generate agent --image registry.example/5spot-reclaim-agent:0.1.0 \\
    --kernel 6.6 --outside-containers | kubectl apply -f -
  5spot generate agent --host team-a/desk-042 | kubectl apply -f -
  kubectl create token 5spot-host-desk-042 -n team-a --duration 8760h")]
pub(super) struct Args {
    #[command(flatten)]
    pub(super) output: Output,

    /// Image of the agent, with 5spot-reclaim-agent as its entry point, such as
    /// registry.example/5spot-reclaim-agent:0.1.0
    #[arg(
        long,
        value_name = "IMAGE",
        default_value_t = Settings::default().image,
    )]
    image: String,

    #[command(flatten)]
    images: ImageArgs,

    /// Print instead the identity of an agent that is a service of its host, outside the cluster:
    /// a ServiceAccount that may report to this ScheduledMachine that the host is free, request a
    /// reclaim on its Node, and nothing else. Needs the policy of the other output, or of
    /// --host-policy
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        value_parser = machine,
        conflicts_with_all = [
            "image", "kernel", "detection", "outside_containers", "login_sessions",
            "session_away", "load_above", "operator_user", "apparmor", "egress_port",
        ],
    )]
    host: Option<(String, String)>,

    /// Print instead the policy that keeps the agent of each host to its own objects, for a cluster
    /// that has ScheduledMachines and not their Nodes
    #[arg(
        long,
        conflicts_with_all = [
            "host", "image", "kernel", "detection", "outside_containers", "login_sessions",
            "session_away", "load_above", "operator_user", "apparmor", "egress_port",
        ],
    )]
    host_policy: bool,

    /// Name of the Node of --host [default: the name of its ScheduledMachine]
    #[arg(long, value_name = "NAME", requires = "host")]
    node_name: Option<String>,

    /// The cluster of --host for which the output is, if its Node is in another one than its
    /// ScheduledMachine; both clusters then need one
    #[arg(long, value_enum, default_value_t, requires = "host")]
    host_cluster: Part,

    /// Oldest Linux kernel on the nodes; with 6.6 or later the agent needs neither root nor
    /// NET_ADMIN
    #[arg(long, value_name = "VERSION")]
    kernel: Option<KernelVersion>,

    /// How processes are detected
    #[arg(long, value_enum, default_value_t)]
    detection: Detection,

    /// Ignore processes in containers of pods, so that no pod can trigger a reclaim of its host
    #[arg(long)]
    outside_containers: bool,

    /// Reclaim a host also while a person is logged in at it, according to systemd-logind; mounts
    /// /run/systemd of the host
    #[arg(long, value_name = "WHICH", value_parser = ["local", "all"])]
    login_sessions: Option<String>,

    /// Of those sessions, do not count one at which nobody sits, as the desktop tells
    /// systemd-logind; mounts /run/dbus of the host, and therefore needs --kernel 6.6 or
    /// --detection scan: an agent that is not root. While logind cannot be asked, all count
    #[arg(
        long,
        value_name = "WHICH",
        value_parser = ["locked", "idle"],
        requires = "login_sessions",
    )]
    session_away: Option<String>,

    /// Reclaim a host also while processes outside pods use more than this number of processors;
    /// mounts the control groups of the host
    #[arg(long, value_name = "NUMBER", value_parser = processors)]
    load_above: Option<f64>,

    /// The time over which --load-above is averaged
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = load_time,
        default_value_t = Duration::minutes(5),
        requires = "load_above",
    )]
    load_for: Duration,

    /// Additional users that the operator authenticates as in this cluster, if they are not cluster
    /// administrators
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    operator_user: Vec<String>,

    /// Require the AppArmor profile of the container runtime. A kubelet refuses such pods if
    /// AppArmor is not enabled on its node; without the flag, the profile is applied where
    /// AppArmor is enabled
    #[arg(long)]
    apparmor: bool,

    /// Ports of the API server that the NetworkPolicy lets agents connect to that scan; one in the
    /// host's network has no NetworkPolicy
    #[arg(
        long,
        value_name = "PORT,...",
        value_delimiter = ',',
        default_values_t = Settings::default().egress_ports,
    )]
    egress_port: Vec<u16>,
}

/// Parses the namespace and the name of a ScheduledMachine.
///
/// # Errors
/// It has not this form, or one of them is not a valid name.
fn machine(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('/');
    let parts = parts.filter(|(namespace, name)| {
        is_dns_label(namespace) && name.split('.').all(is_dns_label)
    });
    let (namespace, name) = parts
        .ok_or("expected NAMESPACE/NAME of a ScheduledMachine, such as team-a/desk")?;
    Ok((namespace.to_owned(), name.to_owned()))
}

/// Parses a number of processors, as the agent does.
///
/// # Errors
/// It is not from 0.1 to 4096.
fn processors(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| (0.1..=4096.0).contains(number));
    number.ok_or_else(|| "must be a number of processors from 0.1 to 4096".to_owned())
}

/// Parses a time over which the load is averaged, as the agent does.
///
/// # Errors
/// It is not a duration from 10 s to 24 h.
fn load_time(text: &str) -> Result<Duration, String> {
    let time = text
        .parse::<Duration>()
        .map_err(|error| error.to_string())?;
    time.within(Duration::seconds(10), Duration::hours(24))
        .map_err(|error| error.to_string())
}

impl Args {
    fn signals(&self) -> BTreeSet<Signal> {
        let sessions = self.login_sessions.clone().map(Signal::LoginSessions);
        let load = self.load_above.map(|above| Signal::Load {
            above: above.to_string(),
            time: self.load_for.to_string(),
        });
        let away = self.session_away.clone().map(Signal::SessionAway);
        sessions.into_iter().chain(away).chain(load).collect()
    }

    /// The file for these arguments.
    ///
    /// # Errors
    /// The image has no registry.
    pub(super) fn file(&self) -> Result<GeneratedFile, Failure> {
        if let Some((namespace, machine)) = &self.host {
            let host = Host {
                namespace: namespace.clone(),
                machine: machine.clone(),
                node: self.node_name.as_ref().unwrap_or(machine).clone(),
                part: self.host_cluster,
            };
            return file::host(&host).map_err(failed);
        }
        if self.host_policy {
            return file::host_policy().map_err(failed);
        }
        self.images.check("--image", AGENT, &self.image)?;
        let mut settings = Settings {
            image: self.image.clone(),
            kernel: self.kernel,
            detection: self.detection,
            matching: if self.outside_containers {
                Matching::OutsideContainers
            } else {
                Matching::All
            },
            signals: self.signals(),
            app_armor: self.apparmor,
            egress_ports: self.egress_port.iter().copied().collect(),
            ..Settings::default()
        };
        if self.session_away.is_some() && settings.needs_privileges() {
            let why = "lets an agent that runs as root ask everything of the host";
            return Err(Failure::new("--session-away", why)
                .remedy("give --kernel 6.6 or --detection scan"));
        }
        settings
            .operators
            .extend(self.operator_user.iter().cloned());
        file::agent(&settings).map_err(failed)
    }
}

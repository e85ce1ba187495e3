//! The emergency reclaim agent in a workload cluster: its namespaces, its ServiceAccount, its
//! permissions, and its DaemonSet.

pub mod host;
pub mod policy;

use std::collections::BTreeSet;
use std::str::FromStr;

use fivespot_api::name::{
    AGENT_FIELD_MANAGER as AGENT, AGENT_NAMESPACE, CONTROLLER, RECLAIM_AGENT_ENABLED,
    RECLAIM_AGENT_KEY, SYSTEM_NAMESPACE, controller_labels, service_account_user,
};
use serde_json::{Value, json};

use crate::component::Component;
use crate::controller::{self, Network};
use crate::pod::{self, EPHEMERAL_STORAGE, NOBODY};

/// The file with the identity of the host.
const MACHINE_ID: &str = "/etc/machine-id";

/// A release of Linux.
///
/// # Example
/// ```
/// use fivespot_install::agent::KernelVersion;
/// assert!("6.12".parse::<KernelVersion>().unwrap() > "6.6".parse().unwrap());
/// assert!("six".parse::<KernelVersion>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion {
    major: u32,
    minor: u32,
}

/// The error for a text that is not a [`KernelVersion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a Linux version such as 6.6")]
pub struct ParseKernelVersionError;

/// The first release that reports processes to unprivileged clients in the host's network
/// namespace.
const UNPRIVILEGED_SINCE: KernelVersion = KernelVersion { major: 6, minor: 6 };

impl FromStr for KernelVersion {
    type Err = ParseKernelVersionError;

    fn from_str(text: &str) -> Result<Self, ParseKernelVersionError> {
        let (major, minor) = text.split_once('.').ok_or(ParseKernelVersionError)?;
        let number = |text: &str| text.parse().map_err(|_| ParseKernelVersionError);
        Ok(Self {
            major: number(major)?,
            minor: number(minor)?,
        })
    }
}

/// How the agent detects processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Detection {
    /// By kernel process events, in the host's network namespace.
    #[default]
    Events,
    /// By scanning /proc, without root and without the host's network.
    Scan,
}

/// Which processes may match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matching {
    /// All processes of the host, including those in containers.
    #[default]
    All,
    /// Only processes outside the containers of pods.
    OutsideContainers,
}

/// A part of the host that its agent reads for a signal beside processes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// Login sessions, with the agent's value of `--login-sessions`.
    LoginSessions(String),
    /// Which of them nobody sits at, with the agent's value of `--session-away`. Not for an agent that
    /// [needs privileges](Settings::needs_privileges): root on the bus of the system is root on the host.
    SessionAway(String),
    /// The load outside pods, with the agent's values of `--load-above` and `--load-for`.
    Load {
        /// The number of processors.
        above: String,
        /// Over which time.
        time: String,
    },
}

impl Signal {
    fn arguments(&self) -> Vec<String> {
        match self {
            Self::LoginSessions(which) => vec![format!("--login-sessions={which}")],
            Self::SessionAway(which) => vec![format!("--session-away={which}")],
            Self::Load { above, time } => {
                vec![
                    format!("--load-above={above}"),
                    format!("--load-for={time}"),
                ]
            }
        }
    }

    /// The name of its volume, and the directory of the host.
    fn volume(&self) -> (&'static str, &'static str) {
        match self {
            Self::LoginSessions(_) => ("login-sessions", "/run/systemd"),
            Self::SessionAway(_) => ("system-bus", "/run/dbus"),
            Self::Load { .. } => ("control-groups", "/sys/fs/cgroup"),
        }
    }
}

/// The agent in one workload cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The image with `5spot-reclaim-agent` as its entry point.
    pub image: String,
    /// The oldest kernel of the nodes; `None` if it is unknown.
    pub kernel: Option<KernelVersion>,
    /// How processes are detected.
    pub detection: Detection,
    /// Which of them may match.
    pub matching: Matching,
    /// The signals beside processes.
    pub signals: BTreeSet<Signal>,
    /// The users as which the operator accesses this cluster, in addition to cluster
    /// administrators.
    pub operators: Vec<String>,
    /// Whether `AppArmor` is enabled on the nodes, so that the pods may require a profile; see
    /// [`NodeFeatures::app_armor`](crate::pod::NodeFeatures::app_armor).
    pub app_armor: bool,
    /// The ports of API servers to which an agent outside the host's network may connect.
    pub egress_ports: BTreeSet<u16>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            image: format!("{AGENT}:{}", env!("CARGO_PKG_VERSION")),
            kernel: None,
            detection: Detection::default(),
            matching: Matching::default(),
            signals: BTreeSet::new(),
            operators: vec![
                CONTROLLER.to_owned(),
                service_account_user(SYSTEM_NAMESPACE, CONTROLLER),
            ],
            app_armor: false,
            egress_ports: Network::default().egress_ports,
        }
    }
}

impl Settings {
    /// All objects that a workload cluster needs before its first machine with
    /// `killIfCommands`, in the order in which they are applied. The policies come before the
    /// permissions that they restrict. Cannot fail.
    pub fn documents(&self) -> Vec<Value> {
        let mut all = namespaces().to_vec();
        all.extend(policy::own_node());
        all.extend(policy::node_annotations(&self.operators));
        all.extend(host::policy());
        all.push(component().service_account(AGENT));
        all.extend(roles());
        all.extend(self.network_policy());
        all.push(self.daemon_set());
        all
    }

    /// The NetworkPolicy: DNS and API servers on [`egress_ports`](Self::egress_ports), and nothing
    /// else. `None` for agents in the network of their host, to which no NetworkPolicy applies.
    pub fn network_policy(&self) -> Option<Value> {
        (self.detection == Detection::Scan).then(|| {
            let api_servers = json!({"ports": pod::tcp_ports(&self.egress_ports)});
            let egress = [pod::dns(), api_servers];
            pod::network_policy(&component(), AGENT, &[], &egress)
        })
    }

    /// Whether the kernel reports processes only to root with a capability.
    pub fn needs_privileges(&self) -> bool {
        let is_newer = |kernel: KernelVersion| kernel >= UNPRIVILEGED_SINCE;
        self.detection == Detection::Events && !self.kernel.is_some_and(is_newer)
    }

    fn arguments(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.detection == Detection::Scan {
            words.push("--detection=scan".to_owned());
        }
        if self.matching == Matching::OutsideContainers {
            words.push("--outside-containers".to_owned());
        }
        words.extend(self.signals.iter().flat_map(Signal::arguments));
        words
    }

    fn pod_security_context(&self) -> Value {
        let mut context = json!({
            "seccompProfile": pod::runtime_default(),
        });
        if self.app_armor {
            context["appArmorProfile"] = pod::runtime_default();
        }
        if !self.needs_privileges() {
            context["runAsNonRoot"] = true.into();
            context["runAsUser"] = NOBODY.into();
            context["runAsGroup"] = NOBODY.into();
        }
        context
    }

    fn security_context(&self) -> Value {
        let mut context = pod::container_security_context();
        if self.needs_privileges() {
            context["runAsUser"] = 0.into();
            context["capabilities"]["add"] = json!(["NET_ADMIN"]);
        }
        context
    }

    /// The DaemonSet of the agent, for the nodes with the operator's label.
    pub fn daemon_set(&self) -> Value {
        let component = component();
        let spec = json!({
            "selector": {"matchLabels": component.labels},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "10%"},
            },
            "template": {
                "metadata": {"labels": component.labels},
                "spec": {
                    "serviceAccountName": AGENT,
                    "automountServiceAccountToken": true,
                    "enableServiceLinks": false,
                    "nodeSelector": {
                        "kubernetes.io/os": "linux",
                        RECLAIM_AGENT_KEY: RECLAIM_AGENT_ENABLED,
                    },
                    // The owner can reclaim a machine whatever taints its Node has.
                    "tolerations": [{"operator": "Exists"}],
                    "priorityClassName": "system-node-critical",
                    "terminationGracePeriodSeconds": 5,
                    "hostPID": true,
                    "securityContext": self.pod_security_context(),
                    "containers": [self.container()],
                    "volumes": self.volumes(),
                },
            },
        });
        let mut daemon_set = component.object("DaemonSet", AGENT, json!({"spec": spec}));
        if self.detection == Detection::Events {
            daemon_set["spec"]["template"]["spec"]["hostNetwork"] = true.into();
        }
        daemon_set
    }

    fn volumes(&self) -> Vec<Value> {
        let file = json!({
            "name": "machine-id",
            "hostPath": {"path": MACHINE_ID, "type": "File"},
        });
        let directories = self.signals.iter().map(|signal| {
            let (name, path) = signal.volume();
            json!({"name": name, "hostPath": {"path": path, "type": "Directory"}})
        });
        [file].into_iter().chain(directories).collect()
    }

    fn volume_mounts(&self) -> Vec<Value> {
        let directories = self.signals.iter().map(Signal::volume);
        let all = [("machine-id", MACHINE_ID)].into_iter().chain(directories);
        all.map(|(name, path)| json!({"name": name, "mountPath": path, "readOnly": true}))
            .collect()
    }

    fn container(&self) -> Value {
        let mut container = json!({
            "name": "agent",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "env": [pod::env_from_field("NODE_NAME", "spec.nodeName")],
            // A whole CPU: the agent has one thread, which this never throttles, so that the limit
            // does not delay a reclaim.
            "resources": {
                "requests": {
                    "cpu": "10m",
                    "memory": "16Mi",
                    "ephemeral-storage": EPHEMERAL_STORAGE.0,
                },
                "limits": {
                    "cpu": "1",
                    "memory": "64Mi",
                    "ephemeral-storage": EPHEMERAL_STORAGE.1,
                },
            },
            "securityContext": self.security_context(),
            "volumeMounts": self.volume_mounts(),
        });
        let arguments = self.arguments();
        if !arguments.is_empty() {
            container["args"] = json!(arguments);
        }
        container
    }
}

/// The namespace of the configurations, which is that of the operator if both are in one
/// cluster, and the namespace of the agents. Access to the host's processes violates the
/// stricter Pod Security Standards, so the agents must not share a namespace with the
/// operator's token.
pub fn namespaces() -> [Value; 2] {
    let mut namespace = component().object("Namespace", AGENT_NAMESPACE, json!({}));
    namespace["metadata"]["labels"] = json!({
        "app.kubernetes.io/name": "5spot",
        "pod-security.kubernetes.io/enforce": "privileged",
    });
    [controller::system_namespace(), namespace]
}

/// The roles of the agent and their bindings. Roles cannot restrict the agent to one Node; the
/// [policy] does.
pub fn roles() -> [Value; 4] {
    let agents = component();
    let system = agents.within(SYSTEM_NAMESPACE);
    let subjects = [agents.subject(AGENT)];
    let rule = |resource: &str, verbs: &[&str]| json!({"apiGroups": [""], "resources": [resource], "verbs": verbs});
    let nodes = rule("nodes", &["get", "list", "watch", "patch"]);
    let configurations = rule("configmaps", &["get", "list", "watch"]);
    [
        agents.role("ClusterRole", AGENT, &[nodes]),
        agents.binding("ClusterRoleBinding", ("ClusterRole", AGENT), &subjects),
        system.role("Role", AGENT, &[configurations]),
        system.binding("RoleBinding", ("Role", AGENT), &subjects),
    ]
}

/// The agents.
fn component() -> Component {
    let mut labels = controller_labels();
    let component = "app.kubernetes.io/component".to_owned();
    labels.insert(component, "reclaim-agent".to_owned());
    Component {
        namespace: AGENT_NAMESPACE.to_owned(),
        labels,
    }
}

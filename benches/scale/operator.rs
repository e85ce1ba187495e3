//! The measured operator: a child process with a user of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

use benches::Entry;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::process::{Child, Command};

use crate::Args;
use crate::fleet::BoxError;

/// The operator's user in the audit log.
pub(crate) const USER: &str = "scale-operator";

/// The prefix of the user agent of 5-Spot in an audit log.
const AGENT: &str = "5spot/";

/// Whether the operator sent the request: with its own user, or with the user of a workload
/// cluster's kubeconfig.
pub(crate) fn is_operator(entry: &Entry) -> bool {
    entry.user == USER || entry.agent.starts_with(AGENT)
}

/// How an operator is started, and what it supports.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Description {
    /// The program and its arguments.
    command: Vec<String>,
    /// Additional environment variables.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// What makes a machine wanted.
    #[serde(default)]
    pub(crate) edge: Edge,
}

/// What makes a machine wanted.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Edge {
    /// The clock: a cron expression with a duration.
    #[default]
    Cron,
    /// A person: `schedule.enabled`.
    Switch,
}

impl Description {
    /// The description in the file of `--controller`. Without a file, the operator that was built
    /// with the profile.
    pub(crate) fn read(args: &Args) -> Result<Self, BoxError> {
        let Some(file) = &args.controller else {
            let program = format!("target/{}/5spot-controller", args.profile);
            let command = [
                program.as_str(),
                "--allow-loopback-workload-server",
                "--namespaces",
                "$NAMESPACE",
                "--lease-namespace",
                "$NAMESPACE",
                "--metrics-port",
                "0",
                "--health-port",
                "0",
            ];
            return Ok(Self {
                command: command.map(str::to_owned).to_vec(),
                environment: BTreeMap::new(),
                edge: Edge::Cron,
            });
        };
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let read: Self = serde_json::from_str(&text)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(read)
    }
}

/// The resource usage of a process.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceUsage {
    /// Seconds of a core.
    pub(crate) cpu_seconds: f64,
    /// Resident memory, KiB.
    pub(crate) resident_kib: u64,
    /// Peak resident memory, KiB.
    pub(crate) peak_kib: u64,
}

/// The operator, and how it is started.
pub(crate) struct Operator {
    description: Description,
    namespace: String,
    folder: PathBuf,
    child: Option<Child>,
}

impl Operator {
    /// Creates it without starting it. Its files are put into `folder`.
    pub(crate) fn new(
        description: Description,
        namespace: &str,
        folder: PathBuf,
    ) -> Self {
        Self {
            description,
            namespace: namespace.to_owned(),
            folder,
            child: None,
        }
    }

    /// Starts it.
    pub(crate) fn start(&mut self) -> Result<(), BoxError> {
        let path = std::env::var("KUBECONFIG")?;
        let kubeconfig = kube::config::Kubeconfig::read_from(path)?;
        let mut kubeconfig = serde_json::to_value(kubeconfig)?;
        kubeconfig["users"][0]["user"]["as"] = json!(USER);
        kubeconfig["users"][0]["user"]["as-groups"] = json!(["system:masters"]);
        let file = self.folder.join("scale.kubeconfig");
        std::fs::write(&file, kubeconfig.to_string())?;
        let log = File::create(self.folder.join("scale-operator.log"))?;
        let mut words = self
            .description
            .command
            .iter()
            .map(|word| word.replace("$NAMESPACE", &self.namespace));
        let program = words.next().ok_or("controller: command is empty")?;
        let child = Command::new(&program)
            .args(words)
            .envs(&self.description.environment)
            .env("KUBECONFIG", file)
            .stdout(Stdio::null())
            .stderr(Stdio::from(log))
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{program}: {error}"))?;
        self.child = Some(child);
        Ok(())
    }

    /// Kills it.
    pub(crate) async fn kill(&mut self) -> Result<(), BoxError> {
        if let Some(mut child) = self.child.take() {
            child.kill().await?;
        }
        Ok(())
    }

    /// Its resource usage since it was started.
    pub(crate) fn resource_usage(&self) -> Result<ResourceUsage, BoxError> {
        let id = self.child.as_ref().and_then(Child::id);
        let id = id.ok_or("the operator has ended; see scale-operator.log")?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
        let kib = |name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|rest| rest.split_whitespace().next());
            number
                .and_then(|text| text.parse().ok())
                .unwrap_or_default()
        };
        Ok(ResourceUsage {
            cpu_seconds: benches::cpu_time(id).as_secs_f64(),
            resident_kib: kib("VmRSS:"),
            peak_kib: kib("VmHWM:"),
        })
    }
}

//! The operator processes.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::fixture::Fixture;

/// How an operator coordinates with the others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// With leader election.
    Candidate,
    /// As a shard.
    Shard,
}

/// The running operators.
pub(crate) struct Operators {
    program: PathBuf,
    folder: PathBuf,
    namespace: String,
    kubeconfig: Value,
    running: BTreeMap<String, Child>,
}

impl Operators {
    /// Creates it without operators. Files are put next to the audit log.
    pub(crate) fn new(
        program: PathBuf,
        fixture: &Fixture,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let path = std::env::var("KUBECONFIG")?;
        let kubeconfig = kube::config::Kubeconfig::read_from(path)?;
        Ok(Self {
            program,
            folder: fixture.folder(),
            namespace: fixture.namespace().to_owned(),
            kubeconfig: serde_json::to_value(kubeconfig)?,
            running: BTreeMap::new(),
        })
    }

    /// Starts an operator with a user of its own.
    pub(crate) fn start(
        &mut self,
        name: &str,
        role: Role,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let user = &mut self.kubeconfig["users"][0]["user"];
        user["as"] = json!(name);
        user["as-groups"] = json!(["system:masters"]);
        let kubeconfig = self.folder.join(format!("{name}.kubeconfig"));
        std::fs::write(&kubeconfig, self.kubeconfig.to_string())?;
        let log = File::create(self.folder.join(format!("{name}.log")))?;
        let (flag, value) = match role {
            Role::Candidate => ("--enable-leader-election", "=true"),
            Role::Shard => ("--instance-count", "=3"),
        };
        let child = Command::new(&self.program)
            .arg(format!("{flag}{value}"))
            .args(["--namespaces", &self.namespace])
            .args(["--lease-namespace", &self.namespace])
            .args(["--metrics-port", "0", "--health-port", "0"])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .env("POD_NAME", name)
            .stderr(Stdio::from(log))
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        self.running.insert(name.to_owned(), child);
        Ok(())
    }

    /// Kills an operator. It cannot release its Lease.
    pub(crate) async fn kill(
        &mut self,
        name: &str,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut child = self
            .running
            .remove(name)
            .ok_or("no operator of that name")?;
        child.kill().await?;
        Ok(())
    }
}

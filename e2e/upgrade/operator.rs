//! The operator as a process, with only the permissions of its roles.

use std::error::Error;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::program::{Programs, Version};
use super::server::Server;
use super::text;

/// The namespace of the operator and its Lease.
const HOME: &str = "5spot-system";

/// The timeout of every wait.
pub(super) const TIMEOUT: Duration = Duration::from_mins(2);

/// How long the operator must be idle until it counts as settled.
const QUIET: Duration = Duration::from_secs(3);

/// The interval between two checks.
pub(super) const INTERVAL: Duration = Duration::from_millis(250);

/// A running operator. Dropping it stops it with SIGTERM.
pub(super) struct Operator {
    process: Child,
    metrics: u16,
}

impl Drop for Operator {
    fn drop(&mut self) {
        // SIGTERM lets it release its Lease, as in a rollout.
        let pid = self.process.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.process.wait();
    }
}

impl Operator {
    /// Starts the operator of a version, and waits until it holds the Lease.
    ///
    /// # Errors
    /// It does not start, or does not become the leader.
    pub(super) fn start(
        programs: &Programs,
        version: Version,
        server: &Server,
        folder: &Path,
    ) -> Result<Self, Box<dyn Error>> {
        let kubeconfig = folder.join("operator.kubeconfig");
        fs::write(&kubeconfig, restricted(server)?)?;
        let name = format!("5spot-{}-{}", version.name(), std::process::id());
        let (metrics, health) = (free_port()?, free_port()?);
        let log = folder.join(format!("operator-{}.log", version.name()));
        let log = fs::OpenOptions::new().create(true).append(true).open(log)?;
        let process = Command::new(programs.path(version))
            .arg("controller")
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .args(["--allow-loopback-workload-server", "--bind-address"])
            .arg("127.0.0.1")
            .arg(format!("--metrics-port={metrics}"))
            .arg(format!("--health-port={health}"))
            .env("POD_NAME", &name)
            .env("POD_NAMESPACE", HOME)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let operator = Self { process, metrics };
        until(&format!("{name} leads"), || {
            let lease = server
                .management
                .get(&["lease", "5spot-leader", "-n", HOME])?;
            Ok(text(&lease, "/spec/holderIdentity").contains(&name))
        })?;
        Ok(operator)
    }

    /// Whether the process is running.
    ///
    /// # Errors
    /// The state of the process cannot be read.
    pub(super) fn is_running(&mut self) -> Result<bool, Box<dyn Error>> {
        Ok(self.process.try_wait()?.is_none())
    }

    /// Waits until the operator has reconciled the machines and is idle.
    ///
    /// # Errors
    /// It does not become idle, or its metrics cannot be read.
    pub(super) fn settle(&self) -> Result<(), Box<dyn Error>> {
        let mut count = None;
        let mut since = Instant::now();
        until("the operator is quiet", || {
            let now = self.reconciles()?;
            if now == 0 || count != Some(now) {
                (count, since) = (Some(now), Instant::now());
            }
            Ok(since.elapsed() >= QUIET)
        })
    }

    /// The number of reconciles that have ended.
    fn reconciles(&self) -> Result<u64, Box<dyn Error>> {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.metrics)) else {
            return Ok(0);
        };
        let request =
            b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        stream.write_all(request)?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        let lines = page
            .lines()
            .filter(|line| line.starts_with("fivespot_reconciliations_total{"));
        Ok(lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum())
    }
}

/// A kubeconfig with the permissions of the operator's service account.
fn restricted(server: &Server) -> Result<String, Box<dyn Error>> {
    let admin = server.management.kubeconfig()?;
    let account = "5spot-controller";
    let words = ["create", "token", account, "-n", HOME, "--duration=6h"];
    let token = server.management.kubectl(&words)?;
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "upgrade-test", "cluster": admin["clusters"][0]["cluster"]}],
        "users": [{"name": account, "user": {"token": token.trim()}}],
        "contexts": [{"name": "upgrade-test", "context": {"cluster": "upgrade-test", "user": account}}],
        "current-context": "upgrade-test",
    });
    Ok(kubeconfig.to_string())
}

/// A free TCP port.
fn free_port() -> Result<u16, Box<dyn Error>> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Checks repeatedly until a condition is true.
///
/// # Errors
/// The condition was not true in time, or a check failed.
#[expect(
    clippy::disallowed_methods,
    reason = "programs and kubectl do not say when they are ready"
)]
pub(super) fn until(
    what: &str,
    mut holds: impl FnMut() -> Result<bool, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    while !holds()? {
        if begun.elapsed() > TIMEOUT {
            return Err(format!("not within {} s: {what}", TIMEOUT.as_secs()).into());
        }
        thread::sleep(INTERVAL);
    }
    Ok(())
}

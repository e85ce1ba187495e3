//! The API server of an upgrade test, with kubectl as its client.

use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use serde_json::Value;

use super::program::{Programs, Version};
use super::text;

/// An API server, with a kubeconfig of an administrator.
pub(super) struct Api {
    kubeconfig: PathBuf,
}

/// API servers with Cluster API and providers. Dropping an embedded one stops it.
pub(super) struct Server {
    /// The API server with ScheduledMachines and Machines.
    pub(super) management: Api,
    /// The API server that Nodes join; the embedded server is both.
    pub(super) workload: Api,
    process: Option<Child>,
    title: String,
    label: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // Fails if the process has ended already.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Server {
    /// The embedded server with its simulated Cluster API, without an operator.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn embedded(
        programs: &Programs,
        folder: &Path,
    ) -> Result<Self, Box<dyn Error>> {
        let nothing = folder.join("nothing.yaml");
        fs::write(
            &nothing,
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: upgrade-test}\n",
        )?;
        let kubeconfig = folder.join("admin.kubeconfig");
        let mut process = Command::new(programs.path(Version::Newer))
            .args(["dev", "--no-controller", "--apply"])
            .arg(&nothing)
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = process.stdout.take().ok_or("no output")?;
        let mut lines = BufReader::new(output).lines();
        let is_ready = lines.any(|it| it.is_ok_and(|it| it.starts_with("applied ")));
        let server = Self {
            workload: Api {
                kubeconfig: kubeconfig.clone(),
            },
            management: Api { kubeconfig },
            process: Some(process),
            title: "the embedded server and a simulated Cluster API".to_owned(),
            label: "embedded".to_owned(),
        };
        if !is_ready {
            return Err("5spot dev ended".into());
        }
        thread::spawn(move || lines.for_each(drop));
        Ok(server)
    }

    /// The running cluster with this name.
    ///
    /// # Errors
    /// No cluster with this name runs.
    pub(super) fn real(name: &str) -> Result<Self, Box<dyn Error>> {
        let state = fivespot_testkit::cluster_directory(Some(name));
        let versions = fs::read_to_string(state.join("versions.json")).map_err(|_| {
            format!("start it with `cargo xtask cluster up --name {name}`")
        })?;
        let versions: Value = serde_json::from_str(&versions)?;
        let (kubernetes, api) = (
            text(&versions, "/kubernetes"),
            text(&versions, "/clusterAPI"),
        );
        let at = |file: &str| Api {
            kubeconfig: state.join(file),
        };
        Ok(Self {
            management: at("admin.kubeconfig"),
            workload: at("workload-admin.kubeconfig"),
            process: None,
            title: format!("Kubernetes {kubernetes} and Cluster API {api}"),
            label: format!("kubernetes-{kubernetes}-cluster-api-{api}"),
        })
    }

    /// The title of the results.
    pub(super) fn title(&self) -> &str {
        &self.title
    }

    /// The name of the file of the results.
    pub(super) fn label(&self) -> &str {
        &self.label
    }
}

impl Api {
    /// Runs kubectl to its end and returns its output.
    ///
    /// # Errors
    /// kubectl is not installed, or fails; the error contains its output.
    pub(super) fn kubectl(&self, words: &[&str]) -> Result<String, Box<dyn Error>> {
        self.kubectl_with(words, "")
    }

    /// Runs kubectl with text on its standard input.
    ///
    /// # Errors
    /// As for [`kubectl`](Self::kubectl).
    pub(super) fn kubectl_with(
        &self,
        words: &[&str],
        input: &str,
    ) -> Result<String, Box<dyn Error>> {
        let done = self.run_kubectl(words, input)?;
        if done.status.success() {
            return Ok(String::from_utf8(done.stdout)?);
        }
        let said = String::from_utf8_lossy(&done.stderr);
        Err(format!("kubectl {}: {}", words.join(" "), said.trim()).into())
    }

    fn run_kubectl(&self, words: &[&str], input: &str) -> Result<Output, Box<dyn Error>> {
        let mut kubectl = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("running kubectl: {error}"))?;
        if let Some(mut pipe) = kubectl.stdin.take() {
            pipe.write_all(input.as_bytes())?;
        }
        Ok(kubectl.wait_with_output()?)
    }

    /// Applies objects as `kubectl apply --server-side` does. Both versions are applied by the same
    /// manager, so fields of the previous version that this one does not set are removed.
    ///
    /// # Errors
    /// The server rejects them.
    pub(super) fn apply(&self, manifests: &str) -> Result<(), Box<dyn Error>> {
        let words = [
            "apply",
            "--server-side",
            "--force-conflicts",
            "--validate=ignore",
            "-f",
            "-",
        ];
        self.kubectl_with(&words, manifests).map(drop)
    }

    /// Returns an object; null if there is none.
    ///
    /// # Errors
    /// kubectl fails.
    pub(super) fn get(&self, words: &[&str]) -> Result<Value, Box<dyn Error>> {
        let words = [&["get", "--ignore-not-found", "-o", "json"][..], words].concat();
        let printed = self.kubectl(&words)?;
        if printed.trim().is_empty() {
            return Ok(Value::Null);
        }
        Ok(serde_json::from_str(&printed)?)
    }

    /// The contents of the kubeconfig of the administrator.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn kubeconfig(&self) -> Result<Value, Box<dyn Error>> {
        let words = ["config", "view", "--raw", "-o", "json"];
        Ok(serde_json::from_str(&self.kubectl(&words)?)?)
    }
}

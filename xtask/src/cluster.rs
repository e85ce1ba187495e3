//! `cargo xtask cluster`: a real Kubernetes and a real Cluster API on this machine.
//!
//! The programs are built from Go modules that are pinned under `e2e/cluster`, and kept in the cache
//! of the user. `up` leaves them running in the background. Clusters with different names run
//! concurrently: each has its own state folder and ports.

pub(crate) mod programs;

use std::env;
use std::error::Error;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use kubemu_golang as go;
use programs::{Pinned, Programs};

/// The minor versions of Kubernetes and Cluster API, and the providers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    kubernetes: String,
    cluster_api: String,
    providers: Providers,
}

/// The providers of Machines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Providers {
    /// Stand-ins in the launcher, for the kinds of k0smotron.
    #[default]
    StandIn,
    /// Cluster API's kubeadm providers, and its in-memory infrastructure provider.
    Real,
}

impl Default for Versions {
    fn default() -> Self {
        Self {
            kubernetes: "1.36".to_owned(),
            cluster_api: "1.14".to_owned(),
            providers: Providers::default(),
        }
    }
}

/// The selected cluster, and the versions that it should run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    /// `None` for the cluster without a name.
    name: Option<String>,
    versions: Versions,
    /// Only Kubernetes: no Cluster API and no providers.
    is_alone: bool,
    /// Admission plugins that are enabled in addition to the default ones, separated by commas.
    plugins: String,
}

impl Choice {
    /// Reads `--name`, `--kubernetes 1.30`, `--cluster-api 1.8` and `--providers real`, all of them
    /// optional, and `--plugins` after a first `--alone`. `None` for any other argument.
    pub(crate) fn with_versions(words: &[&str]) -> Option<Self> {
        let mut choice = Self::default();
        let words = match words {
            ["--alone", words @ ..] => {
                choice.is_alone = true;
                words
            }
            words => words,
        };
        for pair in words.chunks(2) {
            match pair {
                ["--kubernetes", minor] => {
                    (*minor).clone_into(&mut choice.versions.kubernetes);
                }
                ["--cluster-api", minor] => {
                    (*minor).clone_into(&mut choice.versions.cluster_api);
                }
                ["--providers", "real"] => choice.versions.providers = Providers::Real,
                ["--providers", "stand-in"] => {
                    choice.versions.providers = Providers::StandIn;
                }
                ["--plugins", plugins] if choice.is_alone => {
                    (*plugins).clone_into(&mut choice.plugins);
                }
                ["--name", name] if is_name(name) => {
                    choice.name = Some((*name).to_owned());
                }
                _ => return None,
            }
        }
        Some(choice)
    }

    /// Reads the optional `--name` only.
    pub(crate) fn by_name(words: &[&str]) -> Option<Self> {
        match words {
            [] | ["--name", _] => Self::with_versions(words),
            _ => None,
        }
    }
}

/// Whether a name is valid for a folder: short, because the path of a socket is limited.
fn is_name(name: &str) -> bool {
    let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-';
    (1..=20).contains(&name.len()) && name.bytes().all(is_plain)
}

/// The paths of one cluster.
struct Cluster {
    programs: Programs,
    /// The folder of the files that the running cluster writes.
    state: PathBuf,
    /// The manifest of the Cluster that exists from the start with real providers.
    example: PathBuf,
}

/// Runs the task of the arguments after `cluster`; `None` if they are invalid.
pub(crate) fn task(root: &Path, words: &[&str]) -> Option<Result<(), Box<dyn Error>>> {
    Some(match words {
        ["build", words @ ..] => {
            let choice = Choice::with_versions(words)?;
            let programs = Cluster::new(root, &choice).programs;
            programs.build(&choice.versions).map(drop)
        }
        ["up", words @ ..] => up(root, &Choice::with_versions(words)?),
        ["down", words @ ..] => Cluster::new(root, &Choice::by_name(words)?).stop(),
        ["upgrade", words @ ..] => upgrade(root, &Choice::with_versions(words)?),
        ["kubeconfig", words @ ..] => running(root, &Choice::by_name(words)?)
            .map(|running| println!("{}", running.kubeconfig.display())),
        [RESTART_PROVIDERS, words @ ..] => {
            restart_providers(root, &Choice::by_name(words)?)
        }
        _ => return None,
    })
}

/// Builds the missing programs, starts the cluster unless it runs, and prints how to reach it.
///
/// # Errors
/// A version is not pinned, Go is not installed, a build fails, or the cluster does not start.
pub(crate) fn up(root: &Path, choice: &Choice) -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::new(root, choice);
    if cluster.call().is_some() {
        eprintln!("a cluster is running already");
    } else if choice.is_alone {
        let kubernetes = cluster.programs.build_alone(&choice.versions.kubernetes)?;
        cluster.start(&kubernetes, None, &choice.plugins)?;
    } else {
        let pinned = cluster.programs.build(&choice.versions)?;
        cluster.start(&pinned.kubernetes, Some(&pinned), "")?;
    }
    if let Some(kubectl) = cluster.own_kubectl()? {
        println!("export PATH={}:$PATH", kubectl.display());
    }
    println!("export KUBECONFIG={}", cluster.kubeconfig().display());
    if let Some(name) = &choice.name {
        println!("export E2E_CLUSTER={name}");
    }
    Ok(())
}

/// Builds kubectl if it is not on the PATH, and prints a PATH that contains it. Prints nothing if
/// kubectl is on the PATH.
///
/// # Errors
/// Go is not installed, or the build fails.
pub(crate) fn kubectl(root: &Path) -> Result<(), Box<dyn Error>> {
    if let Some(kubectl) = Cluster::new(root, &Choice::default()).own_kubectl()? {
        println!("export PATH={}:$PATH", kubectl.display());
    }
    Ok(())
}

/// Upgrades the running cluster to other versions of Kubernetes and Cluster API, and waits until they
/// are ready. A component that has the version already is not restarted.
///
/// # Errors
/// The cluster does not run, a version is not pinned or cannot be built, or a new program does not
/// start.
fn upgrade(root: &Path, choice: &Choice) -> Result<(), Box<dyn Error>> {
    let versions = running(root, choice)?.versions;
    let cluster = Cluster::new(root, choice);
    let pinned = cluster.programs.build(&choice.versions)?;
    let mut wanted = serde_json::Map::new();
    for (part, minor, folder) in [
        ("kubernetes", &choice.versions.kubernetes, pinned.kubernetes),
        (
            "clusterAPI",
            &choice.versions.cluster_api,
            pinned.cluster_api,
        ),
    ] {
        if versions[part] != **minor {
            wanted.insert(part.to_owned(), json!(folder));
        }
    }
    cluster
        .send_command(&format!("upgrade {}", Value::Object(wanted)))
        .map_err(|why| format!("the upgrade failed: {why}").into())
}

/// The command that restarts the providers of a running cluster, on the command line and on its
/// socket.
const RESTART_PROVIDERS: &str = "restart-providers";

/// Restarts the providers of the running cluster, and waits until they are ready.
///
/// # Errors
/// No cluster runs, or a provider does not start.
fn restart_providers(root: &Path, choice: &Choice) -> Result<(), Box<dyn Error>> {
    running(root, choice)?;
    Cluster::new(root, choice)
        .send_command(RESTART_PROVIDERS)
        .map_err(|why| format!("the restart failed: {why}").into())
}

/// A running cluster.
struct Running {
    /// The path of its administrator's kubeconfig.
    kubeconfig: PathBuf,
    /// The versions of `kubernetes`, `clusterAPI` and `providers`.
    versions: Value,
}

/// Returns the running cluster.
///
/// # Errors
/// No cluster runs, or its versions cannot be read.
fn running(root: &Path, choice: &Choice) -> Result<Running, Box<dyn Error>> {
    let cluster = Cluster::new(root, choice);
    if cluster.call().is_none() {
        return Err(
            "no cluster is running; start one with `cargo xtask cluster up`".into(),
        );
    }
    let versions = fs::read_to_string(cluster.state.join("versions.json"))?;
    Ok(Running {
        kubeconfig: cluster.kubeconfig(),
        versions: serde_json::from_str(&versions)?,
    })
}

impl Cluster {
    fn new(root: &Path, choice: &Choice) -> Self {
        let own = target(root).join("cluster");
        // The end-to-end tests use the same folder.
        let run = match &choice.name {
            Some(name) => format!("run-{name}"),
            None => "run".to_owned(),
        };
        Self {
            programs: Programs::new(root, &own.join("bin")),
            state: own.join(run),
            example: root.join("examples/conformance/in-memory/cluster.yaml"),
        }
    }

    /// Stops the cluster if it runs, and waits until it has ended. Fails if the connection does.
    fn stop(&self) -> Result<(), Box<dyn Error>> {
        if let Some(mut control) = self.call() {
            control.write_all(b"stop\n")?;
            // The cluster closes the connection when it has ended.
            control.read_to_end(&mut Vec::new())?;
        }
        Ok(())
    }

    fn kubeconfig(&self) -> PathBuf {
        self.state.join("admin.kubeconfig")
    }

    /// A connection to the running cluster, if one runs.
    fn call(&self) -> Option<UnixStream> {
        UnixStream::connect(self.state.join("control")).ok()
    }

    /// Sends a command to the running cluster, and waits until it is done.
    fn send_command(&self, what: &str) -> Result<(), Box<dyn Error>> {
        let mut control = self.call().ok_or("the cluster has ended")?;
        writeln!(control, "{what}")?;
        let mut line = String::new();
        BufReader::new(control).read_line(&mut line)?;
        match line.trim() {
            "done" => Ok(()),
            why => Err(why.into()),
        }
    }

    /// The folder of the kubectl that is built here; `None` if kubectl is on the PATH. Builds it if
    /// it is missing.
    fn own_kubectl(&self) -> Result<Option<PathBuf>, Box<dyn Error>> {
        if go::is_on_path("kubectl") {
            return Ok(None);
        }
        self.programs.build_kubectl().map(Some)
    }

    /// Starts the cluster in the background and waits until it is ready.
    fn start(
        &self,
        kubernetes: &Path,
        more: Option<&Pinned>,
        plugins: &str,
    ) -> Result<(), Box<dyn Error>> {
        let log = self.state.with_extension("log");
        let mut program = Command::new(self.programs.launcher());
        program
            .arg("-state")
            .arg(&self.state)
            .arg("-kubernetes")
            .arg(kubernetes);
        if let Some(more) = more {
            program.arg("-cluster-api").arg(&more.cluster_api);
            program.arg("-kwok").arg(&more.kwok);
            if let Some(providers) = &more.providers {
                program.arg("-providers").arg(providers);
                program.arg("-cluster").arg(&self.example);
            }
        }
        if !plugins.is_empty() {
            program.arg("-plugins").arg(plugins);
        }
        let mut running = program
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log)?)
            // A process group of its own, so that Ctrl-C at the terminal does not stop it.
            .process_group(0)
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = running.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        if line.trim() == "ready" {
            return Ok(());
        }
        running.wait()?;
        let words = fs::read_to_string(&log)?;
        Err(format!("the cluster did not come up: {}", words.trim()).into())
    }
}

/// The target directory.
pub(crate) fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |directory| root.join(directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_may_be_chosen_and_nothing_else() {
        let chosen = |words: &[&str]| {
            let versions = Choice::with_versions(words)?.versions;
            Some(format!("{} {}", versions.kubernetes, versions.cluster_api))
        };
        assert_eq!(chosen(&[]).as_deref(), Some("1.36 1.14"));
        assert_eq!(
            chosen(&["--cluster-api", "1.8"]).as_deref(),
            Some("1.36 1.8")
        );
        let both = ["--cluster-api", "1.8", "--kubernetes", "1.30"];
        assert_eq!(chosen(&both).as_deref(), Some("1.30 1.8"));
        let real = Choice::with_versions(&["--providers", "real"]);
        assert_eq!(real.map(|it| it.versions.providers), Some(Providers::Real));
        assert_eq!(chosen(&["--providers", "imaginary"]), None);
        assert_eq!(chosen(&["--kubernetes"]), None);
        assert_eq!(chosen(&["--etcd", "3.6"]), None);
        let alone = Choice::with_versions(&["--alone", "--plugins", "A,B"]);
        assert_eq!(alone.map(|it| it.plugins).as_deref(), Some("A,B"));
        assert_eq!(chosen(&["--plugins", "A,B"]), None);
    }

    #[test]
    fn clusters_of_two_names_share_no_state() {
        let root = Path::new("/somewhere");
        let state = |words: &[&str]| {
            Choice::by_name(words).map(|choice| Cluster::new(root, &choice).state)
        };
        let first = state(&[]).expect("the one without a name");
        assert!(first.ends_with("cluster/run"), "{}", first.display());
        assert_ne!(state(&["--name", "second"]), Some(first));
        assert_eq!(state(&["--name", "../run"]), None);
        assert_eq!(state(&["--name", ""]), None);
        assert_eq!(state(&["--kubernetes", "1.30"]), None);
    }
}

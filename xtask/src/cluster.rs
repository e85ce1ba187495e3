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

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use programs::{Pinned, Programs};

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Run them in the background
    Up {
        #[command(flatten)]
        name: Name,
        #[command(flatten)]
        versions: Versions,
        /// Run only Kubernetes
        #[arg(long, conflicts_with_all = ["cluster_api", "providers"])]
        alone: bool,
        /// Admission plugins in addition to the default ones, separated by commas
        #[arg(long, requires = "alone", default_value = "")]
        plugins: String,
    },
    /// Only build the programs that `up` would start
    Build {
        #[command(flatten)]
        versions: Versions,
    },
    /// Stop them
    Down(Name),
    /// Upgrade them to other versions, and wait until they are ready
    Upgrade {
        #[command(flatten)]
        name: Name,
        #[command(flatten)]
        versions: Versions,
    },
    /// Restart the processes of their providers, and wait until they are ready
    RestartProviders(Name),
    /// Print the path of their kubeconfig
    Kubeconfig(Name),
}

/// Which of several clusters, which can run at the same time.
#[derive(Args, Debug)]
pub(crate) struct Name {
    /// The name of one beside the one without a name
    #[arg(long, value_parser = checked_name)]
    name: Option<String>,
}

/// The minor versions of Kubernetes and Cluster API, and the providers.
#[derive(Args, Debug)]
pub(crate) struct Versions {
    /// The minor version of Kubernetes
    #[arg(long, value_name = "MINOR", default_value = NEWEST_KUBERNETES)]
    kubernetes: String,
    /// The minor version of Cluster API
    #[arg(long, value_name = "MINOR", default_value = "1.14")]
    cluster_api: String,
    /// The providers of Machines, instead of stand-ins in the launcher for the kinds of k0smotron
    #[arg(long)]
    providers: Option<Providers>,
}

const NEWEST_KUBERNETES: &str = "1.36";

/// Providers of Machines.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Providers {
    /// Cluster API's kubeadm providers, and its in-memory infrastructure provider
    Real,
}

/// A name that is valid for a folder: short, because the path of a socket is limited.
fn checked_name(name: &str) -> Result<String, &'static str> {
    let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'-';
    let is_valid = (1..=20).contains(&name.len()) && name.bytes().all(is_plain);
    let why = "use at most 20 letters, digits and hyphens";
    is_valid.then(|| name.to_owned()).ok_or(why)
}

/// The paths of one cluster.
struct Cluster {
    programs: Programs,
    /// The folder of the files that the running cluster writes.
    state: PathBuf,
    /// The manifest of the Cluster that exists from the start with real providers.
    example: PathBuf,
}

/// Runs a task.
///
/// # Errors
/// No cluster runs that is needed, a version is not pinned, Go is not installed, a build fails, or a
/// program does not start.
pub(crate) fn run(root: &Path, task: Task) -> Result<(), Box<dyn Error>> {
    let of = |name: &Name| Cluster::new(root, name.name.as_deref());
    match task {
        Task::Build { versions } => Programs::of(root).build(&versions).map(drop),
        Task::Up {
            name,
            versions,
            alone,
            plugins,
        } => {
            let cluster = of(&name);
            if cluster.call().is_some() {
                eprintln!("a cluster is running already");
            } else if alone {
                let kubernetes = cluster.programs.build_alone(&versions.kubernetes)?;
                cluster.start(&kubernetes, None, &plugins)?;
            } else {
                let pinned = cluster.programs.build(&versions)?;
                cluster.start(&pinned.kubernetes, Some(&pinned), "")?;
            }
            cluster.print(name.name.as_deref())
        }
        Task::Down(name) => of(&name).stop(),
        Task::Upgrade { name, versions } => of(&name).upgrade(&versions),
        Task::RestartProviders(name) => {
            let cluster = of(&name);
            cluster.versions()?;
            cluster
                .send_command("restart-providers")
                .map_err(|why| format!("the restart failed: {why}").into())
        }
        Task::Kubeconfig(name) => {
            let cluster = of(&name);
            cluster.versions()?;
            println!("{}", cluster.kubeconfig().display());
            Ok(())
        }
    }
}

/// Builds kubectl if it is not on the PATH, and prints a PATH that contains it. Prints nothing if
/// kubectl is on the PATH.
///
/// # Errors
/// Go is not installed, or the build fails.
pub(crate) fn kubectl(root: &Path) -> Result<(), Box<dyn Error>> {
    if let Some(kubectl) = Programs::of(root).own_kubectl()? {
        println!("export PATH={}:$PATH", kubectl.display());
    }
    Ok(())
}

impl Cluster {
    /// `None` is the name of the one without a name.
    fn new(root: &Path, name: Option<&str>) -> Self {
        // The end-to-end tests use the same folder.
        let run = match name {
            Some(name) => format!("run-{name}"),
            None => "run".to_owned(),
        };
        Self {
            programs: Programs::of(root),
            state: target(root).join("cluster").join(run),
            example: root.join("examples/conformance/in-memory/cluster.yaml"),
        }
    }

    /// Prints how to reach it.
    fn print(&self, name: Option<&str>) -> Result<(), Box<dyn Error>> {
        if let Some(kubectl) = self.programs.own_kubectl()? {
            println!("export PATH={}:$PATH", kubectl.display());
        }
        println!("export KUBECONFIG={}", self.kubeconfig().display());
        if let Some(name) = name {
            println!("export E2E_CLUSTER={name}");
        }
        Ok(())
    }

    /// The versions of `kubernetes`, `clusterAPI` and `providers` of the running cluster.
    fn versions(&self) -> Result<Value, Box<dyn Error>> {
        if self.call().is_none() {
            return Err(
                "no cluster is running; start one with `cargo xtask cluster up`".into(),
            );
        }
        let versions = fs::read_to_string(self.state.join("versions.json"))?;
        Ok(serde_json::from_str(&versions)?)
    }

    /// Upgrades the running cluster. A component that has the version already is not restarted.
    fn upgrade(&self, to: &Versions) -> Result<(), Box<dyn Error>> {
        let versions = self.versions()?;
        let pinned = self.programs.build(to)?;
        let mut wanted = serde_json::Map::new();
        for (part, minor, folder) in [
            ("kubernetes", &to.kubernetes, pinned.kubernetes),
            ("clusterAPI", &to.cluster_api, pinned.cluster_api),
        ] {
            if versions[part] != **minor {
                wanted.insert(part.to_owned(), json!(folder));
            }
        }
        self.send_command(&format!("upgrade {}", Value::Object(wanted)))
            .map_err(|why| format!("the upgrade failed: {why}").into())
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
    use clap::Parser as _;

    use super::*;

    fn parsed(words: &str) -> Option<Task> {
        let words = words.split_whitespace();
        let task =
            crate::Task::try_parse_from(["xtask", "cluster"].into_iter().chain(words));
        match task.ok()? {
            crate::Task::Cluster(task) => Some(task),
            _ => None,
        }
    }

    #[test]
    fn each_version_may_be_chosen_and_plugins_only_without_cluster_api() {
        let chosen = |words| match parsed(words)? {
            Task::Up { versions, .. } => {
                Some(format!("{} {}", versions.kubernetes, versions.cluster_api))
            }
            _ => None,
        };
        assert_eq!(chosen("up").as_deref(), Some("1.36 1.14"));
        let both = "up --cluster-api 1.8 --kubernetes 1.30 --providers real";
        assert_eq!(chosen(both).as_deref(), Some("1.30 1.8"));
        assert!(chosen("up --alone --plugins A,B").is_some());
        assert_eq!(chosen("up --plugins A,B"), None);
        assert_eq!(chosen("up --alone --cluster-api 1.8"), None);
    }

    #[test]
    fn clusters_of_two_names_share_no_state() {
        let state = |words| match parsed(words)? {
            Task::Down(of) => {
                Some(Cluster::new(Path::new("/somewhere"), of.name.as_deref()).state)
            }
            _ => None,
        };
        let first = state("down").expect("the one without a name");
        assert!(first.ends_with("cluster/run"), "{}", first.display());
        assert_ne!(state("down --name second"), Some(first));
        assert_eq!(state("down --name ../run"), None);
        assert_eq!(state("down --name="), None);
    }
}

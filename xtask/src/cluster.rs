//! `cargo xtask cluster`: a real Kubernetes and a real Cluster API on this machine.
//!
//! The programs are built from Go modules that are pinned under `e2e/cluster`, and kept
//! under the target directory. `up` leaves them running in the background.

use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The minor of Kubernetes that runs unless another is asked for.
pub(crate) const KUBERNETES: &str = "1.36";
/// Where a Cluster API is pinned, a folder of `e2e/cluster`.
const CLUSTER_API: &str = "cluster-api-1.14";
/// Where Go's own installation guide puts it, for those who did not extend their PATH.
const USUAL_GO: &str = "/usr/local/go/bin/go";

/// The paths of one cluster.
struct Cluster {
    /// The pinned modules and the program that runs what they make.
    source: PathBuf,
    /// What is built.
    programs: PathBuf,
    /// What the running cluster writes.
    state: PathBuf,
}

/// Builds what is missing, starts the cluster unless one runs, and prints how to reach it.
/// `minor` is that of a Kubernetes which is pinned.
///
/// # Errors
/// The minor is not pinned, there is no Go, something cannot be built, or the cluster does
/// not come up.
pub(crate) fn up(root: &Path, minor: &str) -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::new(root);
    let kubernetes = format!("kubernetes-{minor}");
    if !cluster.source.join(&kubernetes).is_dir() {
        let pinned = cluster.source.display();
        return Err(format!("no Kubernetes {minor} is pinned in {pinned}").into());
    }
    if cluster.call().is_some() {
        eprintln!("a cluster is running already");
    } else {
        cluster.build(&kubernetes)?;
        cluster.start(&kubernetes)?;
    }
    if !is_on_path("kubectl") {
        let kubectl = cluster.programs.join(&kubernetes);
        println!("export PATH={}:$PATH", kubectl.display());
    }
    println!("export KUBECONFIG={}", cluster.kubeconfig().display());
    Ok(())
}

/// Stops the cluster and waits until it has ended. A cluster that does not run is no error.
///
/// # Errors
/// The cluster cannot be told.
pub(crate) fn down(root: &Path) -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::new(root);
    if let Some(mut control) = cluster.call() {
        control.write_all(b"stop\n")?;
        // The other side closes when it has ended.
        control.read_to_end(&mut Vec::new())?;
    }
    Ok(())
}

/// Prints the path of the running cluster's kubeconfig.
///
/// # Errors
/// No cluster runs.
pub(crate) fn kubeconfig(root: &Path) -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::new(root);
    if cluster.call().is_none() {
        return Err(
            "no cluster is running; start one with `cargo xtask cluster up`".into(),
        );
    }
    println!("{}", cluster.kubeconfig().display());
    Ok(())
}

impl Cluster {
    fn new(root: &Path) -> Self {
        let own = target(root).join("cluster");
        Self {
            source: root.join("e2e/cluster"),
            programs: own.join("bin"),
            state: own.join("run"),
        }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.state.join("admin.kubeconfig")
    }

    /// A connection to the running cluster, if one runs.
    fn call(&self) -> Option<UnixStream> {
        UnixStream::connect(self.state.join("control")).ok()
    }

    /// Builds every program that is not there in its pinned version.
    fn build(&self, kubernetes: &str) -> Result<(), Box<dyn Error>> {
        self.build_kubernetes(kubernetes)?;
        self.build_cluster_api()?;
        // Small, and edited by those who work on it: Go itself knows whether it is fresh.
        go(
            &self.source,
            &["build", "-trimpath", "-o", &text(&self.programs)?, "."],
        )?;
        Ok(())
    }

    fn build_kubernetes(&self, kubernetes: &str) -> Result<(), Box<dyn Error>> {
        let source = self.source.join(kubernetes);
        let programs = self.programs.join(kubernetes);
        let mut names = vec!["kube-apiserver", "kube-controller-manager"];
        if !is_on_path("kubectl") {
            names.push("kubectl");
        }
        let stamp = Stamp::of(&source, &programs)?;
        if stamp.is_fresh() && names.iter().all(|name| programs.join(name).exists()) {
            return Ok(());
        }
        eprintln!("building {kubernetes}: some minutes the first time");
        let version = go(
            &source,
            &["list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes"],
        )?;
        let flags = link_flags(&version);
        let out = format!("{}/", text(&programs)?);
        let mut words = vec!["build", "-trimpath", "-ldflags", &flags, "-o", &out];
        let packages: Vec<String> = names
            .iter()
            .map(|name| format!("k8s.io/kubernetes/cmd/{name}"))
            .collect();
        words.extend(packages.iter().map(String::as_str));
        go(&source, &words)?;
        stamp.write()?;
        Ok(())
    }

    /// Builds the core manager, and puts its definitions beside it.
    fn build_cluster_api(&self) -> Result<(), Box<dyn Error>> {
        let source = self.source.join(CLUSTER_API);
        let programs = self.programs.join(CLUSTER_API);
        let stamp = Stamp::of(&source, &programs)?;
        if stamp.is_fresh() {
            return Ok(());
        }
        eprintln!("building {CLUSTER_API}: some minutes the first time");
        let module = "sigs.k8s.io/cluster-api";
        let manager = text(&programs.join("cluster-api-core"))?;
        let package = format!("{module}/core");
        let words = [
            "build",
            "-trimpath",
            "-ldflags",
            "-s -w",
            "-o",
            &manager,
            &package,
        ];
        go(&source, &words)?;
        let directory = go(&source, &["list", "-m", "-f", "{{.Dir}}", module])?;
        let definitions = Path::new(&directory).join("core/config/crd/bases");
        copy_files(&definitions, &programs.join("crds"))?;
        stamp.write()?;
        Ok(())
    }

    /// Starts the cluster in the background and waits until it is ready.
    fn start(&self, kubernetes: &str) -> Result<(), Box<dyn Error>> {
        let log = self.state.with_extension("log");
        let mut running = Command::new(self.programs.join("cluster"))
            .arg("-state")
            .arg(&self.state)
            .arg("-kubernetes")
            .arg(self.programs.join(kubernetes))
            .arg("-cluster-api")
            .arg(self.programs.join(CLUSTER_API))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log)?)
            // Out of reach of a Ctrl-C at the terminal.
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

/// Says what programs were built from, so that they are built again when that changes.
struct Stamp {
    path: PathBuf,
    content: String,
}

impl Stamp {
    fn of(source: &Path, programs: &Path) -> io::Result<Self> {
        fs::create_dir_all(programs)?;
        Ok(Self {
            path: programs.join("stamp"),
            content: fs::read_to_string(source.join("go.mod"))?,
        })
    }

    fn is_fresh(&self) -> bool {
        fs::read_to_string(&self.path).is_ok_and(|content| content == self.content)
    }

    fn write(&self) -> io::Result<()> {
        fs::write(&self.path, &self.content)
    }
}

/// Where everything is built.
pub(crate) fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |directory| root.join(directory))
}

/// Runs Go in a folder and returns what it printed, trimmed.
pub(crate) fn go(directory: &Path, words: &[&str]) -> Result<String, Box<dyn Error>> {
    let program = if is_on_path("go") { "go" } else { USUAL_GO };
    let done = Command::new(program)
        .args(words)
        .current_dir(directory)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                "there is no `go` on the PATH; install Go 1.26 or later from https://go.dev/dl"
                    .to_owned()
            }
            _ => format!("running {program}: {error}"),
        })?;
    if !done.status.success() {
        let what = words.first().copied().unwrap_or_default();
        return Err(format!("`go {what}` failed in {}", directory.display()).into());
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

/// What Kubernetes' own build writes into its programs: without it they call themselves
/// version 0.
fn link_flags(version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    let component = "k8s.io/component-base/version";
    format!(
        "-s -w -X {component}.gitVersion={version} -X {component}.gitMajor={major} \
         -X {component}.gitMinor={minor}"
    )
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    // What an earlier version defined is not defined by this one.
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::write(to.join(entry.file_name()), fs::read(entry.path())?)?;
    }
    Ok(())
}

fn is_on_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| {
        env::split_paths(&path).any(|directory| directory.join(program).is_file())
    })
}

fn text(path: &Path) -> Result<String, String> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("{} is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_told_its_version_in_full_and_in_parts() {
        assert_eq!(
            link_flags("v1.36.3"),
            "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
             -X k8s.io/component-base/version.gitMajor=1 \
             -X k8s.io/component-base/version.gitMinor=36"
        );
    }
}

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

/// The minor versions of what runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    kubernetes: String,
    cluster_api: String,
}

impl Default for Versions {
    fn default() -> Self {
        Self {
            kubernetes: "1.36".to_owned(),
            cluster_api: "1.14".to_owned(),
        }
    }
}

impl Versions {
    /// Reads `--kubernetes 1.30` and `--cluster-api 1.8`, each of which may be left out.
    /// None where there is something else.
    pub(crate) fn asked(words: &[&str]) -> Option<Self> {
        let mut asked = Self::default();
        for pair in words.chunks(2) {
            match pair {
                ["--kubernetes", minor] => (*minor).clone_into(&mut asked.kubernetes),
                ["--cluster-api", minor] => (*minor).clone_into(&mut asked.cluster_api),
                _ => return None,
            }
        }
        Some(asked)
    }
}

/// Where a kubectl is built, beside the other programs.
const KUBECTL: &str = "kubectl";
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
///
/// # Errors
/// A version is not pinned, there is no Go, something cannot be built, or the cluster does
/// not come up.
pub(crate) fn up(root: &Path, versions: &Versions) -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::new(root);
    let kubernetes = cluster.pinned("kubernetes", &versions.kubernetes)?;
    let cluster_api = cluster.pinned("cluster-api", &versions.cluster_api)?;
    if cluster.call().is_some() {
        eprintln!("a cluster is running already");
    } else {
        cluster.build_kubernetes(&kubernetes)?;
        cluster.build_cluster_api(&cluster_api)?;
        cluster.build_launcher()?;
        cluster.start(&kubernetes, Some(&cluster_api))?;
    }
    if let Some(kubectl) = cluster.own_kubectl()? {
        println!("export PATH={}:$PATH", kubectl.display());
    }
    println!("export KUBECONFIG={}", cluster.kubeconfig().display());
    Ok(())
}

/// Builds a kubectl where there is none on the PATH, and prints the PATH by which it is found;
/// prints nothing where there is one.
///
/// # Errors
/// There is no Go, or it cannot be built.
pub(crate) fn kubectl(root: &Path) -> Result<(), Box<dyn Error>> {
    if let Some(kubectl) = Cluster::new(root).own_kubectl()? {
        println!("export PATH={}:$PATH", kubectl.display());
    }
    Ok(())
}

/// Stops the cluster and waits until it has ended. A cluster that does not run is no error.
///
/// # Errors
/// The cluster cannot be told.
pub(crate) fn down(root: &Path) -> Result<(), Box<dyn Error>> {
    Cluster::new(root).stop()
}

/// Runs a Kubernetes of its own, without Cluster API and stand-ins, as long as `work` takes,
/// which is told its kubeconfig.
///
/// # Errors
/// As for [`up`], or what `work` ends with.
pub(crate) fn with_kubernetes(
    root: &Path,
    minor: &str,
    work: impl FnOnce(&Path) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut cluster = Cluster::new(root);
    cluster.state.set_file_name("alone");
    let kubernetes = cluster.pinned("kubernetes", minor)?;
    cluster.build_kubernetes(&kubernetes)?;
    cluster.build_launcher()?;
    cluster.start(&kubernetes, None)?;
    let done = work(&cluster.kubeconfig());
    cluster.stop()?;
    done
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

    /// Tells the cluster to stop, if it runs, and waits until it has.
    fn stop(&self) -> Result<(), Box<dyn Error>> {
        if let Some(mut control) = self.call() {
            control.write_all(b"stop\n")?;
            // The other side closes when it has ended.
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

    /// The folder in which a version is pinned.
    fn pinned(&self, what: &str, minor: &str) -> Result<String, String> {
        let folder = format!("{what}-{minor}");
        if self.source.join(&folder).is_dir() {
            return Ok(folder);
        }
        let pinned = self.source.display();
        Err(format!(
            "no {folder} is pinned in {pinned}; take one that is"
        ))
    }

    /// Small, and edited by those who work on it: Go itself knows whether it is fresh.
    fn build_launcher(&self) -> Result<(), Box<dyn Error>> {
        let out = text(&self.programs)?;
        go(&self.source, &["build", "-trimpath", "-o", &out, "."])?;
        Ok(())
    }

    /// The folder of a kubectl that was built here, because the machine has none; built now
    /// unless it was before.
    fn own_kubectl(&self) -> Result<Option<PathBuf>, Box<dyn Error>> {
        if is_on_path("kubectl") {
            return Ok(None);
        }
        let kubernetes = format!("kubernetes-{}", Versions::default().kubernetes);
        let folder = self.programs.join(KUBECTL);
        let stamp = Stamp::of(&self.source.join(&kubernetes), &folder)?;
        if !stamp.is_fresh() {
            eprintln!("building kubectl: some minutes the first time");
            self.build_kubernetes_programs(&kubernetes, &["kubectl"], &folder)?;
            stamp.write()?;
        }
        Ok(Some(folder))
    }

    fn build_kubernetes(&self, kubernetes: &str) -> Result<(), Box<dyn Error>> {
        let programs = self.programs.join(kubernetes);
        let stamp = Stamp::of(&self.source.join(kubernetes), &programs)?;
        if stamp.is_fresh() {
            return Ok(());
        }
        eprintln!("building {kubernetes}: some minutes the first time");
        let names = ["kube-apiserver", "kube-controller-manager"];
        self.build_kubernetes_programs(kubernetes, &names, &programs)?;
        stamp.write()?;
        Ok(())
    }

    fn build_kubernetes_programs(
        &self,
        kubernetes: &str,
        names: &[&str],
        into: &Path,
    ) -> Result<(), Box<dyn Error>> {
        let source = self.source.join(kubernetes);
        let version = go(
            &source,
            &["list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes"],
        )?;
        let flags = link_flags(&version);
        let out = format!("{}/", text(into)?);
        let mut words = vec!["build", "-trimpath", "-ldflags", &flags, "-o", &out];
        let packages: Vec<String> = names
            .iter()
            .map(|name| format!("k8s.io/kubernetes/cmd/{name}"))
            .collect();
        words.extend(packages.iter().map(String::as_str));
        go(&source, &words)?;
        Ok(())
    }

    /// Builds the core manager, and puts its definitions beside it.
    fn build_cluster_api(&self, cluster_api: &str) -> Result<(), Box<dyn Error>> {
        let source = self.source.join(cluster_api);
        let programs = self.programs.join(cluster_api);
        let stamp = Stamp::of(&source, &programs)?;
        if stamp.is_fresh() {
            return Ok(());
        }
        eprintln!("building {cluster_api}: some minutes the first time");
        let module = "sigs.k8s.io/cluster-api";
        let manager = text(&programs.join("cluster-api-core"))?;
        // Up to 1.13 the core manager is at the root of its module.
        let package = go(&source, &["list", "-f", "{{.ImportPath}}", "tool"])?;
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
        let below = package.strip_prefix(module).unwrap_or_default();
        let core = Path::new(&directory).join(below.trim_start_matches('/'));
        copy_files(&core.join("config/crd/bases"), &programs.join("crds"))?;
        stamp.write()?;
        Ok(())
    }

    /// Starts the cluster in the background and waits until it is ready.
    fn start(
        &self,
        kubernetes: &str,
        cluster_api: Option<&str>,
    ) -> Result<(), Box<dyn Error>> {
        let log = self.state.with_extension("log");
        let mut program = Command::new(self.programs.join("cluster"));
        program
            .arg("-state")
            .arg(&self.state)
            .arg("-kubernetes")
            .arg(self.programs.join(kubernetes));
        if let Some(cluster_api) = cluster_api {
            program
                .arg("-cluster-api")
                .arg(self.programs.join(cluster_api));
        }
        let mut running = program
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
    fn each_version_may_be_chosen_and_nothing_else() {
        let chosen = |words: &[&str]| {
            let versions = Versions::asked(words)?;
            Some(format!("{} {}", versions.kubernetes, versions.cluster_api))
        };
        assert_eq!(chosen(&[]).as_deref(), Some("1.36 1.14"));
        assert_eq!(
            chosen(&["--cluster-api", "1.8"]).as_deref(),
            Some("1.36 1.8")
        );
        let both = ["--cluster-api", "1.8", "--kubernetes", "1.30"];
        assert_eq!(chosen(&both).as_deref(), Some("1.30 1.8"));
        assert_eq!(chosen(&["--kubernetes"]), None);
        assert_eq!(chosen(&["--etcd", "3.6"]), None);
    }

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

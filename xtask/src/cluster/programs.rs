//! The programs of a cluster, built from pinned Go modules.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use super::{NEWEST_KUBERNETES, Providers, Versions, target};
use kubemu_golang as go;

use crate::cache;

/// Linker flags that leave out the symbol table and debug information.
pub(crate) const STRIPPED: &str = "-s -w";

/// The pinned modules, and the program that starts what is built from them.
pub(super) struct Programs {
    /// The folder of the modules and of the launcher.
    source: PathBuf,
    launcher: PathBuf,
}

/// The folders of one pair of versions.
pub(super) struct Pinned {
    pub(super) kubernetes: PathBuf,
    pub(super) cluster_api: PathBuf,
    /// The program that is the kubelet of every Node.
    pub(super) kwok: PathBuf,
    /// The real providers, if they are used.
    pub(super) providers: Option<PathBuf>,
}

/// The folder in which kwok is pinned: one version for all versions of Kubernetes.
const KWOK: &str = "kwok-0.8";

/// The managers of real providers: the launcher's name for each, and the package that it is built
/// from. Its definitions and webhooks are below the package.
const PROVIDERS: [(&str, &str); 3] = [
    (
        "kubeadm-bootstrap",
        "sigs.k8s.io/cluster-api/bootstrap/kubeadm",
    ),
    (
        "kubeadm-control-plane",
        "sigs.k8s.io/cluster-api/controlplane/kubeadm",
    ),
    (
        "in-memory",
        "sigs.k8s.io/cluster-api/test/infrastructure/docker",
    ),
];

impl Programs {
    pub(super) fn of(root: &Path) -> Self {
        Self {
            source: root.join("e2e/cluster"),
            launcher: target(root).join("cluster/bin/cluster"),
        }
    }

    /// The program that starts all others.
    pub(super) fn launcher(&self) -> &Path {
        &self.launcher
    }

    /// Builds the missing programs of these versions. Kubernetes is built first and the others
    /// concurrently: they share many packages with Kubernetes, and two builds at a time would
    /// compile those twice.
    pub(super) fn build(&self, versions: &Versions) -> Result<Pinned, Box<dyn Error>> {
        let cluster_api = self.pinned("cluster-api", &versions.cluster_api)?;
        let providers = match versions.providers {
            None => None,
            Some(Providers::Real) => {
                Some(self.pinned("providers", &versions.cluster_api)?)
            }
        };
        let kubernetes = self.build_kubernetes(&versions.kubernetes)?;
        thread::scope(|scope| {
            let launcher =
                scope.spawn(|| self.build_launcher().map_err(|it| it.to_string()));
            let kwok = self.build_kwok()?;
            let cluster_api = self.build_cluster_api(&cluster_api)?;
            let providers = match providers {
                Some(providers) => Some(self.build_providers(&providers)?),
                None => None,
            };
            launcher.join().map_err(|_| "a build panicked")??;
            Ok(Pinned {
                kubernetes,
                cluster_api,
                kwok,
                providers,
            })
        })
    }

    /// Builds only Kubernetes and the launcher, and returns the folder of Kubernetes.
    pub(super) fn build_alone(&self, minor: &str) -> Result<PathBuf, Box<dyn Error>> {
        let kubernetes = self.build_kubernetes(minor)?;
        self.build_launcher()?;
        Ok(kubernetes)
    }

    /// The folder of the kubectl that is built here; `None` if kubectl is on the PATH. Builds it if
    /// it is missing.
    pub(super) fn own_kubectl(&self) -> Result<Option<PathBuf>, Box<dyn Error>> {
        if go::is_on_path("kubectl") {
            return Ok(None);
        }
        let kubernetes = self.pinned("kubernetes", NEWEST_KUBERNETES)?;
        self.build_kubernetes_programs(&kubernetes, &["kubectl"], "kubectl")
            .map(Some)
    }

    fn build_kubernetes(&self, minor: &str) -> Result<PathBuf, Box<dyn Error>> {
        let kubernetes = self.pinned("kubernetes", minor)?;
        let names = ["kube-apiserver", "kube-controller-manager"];
        self.build_kubernetes_programs(&kubernetes, &names, &kubernetes)
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

    /// The launcher is small and edited often: Go itself decides whether to build it.
    fn build_launcher(&self) -> Result<(), Box<dyn Error>> {
        go::build(&self.source, STRIPPED, &self.launcher, &["."])
    }

    fn build_kubernetes_programs(
        &self,
        kubernetes: &str,
        names: &[&str],
        folder: &str,
    ) -> Result<PathBuf, Box<dyn Error>> {
        let source = self.source.join(kubernetes);
        cache::programs(folder, &pins(&source), |into| {
            let words = ["list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes"];
            let version = go::run(&source, &words)?;
            let packages: Vec<String> = names
                .iter()
                .map(|name| format!("k8s.io/kubernetes/cmd/{name}"))
                .collect();
            let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
            // The slash at the end makes it a folder.
            go::build(
                &source,
                &go::kubernetes_link_flags(&version),
                &into.join(""),
                &packages,
            )
        })
    }

    /// Builds the core manager, and copies its definitions next to it, with the patches that add a
    /// conversion webhook to them.
    fn build_cluster_api(&self, cluster_api: &str) -> Result<PathBuf, Box<dyn Error>> {
        let source = self.source.join(cluster_api);
        cache::programs(cluster_api, &pins(&source), |programs| {
            let module = "sigs.k8s.io/cluster-api";
            // Up to 1.13 the core manager is at the root of its module.
            let package = go::run(&source, &["list", "-f", "{{.ImportPath}}", "tool"])?;
            let manager = programs.join("cluster-api-core");
            go::build(&source, STRIPPED, &manager, &[&package])?;
            let directory = go::run(&source, &["list", "-m", "-f", "{{.Dir}}", module])?;
            let below = package.strip_prefix(module).unwrap_or_default();
            let core = Path::new(&directory).join(below.trim_start_matches('/'));
            Ok(copy_configuration(&core, programs)?)
        })
    }

    /// Builds kwok if it is missing, and returns its path.
    fn build_kwok(&self) -> Result<PathBuf, Box<dyn Error>> {
        let source = self.source.join(KWOK);
        let folder = cache::programs(KWOK, &pins(&source), |into| {
            let package = "sigs.k8s.io/kwok/cmd/kwok";
            go::build(&source, STRIPPED, &into.join("kwok"), &[package])
        })?;
        Ok(folder.join("kwok"))
    }

    /// Builds the managers of real providers, each into a folder of its own.
    fn build_providers(&self, providers: &str) -> Result<PathBuf, Box<dyn Error>> {
        let source = self.source.join(providers);
        cache::programs(providers, &pins(&source), |programs| {
            for (name, package) in PROVIDERS {
                let own = programs.join(name);
                go::build(&source, STRIPPED, &own.join(name), &[package])?;
                let directory = go::run(&source, &["list", "-f", "{{.Dir}}", package])?;
                copy_configuration(Path::new(&directory), &own)?;
            }
            Ok(())
        })
    }
}

/// The files that determine the packages that a module is built from.
pub(crate) fn pins(module: &Path) -> [PathBuf; 2] {
    ["go.mod", "go.sum"].map(|name| module.join(name))
}

/// Copies the definitions and webhooks of a manager, which the API server needs, next to its
/// program.
fn copy_configuration(from: &Path, programs: &Path) -> io::Result<()> {
    let definitions = from.join("config/crd");
    copy_files(&definitions.join("bases"), "", &programs.join("crds"))?;
    copy_files(
        &definitions.join("patches"),
        "webhook_in_",
        &programs.join("conversions"),
    )?;
    copy_files(
        &from.join("config/webhook"),
        "manifests",
        &programs.join("webhooks"),
    )
}

/// Copies the files whose names begin with `start` into a new folder.
fn copy_files(from: &Path, start: &str, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(start) {
            fs::write(to.join(entry.file_name()), fs::read(entry.path())?)?;
        }
    }
    Ok(())
}

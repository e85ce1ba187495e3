//! The programs that the specs need, built from `judge/upstream/go.mod`.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use kubemu_golang as go;

/// The suite.
const SUITE: &str = "k8s.io/kubernetes/test/e2e";

/// The package of each program.
const PACKAGES: [&str; 3] = [
    "k8s.io/kubernetes/cmd/kube-controller-manager",
    "k8s.io/kubernetes/cmd/kubectl",
    "github.com/onsi/ginkgo/v2/ginkgo",
];

/// The paths of the programs.
pub(super) struct Programs {
    /// Kubernetes' specs.
    pub(super) suite: PathBuf,
    /// Runs several processes of the suite.
    pub(super) ginkgo: PathBuf,
    /// kube-controller-manager.
    pub(super) manager: PathBuf,
    /// kubectl, which some specs run.
    pub(super) kubectl: PathBuf,
}

/// Builds the programs into a folder, unless they are there from the same pins.
///
/// # Errors
/// Go is not installed, or a build fails.
pub(super) fn build(module: &Path, folder: &Path) -> Result<Programs, Box<dyn Error>> {
    let programs = Programs {
        suite: folder.join("e2e.test"),
        ginkgo: folder.join("ginkgo"),
        manager: folder.join("kube-controller-manager"),
        kubectl: folder.join("kubectl"),
    };
    let pins = fs::read_to_string(module.join("go.sum"))?;
    // Written last, so that what is beside it is complete.
    let built = folder.join("go.sum");
    if fs::read_to_string(&built).is_ok_and(|it| it == pins) {
        return Ok(programs);
    }
    eprintln!("building Kubernetes' tests: about half an hour the first time");
    fs::create_dir_all(folder)?;
    let words = ["list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes"];
    let flags = go::kubernetes_link_flags(&go::run(module, &words)?);
    let suite = programs.suite.to_str().ok_or("a path is not UTF-8")?;
    let mut words = vec!["test", "-c", "-vet=off"];
    words.extend(go::FLAGS);
    words.extend(["-ldflags", &flags, "-o", suite, SUITE]);
    go::run(module, &words)?;
    // The slash at the end makes it a folder.
    go::build(module, &flags, &folder.join(""), &PACKAGES)?;
    fs::write(built, pins)?;
    Ok(programs)
}

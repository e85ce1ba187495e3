//! `cargo xtask tools`: builds the programs that tests run in addition to kubectl, from Go modules
//! that are pinned under `e2e/tools`.

use std::error::Error;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use kubemu_golang as go;

use crate::cache;
use crate::cluster::programs::{STRIPPED, pins};
use crate::cluster::target;

/// The folders of the modules. Each has one `tool` with the same name; the program of kstatus is in
/// its folder, because kstatus is a library.
const TOOLS: [&str; 4] = ["actionlint", "clusterctl", "helm", "kstatus"];

/// The file of the CRDs of kinds whose objects ScheduledCapacities change.
const TARGET_CRDS: &str = "target-crds";

/// Kueue's controller, and the folder of its CRDs within its module.
const KUEUE: &str = "kueue";
const KUEUE_MODULE: &str = "sigs.k8s.io/kueue";
const KUEUE_CRDS: &str = "config/components/crd/bases";

/// The modules with those CRDs, and the CRDs within. Their versions are in a folder of
/// `e2e/tools`; nothing is built of them.
const DEFINITIONS: [(&str, &str); 5] = [
    (
        "github.com/kedacore/keda/v2",
        "config/crd/bases/keda.sh_scaledobjects.yaml",
    ),
    (
        "sigs.k8s.io/cluster-api",
        "core/config/crd/bases/cluster.x-k8s.io_clusters.yaml",
    ),
    (
        "sigs.k8s.io/cluster-api",
        "core/config/crd/bases/cluster.x-k8s.io_machinedeployments.yaml",
    ),
    (
        "sigs.k8s.io/karpenter",
        "pkg/apis/crds/karpenter.sh_nodepools.yaml",
    ),
    (
        "sigs.k8s.io/kueue",
        "config/components/crd/bases/kueue.x-k8s.io_clusterqueues.yaml",
    ),
];

/// Builds the programs that are missing, collects CRDs, links `target/tools` to both, and prints a
/// PATH that contains all programs.
///
/// # Errors
/// Go is not installed, or a build fails.
pub(crate) fn build(root: &Path) -> Result<(), Box<dyn Error>> {
    let tools = target(root).join("tools");
    fs::create_dir_all(&tools)?;
    for name in TOOLS {
        let source = root.join("e2e/tools").join(name);
        let main = Some(source.join("main.go")).filter(|file| file.is_file());
        let files: Vec<_> = pins(&source).into_iter().chain(main).collect();
        let built = cache::programs(name, &files, |into| {
            let package = package(&source)?;
            let flags = match name {
                "helm" => helm_flags(&source)?,
                _ => STRIPPED.to_owned(),
            };
            go::build(&source, &flags, &into.join(name), &[&package])
        })?;
        link(&tools, &built, name)?;
    }
    let source = root.join("e2e/tools").join(TARGET_CRDS);
    let collected = cache::programs(TARGET_CRDS, &pins(&source), |into| {
        fs::write(into.join(TARGET_CRDS), definitions(&source)?)?;
        Ok(())
    })?;
    link(&tools, &collected, TARGET_CRDS)?;
    println!("export PATH={}:$PATH", tools.display());
    Ok(())
}

/// Builds Kueue's controller if it is missing, collects its CRDs, and prints the variable with which a
/// promise runs it.
///
/// # Errors
/// Go is not installed, or a build fails.
pub(crate) fn build_kueue(root: &Path) -> Result<(), Box<dyn Error>> {
    let source = root.join("e2e/tools").join(KUEUE);
    let built = cache::programs(KUEUE, &pins(&source), |into| {
        go::build(&source, STRIPPED, &into.join(KUEUE), &[&package(&source)?])?;
        let module = go::run(&source, &["list", "-m", "-f", "{{.Dir}}", KUEUE_MODULE])?;
        let mut text = String::new();
        for file in fs::read_dir(Path::new(&module).join(KUEUE_CRDS))? {
            text.push_str("---\n");
            text.push_str(&fs::read_to_string(file?.path())?);
        }
        Ok(fs::write(into.join("crds.yaml"), text)?)
    })?;
    println!("export E2E_KUEUE={}", built.display());
    Ok(())
}

/// The package of the one tool of a module.
fn package(source: &Path) -> Result<String, Box<dyn Error>> {
    go::run(source, &["list", "-f", "{{.ImportPath}}", "tool"])
}

/// Links one file to what was built.
fn link(tools: &Path, built: &Path, name: &str) -> Result<(), Box<dyn Error>> {
    let link = tools.join(name);
    if link.is_symlink() || link.exists() {
        fs::remove_file(&link)?;
    }
    symlink(built.join(name), link)?;
    Ok(())
}

/// The CRDs, as documents of one YAML text. The modules are downloaded and not loaded: what they
/// depend on is not needed.
fn definitions(source: &Path) -> Result<String, Box<dyn Error>> {
    let pins = fs::read_to_string(source.join("go.mod"))?;
    let mut text = String::new();
    for (module, file) in DEFINITIONS {
        let mut lines = pins.lines().map(str::trim);
        let version = lines.find_map(|line| line.strip_prefix(module)?.strip_prefix(' '));
        let version = version.ok_or_else(|| format!("go.mod has no {module}"))?;
        let pinned = format!("{module}@{version}");
        go::run(source, &["mod", "download", &pinned])?;
        let folder = go::run(source, &["list", "-m", "-f", "{{.Dir}}", &pinned])?;
        text.push_str("---\n");
        text.push_str(&fs::read_to_string(Path::new(&folder).join(file))?);
    }
    Ok(text)
}

/// The linker flags of Helm's own build: its version, and the Kubernetes version for which it
/// renders without a cluster, which is that of its client library.
fn helm_flags(source: &Path) -> Result<String, Box<dyn Error>> {
    let version =
        |module: &str| go::run(source, &["list", "-m", "-f", "{{.Version}}", module]);
    let (helm, client) = (version("helm.sh/helm/v3")?, version("k8s.io/client-go")?);
    let minor = client.split('.').nth(1).unwrap_or_default();
    Ok(format!(
        "{STRIPPED} -X helm.sh/helm/v3/internal/version.version={helm} \
         -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 \
         -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor={minor} \
         -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor=1 \
         -X helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor={minor}"
    ))
}

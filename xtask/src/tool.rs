//! `cargo xtask tools`: builds the programs that tests run in addition to kubectl, from Go modules
//! that are pinned under `e2e/tools`.

use std::error::Error;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::cluster::target;
use kubemu_golang as go;

use crate::cache;

/// Linker flags that leave out the symbol table and debug information.
const STRIPPED: &str = "-s -w";

/// The folders of the modules. Each has one `tool` with the same name; the program of kstatus is in
/// its folder, because kstatus is a library.
const TOOLS: [&str; 4] = ["actionlint", "clusterctl", "helm", "kstatus"];

/// Builds the programs that are missing, links `target/tools` to them, and prints a PATH that
/// contains all of them.
///
/// # Errors
/// Go is not installed, or a build fails.
pub(crate) fn build(root: &Path) -> Result<(), Box<dyn Error>> {
    let tools = target(root).join("tools");
    fs::create_dir_all(&tools)?;
    for name in TOOLS {
        let source = root.join("e2e/tools").join(name);
        let mut pins: Vec<_> = ["go.mod", "go.sum", "main.go"]
            .map(|file| source.join(file))
            .into();
        pins.retain(|file| file.is_file());
        let built = cache::programs(name, &pins, |into| {
            let package = go::run(&source, &["list", "-f", "{{.ImportPath}}", "tool"])?;
            let flags = match name {
                "helm" => helm_flags(&source)?,
                _ => STRIPPED.to_owned(),
            };
            go::build(&source, &flags, &into.join(name), &[&package])
        })?;
        let link = tools.join(name);
        if link.is_symlink() || link.exists() {
            fs::remove_file(&link)?;
        }
        symlink(built.join(name), link)?;
    }
    println!("export PATH={}:$PATH", tools.display());
    Ok(())
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

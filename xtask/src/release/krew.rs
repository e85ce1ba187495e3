//! The manifest of the plugin for `kubectl krew install`.

use std::error::Error;
use std::path::Path;

use fivespot_api::manifest::GeneratedFile;
use serde_json::{Value, json};

use super::{file_names, sum};

/// Returns the manifest for the archives in a folder.
///
/// # Errors
/// The folder cannot be read, or `sha256sum` is missing.
pub(crate) fn manifest(folder: &Path) -> Result<GeneratedFile, Box<dyn Error>> {
    let version = env!("CARGO_PKG_VERSION");
    let repository = env!("CARGO_PKG_REPOSITORY");
    let mut platforms: Vec<Value> = Vec::new();
    for name in file_names(folder)? {
        let Some((os, architecture)) = platform(&name) else {
            continue;
        };
        platforms.push(json!({
            "selector": {"matchLabels": {"os": os, "arch": architecture}},
            "uri": format!("{repository}/releases/download/v{version}/{name}"),
            "sha256": sum(&folder.join(&name))?,
            "bin": "kubectl-5spot",
            "files": [{"from": "kubectl-5spot", "to": "."}, {"from": "LICENSE", "to": "."}],
        }));
    }
    let plugin = json!({
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "5spot"},
        "spec": {
            "version": format!("v{version}"),
            "homepage": repository,
            "shortDescription": "Machines of Cluster API on a schedule",
            "description": "Previews schedules, explains why a machine is in its state, validates \
                            manifests offline, and checks an installation of 5-Spot.",
            "platforms": platforms,
        },
    });
    Ok(GeneratedFile::manifest("5spot.yaml", "release", &[plugin])?)
}

/// The operating system and architecture of an archive, from its name:
/// `5spot-0.1.0-linux-amd64.tar.gz`.
fn platform(name: &str) -> Option<(&str, &str)> {
    let parts = name.strip_prefix("5spot-")?.strip_suffix(".tar.gz")?;
    let platform = parts
        .strip_prefix(env!("CARGO_PKG_VERSION"))?
        .strip_prefix('-')?;
    platform.split_once('-')
}

#[cfg(test)]
mod tests {
    use super::platform;

    #[test]
    fn an_archive_is_downloaded_from_the_release() {
        let place =
            std::env::temp_dir().join(format!("5spot-krew-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let name = format!("5spot-{version}-linux-amd64.tar.gz");
        std::fs::write(place.join(&name), "").unwrap();
        let written = super::manifest(&place).unwrap().text;
        std::fs::remove_dir_all(&place).unwrap();
        let uri = format!("/releases/download/v{version}/{name}");
        let line = written.lines().find(|line| line.contains(&uri)).unwrap();
        assert!(line.contains("https://"), "{line}");
    }

    #[test]
    fn the_platform_is_in_the_name_of_an_archive() {
        let version = env!("CARGO_PKG_VERSION");
        let name = format!("5spot-{version}-darwin-arm64.tar.gz");
        assert_eq!(platform(&name), Some(("darwin", "arm64")));
        assert_eq!(platform("5spot-agent-0.1.0.oci.tar"), None);
        assert_eq!(platform(&format!("5spot-{version}.tgz")), None);
    }
}

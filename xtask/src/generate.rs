//! `cargo xtask gen`: writes all generated files.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fivespot_api::manifest::{GeneratedFile, Group};
use fivespot_api::{crd, reference};
use fivespot_install::controller::Settings;
use fivespot_install::file;

use crate::{
    Faults, conformance, desk, diagram, figure, how_we_test, release, scale, upgrades,
};

/// The crates whose public items are listed, because other projects may use them.
const PUBLIC: [&str; 2] = ["runtime", "schedule"];

/// The page that ends with the table of condition reasons.
const TROUBLESHOOTING: &str = "docs/troubleshooting.md";

/// Writes every generated file that is out of date.
pub(crate) fn write(root: &Path) -> Result<(), Box<dyn Error>> {
    figure::record_new(root)?;
    for (directory, file) in files(root)? {
        let path = root.join(directory).join(&file.path);
        if found(&path)?.as_deref() == Some(file.text.as_str()) {
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &file.text)?;
        println!(
            "wrote {}",
            path.strip_prefix(root).unwrap_or(&path).display()
        );
    }
    Ok(())
}

/// Returns the differences that [`write`] would remove.
pub(crate) fn check(root: &Path) -> Result<Faults, Box<dyn Error>> {
    let mut faults = Faults::new();
    for (directory, mut file) in files(root)? {
        let found = found(&root.join(&directory).join(&file.path))?;
        file.path = directory.join(&file.path).display().to_string();
        faults.extend(file.difference(found.as_deref()));
    }
    if !faults.is_empty() {
        faults.push("generated files are out of date; run `cargo xtask gen`".to_owned());
    }
    Ok(faults)
}

/// Every generated file, with its directory below the root.
fn files(root: &Path) -> Result<Vec<(PathBuf, GeneratedFile)>, Box<dyn Error>> {
    let mut all = Vec::new();
    for file in file::manifests(&Settings::default())? {
        all.push((PathBuf::from(file::DEPLOY), file));
    }
    for file in file::chart()? {
        all.push((PathBuf::from(file::CHART), file));
    }
    let pages = Group::Docs.directory();
    let mut written = Group::Docs.files(crd::SHIPPED_MINOR)?;
    written.push(file::permission_page());
    all.extend(written.into_iter().map(|page| (PathBuf::from(pages), page)));
    all.extend(
        diagram::files()
            .into_iter()
            .map(|file| (PathBuf::from(diagram::DIRECTORY), file)),
    );
    for name in PUBLIC {
        let items = kubemu_public::list(&root.join("crates").join(name).join("src"))?;
        let path = format!("docs/reference/public/{name}.txt");
        let text = format!(
            "# What fivespot-{name} offers to other crates. Written by `cargo xtask gen`.\n\n{items}"
        );
        all.push((PathBuf::new(), GeneratedFile { path, text }));
    }
    let written = fs::read_to_string(root.join(TROUBLESHOOTING))?;
    let troubleshooting = GeneratedFile {
        path: TROUBLESHOOTING.to_owned(),
        text: reference::troubleshooting(&written),
    };
    all.push((PathBuf::new(), troubleshooting));
    let pages = [
        (conformance::PATH, conformance::page(root)?),
        (desk::PATH, desk::page(root)?),
        (how_we_test::PATH, how_we_test::page(root)?),
        (scale::PATH, scale::page(root)?),
        (release::size::PAGE, release::size::page(root)?),
        (upgrades::PATH, upgrades::page(root)?),
    ];
    for (path, text) in pages {
        let path = path.to_owned();
        all.push((PathBuf::new(), GeneratedFile { path, text }));
    }
    Ok(all)
}

/// The text of a file; `None` if there is no such file.
fn found(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

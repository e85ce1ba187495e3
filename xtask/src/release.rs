//! `cargo xtask release`: builds all files of a release, in `target/release-files`.
//!
//! The release workflow uploads these files. This task uploads and signs nothing: the workflow does
//! that with its own identity.
//!
//! `5spot` and `kubectl-5spot` are one program, linked once; krew does not unpack links, so the
//! archive has it twice. `cargo auditable` puts the list of dependencies into each program, because
//! scanners find no packages in a static one; it is required, so that the bytes do not depend on
//! what is installed.

mod archive;
mod build;
mod image;
mod krew;
mod licences;
mod reproduce;
mod sbom;
pub(crate) mod size;
#[cfg(test)]
mod workflow;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fivespot_api::manifest::GeneratedFile;
use fivespot_install::controller::Settings;
use fivespot_install::{agent, file, webhook};
use kubemu_golang::process;

use crate::Faults;
use crate::cluster::target;
use build::Build;

/// The architectures of nodes that are supported: the name for container images and the Rust
/// target.
pub(super) const ARCHITECTURES: [(&str, &str); 2] = [
    ("amd64", "x86_64-unknown-linux-musl"),
    ("arm64", "aarch64-unknown-linux-musl"),
];

/// The packages that are released, with the feature that a build for development leaves out.
const PACKAGES: [&str; 10] = [
    "-p",
    "fivespot-cli",
    "-p",
    "fivespot-controller",
    "-p",
    "fivespot-webhook",
    "-p",
    "fivespot-agent",
    "--features",
    "fivespot-cli/allocator,fivespot-controller/allocator,fivespot-webhook/allocator",
];

/// The programs of a release. Each is in an image of its name.
const PROGRAMS: [&str; 4] = [
    "5spot",
    "5spot-controller",
    "5spot-webhook",
    "5spot-reclaim-agent",
];

/// The arguments of `--dry-run`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The registry and the path before the names of the images.
    registry: String,
    /// A folder with existing binaries, with a folder for each architecture. `None` builds them for
    /// the architecture of this machine.
    binaries: Option<PathBuf>,
}

impl Plan {
    /// Reads `--dry-run`, `--registry PREFIX` and `--binaries DIR`. `None` for any other argument,
    /// or without `--dry-run`: only the workflow publishes a release.
    pub(crate) fn read(words: &[&str]) -> Option<Self> {
        let mut plan = Self {
            registry: "ghcr.io/finos".to_owned(),
            binaries: None,
        };
        let mut is_dry = false;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--dry-run" => is_dry = true,
                "--registry" => (*words.next()?).clone_into(&mut plan.registry),
                "--binaries" => plan.binaries = Some(PathBuf::from(words.next()?)),
                _ => return None,
            }
        }
        is_dry.then_some(plan)
    }

    fn image(&self, name: &str) -> String {
        format!("{}/{name}:{}", self.registry, env!("CARGO_PKG_VERSION"))
    }
}

/// Runs the task of the arguments after `release`; returns the differences between two builds.
///
/// # Errors
/// An argument is invalid, a program is missing or fails, or a file cannot be written.
pub(crate) fn task(root: &Path, words: &[&str]) -> Result<Faults, Box<dyn Error>> {
    match words {
        ["--check-reproducible", words @ ..] => reproduce::check(root, words),
        ["--licences", triple, folder] => {
            licences::write(root, triple, Path::new(folder)).map(|_| Faults::new())
        }
        ["--record"] => size::record(root).map(|()| Faults::new()),
        _ => run(root, words).map(|()| Faults::new()),
    }
}

/// Builds every file of a release, and prints the sizes.
///
/// # Errors
/// An argument is invalid, a program is missing or fails, or a file cannot be written.
fn run(root: &Path, words: &[&str]) -> Result<(), Box<dyn Error>> {
    let plan = &Plan::read(words)
        .ok_or("usage: release --dry-run [--registry PREFIX] [--binaries DIR]")?;
    let out = target(root).join("release-files");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    fs::create_dir_all(&out)?;
    let time = commit_time(root)?;
    let binaries = match &plan.binaries {
        Some(folder) => folder.clone(),
        None => Build {
            root,
            target: &target(root),
            time: &time,
            programs: &PROGRAMS,
        }
        .run()?,
    };
    let pages = archive::manual(&binaries, &out)?;
    manifests(&out, plan)?;
    chart(root, &out, plan, &time)?;
    for (architecture, triple) in ARCHITECTURES {
        let folder = binaries.join(architecture);
        if !folder.is_dir() {
            println!("{architecture}: not built here");
            continue;
        }
        sbom::write(root, triple, &time, &out)?;
        let notices = &licences::write(root, triple, &out)?;
        let archive = archive::Archive {
            root,
            binaries: &folder,
            pages: &pages,
            notices,
            time: &time,
        };
        archive.write(&out, architecture)?;
        let images = image::Images {
            root,
            binaries: &folder,
            notices,
            architecture,
            time: &time,
        };
        images.write(&out, &PROGRAMS)?;
        fs::remove_dir_all(notices)?;
    }
    fs::remove_dir_all(&pages)?;
    krew(&out)?;
    sums(&out)?;
    print_sizes(&out)?;
    size::check(&out)
}

/// Writes the krew manifest of the archives in a folder.
///
/// # Errors
/// The folder cannot be read or written.
pub(crate) fn krew(folder: &Path) -> Result<(), Box<dyn Error>> {
    let GeneratedFile { path, text } = krew::manifest(folder)?;
    Ok(fs::write(folder.join(path), text)?)
}

/// Writes the manifests with the images of this release.
fn manifests(out: &Path, plan: &Plan) -> Result<(), Box<dyn Error>> {
    let install = file::install(&Settings {
        image: plan.image("5spot-controller"),
        ..Settings::default()
    })?;
    let webhook = file::webhook(&webhook::Settings {
        image: plan.image("5spot-webhook"),
        ..webhook::Settings::default()
    })?;
    let agent = file::agent(&agent::Settings {
        image: plan.image("5spot-reclaim-agent"),
        ..agent::Settings::default()
    })?;
    for GeneratedFile { path, text } in [install, webhook, agent] {
        let name = path.rsplit('/').next().unwrap_or(&path);
        fs::write(out.join(name), text)?;
    }
    Ok(())
}

/// Writes the chart with the images of this release.
fn chart(root: &Path, out: &Path, plan: &Plan, time: &str) -> Result<(), Box<dyn Error>> {
    let source = target(root).join("release-chart/5spot");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    for mut file in file::chart()? {
        if file.path == "values.yaml" {
            let images = [
                "5spot-controller",
                "5spot-webhook",
                "5spot",
                "5spot-reclaim-agent",
            ];
            for name in images {
                let named = format!("repository: \"{}/{name}\"", plan.registry);
                // In the order of the values: those of the operator, webhook, dashboard, agent.
                file.text = file.text.replacen("repository: \"\"", &named, 1);
            }
        }
        let path = source.join(&file.path);
        fs::create_dir_all(path.parent().unwrap_or(&source))?;
        fs::write(path, file.text)?;
    }
    let built = target(root).join("tools/helm");
    let helm = if built.is_file() {
        built
    } else {
        "helm".into()
    };
    process::run(
        Command::new(helm)
            .arg("package")
            .arg(&source)
            .arg("-d")
            .arg(out),
    )?;
    let packed = out.join(format!("5spot-{}.tgz", env!("CARGO_PKG_VERSION")));
    archive::repack(&packed, "5spot", time, &out.join("chart"))
}

/// Writes the checksums of the files, for `sha256sum -c SHA256SUMS`.
fn sums(out: &Path) -> Result<(), Box<dyn Error>> {
    let mut names = file_names(out)?;
    names.retain(|name| name != "SHA256SUMS");
    let printed =
        process::output(Command::new("sha256sum").args(&names).current_dir(out))?;
    Ok(fs::write(out.join("SHA256SUMS"), printed)?)
}

fn print_sizes(out: &Path) -> Result<(), Box<dyn Error>> {
    for name in file_names(out)? {
        let bytes = fs::metadata(out.join(&name))?.len();
        println!("{bytes:>10}  {name}");
    }
    Ok(())
}

/// The names of the files in a folder, sorted.
fn file_names(folder: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The SHA-256 sum of a file.
fn sum(path: &Path) -> Result<String, Box<dyn Error>> {
    let printed = process::output(Command::new("sha256sum").arg(path))?;
    Ok(printed.split(' ').next().unwrap_or_default().to_owned())
}

/// The time of the commit in seconds since 1970, which all files of a release have.
fn commit_time(root: &Path) -> Result<String, Box<dyn Error>> {
    let done = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .current_dir(root)
        .output()?;
    let time = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    if time.is_empty() {
        return Err(
            "the time of the last commit is unknown; run it in a git checkout".into(),
        );
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_never_made_by_accident() {
        assert_eq!(Plan::read(&[]), None);
        assert_eq!(Plan::read(&["--dry-run", "--push"]), None);
        let plan = Plan::read(&["--dry-run", "--registry", "registry.example/team"]);
        let image = plan.map(|it| it.image("5spot")).unwrap_or_default();
        assert!(image.starts_with("registry.example/team/5spot:"), "{image}");
    }
}

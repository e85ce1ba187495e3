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

use clap::{ArgGroup, Args};
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

/// What to do. Only the workflow publishes a release.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("task").required(true)))]
pub(crate) struct Arguments {
    /// Build all files of a release in target/release-files: archives, images (needs buildah), chart,
    /// manifests, krew manifest, bills of materials (needs cargo-cyclonedx), sums; fail if an image
    /// is too large
    #[arg(long, group = "task")]
    dry_run: bool,
    /// The registry and the path before the names of the images
    #[arg(
        long,
        value_name = "PREFIX",
        requires = "dry_run",
        default_value = "ghcr.io/finos"
    )]
    registry: String,
    /// A folder with existing binaries, with a folder for each architecture; without one, they are
    /// built for the architecture of this machine
    #[arg(long, value_name = "DIR", requires = "dry_run")]
    binaries: Option<PathBuf>,
    /// Build the last commit on two paths, with images, and compare the bytes
    #[arg(long, group = "task")]
    check_reproducible: bool,
    /// Only this program
    #[arg(long, value_name = "NAME", requires = "check_reproducible", value_parser = PROGRAMS)]
    program: Option<String>,
    /// Write the licences of the packages that are linked for a target into DIR/notices
    #[arg(long, group = "task", value_names = ["TRIPLE", "DIR"])]
    licences: Option<Vec<String>>,
    /// Record the sizes of the files of --dry-run for docs/releases.md
    #[arg(long, group = "task")]
    record: bool,
}

impl Arguments {
    fn image(&self, name: &str) -> String {
        format!("{}/{name}:{}", self.registry, env!("CARGO_PKG_VERSION"))
    }
}

/// Runs the task; returns the differences between two builds.
///
/// # Errors
/// A program is missing or fails, or a file cannot be written.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<Faults, Box<dyn Error>> {
    if arguments.check_reproducible {
        let program = arguments.program.as_deref();
        let programs: Vec<&str> = program.map_or(PROGRAMS.to_vec(), |one| vec![one]);
        return reproduce::check(root, &programs);
    }
    if let Some([triple, folder]) = arguments.licences.as_deref() {
        licences::write(root, triple, Path::new(folder))?;
    } else if arguments.record {
        size::record(root)?;
    } else {
        build_files(root, arguments)?;
    }
    Ok(Faults::new())
}

/// Builds every file of a release, and prints the sizes.
///
/// # Errors
/// A program is missing or fails, or a file cannot be written.
fn build_files(root: &Path, plan: &Arguments) -> Result<(), Box<dyn Error>> {
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
fn manifests(out: &Path, plan: &Arguments) -> Result<(), Box<dyn Error>> {
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
fn chart(
    root: &Path,
    out: &Path,
    plan: &Arguments,
    time: &str,
) -> Result<(), Box<dyn Error>> {
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
    use clap::Parser as _;

    #[test]
    fn a_release_is_never_made_by_accident() {
        let parsed = |words: &str| {
            let words = ["xtask", "release"]
                .into_iter()
                .chain(words.split_whitespace());
            match crate::Task::try_parse_from(words).ok()? {
                crate::Task::Release(arguments) => Some(arguments),
                _ => None,
            }
        };
        assert!(parsed("").is_none());
        assert!(parsed("--registry registry.example/team").is_none());
        assert!(parsed("--dry-run --push").is_none());
        assert!(parsed("--dry-run --record").is_none());
        let plan = parsed("--dry-run --registry registry.example/team").unwrap();
        let image = plan.image("5spot");
        assert!(image.starts_with("registry.example/team/5spot:"), "{image}");
        assert!(parsed("--check-reproducible --program 5spot-webhook").is_some());
        assert!(parsed("--check-reproducible --program kubectl").is_none());
        assert!(parsed("--licences triple folder").is_some());
    }
}

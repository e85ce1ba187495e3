//! `cargo xtask release --check-reproducible`: compares two builds on two paths.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::build::{self, Build};
use super::image::Images;
use super::{commit_time, licences, sum};
use crate::Faults;
use crate::cluster::target;
use kubemu_golang::process;

/// The two copies of the source tree, below the target directory: paths of different lengths.
const PATHS: [&str; 2] = ["one", "on/another/path"];

/// Builds the last commit on two paths, with images, and prints sizes and checksums. Returns the
/// differences. Equal binaries are kept in the folder that `--dry-run` uses.
///
/// # Errors
/// Something cannot be built.
pub(super) fn check(root: &Path, programs: &[&str]) -> Result<Faults, Box<dyn Error>> {
    let place = target(root).join("reproduce");
    let head = ["rev-parse", "HEAD"];
    let head = process::output(Command::new("git").args(head).current_dir(root))?;
    let mut sums = Vec::new();
    for path in PATHS {
        let source = place.join(path);
        process::check_out(root, head.trim(), &source)?;
        sums.push(build_files(&source, programs)?);
    }
    let mut faults = Faults::new();
    for (one, other) in sums[0].iter().zip(&sums[1]) {
        let (bytes, name) = (one.bytes, &one.name);
        println!("{bytes:>10}  {name}  {}", one.sum);
        if one != other {
            faults.push(format!("{name} differs on another path: {}", other.sum));
        }
    }
    if faults.is_empty() {
        let copied = copy_binaries(root, &place, programs)?;
        fs::remove_dir_all(&place)?;
        println!("two builds on two paths are equal; the binaries are in {copied}");
    }
    Ok(faults)
}

/// Copies the binaries to the folder of a usual build, and returns the folder.
fn copy_binaries(
    root: &Path,
    place: &Path,
    programs: &[&str],
) -> Result<String, Box<dyn Error>> {
    let (architecture, _) = build::own()?;
    let built = build::binaries(&place.join(PATHS[0]).join("target"));
    let copied = build::binaries(&target(root));
    fs::create_dir_all(copied.join(architecture))?;
    for name in programs {
        let path = Path::new(architecture).join(name);
        fs::copy(built.join(&path), copied.join(&path))?;
    }
    Ok(copied.display().to_string())
}

/// A file that is compared.
#[derive(PartialEq, Eq)]
struct BuiltFile {
    name: String,
    bytes: u64,
    sum: String,
}

/// Builds programs and their images from a source tree, and returns the files.
fn build_files(
    source: &Path,
    programs: &[&str],
) -> Result<Vec<BuiltFile>, Box<dyn Error>> {
    let time = commit_time(source)?;
    let target = source.join("target");
    let binaries = Build {
        root: source,
        target: &target,
        time: &time,
        programs,
    }
    .run()?;
    let (architecture, triple) = build::own()?;
    let out = target.join("release-files");
    fs::create_dir_all(&out)?;
    let notices = licences::write(source, triple, &out)?;
    let images = Images {
        root: source,
        binaries: &binaries.join(architecture),
        notices: &notices,
        architecture,
        time: &time,
    };
    let mut files = Vec::new();
    for name in programs {
        files.push(built_file(binaries.join(architecture).join(name))?);
    }
    for image in images.write(&out, programs)? {
        files.push(built_file(image)?);
    }
    Ok(files)
}

fn built_file(path: PathBuf) -> Result<BuiltFile, Box<dyn Error>> {
    let name = path.file_name().unwrap_or_default();
    Ok(BuiltFile {
        name: name.to_string_lossy().into_owned(),
        bytes: fs::metadata(&path)?.len(),
        sum: sum(&path)?,
    })
}

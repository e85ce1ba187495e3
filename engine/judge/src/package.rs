//! `cargo judge packages`: packages the crates, and runs the example of another project with them.
//!
//! The example is built in a copy, for which Cargo finds the packages instead of the source tree: a file
//! that a package lacks, or an item that the crates do not offer, is an error of the build.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{cargo, command, run};
use crate::{Faults, target};

const EXAMPLE: &str = "examples/operator";

/// Runs the example with the packages, and compares its output with the README.
///
/// # Errors
/// A crate cannot be packaged, or the example cannot be built or fails.
pub(crate) fn check(root: &Path) -> Result<Faults, Box<dyn Error>> {
    let folder = target().join("packages");
    for old in ["operator", "package"] {
        let _ = fs::remove_dir_all(folder.join(old));
    }
    let packages = unpacked(root, &folder)?;
    let example = folder.join("operator");
    copy(&root.join(EXAMPLE), &example)?;
    let mut config = "[patch.crates-io]\n".to_owned();
    for (name, path) in packages {
        writeln!(config, "{name} = {{ path = '{}' }}", path.display())?;
    }
    fs::write(example.join(".cargo/config.toml"), config)?;
    let mut words = command(cargo(), &example);
    words.args(["run", "--quiet", "--locked", "--target-dir"]);
    // Its own, because the versions and features of what it depends on are those of another project.
    let output = run(words.arg(&folder))?;
    let readme = fs::read_to_string(root.join("README.md"))?;
    if readme.contains(&output) {
        return Ok(Faults::new());
    }
    Ok(vec![format!(
        "README.md: without the output of {EXAMPLE}:\n{output}"
    )])
}

/// Packages every crate, and returns its name with the folder of its unpacked package.
fn unpacked(
    root: &Path,
    folder: &Path,
) -> Result<Vec<(String, PathBuf)>, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        names.push(match entry?.file_name().to_string_lossy().as_ref() {
            "kubemu" => "kubemu".to_owned(),
            name => format!("kubemu-{name}"),
        });
    }
    let mut words = command(cargo(), root);
    words.args(["package", "--quiet", "--no-verify", "--exclude-lockfile"]);
    // A check of what is about to be committed.
    words.args(["--allow-dirty", "--target-dir"]).arg(folder);
    for name in &names {
        words.args(["--package", name]);
    }
    run(&mut words)?;
    let mut packages = Vec::new();
    for name in names {
        let unpacked = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
        let archive = format!("{unpacked}.crate");
        run(command("tar", &folder.join("package")).args(["-xzf", &archive]))?;
        packages.push((name, folder.join("package").join(unpacked)));
    }
    Ok(packages)
}

fn copy(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

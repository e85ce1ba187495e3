//! The programs of both versions.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kubemu_golang::process::{check_out, run};

use fivespot_testkit::target_directory;

/// The commit of the first version, `v0.1.0`. The file contains only its id.
const FIRST: &str = include_str!("v0.1.0.commit");

/// One of the two versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Older,
    Newer,
}

impl Version {
    /// Its name in tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Older => "old",
            Self::Newer => "new",
        }
    }
}

/// The programs `5spot` of both versions.
pub(super) struct Programs {
    older: PathBuf,
    newer: PathBuf,
}

impl Programs {
    /// Builds the programs. Each has a separate target folder: Cargo considers packages of two
    /// source trees equal if their paths below the root are equal.
    ///
    /// # Errors
    /// The commit is not in this repository, or does not build.
    pub(super) fn build(root: &Path) -> Result<Self, Box<dyn Error>> {
        let place = target_directory().join("upgrade");
        let commit = first();
        let older = place.join(commit).join("5spot");
        if !older.is_file() {
            eprintln!("building 5spot of {commit}");
            let source = place.join("source");
            check_out(root, commit, &source)?;
            build(&source, &place.join("target"), &older)?;
        }
        let newer = place.join("head/5spot");
        build(root, &target_directory(), &newer)?;
        Ok(Self { older, newer })
    }

    /// The path of the program of a version.
    pub(super) fn path(&self, version: Version) -> &Path {
        match version {
            Version::Older => &self.older,
            Version::Newer => &self.newer,
        }
    }
}

/// The commit of the older version.
pub(super) fn first() -> &'static str {
    FIRST.trim()
}

/// Builds `5spot` of a source tree and copies it to a path.
fn build(source: &Path, target: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    // Selected by the name of the program: a single package has other features, and compiles all of
    // them again.
    run(Command::new("cargo")
        .args(["build", "--locked", "--quiet", "--bin", "5spot"])
        .env("CARGO_TARGET_DIR", target)
        .current_dir(source))?;
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(target.join("debug/5spot"), to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn the_first_version_is_one_commit() {
        let is_hexadecimal = first().bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(is_hexadecimal && first().len() == 40, "{}", first());
    }
}

//! Builds the static binaries, which depend only on the source and the compiler.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kubemu_golang::process;

use super::ARCHITECTURES;

/// A build of programs for this machine's architecture.
pub(super) struct Build<'r> {
    pub(super) root: &'r Path,
    /// The target directory.
    pub(super) target: &'r Path,
    /// The time of the commit, in seconds since 1970.
    pub(super) time: &'r str,
    pub(super) programs: &'r [&'r str],
}

impl Build<'_> {
    /// Builds the programs. Returns the folder that contains the folder for the architecture.
    ///
    /// # Errors
    /// The architecture is not supported, or the build fails.
    pub(super) fn run(&self) -> Result<PathBuf, Box<dyn Error>> {
        let (architecture, triple) = own()?;
        process::run(
            Command::new("cargo")
                // Each binary contains the list of its dependencies, which scanners read.
                .args(["auditable", "build", "--locked", "--profile", "dist"])
                .args(["--target", triple])
                .args(super::PACKAGES)
                .args(self.programs.iter().map(|name| format!("--bin={name}")))
                .env("RUSTFLAGS", self.flags()?)
                .env("SOURCE_DATE_EPOCH", self.time)
                .env("CARGO_TARGET_DIR", self.target)
                .current_dir(self.root),
        )?;
        let built = self.target.join(triple).join("dist");
        let folder = binaries(self.target);
        let own = folder.join(architecture);
        fs::create_dir_all(&own)?;
        for name in self.programs {
            fs::copy(built.join(name), own.join(name))?;
        }
        Ok(folder)
    }

    /// The flags of the compiler, which remove the paths of this machine from the output.
    fn flags(&self) -> Result<String, Box<dyn Error>> {
        let home = std::env::var("CARGO_HOME")
            .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))?;
        let mut paths = vec![
            (self.root.display().to_string(), "/5spot"),
            (home, "/cargo"),
        ];
        if !self.target.starts_with(self.root) {
            paths.push((self.target.display().to_string(), "/5spot/target"));
        }
        let mut flags: Vec<String> = paths
            .iter()
            .map(|(path, name)| format!("--remap-path-prefix={path}={name}"))
            .collect();
        flags.push("-C target-feature=+crt-static".to_owned());
        Ok(flags.join(" "))
    }
}

/// The folder of the binaries, below a target directory.
pub(super) fn binaries(target: &Path) -> PathBuf {
    target.join("release-binaries")
}

/// The architecture of this machine as container images name it, and the Rust target for it.
///
/// # Errors
/// The architecture is not supported.
pub(super) fn own() -> Result<(&'static str, &'static str), String> {
    let own = std::env::consts::ARCH;
    let found = ARCHITECTURES
        .into_iter()
        .find(|(_, triple)| triple.split('-').next() == Some(own));
    found.ok_or_else(|| format!("no binaries are released for {own}"))
}

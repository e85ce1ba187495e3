//! The archive of the command line, for downloads, krew and cargo-binstall.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::run_program;

/// What is put into an archive.
pub(super) struct Archive<'r> {
    pub(super) root: &'r Path,
    pub(super) binaries: &'r Path,
    /// The time of every file in it, in seconds since 1970.
    pub(super) time: &'r str,
}

impl Archive<'_> {
    /// Writes `5spot-<version>-linux-<architecture>.tar.gz`.
    ///
    /// # Errors
    /// A file is missing, or `tar` fails.
    pub(super) fn write(
        &self,
        out: &Path,
        architecture: &str,
    ) -> Result<(), Box<dyn Error>> {
        let name = format!(
            "5spot-{}-linux-{architecture}.tar.gz",
            env!("CARGO_PKG_VERSION")
        );
        let stage = out.join(format!("stage-{architecture}"));
        fs::create_dir_all(&stage)?;
        for program in ["5spot", "kubectl-5spot"] {
            fs::copy(self.binaries.join(program), stage.join(program))?;
        }
        for page in ["LICENSE", "README.md", "CHANGELOG.md"] {
            fs::copy(self.root.join(page), stage.join(page))?;
        }
        // Nothing of this machine is in it: no user, no time, no order of its file system.
        run_program(
            Command::new("tar")
                .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
                .args([
                    "--format=gnu",
                    "--mode=go-w",
                    "--use-compress-program=gzip -9n",
                ])
                .arg(format!("--mtime=@{}", self.time))
                .arg("-cf")
                .arg(out.join(&name))
                .arg("-C")
                .arg(&stage)
                .arg("."),
        )?;
        fs::remove_dir_all(&stage)?;
        Ok(())
    }
}

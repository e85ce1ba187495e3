//! The archive of the command line, for downloads, krew and cargo-binstall.

use std::error::Error;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{build, file_names, licences, run_program};

/// What is put into an archive.
pub(super) struct Archive<'r> {
    pub(super) root: &'r Path,
    pub(super) binaries: &'r Path,
    /// The folder of the manual pages.
    pub(super) pages: &'r Path,
    /// The folder with the licences of what the programs are made of.
    pub(super) notices: &'r Path,
    /// The time of every file in it, in seconds since 1970.
    pub(super) time: &'r str,
}

/// What kubectl calls to complete the words after `kubectl 5spot`.
const COMPLETER: &str = "#!/bin/sh\nexec kubectl-5spot __complete \"$@\"\n";

/// Has the binary of this machine's architecture write its manual pages, and returns their folder,
/// which is below `out`.
///
/// # Errors
/// There is no such binary, or it fails.
pub(super) fn manual(binaries: &Path, out: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let (architecture, _) = build::own()?;
    let pages = out.join("man1");
    run_program(
        Command::new(binaries.join(architecture).join("5spot"))
            .args(["generate", "man", "-o"])
            .arg(&pages),
    )?;
    Ok(pages)
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
        // One program under two names: kubectl finds a plugin by its name.
        for name in ["5spot", "kubectl-5spot"] {
            fs::copy(self.binaries.join("5spot"), stage.join(name))?;
        }
        let completer = stage.join("kubectl_complete-5spot");
        fs::write(&completer, COMPLETER)?;
        fs::set_permissions(&completer, Permissions::from_mode(0o755))?;
        let pages = stage.join("man/man1");
        fs::create_dir_all(&pages)?;
        for name in file_names(self.pages)? {
            fs::copy(self.pages.join(&name), pages.join(&name))?;
        }
        for page in ["LICENSE", "README.md", "CHANGELOG.md"] {
            fs::copy(self.root.join(page), stage.join(page))?;
        }
        for name in licences::FILES {
            fs::copy(self.notices.join(name), stage.join(name))?;
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

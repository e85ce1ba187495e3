//! The archive of the command line, for downloads, krew and cargo-binstall.

use std::error::Error;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use kubemu_golang::process;

use super::{build, file_names, licences};

/// The contents of an archive.
pub(super) struct Archive<'r> {
    pub(super) root: &'r Path,
    pub(super) binaries: &'r Path,
    /// The folder of the manual pages.
    pub(super) pages: &'r Path,
    /// The folder with the licences of the linked packages.
    pub(super) notices: &'r Path,
    /// The modification time of every file in it, in seconds since 1970.
    pub(super) time: &'r str,
}

/// The plugin that kubectl calls for completions of `kubectl 5spot`.
const COMPLETER: &str = "#!/bin/sh\nexec kubectl-5spot __complete \"$@\"\n";

/// Writes the manual pages with the binary for this machine's architecture, and returns their
/// folder, which is below `out`.
///
/// # Errors
/// There is no such binary, or it fails.
pub(super) fn manual(binaries: &Path, out: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let (architecture, _) = build::own()?;
    let pages = out.join("man1");
    process::run(
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
        // One program with two names: kubectl finds a plugin by its file name.
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
        pack(&stage, ".", &out.join(&name), self.time)?;
        fs::remove_dir_all(&stage)?;
        Ok(())
    }
}

/// Packs the entry of a folder with a name, or all entries (`.`). The archive is compressed if its
/// name ends with `gz`. It does not depend on the user, the time and the order of files on this
/// machine.
///
/// # Errors
/// `tar` fails.
pub(super) fn pack(
    folder: &Path,
    name: &str,
    to: &Path,
    time: &str,
) -> Result<(), Box<dyn Error>> {
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.args(["--format=gnu", "--mode=go-w"]);
    if to.extension().is_some_and(|it| it == "gz" || it == "tgz") {
        tar.arg("--use-compress-program=gzip -9n");
    }
    tar.arg(format!("--mtime=@{time}"));
    tar.arg("-cf").arg(to).arg("-C").arg(folder).arg(name);
    process::run(&mut tar)
}

/// Packs an archive again with a fixed time, instead of the time when it was written.
///
/// # Errors
/// `tar` fails, or a file cannot be written.
pub(super) fn repack(
    archive: &Path,
    name: &str,
    time: &str,
    place: &Path,
) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(place)?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(archive).arg("-C").arg(place);
    process::run(&mut tar)?;
    pack(place, name, archive, time)?;
    Ok(fs::remove_dir_all(place)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_files_give_equal_archives_whenever_they_were_written() {
        let place =
            std::env::temp_dir().join(format!("5spot-pack-{}", std::process::id()));
        let mut packed = Vec::new();
        for (folder, mode) in [("one", 0o664), ("other", 0o644)] {
            let source = place.join(folder);
            fs::create_dir_all(source.join("blobs")).unwrap();
            for name in ["blobs/b", "a"] {
                let path = source.join(name);
                fs::write(&path, name).unwrap();
                fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
                let time =
                    std::time::UNIX_EPOCH + std::time::Duration::from_secs(mode.into());
                fs::File::options()
                    .write(true)
                    .open(&path)
                    .unwrap()
                    .set_modified(time)
                    .unwrap();
            }
            let to = place.join(format!("{folder}.tgz"));
            pack(&source, ".", &to, "1770000000").unwrap();
            packed.push(fs::read(to).unwrap());
        }
        fs::remove_dir_all(&place).unwrap();
        assert_eq!(packed[0], packed[1]);
    }
}

//! The images, as OCI layouts, built by buildah from the Containerfile without a registry.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kubemu_golang::process;

use super::{archive, licences};

/// The targets of the Containerfile, one per program, and the names of the images.
pub(super) const TARGETS: [(&str, &str); 4] = [
    ("cli", "5spot"),
    ("controller", "5spot-controller"),
    ("webhook", "5spot-webhook"),
    ("agent", "5spot-reclaim-agent"),
];

/// The inputs of the images.
pub(super) struct Images<'r> {
    pub(super) root: &'r Path,
    pub(super) binaries: &'r Path,
    /// The folder with the licences of the linked packages.
    pub(super) notices: &'r Path,
    pub(super) architecture: &'r str,
    /// The modification time of every file in them, in seconds since 1970.
    pub(super) time: &'r str,
}

impl Images<'_> {
    /// Writes `<image>-<architecture>.oci.tar` for each program, prints its digest, and returns the
    /// paths.
    ///
    /// # Errors
    /// buildah is not installed, or it fails.
    pub(super) fn write(
        &self,
        out: &Path,
        programs: &[&str],
    ) -> Result<Vec<PathBuf>, Box<dyn Error>> {
        let context = out.join("context");
        let dist = context.join(self.architecture);
        fs::create_dir_all(&dist)?;
        fs::copy(self.root.join("LICENSE"), context.join("LICENSE"))?;
        for name in licences::FILES {
            fs::copy(self.notices.join(name), context.join(name))?;
        }
        let mut images = Vec::new();
        for (target, name) in TARGETS {
            if programs.contains(&name) {
                fs::copy(self.binaries.join(name), dist.join(name))?;
                images.push(self.build(&context, target, &out.join(name))?);
            }
        }
        fs::remove_dir_all(&context)?;
        Ok(images)
    }

    fn build(
        &self,
        context: &Path,
        target: &str,
        image: &Path,
    ) -> Result<PathBuf, Box<dyn Error>> {
        let store = context.join("store");
        let buildah = |words: &[&str]| {
            let mut command = Command::new("buildah");
            // A temporary store, which works on any file system.
            command
                .args(["--storage-driver", "vfs", "--root"])
                .arg(store.join("root"))
                .arg("--runroot")
                .arg(store.join("run"))
                .args(words);
            command
        };
        let id = context.join(format!("{target}.id"));
        process::run(
            buildah(&[
                "build",
                "--quiet",
                "--isolation",
                "chroot",
                "--layers=false",
            ])
            .args(["--target", target, "--timestamp", self.time])
            .args(["--arch", self.architecture, "--os", "linux"])
            .arg(format!("--build-arg=DIST={}", self.architecture))
            .args(labels())
            .arg("--ignorefile=/dev/null")
            .arg("--file")
            .arg(self.root.join("Containerfile"))
            .arg("--iidfile")
            .arg(&id)
            .arg(context),
        )?;
        let built = fs::read_to_string(&id)?;
        let path = format!("{}-{}.oci.tar", image.display(), self.architecture);
        let digest = context.join(format!("{target}.digest"));
        let layout = context.join(format!("{target}.oci"));
        process::run(
            buildah(&["push", "--quiet", "--format", "oci", "--digestfile"])
                .arg(&digest)
                .args([built.trim(), &format!("oci:{}", layout.display())]),
        )?;
        // The archives of buildah contain the time when they were written.
        archive::pack(&layout, ".", Path::new(&path), self.time)?;
        println!(
            "{} {} {}",
            fs::read_to_string(&digest)?.trim(),
            target,
            self.architecture
        );
        Ok(PathBuf::from(path))
    }
}

/// The labels of an image, which registries show.
fn labels() -> [String; 3] {
    [
        ("version", env!("CARGO_PKG_VERSION")),
        ("source", env!("CARGO_PKG_REPOSITORY")),
        ("licenses", env!("CARGO_PKG_LICENSE")),
    ]
    .map(|(key, value)| format!("--label=org.opencontainers.image.{key}={value}"))
}

//! The control group above all pods of a host: version 2, which freezes and ends what is in it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::bounded::{self, is_missing};

/// The names of the control group above all pods, by the kubelet's two drivers.
pub(crate) const ALL_PODS: [&str; 2] = ["kubepods.slice", "kubepods"];
/// The maximum size in bytes of the files that are read.
const MAX_BYTES: u64 = 4096;

/// The pods of a host, below a mounted `/sys/fs/cgroup`.
#[derive(Clone, Debug)]
pub struct PodGroups {
    root: PathBuf,
}

impl PodGroups {
    /// Those below this directory.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Freezes all pods, and those that start from now on. Returns whether there is such a group.
    ///
    /// # Errors
    /// This process may not, or the groups are those of version 1. Those of another group may be frozen.
    pub(crate) fn freeze(&self) -> io::Result<bool> {
        self.write("cgroup.freeze", "1")
    }

    /// Ends [`freeze`](Self::freeze).
    pub(crate) fn thaw(&self) -> io::Result<bool> {
        self.write("cgroup.freeze", "0")
    }

    /// Ends every process of the pods, also while they are frozen.
    pub(crate) fn end(&self) -> io::Result<bool> {
        self.write("cgroup.kill", "1")
    }

    /// Whether they are to be frozen.
    pub(crate) fn are_frozen(&self) -> bool {
        self.groups().any(|group| {
            let text = bounded::read(&group.join("cgroup.freeze"), MAX_BYTES);
            text.is_ok_and(|(text, _)| text.trim() == "1")
        })
    }

    fn groups(&self) -> impl Iterator<Item = PathBuf> {
        ALL_PODS.into_iter().map(|name| self.root.join(name))
    }

    /// Writes to a file of each group, also after one has failed. No file is created: in another place
    /// than a control group it would stay.
    fn write(&self, file: &str, text: &str) -> io::Result<bool> {
        let mut is_any = false;
        let mut failed = None;
        for group in self.groups() {
            if !group.is_dir() {
                continue;
            }
            match set(&group.join(file), text) {
                Ok(()) => is_any = true,
                // Removed meanwhile, with its last pod.
                Err(error) if is_missing(&error) && !group.is_dir() => {}
                Err(error) => {
                    let path = group.join(file);
                    let why = format!("{}: {error}", path.display());
                    failed = Some(io::Error::new(error.kind(), why));
                }
            }
        }
        failed.map_or(Ok(is_any), Err)
    }
}

fn set(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(text.as_bytes())
}

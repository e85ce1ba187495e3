//! Folders for tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Distinguishes the folders of one run.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A folder with a unique name. Dropping it removes the folder.
pub(crate) struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that remains does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    /// Creates the folder. Its name begins with `name`.
    pub(crate) fn new(name: &str) -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("{name}-{}-{number}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

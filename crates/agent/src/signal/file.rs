//! A file that another program creates while the owner wants the host, and removes afterwards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Now, Signal, Source};
use crate::bounded::is_missing;

/// Stands while there is anything at a path. What is in it is not read.
#[derive(Clone, Debug)]
pub struct SignalFile {
    path: PathBuf,
}

impl SignalFile {
    /// The signal of this path.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }
}

impl Source for SignalFile {
    fn name(&self) -> String {
        format!("signal-file {}", shown(&self.path))
    }

    fn directory(&self) -> Option<&Path> {
        self.path.parent()
    }

    fn read(&mut self, _: Now) -> io::Result<Option<Signal>> {
        match fs::symlink_metadata(&self.path) {
            // Its own time is not `since`: programs may keep a file and touch it again.
            Ok(_) => Ok(Some(Signal::of(format!(
                "signal-file: {}",
                shown(&self.path)
            )))),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// A path in one line.
fn shown(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}

//! Results that commands have kept, as JSON files.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The files of a folder, sorted by name.
///
/// # Errors
/// There is no such folder, or it cannot be read.
pub(crate) fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<_> = fs::read_dir(folder)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect();
    files.sort();
    Ok(files)
}

/// The results in a folder, sorted by file name.
///
/// # Errors
/// There is no such folder, or a file in it cannot be read or is not JSON.
pub(crate) fn results(folder: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let read = |file| Ok(serde_json::from_str(&fs::read_to_string(file)?)?);
    files(folder)?.into_iter().map(read).collect()
}

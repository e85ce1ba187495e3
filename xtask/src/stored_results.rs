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

/// The items of a list; none of another value.
pub(crate) fn items(of: &Value) -> impl Iterator<Item = &Value> {
    of.as_array().into_iter().flatten()
}

/// A number; 0 for another value.
pub(crate) fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_default()
}

/// The results in a folder, sorted by file name.
///
/// # Errors
/// There is no such folder, or a file in it cannot be read or is not JSON.
pub(crate) fn results(folder: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let read = |file| Ok(serde_json::from_str(&fs::read_to_string(file)?)?);
    files(folder)?.into_iter().map(read).collect()
}

//! Recorded responses: a file per case, a line per response.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::BoxError;
use super::corpus::Case;

/// The file with the recorded responses of a case.
pub fn path(folder: &Path, minor: &str, case: &Case) -> PathBuf {
    let file = format!("{}.jsonl", case.name);
    folder
        .join("fixtures")
        .join(minor)
        .join(&case.area)
        .join(file)
}

/// Writes the responses of a case.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, answers: &[Value]) -> Result<(), BoxError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let lines: Vec<_> = answers.iter().map(|it| format!("{it}\n")).collect();
    Ok(fs::write(path, lines.concat())?)
}

/// Reads the recorded responses. `None` if there is no recording.
///
/// # Errors
/// The file does not have the format of [`write()`].
pub fn read(path: &Path) -> Result<Option<Vec<Value>>, BoxError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let answers = text.lines().map(serde_json::from_str);
    let answers: Result<Vec<_>, _> = answers.collect();
    Ok(Some(
        answers.map_err(|error| format!("{}: {error}", path.display()))?,
    ))
}

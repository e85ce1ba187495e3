//! The one file that a command is given.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::Failure;
use crate::document::{read_bounded, unreadable};

/// The name for messages and the text of a file, or of standard input for `-`.
///
/// # Errors
/// It cannot be read, or is too large. The failure names it.
pub(crate) fn read(path: &Path) -> Result<(String, String), Failure> {
    if path.as_os_str() == "-" {
        let origin = "standard input".to_owned();
        let text = read_bounded(&origin, io::stdin().lock())?;
        return Ok((origin, text));
    }
    let origin = path.display().to_string();
    if path.is_dir() {
        let error = io::Error::from(ErrorKind::IsADirectory);
        return Err(unreadable(&origin, &error).remedy("give one file"));
    }
    let file = File::open(path).map_err(|error| unreadable(&origin, &error))?;
    let text = read_bounded(&origin, file)?;
    Ok((origin, text))
}

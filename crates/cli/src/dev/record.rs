//! `--audit-log`: one line of JSON for each request.

use std::fs::File;
use std::io::{LineWriter, Write as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use fivespot_apiserver::Audit;

use crate::Failure;

/// Writes every request to `path`, which is emptied first. A full disk is no reason to stop
/// serving.
///
/// # Errors
/// The file cannot be made.
pub(crate) fn to_file(path: &Path) -> Result<Audit, Failure> {
    let file = File::create(path).map_err(|error| {
        Failure::new(
            format!("writing the audit log to {}", path.display()),
            error,
        )
        .remedy("name a writable path with --audit-log")
    })?;
    let file = Mutex::new(LineWriter::new(file));
    Ok(Audit::new(move |event| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(file, "{}", event.to_value());
    }))
}

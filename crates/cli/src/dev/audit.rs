//! `--audit-log`: one line of JSON for each request.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, LineWriter, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use kubemu_apiserver::Audit;

use crate::Failure;

/// Writes every request to `path`. The file is truncated first and is readable only by its owner,
/// because it has names of objects and users. Write errors, such as a full disk, are ignored.
///
/// # Errors
/// The file cannot be created.
pub(crate) fn to_file(path: &Path) -> Result<Audit, Failure> {
    let file = create(path).map_err(|error| {
        Failure::new(
            format!("writing the audit log to {}", path.display()),
            error,
        )
        .remedy("choose a writable path with --audit-log")
    })?;
    let file = Mutex::new(LineWriter::new(file));
    Ok(Audit::new(move |event| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(file, "{}", event.to_value());
    }))
}

/// Creates or truncates a file. Other targets, such as a terminal, keep their permissions.
fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_audit_log_that_others_could_read_becomes_private() {
        let name = format!("5spot-audit-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::write(&path, "an older log").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        to_file(&path).unwrap();
        let meta = fs::metadata(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!((meta.len(), meta.permissions().mode() & 0o777), (0, 0o600));
    }
}

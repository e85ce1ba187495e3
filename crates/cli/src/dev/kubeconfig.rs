//! Writing the kubeconfig so that only its owner can read it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;

/// Writes `text` to `path`, mode 0600, whole or not at all. Returns the absolute path.
///
/// # Errors
/// The directory cannot be made or the file not written.
pub(crate) fn write(path: &Path, text: &str) -> Result<PathBuf, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(
            format!("writing the kubeconfig to {}", path.display()),
            error,
        )
        .remedy("choose a writable path with --kubeconfig")
    };
    let path = std::path::absolute(path).map_err(failed)?;
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    fivespot_apiserver::write_private(&path, text.as_bytes()).map_err(failed)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_the_owner_can_read_it_and_an_older_one_is_replaced() {
        let directory =
            std::env::temp_dir().join(format!("5spot-{}", std::process::id()));
        let path = directory.join("deep/kubeconfig");
        write(&path, "old").unwrap();
        let absolute = write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&absolute).unwrap(), "new");
        let mode = fs::metadata(&absolute).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::remove_dir_all(directory).unwrap();
    }
}

//! Writes the kubeconfig so that only its owner can read it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::TcpStream;

use kubemu_terminal::Failure;

/// Writes `text` to `path` atomically, with mode 0600. Returns the absolute path.
///
/// # Errors
/// The directory cannot be created or the file cannot be written.
pub fn write(path: &Path, text: &str) -> Result<PathBuf, Failure> {
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
    kubemu_apiserver::write_private(&path, text.as_bytes()).map_err(failed)?;
    Ok(path)
}

/// How long a server on this machine may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Checks that the kubeconfig at `path` does not belong to a running server, which would lose it.
///
/// # Errors
/// A server listens on the address in the file.
pub async fn check_unused(path: &Path) -> Result<(), Failure> {
    let Some(address) = fs::read_to_string(path).ok().and_then(|it| loopback(&it)) else {
        return Ok(());
    };
    let connected =
        tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(&address)).await;
    if !matches!(connected, Ok(Ok(_))) {
        return Ok(());
    }
    Err(Failure::new(
        format!("writing the kubeconfig to {}", path.display()),
        format!("it is that of the server at https://{address}, which still runs"),
    )
    .remedy("stop that one, or choose another path with --kubeconfig"))
}

/// The server address in a kubeconfig, if it is on this machine. Otherwise `None`.
fn loopback(kubeconfig: &str) -> Option<String> {
    let (_, rest) = kubeconfig.split_once("server: ")?;
    let server = rest.lines().next()?.trim().trim_matches('"');
    let address = server.strip_prefix("https://")?.trim_end_matches('/');
    address.starts_with("127.").then(|| address.to_owned())
}

/// Removes the kubeconfig of a server that has ended, unless another server has replaced it. Errors
/// are ignored.
pub fn remove(path: &Path, written: &str) {
    if fs::read_to_string(path).is_ok_and(|found| found == written) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_the_owner_can_read_it_and_an_older_one_is_replaced() {
        let directory =
            std::env::temp_dir().join(format!("kubemu-private-{}", std::process::id()));
        let path = directory.join("deep/kubeconfig");
        write(&path, "old").unwrap();
        let absolute = write(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&absolute).unwrap(), "new");
        let mode = fs::metadata(&absolute).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        remove(&absolute, "old");
        assert!(absolute.exists());
        remove(&absolute, "new");
        assert!(!absolute.exists());
        fs::remove_dir_all(directory).unwrap();
    }

    #[tokio::test]
    async fn the_kubeconfig_of_a_server_that_runs_is_not_overwritten() {
        let directory =
            std::env::temp_dir().join(format!("kubemu-live-{}", std::process::id()));
        let path = directory.join("kubeconfig");
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let text = format!("clusters:\n- cluster:\n    server: https://{address}\n");
        write(&path, &text).unwrap();
        let refused = check_unused(&path).await.unwrap_err().to_string();
        assert!(refused.contains("which still runs"), "{refused}");
        drop(listener);
        assert!(check_unused(&path).await.is_ok());
        assert!(check_unused(&directory.join("none")).await.is_ok());
        fs::remove_dir_all(directory).unwrap();
    }
}

//! `--data-dir`: objects, credentials and address that a run keeps for the next one.

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use kubemu_apiserver::{Credentials, Storage};
use tokio::net::TcpListener;

use kubemu_terminal::Failure;

/// The file with the last address of the server.
const ADDRESS: &str = "address";

/// Opens the objects and credentials of a directory. Without a directory there is no storage, and
/// new credentials are generated.
///
/// # Errors
/// The directory cannot be used, or another process uses it.
pub fn open(directory: Option<&Path>) -> Result<(Option<Storage>, Credentials), Failure> {
    let Some(directory) = directory else {
        let credentials = Credentials::generate().map_err(|error| {
            Failure::new("generating the server's credentials", with_causes(&error))
                .remedy("check that the system provides random numbers")
        })?;
        return Ok((None, credentials));
    };
    let storage = Storage::open(directory).map_err(|error| unusable(&error))?;
    let credentials =
        Credentials::load_or_generate(directory).map_err(|error| unusable(&error))?;
    Ok((Some(storage), credentials))
}

/// The failure for a directory that cannot be used.
fn unusable(error: &(dyn Error + 'static)) -> Failure {
    let why = with_causes(error);
    let failure = Failure::new("--data-dir", &why);
    // Some errors already contain a remedy.
    if why.contains("; ") {
        failure
    } else {
        failure.remedy("choose a directory that you can write to")
    }
}

/// An error and its causes, as text.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let mut all = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        all.push(error.to_string());
        cause = error.source();
    }
    all.join(": ")
}

/// Listens on `address`. For port 0, the port of the previous run is used if it is free, so that a
/// kubeconfig stays valid.
///
/// # Errors
/// The address cannot be listened on.
pub async fn listen(
    address: SocketAddr,
    directory: Option<&Path>,
) -> Result<TcpListener, Failure> {
    let file = directory.map(|it| it.join(ADDRESS));
    let before = file
        .as_deref()
        .and_then(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
        .filter(|it: &SocketAddr| address.port() == 0 && it.ip() == address.ip());
    let failed = |error| {
        Failure::new(format!("listening on {address}"), error)
            .remedy("choose another address with --listen, or port 0 for a free port")
    };
    let again = match before {
        Some(before) => TcpListener::bind(before).await.ok(),
        None => None,
    };
    let listener = match again {
        Some(listener) => listener,
        None => TcpListener::bind(address).await.map_err(failed)?,
    };
    if let (Some(file), Ok(address)) = (file, listener.local_addr()) {
        // If the file cannot be written, the next run uses another port and writes another
        // kubeconfig.
        let _ = fs::write(file, address.to_string());
    }
    Ok(listener)
}

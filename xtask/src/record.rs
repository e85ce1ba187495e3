//! `cargo xtask record`: records the responses of a real API server to the corpus of `engine/judge/record`.
//!
//! The recorder is a program of the engine, so that this one stays small.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::cluster;

/// The minor version that is recorded by default: the one whose responses the embedded server gives
/// by default.
pub(crate) const MINOR: &str = "1.36";

/// Records the responses of a Kubernetes that is started for it, then measures the agreement.
///
/// # Errors
/// The cluster does not start, or a request of the corpus fails.
pub(crate) fn record(root: &Path, minor: &str) -> Result<(), Box<dyn Error>> {
    cluster::with_kubernetes(root, minor, &[], |kubeconfig| {
        recorder(root, &[minor.as_ref(), kubeconfig.as_ref()])
    })?;
    measure(root)
}

/// Measures how far the embedded server agrees with the recorded responses, and keeps the numbers
/// for the documentation.
///
/// # Errors
/// The recorded responses cannot be read.
pub(crate) fn measure(root: &Path) -> Result<(), Box<dyn Error>> {
    recorder(root, &["--agreement".as_ref()])?;
    println!("`cargo xtask gen` writes the numbers to the documentation");
    Ok(())
}

fn recorder(root: &Path, words: &[&OsStr]) -> Result<(), Box<dyn Error>> {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let done = Command::new(program)
        .args(["run", "--quiet", "--bin", "record", "--"])
        .args(words)
        .current_dir(root.join("engine"))
        .status()?;
    if !done.success() {
        return Err("the recorder failed".into());
    }
    Ok(())
}

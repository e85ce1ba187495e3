//! `cargo xtask record`: a real API server's answers to the corpus of `e2e/record`.
//!
//! The recorder itself is a program of the end-to-end tests, so that this one stays small.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::cluster;

/// The minor that is recorded unless another is asked for: the one whose answers the embedded
/// server gives by default.
pub(crate) const MINOR: &str = "1.36";

/// Records the answers of a Kubernetes that is started for it, then measures.
///
/// # Errors
/// The cluster does not come up, or a case cannot be put to it.
pub(crate) fn record(root: &Path, minor: &str) -> Result<(), Box<dyn Error>> {
    cluster::with_kubernetes(root, minor, &[], |kubeconfig| {
        recorder(root, &[minor.as_ref(), kubeconfig.as_ref()])
    })?;
    measure(root)
}

/// Measures how far the embedded server agrees with what is recorded, and keeps the numbers
/// for the documentation.
///
/// # Errors
/// What is recorded cannot be read.
pub(crate) fn measure(root: &Path) -> Result<(), Box<dyn Error>> {
    recorder(root, &["--agreement".as_ref()])?;
    println!("`cargo xtask gen` puts the numbers into the documentation");
    Ok(())
}

fn recorder(root: &Path, words: &[&OsStr]) -> Result<(), Box<dyn Error>> {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let done = Command::new(program)
        .args(["run", "--quiet", "--bin", "record", "--"])
        .args(words)
        .current_dir(root)
        .status()?;
    if !done.success() {
        return Err("the recorder failed".into());
    }
    Ok(())
}

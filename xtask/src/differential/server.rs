//! `cargo xtask differential --server`: generated requests to a real API server and to the
//! embedded one.
//!
//! A program of the engine generates, sends and compares the requests, so that this one
//! stays small.

use std::env;
use std::error::Error;
use std::path::Path;
use std::process::Command;

use crate::{Faults, cluster, record};

/// Admission plugins that both servers enable in addition to the default ones.
const PLUGINS: [&str; 1] = ["NodeRestriction"];

/// Runs the cases with a Kubernetes that is started for it, or with the one of `--kubeconfig FILE`.
/// Verdicts that differ are faults.
///
/// # Errors
/// The cluster does not start, a flag is unknown, or a server cannot be reached.
pub(super) fn run(root: &Path, words: &[&str]) -> Result<Faults, Box<dyn Error>> {
    let mut faults = Faults::new();
    match words {
        ["--kubeconfig", kubeconfig, words @ ..] => {
            faults.extend(compare(root, Path::new(kubeconfig), words)?);
        }
        _ => cluster::with_kubernetes(root, record::MINOR, &PLUGINS, |kubeconfig| {
            faults.extend(compare(root, kubeconfig, words)?);
            Ok(())
        })?,
    }
    Ok(faults)
}

/// Runs the program, which prints the results. Returns a fault if verdicts differ.
fn compare(
    root: &Path,
    kubeconfig: &Path,
    words: &[&str],
) -> Result<Option<String>, Box<dyn Error>> {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let done = Command::new(program)
        .args(["run", "--quiet", "--bin", "differential", "--"])
        .arg(kubeconfig)
        .args(words)
        .current_dir(root.join("engine"))
        .status()?;
    match done.code() {
        Some(0) => Ok(None),
        Some(1) => Ok(Some("the servers give different verdicts".to_owned())),
        _ => Err("the comparison failed".into()),
    }
}

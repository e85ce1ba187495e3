//! The list of built-in kinds of the embedded API server. The generators of their schemas and of
//! the protobuf table read it.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Writes the list into `target/`: an apiVersion and a kind per line. Returns its path.
///
/// # Errors
/// The API server's crate cannot be built.
pub(crate) fn list(root: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["run", "--quiet", "--locked"])
        .args(["--example", "kinds"])
        .current_dir(root.join("engine"))
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        let status = output.status;
        return Err(format!("the list of built-in kinds failed: {status}").into());
    }
    let path = root.join("target").join("builtin-kinds.txt");
    // The file is written only if the list has changed, so that nothing is rebuilt otherwise.
    if fs::read(&path).ok().as_ref() != Some(&output.stdout) {
        fs::write(&path, &output.stdout)?;
    }
    Ok(path)
}

//! Programs that a task runs to their end, and copies of a commit.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs a program to its end; what it prints is seen.
///
/// # Errors
/// It is not installed, or it fails.
pub(crate) fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command
        .status()
        .map_err(|error| format!("running {name}: {error}"))?;
    if done.success() {
        return Ok(());
    }
    Err(format!("{name} failed").into())
}

/// What a program prints.
///
/// # Errors
/// It is not installed, or it fails: with what it wrote to its standard error.
pub(crate) fn output(command: &mut Command) -> Result<String, Box<dyn Error>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command
        .output()
        .map_err(|error| format!("running {name}: {error}"))?;
    if !done.status.success() {
        let error = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{name} failed: {}", error.trim()).into());
    }
    Ok(String::from_utf8(done.stdout)?)
}

/// Checks a commit of this repository out into a folder of its own; what was built there before
/// stays.
///
/// # Errors
/// git is not installed, or the commit is not in this repository.
pub(crate) fn check_out(
    root: &Path,
    commit: &str,
    to: &Path,
) -> Result<(), Box<dyn Error>> {
    if !to.join(".git").exists() {
        fs::create_dir_all(to)?;
        let clone = ["clone", "--quiet", "--shared", "--no-checkout"];
        run(Command::new("git").args(clone).args([root, to]))?;
    }
    let checkout = ["checkout", "--quiet", "--detach", commit];
    run(Command::new("git").args(checkout).current_dir(to))
}

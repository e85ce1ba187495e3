//! Runs programs to their end, and checks out commits.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs a program to its end, with its output on the terminal.
///
/// # Errors
/// It is not installed, or it fails.
pub fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command
        .status()
        .map_err(|error| format!("running {name}: {error}"))?;
    if done.success() {
        return Ok(());
    }
    Err(format!("{name} failed").into())
}

/// Returns the output of a program.
///
/// # Errors
/// It is not installed, or it fails; the error contains its standard error.
pub fn output(command: &mut Command) -> Result<String, Box<dyn Error>> {
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

/// Checks out a commit of this repository into a separate folder. Earlier build output in it stays.
///
/// # Errors
/// git is not installed, or the commit is not in this repository.
pub fn check_out(root: &Path, commit: &str, to: &Path) -> Result<(), Box<dyn Error>> {
    if !to.join(".git").exists() {
        fs::create_dir_all(to)?;
        let clone = ["clone", "--quiet", "--shared", "--no-checkout"];
        run(Command::new("git").args(clone).args([root, to]))?;
    }
    let checkout = ["checkout", "--quiet", "--detach", commit];
    run(Command::new("git").args(checkout).current_dir(to))
}

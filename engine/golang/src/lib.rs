//! Runs Go, which builds Kubernetes and the other programs that tests compare with.

pub mod process;

use std::env;
use std::error::Error;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// The path of Go's own installation guide, if Go is not on the PATH.
const USUAL_GO: &str = "/usr/local/go/bin/go";

/// The flags of all builds. They are equal for all programs, so that shared packages are compiled
/// once. Debug information is left out, because no tool reads it.
pub const FLAGS: [&str; 2] = ["-trimpath", "-gcflags=all=-dwarf=false"];

/// The program to run for Go.
pub fn program() -> &'static str {
    if is_on_path("go") { "go" } else { USUAL_GO }
}

/// Runs Go in a folder and returns what it printed, trimmed.
///
/// # Errors
/// Go is not installed, or it fails.
pub fn run(directory: &Path, words: &[&str]) -> Result<String, Box<dyn Error>> {
    let program = program();
    let done = Command::new(program)
        .args(words)
        .current_dir(directory)
        // As Kubernetes is released, and without a C compiler.
        .env("CGO_ENABLED", "0")
        // The compiler's processes are short, and spend a third of their time on freeing memory
        // that nothing else needs.
        .env("GOGC", "400")
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                "there is no `go` on the PATH; install Go 1.26 or later from https://go.dev/dl"
                    .to_owned()
            }
            _ => format!("running {program}: {error}"),
        })?;
    if !done.status.success() {
        let what = words.first().copied().unwrap_or_default();
        return Err(format!("`go {what}` failed in {}", directory.display()).into());
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

/// Builds packages of the module in a folder into `out`: a program, or a folder that ends with a
/// slash.
///
/// # Errors
/// As for [`run`], or the path is not UTF-8.
pub fn build(
    directory: &Path,
    link_flags: &str,
    out: &Path,
    packages: &[&str],
) -> Result<(), Box<dyn Error>> {
    let out = out
        .to_str()
        .ok_or_else(|| format!("{} is not UTF-8", out.display()))?;
    let mut words = vec!["build"];
    words.extend(FLAGS);
    words.extend(["-ldflags", link_flags, "-o", out]);
    words.extend(packages);
    run(directory, &words)?;
    Ok(())
}

/// The linker flags for a program of Kubernetes: without debug information and, as Kubernetes' own build
/// sets it, with its version. A program that lacks it reports version 0.
pub fn kubernetes_link_flags(version: &str) -> String {
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    let component = "k8s.io/component-base/version";
    format!(
        "-s -w -X {component}.gitVersion={version} -X {component}.gitMajor={major} \
         -X {component}.gitMinor={minor}"
    )
}

/// Whether a program is on the PATH.
pub fn is_on_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| {
        env::split_paths(&path).any(|directory| directory.join(program).is_file())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_kubernetes_gets_its_version_in_full_and_in_parts() {
        assert_eq!(
            kubernetes_link_flags("v1.36.3"),
            "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
             -X k8s.io/component-base/version.gitMajor=1 \
             -X k8s.io/component-base/version.gitMinor=36"
        );
    }
}

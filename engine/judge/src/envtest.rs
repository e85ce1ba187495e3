//! `cargo judge envtest`: the tests of the Go package, and controller-runtime's own suites, in which
//! nothing is changed but the import of envtest.
//!
//! controller-runtime is taken from the Go module cache in the version that the package requires, and
//! changed in a copy. Its suites pass on a real kube-apiserver: a spec that fails here is a fault.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Faults, target};

const MODULE: &str = "sigs.k8s.io/controller-runtime";
const THEIRS: &str = "\"sigs.k8s.io/controller-runtime/pkg/envtest\"";
const OURS: &str = "\"github.com/finos/5-spot/engine/go/envtest\"";
/// The variable with the path of the program.
const PROGRAM: &str = "TEST_ASSET_KUBEMU";

/// The tests that are not run, as a pattern of `go test`: they start kube-apiserver 1.28 with a
/// feature gate that switches aggregated discovery off.
const SKIPPED: &str =
    "^Test(LazyRestMapperProvider|ApiMachinery)$/^aggregatedDiscovery=false$";

/// Runs the suites, prints how many specs each has, and returns the failed ones.
///
/// # Errors
/// Go is not installed, controller-runtime cannot be had, or a file cannot be written.
pub(crate) fn run(root: &Path) -> Result<Faults, Box<dyn Error>> {
    let package = root.join("go");
    let mut faults = Faults::new();
    let own = test(&package, "./envtest")?;
    println!("{:<40} {}", "engine/go/envtest", own.summary());
    faults.extend(own.failed);
    let copy = copy_of_controller_runtime(&package)?;
    for suite in changed(&copy)? {
        let mut result = test(&copy, &format!("./{suite}"))?;
        if !result.failed.is_empty() {
            // Many specs wait for a second at most, which a busy machine may take.
            let again = test(&copy, &format!("./{suite}"))?;
            if again.failed.is_empty() {
                println!("flaky: {}", result.failed.join("; "));
                result = again;
            }
        }
        println!("{suite:<40} {}", result.summary());
        faults.extend(result.failed);
    }
    println!("not run: {SKIPPED}");
    Ok(faults)
}

/// The result of the tests of a package.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tested {
    /// Specs of Ginkgo, or tests where there are none.
    ran: usize,
    failed: Vec<String>,
}

impl Tested {
    /// Reads what `go test -v` prints.
    fn of(output: &str, package: &str) -> Self {
        let mut specs = 0;
        let mut tests = 0;
        let mut failed = Vec::new();
        let mut ended = false;
        for line in output.lines().map(plain) {
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("Ran ") {
                let count = rest.split(' ').next().and_then(|it| it.parse().ok());
                specs += count.unwrap_or(0);
            } else if let Some(rest) = line.strip_prefix("[FAIL] ") {
                failed.push(format!("{package}: {rest}"));
            } else if line.starts_with("--- PASS: ") {
                tests += 1;
            } else if let Some(rest) = line.strip_prefix("--- FAIL: ") {
                tests += 1;
                let name = rest.split(' ').next().unwrap_or_default();
                failed.push(format!("{package}: {name}"));
            }
            ended |= line == "PASS" || line.starts_with("ok ");
        }
        if failed.is_empty() && !ended {
            failed.push(format!("{package}: the tests did not end"));
        }
        failed.dedup();
        Self {
            ran: if specs == 0 { tests } else { specs },
            failed,
        }
    }

    fn summary(&self) -> String {
        format!("{} ran, {} failed", self.ran, self.failed.len())
    }
}

/// A line without the escape sequences of colours.
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once('m').map_or("", |it| it.1));
    }
    text
}

/// Runs the tests of a package.
fn test(folder: &Path, package: &str) -> Result<Tested, Box<dyn Error>> {
    let program = std::env::current_exe()?.with_file_name("kubemu");
    let output = Command::new(kubemu_golang::program())
        .args([
            "test",
            "-v",
            "-count=1",
            "-vet=off",
            "-timeout=20m",
            "-skip",
            SKIPPED,
            package,
        ])
        .current_dir(folder)
        .env(PROGRAM, program)
        .stderr(Stdio::inherit())
        .output()?;
    Ok(Tested::of(
        &String::from_utf8_lossy(&output.stdout),
        package,
    ))
}

/// Copies controller-runtime into the target folder, and replaces the import in its tests.
fn copy_of_controller_runtime(package: &Path) -> Result<PathBuf, Box<dyn Error>> {
    kubemu_golang::run(package, &["mod", "download", MODULE])?;
    let module = kubemu_golang::run(package, &["list", "-m", "-f", "{{.Dir}}", MODULE])?;
    let copy = target().join("envtest/controller-runtime");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    copy_changed(Path::new(&module), &copy)?;
    let name = OURS.trim_matches('"').trim_end_matches("/envtest");
    let package = package.canonicalize()?;
    let replace = format!("-replace={name}={}", package.display());
    let require = format!("-require={name}@v0.0.0");
    kubemu_golang::run(&copy, &["mod", "edit", &require, &replace])?;
    kubemu_golang::run(&copy, &["mod", "tidy"])?;
    Ok(copy)
}

/// Copies a folder of the module cache, whose files cannot be written.
fn copy_changed(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_changed(&entry.path(), &to)?;
            continue;
        }
        let mut content = fs::read(entry.path())?;
        // The tests of envtest itself are in its package, and import it for nothing else.
        let is_test = to.to_string_lossy().ends_with("_test.go");
        if is_test && let Ok(text) = str::from_utf8(&content) {
            content = text.replace(THEIRS, OURS).into_bytes();
        }
        fs::write(to, content)?;
    }
    Ok(())
}

/// The folders of the packages whose tests have the other import.
fn changed(copy: &Path) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![copy.join("pkg")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with("_test.go")
                && fs::read_to_string(&path)?.contains(OURS)
            {
                let below = folder.strip_prefix(copy).unwrap_or(&folder);
                found.insert(below.to_string_lossy().into_owned());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_spec_is_a_fault_with_its_package() {
        let output = "\u{1b}[38;5;9m[FAIL]\u{1b}[0m \u{1b}[0mCache lists one\u{1b}[0m\n\
                      \u{1b}[1mRan 276 of 280 Specs in 1.2 seconds\u{1b}[0m\nFAIL\n";
        let tested = Tested::of(output, "./pkg/cache");
        assert_eq!(tested.ran, 276);
        assert_eq!(tested.failed, ["./pkg/cache: Cache lists one"]);
    }

    #[test]
    fn tests_that_do_not_end_are_a_fault() {
        let tested = Tested::of("panic: no\n", "./pkg/cache");
        assert_eq!(tested.failed, ["./pkg/cache: the tests did not end"]);
        assert!(
            Tested::of("--- PASS: TestA (0.1s)\nPASS\n", "p")
                .failed
                .is_empty()
        );
    }
}

//! `cargo xtask promises`: keeps the results of the end-to-end suite's last whole runs.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Faults;
use crate::conformance::RESULTS;

/// Copies the results of the last whole run on each backend into the source tree.
///
/// # Errors
/// There are none, or they cannot be copied.
pub(crate) fn keep(root: &Path) -> Result<(), Box<dyn Error>> {
    let kept = root.join(RESULTS);
    fs::create_dir_all(&kept)?;
    for path in last_runs(root)? {
        fs::copy(&path, kept.join(path.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

/// Compares the results of the last whole runs with those that are kept.
///
/// # Errors
/// There are none, or they cannot be read.
pub(crate) fn check(root: &Path) -> Result<Faults, Box<dyn Error>> {
    let mut faults = Faults::new();
    for path in last_runs(root)? {
        let name = path.file_name().unwrap_or_default();
        let kept = root.join(RESULTS).join(name);
        let is_equal = fs::read_to_string(&kept)
            .is_ok_and(|text| fs::read_to_string(&path).is_ok_and(|last| last == text));
        if !is_equal {
            faults.push(format!(
                "{RESULTS}/{}: the last run differs; run `cargo xtask promises` and \
                 `cargo xtask gen`",
                name.display()
            ));
        }
    }
    Ok(faults)
}

/// The results that the suite has left in the target folder, by backend.
fn last_runs(root: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let target = env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |directory| root.join(directory));
    let runs = target.join("tmp/promises");
    let missing = |_| "no whole run yet; `cargo test -p e2e` is one".to_owned();
    let mut paths: Vec<_> = fs::read_dir(runs)
        .map_err(missing)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    Ok(paths)
}

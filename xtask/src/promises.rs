//! `cargo xtask promises`: keeps the results of the last complete runs of the end-to-end suite, and
//! of the last runs of its scenarios with every fault.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cluster::target;
use crate::conformance::RESULTS;
use crate::how_we_test::FAULTS;
use crate::stored_results;

/// Copies the results of the last complete run on each backend into the source tree, and those of
/// the last runs with every fault, if there are any.
///
/// # Errors
/// There are no results, or they cannot be copied.
pub(crate) fn store(root: &Path) -> Result<(), Box<dyn Error>> {
    let faults = left_in(root, FAULTS_LEFT);
    let runs = left_in(root, RUNS_LEFT);
    if let (Err(_), Err(_)) = (&faults, &runs) {
        return Err(
            "no results of a complete run; run `cargo test --test promises`".into(),
        );
    }
    for (found, kept) in [(runs, RESULTS), (faults, FAULTS)] {
        let kept = root.join(kept);
        fs::create_dir_all(&kept)?;
        for path in found.unwrap_or_default() {
            fs::copy(&path, kept.join(path.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}

/// The suite's folder for the results of complete runs, below the target folder.
const RUNS_LEFT: &str = "tmp/promises";
/// The suite's folder for the results of runs with every fault.
const FAULTS_LEFT: &str = "tmp/faults";

/// The results in a folder below the target folder, by backend.
fn left_in(root: &Path, folder: &str) -> io::Result<Vec<PathBuf>> {
    stored_results::files(&target(root).join(folder))
}

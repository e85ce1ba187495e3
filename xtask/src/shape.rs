//! The measures that `cargo xtask size` prints of the operator's code around the planner.

use std::error::Error;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use crate::source::{self, Function};

/// The crates between the API server and the planner.
const OPERATOR: [&str; 2] = ["crates/controller/src", "crates/runtime/src"];

/// The files through which an event of a watch passes until the status is written, one for each
/// step; the planner counts as one. Not listed is what a step calls for a detail. A missing file is
/// an error: its successor must be listed.
const PATH_OF_AN_EVENT: &[&str] = &[
    "crates/runtime/src/watch.rs",
    "crates/runtime/src/http/client/watch.rs",
    "crates/runtime/src/cache/projection.rs",
    "crates/controller/src/observe/projection.rs",
    "crates/runtime/src/cache/informer.rs",
    "crates/runtime/src/cache/store.rs",
    "crates/controller/src/context/enqueue.rs",
    "crates/runtime/src/queue.rs",
    "crates/runtime/src/queue/work.rs",
    "crates/controller/src/run.rs",
    "crates/controller/src/reconcile.rs",
    "crates/runtime/src/lease/fence.rs",
    "crates/controller/src/observe.rs",
    "crates/controller/src/observe/management.rs",
    "crates/controller/src/observe/node.rs",
    "crates/capi/src/machine.rs",
    "crates/plan/src/lib.rs",
    "crates/controller/src/apply.rs",
    "crates/runtime/src/http/client.rs",
    "crates/controller/src/report.rs",
];

/// Prints the measures.
///
/// # Errors
/// A file cannot be read, a file of [`PATH_OF_AN_EVENT`] is missing, or the output is closed.
pub(crate) fn print(
    root: &Path,
    files: &[(String, String)],
) -> Result<(), Box<dyn Error>> {
    let mut lines = 0;
    let mut functions: Vec<Function> = Vec::new();
    for (name, source) in files {
        let is_tests = name.ends_with("tests.rs") || name.contains("/tests/");
        if is_tests || !OPERATOR.iter().any(|folder| name.starts_with(folder)) {
            continue;
        }
        let code = source::code(source);
        lines += source::lines_of_code(&code);
        functions.extend(source::functions(source::before_tests(&code)));
    }
    for name in PATH_OF_AN_EVENT {
        fs::metadata(root.join(name)).map_err(|error| {
            format!("{name}: {error}; name its successor in xtask/src/shape.rs")
        })?;
    }
    let tuples: usize = functions.iter().map(|function| function.tuples).sum();
    let mut lengths: Vec<usize> =
        functions.iter().map(|function| function.lines).collect();
    lengths.sort_unstable();
    let mut out = io::stdout().lock();
    writeln!(out, "controller and runtime: {lines} lines of code")?;
    writeln!(
        out,
        "files on the path of an event: {}",
        PATH_OF_AN_EVENT.len()
    )?;
    writeln!(out, "parameters that are tuples: {tuples}")?;
    writeln!(
        out,
        "lines of a function: half have at most {}, 99 in 100 at most {}, all at most {}",
        at(&lengths, 50),
        at(&lengths, 99),
        at(&lengths, 100),
    )?;
    Ok(())
}

/// The length that so many percent of the functions do not exceed; 0 if there are none.
fn at(sorted: &[usize], percent: usize) -> usize {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::at;

    #[test]
    fn a_percentile_is_a_length_that_occurs() {
        let lengths = [1, 2, 3, 4];
        assert_eq!((at(&lengths, 50), at(&lengths, 99)), (2, 4));
        assert_eq!(at(&[], 50), 0);
    }
}

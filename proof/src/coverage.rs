//! Which regions of the code the tests run, by crate, from what `cargo llvm-cov` exports. A region is
//! code without a branch in it; a `?` begins one.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Where results are recorded, relative to this crate.
const STORED: &str = "results/coverage.json";

/// The regions of a file, by line and column, and whether a test runs them.
type Regions = BTreeMap<(u64, u64), bool>;

/// Records how many regions of each crate are run by one of the runs that these are exports of. Returns
/// every file, with how many of its regions are not run and how many it has; those with the most first.
///
/// # Errors
/// A file cannot be read or written, or is no export of `cargo llvm-cov --json`.
pub(crate) fn record(exports: &[PathBuf]) -> io::Result<Vec<(String, usize, usize)>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.join("..").canonicalize()?;
    let mut files = BTreeMap::new();
    for export in exports {
        let export: Value = serde_json::from_slice(&fs::read(export)?)?;
        add_export(&mut files, &export);
    }
    for (file, regions) in &mut files {
        if let Some(line) = test_module(&fs::read_to_string(root.join(file))?) {
            regions.retain(|(at, _), _| *at < line);
        }
    }
    let mut crates: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let mut by_file = Vec::new();
    for (file, regions) in files {
        let run = regions.values().filter(|is_run| **is_run).count();
        let [all_of_crate, run_of_crate] = crates.entry(crate_of(&file)).or_default();
        *all_of_crate += regions.len();
        *run_of_crate += run;
        by_file.push((file, regions.len() - run, regions.len()));
    }
    let of = |(name, [regions, run]): (String, [usize; 2])| {
        (name, json!({"regions": regions, "run": run}))
    };
    let result: Value = crates
        .into_iter()
        .map(of)
        .collect::<serde_json::Map<_, _>>()
        .into();
    fs::write(here.join(STORED), format!("{result:#}\n"))?;
    by_file.sort_by_key(|(_, missed, _)| std::cmp::Reverse(*missed));
    Ok(by_file)
}

/// Adds the regions of an export. The clone that it was made in may have another path than this one.
fn add_export(files: &mut BTreeMap<String, Regions>, export: &Value) {
    let all = export["data"][0]["files"].as_array().into_iter().flatten();
    for of in all {
        let Some(file) = of["filename"].as_str().and_then(product) else {
            continue;
        };
        let regions = files.entry(file.to_owned()).or_default();
        for segment in of["segments"].as_array().into_iter().flatten() {
            let is = |field: usize| segment[field].as_bool() == Some(true);
            let number = |field: usize| segment[field].as_u64().unwrap_or_default();
            let (has_count, is_begin, is_gap) = (is(3), is(4), is(5));
            if has_count && is_begin && !is_gap {
                *regions.entry((number(0), number(1))).or_default() |= number(2) > 0;
            }
        }
    }
}

/// The path below the root of a file that is part of a crate and not of its tests.
fn product(path: &str) -> Option<&str> {
    let below = path
        .find("/engine/crates/")
        .or_else(|| path.find("/crates/"))?;
    let file = &path[below + 1..];
    let is_test = file.contains("/tests/")
        || file.ends_with("/tests.rs")
        || file.starts_with("crates/testkit/");
    (file.contains("/src/") && !is_test).then_some(file)
}

/// The name of a crate: its folder, below `engine/` with that.
fn crate_of(file: &str) -> String {
    let folder = file.split("/src/").next().unwrap_or_default();
    folder.replacen("crates/", "", 1)
}

/// The line of the module of tests at the end of a source file.
fn test_module(source: &str) -> Option<u64> {
    let lines = || (1_u64..).zip(source.lines());
    let is_module = |line: &str| line.starts_with("mod ") && line.ends_with('{');
    let of = |((number, line), (_, next)): ((u64, &str), (u64, &str))| {
        (line == "#[cfg(test)]" && is_module(next)).then_some(number)
    };
    lines().zip(lines().skip(1)).find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn export(file: &str, segments: &Value) -> Value {
        json!({"data": [{"files": [{"filename": file, "segments": segments}]}]})
    }

    #[test]
    fn a_region_is_run_if_one_of_the_runs_runs_it() {
        let path = "/somewhere/engine/crates/cel/src/lib.rs";
        let mut files = BTreeMap::new();
        for counts in [[0, 7], [0, 0], [1, 0]] {
            let [first, second] = counts;
            let segments = json!([
                [1, 1, first, true, true, false],
                [2, 5, second, true, true, false],
                [3, 1, 0, true, true, true],
                [4, 1, 0, false, false, false],
                [5, 1, 0, true, true, false],
            ]);
            add_export(&mut files, &export(path, &segments));
        }
        let regions = &files["engine/crates/cel/src/lib.rs"];
        let runs: Vec<bool> = regions.values().copied().collect();
        assert_eq!(runs, [true, true, false]);
        assert_eq!(crate_of("engine/crates/cel/src/lib.rs"), "engine/cel");
    }

    #[test]
    fn tests_and_tools_are_no_part_of_what_is_measured() {
        for path in [
            "/a/crates/plan/src/decide/tests.rs",
            "/a/crates/plan/tests/plan/main.rs",
            "/a/xtask/src/main.rs",
            "/a/crates/plan/build.rs",
            "/a/crates/testkit/src/cluster.rs",
        ] {
            assert_eq!(product(path), None, "{path}");
        }
        assert_eq!(
            test_module("fn a() {}\n\n#[cfg(test)]\nmod tests {\n"),
            Some(3)
        );
        assert_eq!(test_module("#[cfg(test)]\nmod tests;\n"), None);
    }
}

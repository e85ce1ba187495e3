//! `cargo xtask size`: limits the sizes of files and functions.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use proc_macro2::LexError;

use crate::Faults;
use crate::source::{Function, Source};

const MAX_LINES_OF_A_FILE: usize = 450;
const MAX_LINES_OF_A_FUNCTION: usize = 65;

/// Names that do not describe the contents of a file.
const VAGUE_NAMES: [&str; 7] = [
    "utils",
    "helpers",
    "common",
    "misc",
    "types",
    "constants",
    "manager",
];

/// Files that may be longer, with the reasons.
const LONG_FILES: &[(&str, &str)] = &[(
    "crates/api/src/rules/table.rs",
    "one row per rule, and a table is read by looking up",
)];

/// Compares every Rust file below `crates`, `e2e`, `engine` and `xtask` with the limits. The model, the
/// simulation, the benchmarks and the fuzz targets are not limited.
pub(crate) fn check(root: &Path) -> Result<Faults, Box<dyn Error>> {
    let mut files = Vec::new();
    for directory in ["crates", "e2e", "engine", "xtask"] {
        collect(&root.join(directory), &mut files)?;
    }
    files.sort();
    let mut faults = Faults::new();
    for path in files {
        let source = fs::read_to_string(&path)?;
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .display()
            .to_string();
        faults.extend(
            faults_of(&name, &source).map_err(|error| format!("{name}: {error}"))?,
        );
    }
    Ok(faults)
}

/// Every Rust file below a directory, except build output.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn faults_of(name: &str, source: &str) -> Result<Faults, LexError> {
    let mut faults = Faults::new();
    let stem = Path::new(name)
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    if VAGUE_NAMES.contains(&stem) {
        faults.push(format!(
            "{name}: `{stem}` is not specific; name the file after its contents"
        ));
    }
    if stem == "mod" {
        faults.push(format!(
            "{name}: use a file next to the folder instead of mod.rs"
        ));
    }
    let source = Source::read(source)?;
    if source.names_a_path() {
        faults.push(format!("{name}: #[path] hides where a module is"));
    }
    if is_test(name) {
        return Ok(faults);
    }
    let lines = source.lines();
    let is_long = LONG_FILES.iter().any(|(file, _)| *file == name);
    if lines > MAX_LINES_OF_A_FILE && !is_long {
        faults.push(format!(
            "{name}: {lines} lines of code, at most {MAX_LINES_OF_A_FILE}"
        ));
    }
    for function in source.functions() {
        faults.extend(faults_of_function(name, &function));
    }
    Ok(faults)
}

/// Whether a file is a test: tests with many steps may be long.
fn is_test(name: &str) -> bool {
    let mut parts = Path::new(name)
        .components()
        .map(std::path::Component::as_os_str);
    name.starts_with("e2e/")
        || name.ends_with("tests.rs")
        || parts.any(|part| part == "tests")
}

fn faults_of_function(file: &str, function: &Function) -> Faults {
    let Function {
        name,
        line,
        lines,
        is_public_with_bool,
    } = function;
    let mut faults = Faults::new();
    if *lines > MAX_LINES_OF_A_FUNCTION {
        faults.push(format!(
            "{file}:{line}: {name}: {lines} lines, at most {MAX_LINES_OF_A_FUNCTION}"
        ));
    }
    if *is_public_with_bool {
        faults.push(format!(
            "{file}:{line}: {name}: a literal true or false is unclear in a call; \
             use an enum"
        ));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::faults_of;

    #[test]
    fn a_long_function_a_vague_name_and_a_public_bool_are_faults() {
        let source = format!(
            "pub fn long(on: bool) {{\n{}}}\n",
            "    step();\n".repeat(64)
        );
        let faults = faults_of("crates/x/src/helpers.rs", &source).unwrap();
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(
            faults[1].starts_with("crates/x/src/helpers.rs:1: long: 66 lines"),
            "{faults:?}"
        );
    }

    #[test]
    fn tests_may_be_long() {
        let source = format!("fn long() {{\n{}}}\n", "    step();\n".repeat(500));
        assert_eq!(
            faults_of("crates/x/tests/story.rs", &source).unwrap(),
            Vec::<String>::new()
        );
        assert_eq!(
            faults_of("crates/x/src/story.rs", &source).unwrap().len(),
            2
        );
    }
}

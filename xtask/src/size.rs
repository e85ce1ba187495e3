//! `cargo xtask size`: limits the sizes of files, and their names. Clippy limits functions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Faults;

/// Of code, before the tests of a file.
const MAX_LINES: usize = 450;

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
pub(crate) fn check(root: &Path) -> io::Result<Faults> {
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
        faults.extend(faults_of(&name, &source));
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

fn faults_of(name: &str, source: &str) -> Faults {
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
    if source
        .lines()
        .any(|line| line.trim_start().starts_with("#[path"))
    {
        faults.push(format!("{name}: #[path] hides where a module is"));
    }
    let code = source.lines().take_while(|line| *line != "mod tests {");
    let lines =
        code.filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//"));
    let lines = lines.count();
    let may_be_long = is_test(name) || LONG_FILES.iter().any(|(file, _)| *file == name);
    if lines > MAX_LINES && !may_be_long {
        faults.push(format!(
            "{name}: {lines} lines of code, at most {MAX_LINES}"
        ));
    }
    faults
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

#[cfg(test)]
mod tests {
    use super::faults_of;

    #[test]
    fn a_long_file_a_vague_name_and_a_hidden_path_are_faults() {
        let source = format!("#[path = \"a.rs\"]\n{}", "step();\n\n// why\n".repeat(450));
        let faults = faults_of("crates/x/src/helpers.rs", &source);
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults[2].contains("451 lines of code"), "{faults:?}");
    }

    #[test]
    fn tests_may_be_long() {
        let source = "step();\n".repeat(500);
        assert!(faults_of("crates/x/tests/story.rs", &source).is_empty());
        let beside = format!("fn f() {}\n#[cfg(test)]\nmod tests {{\n{source}}}\n", "{}");
        assert!(faults_of("crates/x/src/story.rs", &beside).is_empty());
        assert_eq!(faults_of("crates/x/src/story.rs", &source).len(), 1);
    }
}

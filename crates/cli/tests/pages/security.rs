//! SECURITY.md names a test for each of its claims. Checks that these tests exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::ROOT;

/// Collects the files of the source tree with that ending, except build output.
fn files(directory: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            files(&path, ending, found);
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
}

/// The names of tests: the code spans in the third of the four columns of a table.
fn test_names(page: &str) -> BTreeSet<String> {
    let rows = page.lines().map(|line| line.split('|').collect::<Vec<_>>());
    let shown_by = rows.filter_map(|cells| match cells[..] {
        ["", _, _, shown_by, _, ""] => Some(shown_by),
        _ => None,
    });
    let quoted = shown_by.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    quoted.map(str::to_owned).collect()
}

#[test]
fn every_test_that_the_page_about_security_names_exists() {
    let root = Path::new(ROOT);
    let page = std::fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let test_names = test_names(&page);
    assert!(test_names.len() > 40, "{test_names:?}");
    let mut sources = Vec::new();
    for folder in ["crates", "e2e"] {
        files(&root.join(folder), ".rs", &mut sources);
    }
    let texts: Vec<String> = sources
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    let is_there = |name: &String| {
        if Path::new(name).extension().is_some() {
            return sources.iter().any(|path| path.ends_with(name));
        }
        let promises = format!("e2e/tests/{name}.rs");
        let test = format!("fn {name}(");
        sources.iter().any(|path| path.ends_with(&promises))
            || texts.iter().any(|text| text.contains(&test))
    };
    let missing: Vec<&String> = test_names.iter().filter(|it| !is_there(it)).collect();
    assert_eq!(missing, Vec::<&String>::new());
}

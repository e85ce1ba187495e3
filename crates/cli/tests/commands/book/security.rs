//! SECURITY.md names a test for each of its claims. Checks that these tests exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::ROOT;

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

/// The promises about support are on one page, so that no other page can contradict it.
#[test]
fn pages_refer_to_the_page_about_support() {
    for (page, link) in [
        ("SECURITY.md", "(docs/releases.md#supported-versions)"),
        (
            "docs/how-to/install.md",
            "(../releases.md#supported-versions)",
        ),
        ("docs/how-to/install.md", "(../releases.md#deprecation)"),
        ("SECURITY.md", "(docs/releases.md#what-is-released)"),
    ] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
        assert!(text.contains(link), "{page}: {link}");
        assert!(!text.contains("release is supported"), "{page}");
    }
}

#[test]
fn the_pages_about_backup_and_removal_name_every_crd() {
    for (page, is_named_by_plural) in [
        ("docs/how-to/backup.md", true),
        ("docs/how-to/uninstall.md", false),
    ] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
        let text = text.replace("\\\n", " ");
        let command = text.lines().map(str::trim_start).find(|line| {
            line.starts_with("kubectl get scheduledmachines,")
                || line.starts_with("kubectl delete crd ")
        });
        let command = command.unwrap_or_else(|| panic!("{page} has no such command"));
        for crd in fivespot_api::manifest::definitions(fivespot_api::crd::SHIPPED_MINOR) {
            let names = &crd["spec"]["names"];
            let name = if is_named_by_plural {
                names["plural"].as_str()
            } else {
                crd["metadata"]["name"].as_str()
            };
            assert!(command.contains(name.unwrap()), "{page}: {command}");
        }
        if is_named_by_plural {
            for crd in
                fivespot_api::manifest::definitions(fivespot_api::crd::SHIPPED_MINOR)
            {
                // The page names objects in the plural: ScheduledCapacities.
                let kind = crd["spec"]["names"]["kind"].as_str().unwrap();
                let stem = kind.strip_suffix('y').unwrap_or(kind);
                assert!(text.contains(&format!("\n| {stem}")), "{page}: {kind}");
            }
        }
    }
}

#[test]
fn every_test_that_the_page_about_security_names_exists() {
    let root = Path::new(ROOT);
    let page = std::fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let test_names = test_names(&page);
    assert!(test_names.len() > 40, "{test_names:?}");
    let mut sources = Vec::new();
    for folder in ["crates", "e2e", "engine"] {
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

//! The images in the commands of the pages.

use std::fs;
use std::path::Path;

use super::ROOT;
use super::pages::Book;

/// The commands of a text that apply generated manifests with pods. A command with continuation
/// lines is one.
fn applied(text: &str) -> Vec<String> {
    let text = text.replace("\\\n", " ");
    let commands = text.lines().filter(|line| {
        let generates = ["manifests", "agent", "webhook"]
            .iter()
            .any(|it| line.contains(&format!("5spot generate {it}")));
        let has_pods = !line.contains("generate agent --host");
        generates && has_pods && line.contains("| kubectl")
    });
    commands.map(str::to_owned).collect()
}

#[test]
fn every_command_that_applies_generated_manifests_names_an_image() {
    let mut texts: Vec<String> =
        Book::open().pages.into_iter().map(|it| it.text).collect();
    for file in [
        "README.md",
        "examples/reclaim.yaml",
        "deploy/chart/README.md",
    ] {
        texts.push(fs::read_to_string(Path::new(ROOT).join(file)).unwrap());
    }
    let commands: Vec<String> = texts.iter().flat_map(|it| applied(it)).collect();
    assert!(commands.len() > 10, "{commands:?}");
    let without: Vec<&String> = commands
        .iter()
        .filter(|it| !it.contains("--image "))
        .collect();
    assert_eq!(without, Vec::<&String>::new());
}

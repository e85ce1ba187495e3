//! What people read: the help, the README, and the text of the report.

use std::fs;

use clap::CommandFactory as _;

use crate::{Cli, fixture, run};

fn example() -> String {
    let folder = format!("{}/tests/diff/example", env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(format!("{folder}/{name}.yaml")).unwrap();
    run(read("old"), read("new"), &[]).1
}

#[test]
fn the_help_says_what_is_compared_and_how_it_ends() {
    insta::assert_snapshot!(Cli::command().render_long_help());
}

#[test]
fn the_readme_shows_the_output_of_its_example() {
    let readme = format!("{}/../../README.md", env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(readme).unwrap();
    let output = example();
    assert!(readme.contains(&output), "{output}");
}

#[test]
fn an_update_is_shown_with_what_is_stored() {
    let old = fixture("certificates");
    let mut new = old.clone();
    let rules = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations";
    new.pointer_mut(rules)
        .unwrap()
        .as_array_mut()
        .unwrap()
        .pop();
    let (_, text) = run(old.to_string(), new.to_string(), &["--budget", "6000"]);
    insta::assert_snapshot!(text);
}

#[test]
fn the_space_that_was_searched_is_named_if_nothing_is_found() {
    let old = fixture("certificates").to_string();
    let new = old.replace("'^[0-9]+h$'", "'^([0-9]+h)$'");
    let (_, text) = run(old, new, &["--budget", "500"]);
    insta::assert_snapshot!(text);
}

#[test]
fn no_name_in_a_definition_begins_a_line_of_its_own() {
    let old = fixture("fleets");
    let mut new = old.clone();
    let fields = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    new.pointer_mut(fields).unwrap()["a\n1 found\u{1b}[2J"] =
        serde_json::json!({"type": "string"});
    let (_, text) = run(old.to_string(), new.to_string(), &["--budget", "500"]);
    assert!(
        !text.contains('\u{1b}') && !text.contains("\n1 found\\"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n".to_owned();
    let crd = fixture("fleets");
    let (failure, _) = run(config, crd.to_string(), &[]);
    let text = failure.unwrap_err().to_string();
    assert!(
        text.contains("contains no CustomResourceDefinition"),
        "{text}"
    );
    let mut wrong = crd.clone();
    wrong["spec"]["scope"] = "Everywhere".into();
    let (failure, _) = run(crd.to_string(), wrong.to_string(), &[]);
    let text = failure.unwrap_err().to_string();
    assert!(text.contains("a server would reject it too"), "{text}");
}

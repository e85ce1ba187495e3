//! `--apply`: objects from files, directories or the built-in examples.

use std::path::PathBuf;

use kube::Client;
pub(super) use kubemu::apply::{take_unserved, titles};

use super::example;
use crate::Failure;
use crate::document::{self, Document};

/// The field manager of the applied objects.
const FIELD_MANAGER: &str = "5spot-dev";

/// Reads all objects of `paths` in order, or the built-in examples if there are none.
///
/// # Errors
/// A path cannot be read, or a text is neither YAML nor JSON. The failure names the file.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    if !paths.is_empty() {
        return document::read(paths);
    }
    let mut all = Vec::new();
    for (name, text) in example::ALL {
        all.extend(document::parse(name, text)?);
    }
    Ok(all)
}

/// Applies one object.
///
/// # Errors
/// As [`kubemu::apply::apply`].
pub(super) async fn apply(client: &Client, written: &Document) -> Result<(), Failure> {
    kubemu::apply::apply(client, written, FIELD_MANAGER).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_examples_are_read_when_nothing_is_given() {
        let titles = titles(&read(&[]).unwrap());
        assert!(
            titles.contains("ScheduledMachine/business-hours-worker"),
            "{titles}"
        );
        assert!(
            titles.contains("ScheduledMachine/every-other-minute"),
            "{titles}"
        );
    }

    #[test]
    fn a_missing_path_is_named_in_the_error() {
        let failure = read(&[PathBuf::from("/nowhere.yaml")])
            .err()
            .unwrap()
            .to_string();
        assert!(failure.starts_with("reading /nowhere.yaml: "), "{failure}");
    }
}

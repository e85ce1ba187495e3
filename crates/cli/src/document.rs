//! Objects from files, directories and standard input: `-f`.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Failure;

/// One object, and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    /// The file and, where it holds several, which of its documents: `a.yaml, document 2`.
    pub(crate) origin: String,
    /// What was written.
    pub(crate) object: Value,
}

impl Document {
    /// The string at a JSON pointer; empty if there is none.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

/// Reads every object of `paths` in order. A directory stands for the `.yaml`, `.yml` and
/// `.json` files in it, `-` for standard input, a list object for its items. Empty documents
/// are skipped and not counted.
///
/// # Errors
/// A path that cannot be read, or text that is neither YAML nor JSON; names the file.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            let reading = io::stdin().lock().read_to_string(&mut text);
            reading.map_err(|error| Failure::new("reading standard input", error))?;
            all.extend(parse("standard input", &text)?);
            continue;
        }
        for file in files(path)? {
            let origin = file.display().to_string();
            let text = fs::read_to_string(&file)
                .map_err(|error| Failure::new(format!("reading {origin}"), error))?;
            all.extend(parse(&origin, &text)?);
        }
    }
    Ok(all)
}

/// The objects of a text of YAML or JSON documents.
///
/// # Errors
/// Text that is neither; names `origin`.
pub(crate) fn parse(origin: &str, text: &str) -> Result<Vec<Document>, Failure> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| Failure::new(format!("reading {origin}"), error))?;
    let several = documents.len() > 1;
    let mut all = Vec::new();
    for (mut object, place) in documents.into_iter().zip(1..) {
        let origin = if several {
            format!("{origin}, document {place}")
        } else {
            origin.to_owned()
        };
        match object.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => {
                let item = |(object, place)| Document {
                    origin: format!("{origin}, item {place}"),
                    object,
                };
                all.extend(items.into_iter().zip(1..).map(item));
            }
            _ if object.is_null() => {}
            _ => all.push(Document { origin, object }),
        }
    }
    Ok(all)
}

/// The file itself, or the manifests of a directory in the order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| Failure::new(format!("reading {}", path.display()), error);
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        let ending = file.extension().and_then(|ending| ending.to_str());
        if matches!(ending, Some("yaml" | "yml" | "json")) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_counted_and_empty_ones_are_not() {
        let text = "kind: A\n---\n---\nkind: List\nitems: [{kind: B}, {kind: C}]\n";
        let found = parse("a.yaml", text).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.origin.as_str(), it.text("/kind")))
            .collect();
        assert_eq!(
            found,
            [
                ("a.yaml, document 1", "A"),
                ("a.yaml, document 2, item 1", "B"),
                ("a.yaml, document 2, item 2", "C"),
            ]
        );
    }

    #[test]
    fn a_single_document_needs_no_number() {
        let found = parse("a.json", "{\"kind\": \"A\"}").unwrap();
        assert_eq!(found[0].origin, "a.json");
    }

    #[test]
    fn text_that_is_not_yaml_is_refused_with_the_name_of_the_file() {
        let failure = parse("a.yaml", "a: [").unwrap_err().to_string();
        assert!(failure.starts_with("reading a.yaml: "), "{failure}");
    }
}

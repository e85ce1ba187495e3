//! Reads objects from files, directories and standard input: `-f`.

mod malformed;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::{Failure, parallel};
pub(crate) use malformed::Malformed;

/// An object and its origin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    /// The file and, if it has several documents, the number of the document: `a.yaml, document 2`.
    pub(crate) origin: String,
    /// The object as written.
    pub(crate) object: Value,
    /// The location of its text, if it is in a file or a stream.
    pub(crate) location: Option<SourceLocation>,
}

/// The text of an object within a file or a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceLocation {
    /// The path of the file, or `standard input`.
    pub(crate) file: String,
    /// The line of the file on which the document begins, from 1.
    pub(crate) line: usize,
    /// The text of the document, beginning at that line.
    pub(crate) text: Arc<str>,
}

impl SourceLocation {
    /// The line of the file that contains a field. If the field is not found in the text, the line
    /// of the nearest enclosing field.
    pub(crate) fn line_of(&self, field: &str) -> usize {
        let lines: Vec<&str> = self.text.lines().collect();
        let mut at = 0;
        let mut depth = None;
        for key in field.split(['.', '[', ']']) {
            let is_index = key.is_empty() || key.bytes().all(|it| it.is_ascii_digit());
            if is_index {
                continue;
            }
            let below = lines.iter().enumerate().skip(at);
            let found = below
                .map(|(index, line)| (index, line.trim_start_matches([' ', '-']), line))
                .find(|(_, rest, line)| {
                    let indent = line.len() - rest.len();
                    let rest = rest.trim_start_matches(['"', '\'']);
                    let is_key = rest.strip_prefix(key).is_some_and(|rest| {
                        rest.trim_start_matches(['"', '\'']).starts_with(':')
                    });
                    is_key && depth.is_none_or(|depth| indent > depth)
                });
            let Some((index, rest, line)) = found else {
                break;
            };
            at = index;
            depth = Some(line.len() - rest.len());
        }
        self.line + at
    }
}

impl Document {
    /// The string at a JSON pointer. Empty if there is none.
    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

/// The objects of some paths.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    /// The objects in order. A text that cannot be parsed is in the place of its objects.
    pub(crate) items: Vec<Result<Document, Malformed>>,
    /// Whether there is a list object. It may have no items.
    pub(crate) has_list: bool,
}

/// Reads all objects of `paths` in order. A directory is replaced by its `.yaml`, `.yml` and
/// `.json` files, `-` by standard input, a list object by its items. Empty documents are skipped
/// and not counted.
///
/// # Errors
/// A path cannot be read, or a text is neither YAML nor JSON. The failure names the file.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    let items = read_each(paths)?.items.into_iter();
    items.map(|it| it.map_err(Failure::from)).collect()
}

/// As [`read`], but a text that is neither YAML nor JSON does not prevent the others from being read.
///
/// # Errors
/// A path cannot be read. The failure names the file.
pub(crate) fn read_each(paths: &[PathBuf]) -> Result<Documents, Failure> {
    let mut all = Documents::default();
    for path in paths {
        if path.as_os_str() == "-" {
            let text = read_bounded("standard input", io::stdin().lock())?;
            all.add(parse_text("standard input", &text));
            continue;
        }
        let read = parallel::map(files(path)?, |file| {
            let origin = file.display().to_string();
            let opened =
                File::open(&file).map_err(|error| unreadable(&origin, &error))?;
            let text = read_bounded(&origin, opened)?;
            Ok::<_, Failure>(parse_text(&origin, &text))
        });
        for text in read {
            all.add(text?);
        }
    }
    Ok(all)
}

impl Documents {
    fn add(&mut self, parsed: Result<ParsedText, Malformed>) {
        match parsed {
            Ok(parsed) => {
                self.has_list |= parsed.has_list;
                self.items.extend(parsed.documents.into_iter().map(Ok));
            }
            Err(malformed) => self.items.push(Err(malformed)),
        }
    }
}

/// The largest number of bytes that are read of a file.
const MAX_BYTES: u64 = 64 << 20;

/// Reads the whole text. Fails if it is too large.
fn read_bounded(origin: &str, reader: impl Read) -> Result<String, Failure> {
    let mut text = String::new();
    let reading = reader.take(MAX_BYTES + 1).read_to_string(&mut text);
    let read = reading.map_err(|error| unreadable(origin, &error))?;
    if read as u64 > MAX_BYTES {
        let why = format!("it is larger than {} MiB", MAX_BYTES >> 20);
        return Err(Failure::new(format!("reading {origin}"), why)
            .remedy("split it into several files"));
    }
    Ok(text)
}

/// Parses the objects of a text of YAML or JSON documents.
///
/// # Errors
/// The text is neither. The failure names `origin`.
pub(crate) fn parse(origin: &str, text: &str) -> Result<Vec<Document>, Failure> {
    Ok(parse_text(origin, text)?.documents)
}

/// The objects of one text.
struct ParsedText {
    documents: Vec<Document>,
    has_list: bool,
}

fn parse_text(origin: &str, text: &str) -> Result<ParsedText, Malformed> {
    // The size of the text bounds all of these.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: text.len(),
            max_events: 8 * (text.len() + 1),
            max_nodes: 8 * (text.len() + 1),
        },
    };
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| Malformed::of(origin, &error))?;
    let several = documents.len() > 1;
    let file = origin;
    let mut texts = sections(text);
    let mut all = Vec::new();
    let mut has_list = false;
    for (mut object, number) in documents.into_iter().zip(1..) {
        let origin = if several {
            format!("{origin}, document {number}")
        } else {
            origin.to_owned()
        };
        let location = texts.next().map(|(line, text)| SourceLocation {
            file: file.to_owned(),
            line,
            text: text.into(),
        });
        let is_list = object
            .get("kind")
            .and_then(Value::as_str)
            .is_none_or(|kind| kind.ends_with("List"));
        match object.get_mut("items").filter(|_| is_list).map(Value::take) {
            Some(Value::Array(items)) => {
                has_list = true;
                let item = |(object, number)| Document {
                    origin: format!("{origin}, item {number}"),
                    object,
                    location: location.clone(),
                };
                all.extend(items.into_iter().zip(1..).map(item));
            }
            _ if object.is_null() => {}
            _ => all.push(Document {
                origin,
                object,
                location,
            }),
        }
    }
    Ok(ParsedText {
        documents: all,
        has_list,
    })
}

/// The failure for a file that cannot be read.
pub(crate) fn unreadable(origin: &str, error: &io::Error) -> Failure {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            "give an existing file or directory"
        }
        io::ErrorKind::PermissionDenied => "make it readable, or give another file",
        io::ErrorKind::InvalidData => "give UTF-8 text",
        _ => "give another file",
    };
    Failure::new(format!("reading {origin}"), error).remedy(remedy)
}

/// The failure for text that is neither YAML nor JSON.
pub(crate) fn malformed(origin: &str, error: &serde_saphyr::Error) -> Failure {
    Malformed::of(origin, error).into()
}

/// The documents of a stream that are not empty, each with the line on which it begins.
fn sections(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut is_new = true;
    for (line, number) in text.lines().zip(1..) {
        if line.starts_with("---") {
            is_new = true;
            continue;
        }
        let is_blank = line.trim().is_empty() || line.trim_start().starts_with('#');
        if is_new && is_blank {
            continue;
        }
        if is_new {
            all.push((number, String::new()));
            is_new = false;
        }
        if let Some((_, text)) = all.last_mut() {
            text.push_str(line);
            text.push('\n');
        }
    }
    all.into_iter()
}

/// The file itself, or the manifests of a directory ordered by name.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |error| unreadable(&path.display().to_string(), &error);
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
    fn a_stream_may_hold_any_number_of_documents_within_its_bytes() {
        let text = "kind: A\n---\n".repeat(3_000);
        assert_eq!(parse("a.yaml", &text).unwrap().len(), 3_000);
        let large = io::repeat(b' ').take(MAX_BYTES + 1);
        let refused = read_bounded("a.yaml", large).unwrap_err();
        assert!(
            refused.to_string().contains("larger than 64 MiB"),
            "{refused}"
        );
    }

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
    fn a_field_is_found_on_its_line() {
        let text = "# a comment\n---\nkind: A\n---\n\nkind: B\nmetadata:\n  name: a\nspec:\n  \
                    schedule:\n    name: b\n  taints:\n  - key: a\n    effect: c\n";
        let found = parse("a.yaml", text).unwrap();
        let location = found[1].location.as_ref().unwrap();
        assert_eq!(location.line, 6);
        for (field, line) in [
            ("spec.schedule.name", 11),
            ("metadata.name", 8),
            ("spec.taints[0].effect", 14),
            ("spec.schedule.missing", 10),
            ("", 6),
        ] {
            assert_eq!(location.line_of(field), line, "{field}");
        }
    }

    #[test]
    fn only_lists_are_split_into_their_items() {
        let found = parse("a.yaml", "kind: Shelf\nitems: [{kind: B}]\n").unwrap();
        assert_eq!(found[0].text("/kind"), "Shelf");
    }

    #[test]
    fn a_single_document_has_no_number() {
        let found = parse("a.json", "{\"kind\": \"A\"}").unwrap();
        assert_eq!(found[0].origin, "a.json");
    }

    #[test]
    fn text_that_is_not_yaml_is_refused_with_the_name_of_the_file() {
        let failure = parse("a.yaml", "a: [").unwrap_err();
        insta::assert_snapshot!(failure.to_string(), @r"
        reading a.yaml: line 1 column 4: unclosed bracket '['; write YAML or JSON
         --> <input>:1:4
          |
        1 | a: [
          |    ^ unclosed bracket '['
        ");
    }
}

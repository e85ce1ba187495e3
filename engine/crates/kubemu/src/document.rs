//! Reads objects from files, directories and standard input: `-f`.

mod location;
mod malformed;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kubemu_terminal::Failure;
use serde_json::Value;

use crate::parallel;
pub use location::SourceLocation;
pub use malformed::Malformed;

/// An object and its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The file and, if it has several documents, the number of the document: `a.yaml, document 2`.
    pub origin: String,
    /// The object as written.
    pub object: Value,
    /// The location of its text, if it is in a file or a stream.
    pub location: Option<SourceLocation>,
}

impl Document {
    /// The string at a JSON pointer. Empty if there is none.
    pub fn text(&self, pointer: &str) -> &str {
        self.object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

/// The objects of some paths.
#[derive(Debug, Default)]
pub struct Documents {
    /// The objects in order. A text that cannot be parsed is in the place of its objects.
    pub items: Vec<Result<Document, Malformed>>,
    /// Whether there is a list object. It may have no items.
    pub has_list: bool,
}

/// Reads all objects of `paths` in order. A directory is replaced by its `.yaml`, `.yml` and
/// `.json` files and those of the directories in it, `-` by standard input, a list object by its
/// items. Empty documents are skipped and not counted.
///
/// # Errors
/// A path cannot be read, or a text is neither YAML nor JSON. The failure names the file.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Document>, Failure> {
    let items = read_each(paths)?.items.into_iter();
    items.map(|it| it.map_err(Failure::from)).collect()
}

/// As [`read`], but a text that is neither YAML nor JSON, or a file that cannot be read, does not
/// prevent the others from being read.
///
/// # Errors
/// A path does not exist, or standard input cannot be read. The failure names it.
pub fn read_each(paths: &[PathBuf]) -> Result<Documents, Failure> {
    let mut all = Documents::default();
    for path in paths {
        if path.as_os_str() == "-" {
            let text = read_bounded("standard input", io::stdin().lock())?;
            all.add(parse_text("standard input", &text));
            continue;
        }
        let read = parallel::map(files(path)?, |file| {
            let origin = file.display().to_string();
            let opened = File::open(&file)
                .map_err(|error| Malformed::unreadable(&origin, &error))?;
            let text = read_bounded(&origin, opened)?;
            parse_text(&origin, &text)
        });
        for text in read {
            all.add(text);
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

/// How many documents a text may have, and how many values, keys included: more take minutes and a
/// gigabyte.
const MAX_DOCUMENTS: usize = 100_000;
const MAX_VALUES: usize = 2_000_000;

/// Reads the whole text. Fails if it is too large.
pub fn read_bounded(origin: &str, reader: impl Read) -> Result<String, Malformed> {
    let mut text = String::new();
    let reading = reader.take(MAX_BYTES + 1).read_to_string(&mut text);
    let read = reading.map_err(|error| Malformed::unreadable(origin, &error))?;
    if read as u64 > MAX_BYTES {
        return Err(Malformed::too_large(origin));
    }
    Ok(text)
}

/// Parses the objects of a text of YAML or JSON documents.
///
/// # Errors
/// The text is neither. The failure names `origin`.
pub fn parse(origin: &str, text: &str) -> Result<Vec<Document>, Failure> {
    Ok(parse_text(origin, text)?.documents)
}

/// The objects of one text.
struct ParsedText {
    documents: Vec<Document>,
    has_list: bool,
}

fn parse_text(origin: &str, text: &str) -> Result<ParsedText, Malformed> {
    let documents = values(text).map_err(|error| Malformed::of(origin, &error))?;
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
        let location = texts
            .next()
            .map(|(line, text)| SourceLocation::new(file.to_owned(), line, text));
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

/// The values of the documents of a text, without those that are empty.
fn values(text: &str) -> Result<Vec<Value>, serde_saphyr::Error> {
    let parts = parts(text);
    if parts.len() > 1 {
        // Together they have at most as many values as a whole text.
        let most = MAX_VALUES / parts.len();
        let read = parallel::map(parts, |part| values_of(part, most));
        let read: Result<Vec<_>, _> = read.into_iter().collect();
        let documents = read.map(|it| it.into_iter().flatten().collect::<Vec<_>>());
        if let Ok(documents) = documents
            && documents.len() <= MAX_DOCUMENTS
        {
            return Ok(documents);
        }
        // What is wrong is said with its place in the whole text.
    }
    values_of(text, MAX_VALUES)
}

fn values_of(text: &str, most: usize) -> Result<Vec<Value>, serde_saphyr::Error> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: MAX_DOCUMENTS,
            max_nodes: most,
            // A value has at most an event for its beginning, one for its end, and its document's.
            max_events: 4 * (most + MAX_DOCUMENTS),
        },
    };
    serde_saphyr::from_multiple_with_options(text, options)
}

/// The least size of a part of a text, in bytes, but for the last one.
const MIN_PART: usize = 16 << 10;

/// The text in parts of whole documents that can be parsed apart. A line with a marker begins a
/// document wherever it is; directives are about the document after them, so a text with some is one
/// part.
fn parts(text: &str) -> Vec<&str> {
    let has_directives = || text.lines().any(|line| line.starts_with('%'));
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((at, _)) = rest
        .match_indices("\n---\n")
        .find(|(at, _)| *at >= MIN_PART)
    {
        let (part, more) = rest.split_at(at + 1);
        parts.push(part);
        rest = more;
    }
    if parts.is_empty() || has_directives() {
        return vec![text];
    }
    parts.push(rest);
    parts
}

/// The failure for a file that cannot be read.
pub fn unreadable(origin: &str, error: &io::Error) -> Failure {
    Malformed::unreadable(origin, error).into()
}

/// The failure for text that is neither YAML nor JSON.
pub fn malformed(origin: &str, error: &serde_saphyr::Error) -> Failure {
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

/// The file itself, or the manifests of a directory and of those in it, ordered by path.
///
/// As in kubectl, a link to a file is read, and a link to a directory is not entered. Nor are
/// directories whose name begins with a dot: those of git and of pipelines have other YAML. A
/// directory in it that cannot be read is in the list itself, so that its reader reports it.
fn files(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error| unreadable(&path, &error)
    };
    if !fs::metadata(path).map_err(failed(path))?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut files, mut directories) = (Vec::new(), vec![path.to_owned()]);
    while let Some(directory) = directories.pop() {
        let entries = match fs::read_dir(&directory) {
            Err(_) if directory != path => {
                files.push(directory);
                continue;
            }
            entries => entries.map_err(failed(&directory))?,
        };
        for entry in entries {
            let entry = entry.map_err(failed(&directory))?;
            let found = entry.path();
            if entry.file_type().is_ok_and(|it| it.is_dir()) {
                if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                    directories.push(found);
                }
                continue;
            }
            let ending = found.extension().and_then(|ending| ending.to_str());
            let is_manifest = matches!(ending, Some("yaml" | "yml" | "json"));
            if is_manifest && !fs::metadata(&found).is_ok_and(|it| it.is_dir()) {
                files.push(found);
            }
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
        let many = "a\n---\n".repeat(MAX_DOCUMENTS + 2);
        let Err(refused) = parse_text("a.yaml", &many) else {
            panic!("there are {} documents", MAX_DOCUMENTS + 2);
        };
        let why = ": more than 100000 documents; split it into several files";
        assert!(refused.message().ends_with(why), "{}", refused.message());
        let large = io::repeat(b' ').take(MAX_BYTES + 1);
        let refused = read_bounded("a.yaml", large).unwrap_err().message();
        assert!(refused.contains("larger than 64 MiB"), "{refused}");
    }

    #[test]
    fn a_long_text_has_the_documents_of_its_parts_and_says_where_it_is_wrong() {
        let document = |number: usize| {
            format!(
                "kind: A\nnumber: {number}\ntext: |\n  ---\n  {}\n",
                "a".repeat(900)
            )
        };
        let all: Vec<String> = (0..200).map(document).collect();
        let text = format!("# First.\n---\n{}---\n# Last.\n", all.join("---\n"));
        assert!(parts(&text).len() > 5);
        assert_eq!(parts(&text).concat(), text);
        let found = parse("a.yaml", &text).unwrap();
        assert_eq!(values_of(&text, MAX_VALUES).unwrap().len(), 200);
        for (of, number) in found.iter().zip(0..) {
            assert_eq!(of.object["number"], number);
            assert_eq!(of.origin, format!("a.yaml, document {}", number + 1));
            let location = of.location.as_ref().map(|it| it.line);
            assert_eq!(location, Some(3 + 6 * number));
        }
        assert_eq!(found.len(), 200);
        let wrong = format!("{text}---\nkind: [\n");
        let message = |error: serde_saphyr::Error| error.to_string();
        let whole = values_of(&wrong, MAX_VALUES).map_err(message);
        assert_eq!(values(&wrong).map_err(message), whole);
        assert!(whole.unwrap_err().contains(" 120"));
        // A directive is about the document after it.
        let directed = format!("{text}...\n%YAML 1.2\n---\nkind: A\n");
        assert_eq!(parts(&directed), [&*directed]);
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

    #[test]
    fn a_directory_is_walked_and_its_links_are_read_but_not_entered() {
        use std::os::unix::fs::symlink;
        let root = std::env::temp_dir()
            .join(format!("kubemu-document-walk-{}", std::process::id()));
        let (outside, inside) = (root.join("outside"), root.join("inside"));
        for directory in [&outside, &inside.join("b/c"), &inside.join(".git")] {
            fs::create_dir_all(directory).unwrap();
        }
        for file in [
            "outside/x.yaml",
            "inside/a.yaml",
            "inside/b/c/d.json",
            "inside/b/notes.txt",
            "inside/.git/e.yaml",
        ] {
            fs::write(root.join(file), "kind: A\n").unwrap();
        }
        symlink(outside.join("x.yaml"), inside.join("b/link.yaml")).unwrap();
        symlink(&outside, inside.join("link")).unwrap();
        symlink(&outside, inside.join("link.yaml")).unwrap();
        let found = files(&inside).unwrap();
        fs::remove_dir_all(&root).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|it| it.strip_prefix(&inside).unwrap().to_str().unwrap())
            .collect();
        assert_eq!(found, ["a.yaml", "b/c/d.json", "b/link.yaml"]);
    }
}

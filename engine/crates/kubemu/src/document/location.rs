//! The text of an object, and the lines of its fields.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The text of an object within a file or a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The path of the file, or `standard input`.
    pub file: String,
    /// The line of the file on which the document begins, from 1.
    pub line: usize,
    text: Arc<SourceText>,
}

/// The text of a document, and its keys as soon as a field is looked up. All objects of a list
/// share it.
struct SourceText {
    text: String,
    keys: OnceLock<Keys>,
}

/// The lines on which keys are, by key. Every list is in the order of the lines.
#[derive(Debug)]
struct Keys {
    lines: HashMap<String, Vec<usize>>,
    /// For each line, the first one behind it that is not indented more: the end of its block.
    ends: Vec<usize>,
    /// For each line, the indent of its key, if it has one.
    indents: Vec<Option<usize>>,
}

impl SourceLocation {
    /// The text of a document that begins on this line of a file.
    pub fn new(file: String, line: usize, text: String) -> Self {
        let keys = OnceLock::new();
        let text = Arc::new(SourceText { text, keys });
        Self { file, line, text }
    }

    /// The line of the file that contains a field. If the field is not found in the text, the line
    /// of the nearest enclosing field.
    pub fn line_of(&self, field: &str) -> usize {
        let keys = self.text.keys.get_or_init(|| Keys::of(&self.text.text));
        let (mut found, mut begin, mut end) = (0, 0, keys.ends.len());
        for key in field.split(['.', '[', ']']) {
            if key.is_empty() {
                continue;
            }
            if let Ok(index) = key.parse::<usize>() {
                // Lists of JSON, and those on one line, have no line for each item.
                if let Some((item, after)) = self.text.item(index, begin, end) {
                    (found, begin, end) = (item, item, after);
                }
                continue;
            }
            let Some(line) = keys.first(key, begin, end) else {
                break;
            };
            found = line;
            begin = line + 1;
            end = keys.ends.get(line).copied().unwrap_or(end);
        }
        self.line + found
    }
}

/// How many lines of a key are looked at.
const MAX_LINES_OF_KEY: usize = 256;

impl SourceText {
    /// The line of an item of the list whose lines these are, and the first line after it.
    fn item(&self, index: usize, begin: usize, end: usize) -> Option<(usize, usize)> {
        let lines = self.text.lines().enumerate().skip(begin);
        let lines = lines.take_while(|(at, _)| *at < end);
        let mut indent = None;
        let mut items = lines.filter_map(|(at, line)| {
            let rest = line.trim_start_matches(' ');
            let found = line.len() - rest.len();
            let is_item = rest.starts_with("- ") || rest == "-";
            (is_item && *indent.get_or_insert(found) == found).then_some(at)
        });
        Some((items.nth(index)?, items.next().unwrap_or(end)))
    }
}

impl Keys {
    fn of(text: &str) -> Self {
        let mut lines: HashMap<String, Vec<usize>> = HashMap::new();
        let (mut ends, mut indents) = (Vec::new(), Vec::new());
        // The lines whose blocks have not ended, and their indents, which increase.
        let mut open: Vec<(usize, usize)> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            ends.push(usize::MAX);
            indents.push(None);
            let rest = line.trim_start_matches([' ', '-']);
            // Neither ends a block, wherever it begins.
            if rest.is_empty() || rest.starts_with('#') {
                continue;
            }
            let indent = line.len() - rest.len();
            while let Some((begin, _)) = open.pop_if(|(_, outer)| *outer >= indent) {
                if let Some(end) = ends.get_mut(begin) {
                    *end = at;
                }
            }
            open.push((at, indent));
            if let Some(key) = key(rest) {
                lines.entry(key.to_owned()).or_default().push(at);
                if let Some(place) = indents.last_mut() {
                    *place = Some(indent);
                }
            }
        }
        Self {
            lines,
            ends,
            indents,
        }
    }

    /// The line of the range that has this key: one that is not indented more than the first key
    /// of the range if there is one, otherwise the first.
    fn first(&self, key: &str, begin: usize, end: usize) -> Option<usize> {
        let lines = self.lines.get(key)?;
        let after = lines.partition_point(|line| *line < begin);
        let of_key = lines.get(after..).unwrap_or_default().iter().copied();
        let mut of_key = of_key.take_while(|line| *line < end).take(MAX_LINES_OF_KEY);
        let first = of_key.clone().next()?;
        let indent = |line: usize| self.indents.get(line).copied().flatten();
        let outer = (begin..first).find_map(indent);
        let is_outer =
            |line: &usize| outer.is_none_or(|outer| indent(*line) <= Some(outer));
        of_key.find(is_outer).or(Some(first))
    }
}

/// The key at the beginning of a line without its indent.
fn key(rest: &str) -> Option<&str> {
    let quotes = ['"', '\''];
    let (key, _) = rest.split_once(':')?;
    Some(key.trim_matches(quotes))
}

impl PartialEq for SourceText {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for SourceText {}

impl fmt::Debug for SourceText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::parse;

    #[test]
    fn a_field_is_found_on_its_line() {
        let text = "# a comment\n---\nkind: A\n---\n\nkind: B\nmetadata:\n  name: a\nspec:\n  \
                    schedule:\n# why\n    name: b\n  taints:\n  - key: a\n    effect: c\n  \
                    - key: b\n    effect: d\n";
        let found = parse("a.yaml", text).unwrap();
        let location = found[1].location.as_ref().unwrap();
        assert_eq!(location.line, 6);
        for (field, line) in [
            ("spec.schedule.name", 12),
            ("metadata.name", 8),
            ("spec.taints[0].effect", 15),
            ("spec.taints[1].effect", 17),
            ("spec.taints[1]", 16),
            ("spec.taints[2].effect", 15),
            ("spec.schedule.missing", 10),
            ("spec.schedule.key", 10),
            ("", 6),
        ] {
            assert_eq!(location.line_of(field), line, "{field}");
        }
    }

    #[test]
    fn a_field_is_not_mistaken_for_one_of_the_same_name_in_another() {
        let text = "a:\n  b:\n    c: 1\n  c:\n  - b:\n      d: 1\n    d: 2\n  d: 3\n";
        let location = SourceLocation::new("a.yaml".to_owned(), 1, text.to_owned());
        for (field, line) in [("a.c", 4), ("a.c[0].d", 7), ("a.d", 8), ("a.b.c", 3)] {
            assert_eq!(location.line_of(field), line, "{field}");
        }
    }

    #[test]
    fn a_field_of_json_is_found_on_its_line() {
        let text = "{\n  \"kind\": \"A\",\n  \"spec\": {\n    \"a\": {\n      \"b\": 1\n    \
                    },\n    \"c\": 2\n  }\n}\n";
        let location = SourceLocation::new("a.json".to_owned(), 1, text.to_owned());
        for (field, line) in [("spec.a.b", 5), ("spec.c", 7), ("spec.a.c", 4)] {
            assert_eq!(location.line_of(field), line, "{field}");
        }
    }

    #[test]
    fn the_lines_of_a_document_are_read_once_for_all_objects_of_its_list() {
        let items: Vec<_> = (0..100).map(|at| format!("- kind: A{at}\n")).collect();
        let text = format!("kind: List\nitems:\n{}", items.concat());
        let found = parse("a.yaml", &text).unwrap();
        let location = |at: usize| found[at].location.as_ref().unwrap();
        assert_eq!(location(0).line_of("spec.missing"), 1);
        assert_eq!(found.len(), 100);
        for at in 0..100 {
            let keys = location(at).text.keys.get().unwrap();
            assert!(std::ptr::eq(keys, location(0).text.keys.get().unwrap()));
        }
        // A key is found by a search among its own lines.
        let keys = location(0).text.keys.get().unwrap();
        assert_eq!(keys.lines["kind"].len(), 101);
        assert_eq!(keys.first("kind", 50, 102), Some(50));
    }
}

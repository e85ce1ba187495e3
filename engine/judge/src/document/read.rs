//! Finds the examples of a document that is kept as plain text, without markup.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// The entries of a block without its nesting: each field with its value, or its name only if its
/// value has fields, with the number of occurrences. The text of document 002 has lost its
/// indentation.
pub(super) type Entries = BTreeMap<String, usize>;

/// The form of an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// YAML or JSON.
    Block,
    /// A command, or flags of a command.
    Command,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Block => "block",
            Self::Command => "command",
        })
    }
}

/// An example of a document.
#[derive(Debug)]
pub(super) struct Example {
    pub(super) heading: String,
    pub(super) form: Form,
    /// Its number among the examples of its form below the heading, from 1.
    pub(super) ordinal: usize,
    /// The line where it starts, from 1.
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) entries: Entries,
}

/// All examples of a document, in order.
pub(super) fn examples(text: &str) -> Vec<Example> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found: Vec<Example> = Vec::new();
    let mut heading = String::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let rest = lines.get(at..).unwrap_or_default();
        let (form, length) = if is_command(line) {
            (Form::Command, 1)
        } else {
            (Form::Block, length_of_block(rest))
        };
        if length == 0 {
            if is_heading(line) {
                line.trim().clone_into(&mut heading);
            }
            at += 1;
            continue;
        }
        let text = rest.get(..length).unwrap_or_default().join("\n");
        let before = found
            .iter()
            .filter(|it| it.heading == heading && it.form == form);
        found.push(Example {
            form,
            ordinal: before.count() + 1,
            heading: heading.clone(),
            line: at + 1,
            entries: of_text(&text),
            text,
        });
        at += length;
    }
    found
}

/// The value of the last flag of a command; the whole command if it has none.
pub(super) fn flag(command: &str) -> &str {
    let words = command.split_whitespace().rev();
    let mut values = words.filter_map(|it| it.strip_prefix("--")?.split_once('='));
    values.next().map_or(command, |(_, value)| value)
}

fn is_command(line: &str) -> bool {
    let starts = ["kubectl ", "kube-apiserver -", "--admission-control="];
    starts.iter().any(|it| line.trim().starts_with(it))
}

/// A short capitalized line that does not end like a sentence.
fn is_heading(line: &str) -> bool {
    let line = line.trim();
    let capital = line.starts_with(|it: char| it.is_ascii_uppercase());
    capital
        && line.len() <= 60
        && !line.ends_with(['.', ':', ',', ';'])
        && !line.contains('|')
}

/// How many of the first lines form one block.
fn length_of_block(lines: &[&str]) -> usize {
    let first = lines.first().map_or("", |it| it.trim_end());
    if first == "{" {
        let end = lines.iter().position(|it| it.trim_end() == "}");
        return end.map_or(0, |end| end + 1);
    }
    if !has_field(first) {
        return 0;
    }
    let goes_on = |line: &&&str| {
        let line = line.trim();
        has_field(line)
            || line == "..."
            || line.starts_with("# ")
            || line.strip_prefix("- ").is_some_and(|it| !it.contains(' '))
    };
    lines.iter().take_while(goes_on).count()
}

/// Whether a line is `name:` or `name: value`, or the first line of such an item.
fn has_field(line: &str) -> bool {
    let line = line.trim().trim_start_matches("- ");
    let Some((name, value)) = line.split_once(':') else {
        return false;
    };
    name.starts_with(|it: char| it.is_ascii_lowercase())
        && !name.contains(|it: char| it.is_whitespace() || "(){}|'`,".contains(it))
        && (value.is_empty() || value.starts_with(' '))
}

/// The entries of a block; indentation, quotes and comments are ignored.
pub(super) fn of_text(text: &str) -> Entries {
    let mut entries = Entries::new();
    if text.trim_start().starts_with('{')
        && let Ok(value) = serde_saphyr::from_str::<Value>(text)
    {
        of_value(&value, &mut entries);
        return entries;
    }
    for line in text.lines() {
        let line = line.trim().trim_start_matches("- ");
        if line.is_empty() || line == "..." || line.starts_with('#') {
            continue;
        }
        match serde_saphyr::from_str::<Value>(line) {
            Ok(value) => of_value(&value, &mut entries),
            Err(_) => add(&mut entries, line.to_owned()),
        }
    }
    entries
}

/// Adds the entries of a value.
pub(super) fn of_value(value: &Value, entries: &mut Entries) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if value.is_object() || value.is_array() || value.is_null() {
                    add(entries, name.clone());
                    of_value(value, entries);
                } else {
                    add(entries, format!("{name}={}", plain(name, value)));
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|it| of_value(it, entries)),
        Value::Null => {}
        scalar => add(entries, plain("", scalar)),
    }
}

/// A scalar as text. Versions before `v1` of the admission kinds are read as `v1`.
fn plain(name: &str, value: &Value) -> String {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    let group = "admissionregistration.k8s.io/";
    if name == "apiVersion" && text.starts_with(group) {
        return format!("{group}v1");
    }
    text
}

fn add(entries: &mut Entries, entry: String) {
    *entries.entry(entry).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::{Form, examples, flag, of_text};

    const TEXT: &str = "First Part\nAn example:\napiVersion: v1\nkind: A\nmetadata:\n\
        name: a\nlist:\n- b\nand more text.\n- another: thing\nSecond Part\n\
        kube-apiserver --on=A,B ...\n{\n \"kind\": \"B\"\n}\nNote: this is none.\n";

    #[test]
    fn blocks_and_commands_are_found_below_their_headings() {
        let found = examples(TEXT);
        let places: Vec<_> = found
            .iter()
            .map(|it| (it.heading.as_str(), it.form, it.ordinal, it.line))
            .collect();
        assert_eq!(
            places,
            [
                ("First Part", Form::Block, 1, 3),
                ("First Part", Form::Block, 2, 10),
                ("Second Part", Form::Command, 1, 12),
                ("Second Part", Form::Block, 1, 13),
            ]
        );
    }

    #[test]
    fn a_block_has_equal_entries_without_indentation_quotes_and_comments() {
        let indented = "apiVersion: admissionregistration.k8s.io/v1\nspec:\n  a: \"x\" # c\n  \
                        l: [\"p\", \"q\"]\n";
        let flat = "apiVersion: admissionregistration.k8s.io/v1alpha1\nspec:\na: x\nl:\n- p\n- q";
        assert_eq!(of_text(indented), of_text(flat));
        assert_ne!(of_text(indented), of_text("spec:\na: y"));
        assert_eq!(of_text("{\"a\": {\"b\": 1}}"), of_text("a:\n  b: 1"));
    }

    #[test]
    fn a_command_is_the_value_of_its_flag() {
        assert_eq!(flag("kube-apiserver --on=A,B ..."), "A,B");
        assert_eq!(flag("kubectl get pods"), "kubectl get pods");
    }
}

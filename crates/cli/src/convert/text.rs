//! Converts text document by document, in place if possible.
//!
//! A line is edited as a person would do it, and the text parsed again: only if the result is
//! exactly the converted object is it printed. So the editing may be simple, an error in it cannot
//! go unnoticed, and no second YAML parser is needed that keeps comments.

use std::fmt::Write as _;

use fivespot_api::name;
use fivespot_api::older::Change;
use jiff::Timestamp;
use serde_json::Value;

use super::object;
use crate::Failure;
use crate::document::{SourceLocation, malformed};

/// A converted stream of documents.
#[derive(Debug, Default)]
pub(super) struct Converted {
    pub(super) text: String,
    pub(super) objects: Vec<Value>,
    /// The changes and problems, as text.
    pub(super) notes: Vec<String>,
}

/// Converts every document of a stream of YAML or JSON; for `windows` see [`object`].
///
/// # Errors
/// The text is neither YAML nor JSON. The failure names `origin`.
pub(super) fn convert(
    origin: &str,
    source: &str,
    windows: Option<Timestamp>,
) -> Result<Converted, Failure> {
    let mut converted = Converted::default();
    let mut line = 1;
    for document_text in split_documents(source) {
        let lines = document_text.lines().count();
        document(
            &format!("{origin}:{line}"),
            document_text,
            windows,
            &mut converted,
        )?;
        line += lines;
    }
    Ok(converted)
}

/// The parts of the text from one separator to the next, each with the separator at its beginning.
fn split_documents(source: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let mut at = 0;
    for line in source.split_inclusive('\n') {
        if at > 0 && line.starts_with("---") {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([source.len()]);
    let pairs = starts.iter().copied().zip(ends);
    pairs
        .filter_map(|(start, end)| source.get(start..end))
        .collect()
}

fn document(
    origin: &str,
    document_text: &str,
    windows: Option<Timestamp>,
    converted: &mut Converted,
) -> Result<(), Failure> {
    let read = |text: &str| -> Result<Vec<Value>, Failure> {
        serde_saphyr::from_multiple(text).map_err(|error| malformed(origin, &error))
    };
    let before = read(document_text)?;
    let mut after = before.clone();
    let mut notes = Vec::new();
    let changes: Vec<Change> = after
        .iter_mut()
        .flat_map(|value| object(value, windows, &mut notes))
        .collect();
    let notes = notes.into_iter().map(|note| format!("{origin}: {note}"));
    converted.notes.extend(notes);
    converted
        .notes
        .extend(changes.iter().map(|it| format!("{origin}: {}", note(it))));
    if changes.is_empty() {
        converted.text.push_str(document_text);
    } else {
        let edited = apply_changes(document_text, &changes);
        if read(&edited).ok().as_ref() == Some(&after) {
            converted.text.push_str(&edited);
        } else {
            converted.notes.push(format!(
                "{origin}: reformatted; comments and layout are lost"
            ));
            converted
                .text
                .push_str(&emit(origin, document_text, &after)?);
        }
    }
    converted
        .objects
        .extend(after.into_iter().filter(|it| !it.is_null()));
    Ok(())
}

/// What was changed, on one line.
fn note(change: &Change) -> String {
    let Change {
        field, from, to, ..
    } = change;
    match (change.renamed, to) {
        (Some(name), Some(to)) if to == from => format!("{field} -> {name}"),
        (Some(name), Some(to)) => format!("{field}: {from} -> {name}: {to}"),
        (_, Some(to)) => format!("{field}: {from} -> {to}"),
        (_, None) => format!("{field}: {from} -> removed"),
    }
}

/// The text with every change made on the line of its field. The caller must check whether the
/// result is complete.
fn apply_changes(document_text: &str, changes: &[Change]) -> String {
    let mut text = document_text.replace(name::OLDER_FINALIZER, name::FINALIZER);
    for change in changes {
        let location = SourceLocation::new(String::new(), 0, text.clone());
        let at = location.line_of(&change.field);
        let lines = text.split_inclusive('\n').enumerate();
        text = lines
            .map(|(number, line)| {
                if number == at {
                    apply_change(line, change)
                } else {
                    line.to_owned()
                }
            })
            .collect();
    }
    text
}

/// A line `key: value # comment` with another name and value, or an empty text if the field is
/// removed.
fn apply_change(line: &str, change: &Change) -> String {
    let key = change.field.rsplit('.').next().unwrap_or_default();
    let Some((before, after)) = line.split_once(key).and_then(|(before, rest)| {
        let (colon, after) = rest.split_once(':')?;
        let key = change.renamed.unwrap_or(key);
        Some((format!("{before}{key}{colon}:"), after))
    }) else {
        return line.to_owned();
    };
    if change.renamed.is_some() && change.to.as_ref() == Some(&change.from) {
        return format!("{before}{after}");
    }
    let comment = after.find(" #").and_then(|at| after.get(at..));
    match &change.to {
        None => String::new(),
        Some(new) => {
            let mut edited = format!("{before} {}", flow(new));
            let end = if line.ends_with('\n') { "\n" } else { "" };
            let _ = match comment {
                Some(comment) => write!(edited, "{comment}"),
                None => write!(edited, "{end}"),
            };
            edited
        }
    }
}

/// A value on one line. Text has no quotes if it needs none.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether text is the same in YAML without quotes: it consists of letters, digits, `.`, `/` and
/// `-`, has a letter, and is not a keyword.
fn is_plain(text: &str) -> bool {
    let is_inner = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '/' | '-');
    text.chars().all(is_inner)
        && text.contains(|it: char| it.is_ascii_alphabetic())
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&text)
}

fn emit(origin: &str, document_text: &str, objects: &[Value]) -> Result<String, Failure> {
    let mut text = String::new();
    for (number, value) in objects.iter().enumerate() {
        if number > 0 || document_text.starts_with("---") {
            text.push_str("---\n");
        }
        let yaml = serde_saphyr::to_string(value)
            .map_err(|error| Failure::new(format!("writing {origin}"), error))?;
        text.push_str(&yaml);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::convert;

    const OLDER: &str = "\
# machines of the night
apiVersion: capi.5spot.io/v1alpha1 # to be changed
kind: ScheduledMachine
metadata:
  name: worker
  finalizers: [5spot.io/scheduledmachine]
spec:
  schedule:
    daysOfWeek: [\"MON-FRI\"]   # office days
    hoursOfDay: \"9-17\"
  # as ever
  gracefulShutdownTimeout: 300 # seconds
  killIfCommands: null
---
# not ours
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {note: 'apiVersion: capi.5spot.io/v1alpha1'}
";

    #[test]
    fn comments_and_layout_stay_where_they_are() {
        let converted = convert("a.yaml", OLDER, None).unwrap();
        insta::assert_snapshot!(converted.text);
        insta::assert_snapshot!(converted.notes.join("\n"));
    }

    #[test]
    fn a_capacity_of_upstream_keeps_its_comments() {
        let text = "apiVersion: 5spot.finos.org/v1alpha1\nkind: ScheduledCapacity\nspec:\n  \
                    targetRef: # an object that exists\n    kind: Deployment\n    name: web\n  \
                    capacity:\n    path: spec.replicas # a number\n    activeValue: 3\n";
        let converted = convert("a.yaml", text, None).unwrap();
        insta::assert_snapshot!(converted.text, @r"
        apiVersion: 5spot.finos.org/v1alpha1
        kind: ScheduledCapacity
        spec:
          target: # an object that exists
            kind: Deployment
            name: web
          capacity:
            field: replicas # a number
            activeValue: 3
        ");
        insta::assert_snapshot!(converted.notes.join("\n"), @r#"
        a.yaml:1: spec.capacity.path: "spec.replicas" -> field: "replicas"
        a.yaml:1: spec.targetRef -> target
        "#);
    }

    #[test]
    fn a_document_that_cannot_be_edited_in_place_is_reformatted_with_a_note() {
        let text = "---\n# gone\napiVersion: 5spot.io/v1alpha1\nkind: ScheduledMachine\nspec:\n  \
                    schedule:\n    daysOfWeek:\n    - MON-FRI # gone too\n";
        let converted = convert("a.yaml", text, None).unwrap();
        assert_eq!(
            converted.text,
            "---\napiVersion: 5spot.finos.org/v1alpha1\nkind: ScheduledMachine\nspec:\n  \
             schedule:\n    daysOfWeek:\n    - mon-fri\n"
        );
        let note = "a.yaml:1: reformatted; comments and layout are lost";
        assert!(
            converted.notes.iter().any(|it| it == note),
            "{:?}",
            converted.notes
        );
    }

    #[test]
    fn current_text_is_printed_unchanged() {
        let text = "# x\napiVersion: 5spot.finos.org/v1alpha1\nkind: ScheduledMachine\n---\n\n---\n";
        let converted = convert("a.yaml", text, None).unwrap();
        assert_eq!(converted.text, text);
        assert!(converted.notes.is_empty());
    }

    #[test]
    fn lists_of_days_and_hours_become_windows_with_the_flag() {
        let text = "apiVersion: 5spot.finos.org/v1alpha1\nkind: ScheduledMachine\nspec:\n  \
                    schedule:\n    daysOfWeek: [mon-fri]\n    hoursOfDay: [\"9-17\"]\n";
        let now = "2026-03-01T00:00:00Z".parse().ok();
        let converted = convert("a.yaml", text, now).unwrap();
        insta::assert_snapshot!(converted.text, @r#"
        apiVersion: 5spot.finos.org/v1alpha1
        kind: ScheduledMachine
        spec:
          schedule:
            windows:
            - name: from-09-to-18
              days:
              - mon-fri
              start: 09:00
              end: "18:00"
        "#);
        let summer = text.replace("[mon-fri]", "[sun]").replace("9-17", "0");
        let summer =
            summer.replace("schedule:\n", "schedule:\n    timezone: America/New_York\n");
        let converted = convert("a.yaml", &summer, now).unwrap();
        assert_eq!(converted.text, summer);
        insta::assert_snapshot!(converted.notes.join("\n"), @"a.yaml:1: spec.schedule is left as it is: a window would end at another time where the clocks repeat an hour, first at 2026-11-01T05:00:00Z");
    }

    #[test]
    fn lists_and_json_are_converted_too() {
        let text = r#"{"kind": "List", "items": [{"apiVersion": "5spot.io/v1alpha1",
            "kind": "ScheduledMachine"}]}"#;
        let converted = convert("a.json", text, None).unwrap();
        let read: Value = serde_saphyr::from_str(&converted.text).unwrap();
        assert_eq!(read["items"][0]["apiVersion"], "5spot.finos.org/v1alpha1");
    }
}

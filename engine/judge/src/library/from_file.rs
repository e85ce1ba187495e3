//! Questions from a file, one per line: `{"id": …, "question": …}`, where `kubernetes` may contain
//! the answer of Kubernetes' libraries.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde_json::Value;

use super::compare::{Comparison, compare};
use super::counts::DifferenceCounts;
use super::oracle::{self, Oracle};
use super::{compare_question, ours};
use crate::Faults;

/// Compares the answers to every question of a file, and prints each difference and their number.
/// The libraries are built only if a line has no answer.
///
/// # Errors
/// The file cannot be read, a line is not a question, or the libraries are needed and cannot be
/// built or queried.
pub(super) fn run(root: &Path, file: &Path) -> Result<Faults, Box<dyn Error>> {
    let lines = BufReader::new(
        fs::File::open(file).map_err(|error| format!("{}: {error}", file.display()))?,
    );
    let mut libraries = None;
    let query = |question: &Value| {
        if libraries.is_none() {
            libraries = Some(Oracle::start(&oracle::build(root)?)?);
        }
        match &mut libraries {
            Some(oracle) => compare_question(oracle, question),
            None => Err("there are no libraries".into()),
        }
    };
    let counts = compare_lines(lines, query, std::io::stdout().lock())?;
    Ok(counts.faults())
}

/// Compares the answers to every line; `query` compares those without a recorded answer.
fn compare_lines(
    lines: impl BufRead,
    mut query: impl FnMut(&Value) -> Result<Comparison, Box<dyn Error>>,
    mut out: impl Write,
) -> Result<DifferenceCounts, Box<dyn Error>> {
    let mut counts = DifferenceCounts::default();
    let mut count = 0_u64;
    for (at, line) in lines.lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let number = at + 1;
        let entry: Value = serde_json::from_str(&line)
            .map_err(|error| format!("line {number}: {error}"))?;
        let question = &entry["question"];
        if !question.is_object() {
            return Err(format!("line {number}: no object `question`").into());
        }
        let id = match &entry["id"] {
            Value::Null => format!("line {number}"),
            Value::String(id) => id.clone(),
            other => other.to_string(),
        };
        let comparison = match &entry["kubernetes"] {
            Value::Null => query(question).map_err(|error| format!("{id}: {error}"))?,
            recorded => compare(recorded, &ours::answer_in_time(question)?),
        };
        for difference in &comparison.differences {
            writeln!(
                out,
                "{id}: {} of {}\n  kubernetes  {}\n  ours        {}",
                difference.aspect.name(),
                difference.place,
                difference.theirs,
                difference.ours
            )?;
        }
        counts.add(&comparison);
        count += 1;
    }
    write!(out, "\n{count} questions\n\n{counts}")?;
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(name: &str) -> Value {
        let schema = json!({"type": "object"});
        let mut definition = crate::library::definition::plain(&schema);
        definition["metadata"]["name"] = json!(name);
        definition
    }

    fn printed(lines: &[Value]) -> (String, Faults) {
        let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
        let text = lines.join("\n");
        let mut out = Vec::new();
        let query = |_: &Value| Err("the libraries must not be queried".into());
        let counts =
            compare_lines(text.as_bytes(), query, &mut out).expect("it is judged");
        let faults = counts.faults();
        (String::from_utf8(out).expect("it is text"), faults)
    }

    #[test]
    fn a_recorded_answer_is_compared_and_each_difference_printed_and_counted() {
        let accepted = json!({"definition": {"errors": []}});
        let (output, faults) = printed(&[
            json!({"id": "right", "question": {"definition": definition("widgets.example.com")},
                "kubernetes": accepted}),
            json!({"id": 7, "question": {"definition": definition("gadgets.example.com")},
                "kubernetes": accepted}),
        ]);
        assert!(
            output.contains("7: verdict of definition\n  kubernetes  {\"errors\":[]}"),
            "{output}"
        );
        assert!(!output.contains("right:"), "{output}");
        assert!(output.contains("2 questions"), "{output}");
        assert!(output.contains("| verdict | 2 | 1 |"), "{output}");
        assert_eq!(faults, ["1 verdicts and 0 objects differ"]);
    }

    #[test]
    fn a_text_that_differs_is_printed_and_is_no_fault() {
        let (output, faults) = printed(&[json!({"question":
            {"definition": definition("gadgets.example.com")},
            "kubernetes": {"definition": {"errors": ["other words"]}}})]);
        assert!(output.contains("line 1: text of definition"), "{output}");
        assert!(output.contains("| text | 1 | 1 |"), "{output}");
        assert!(faults.is_empty());
    }

    #[test]
    fn a_line_without_an_answer_is_sent_to_the_libraries() {
        let line = json!({"id": "a", "question": {"policies": []}}).to_string();
        let mut calls = 0;
        let query = |_: &Value| {
            calls += 1;
            Ok(Comparison::default())
        };
        compare_lines(line.as_bytes(), query, &mut Vec::new()).expect("it is judged");
        assert_eq!(calls, 1);
    }

    #[test]
    fn an_error_has_the_number_of_a_line_that_is_no_question() {
        let query = |_: &Value| Ok(Comparison::default());
        let text = "\n{\"id\": 1}\n";
        let error = compare_lines(text.as_bytes(), query, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "line 2: no object `question`");
    }
}

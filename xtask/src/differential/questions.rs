//! Questions from a file, one per line: `{"id": …, "question": …}`, where `kubernetes` may contain
//! the answer of Kubernetes' libraries.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde_json::Value;

use super::compare::{Comparison, compare};
use super::oracle::{self, Oracle};
use super::tally::Tally;
use super::{judge, ours};
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
    let ask = |question: &Value| {
        if libraries.is_none() {
            libraries = Some(Oracle::start(&oracle::build(root)?)?);
        }
        match &mut libraries {
            Some(oracle) => judge(oracle, question),
            None => Err("there are no libraries".into()),
        }
    };
    let tally = judge_lines(lines, ask, std::io::stdout().lock())?;
    Ok(tally.faults())
}

/// Compares the answers to every line; `ask` compares those without a recorded answer.
fn judge_lines(
    lines: impl BufRead,
    mut ask: impl FnMut(&Value) -> Result<Comparison, Box<dyn Error>>,
    mut out: impl Write,
) -> Result<Tally, Box<dyn Error>> {
    let mut tally = Tally::default();
    let mut count = 0_u64;
    for (at, line) in lines.lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let number = at + 1;
        let asked: Value = serde_json::from_str(&line)
            .map_err(|error| format!("line {number}: {error}"))?;
        let question = &asked["question"];
        if !question.is_object() {
            return Err(format!("line {number}: no object `question`").into());
        }
        let id = match &asked["id"] {
            Value::Null => format!("line {number}"),
            Value::String(id) => id.clone(),
            other => other.to_string(),
        };
        let comparison = match &asked["kubernetes"] {
            Value::Null => ask(question).map_err(|error| format!("{id}: {error}"))?,
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
        tally.add(&comparison);
        count += 1;
    }
    write!(out, "\n{count} questions\n\n{tally}")?;
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(name: &str) -> Value {
        let schema = json!({"type": "object"});
        let mut definition = crate::differential::definition::plain(&schema);
        definition["metadata"]["name"] = json!(name);
        definition
    }

    fn printed(lines: &[Value]) -> (String, Faults) {
        let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
        let text = lines.join("\n");
        let mut out = Vec::new();
        let ask = |_: &Value| Err("the libraries must not be queried".into());
        let tally = judge_lines(text.as_bytes(), ask, &mut out).expect("it is judged");
        let faults = tally.faults();
        (String::from_utf8(out).expect("it is text"), faults)
    }

    #[test]
    fn a_recorded_answer_is_compared_and_each_difference_printed_and_counted() {
        let accepted = json!({"definition": {"errors": []}});
        let (said, faults) = printed(&[
            json!({"id": "right", "question": {"definition": definition("widgets.example.com")},
                "kubernetes": accepted}),
            json!({"id": 7, "question": {"definition": definition("gadgets.example.com")},
                "kubernetes": accepted}),
        ]);
        assert!(
            said.contains("7: verdict of definition\n  kubernetes  {\"errors\":[]}"),
            "{said}"
        );
        assert!(!said.contains("right:"), "{said}");
        assert!(said.contains("2 questions"), "{said}");
        assert!(said.contains("| verdict | 2 | 1 |"), "{said}");
        assert_eq!(faults, ["1 verdicts and 0 objects differ"]);
    }

    #[test]
    fn a_text_that_differs_is_printed_and_is_no_fault() {
        let (said, faults) = printed(&[json!({"question":
            {"definition": definition("gadgets.example.com")},
            "kubernetes": {"definition": {"errors": ["other words"]}}})]);
        assert!(said.contains("line 1: text of definition"), "{said}");
        assert!(said.contains("| text | 1 | 1 |"), "{said}");
        assert!(faults.is_empty());
    }

    #[test]
    fn a_line_without_an_answer_is_sent_to_the_libraries() {
        let line = json!({"id": "a", "question": {"policies": []}}).to_string();
        let mut asked = 0;
        let ask = |_: &Value| {
            asked += 1;
            Ok(Comparison::default())
        };
        judge_lines(line.as_bytes(), ask, &mut Vec::new()).expect("it is judged");
        assert_eq!(asked, 1);
    }

    #[test]
    fn an_error_has_the_number_of_a_line_that_is_no_question() {
        let ask = |_: &Value| Ok(Comparison::default());
        let text = "\n{\"id\": 1}\n";
        let error = judge_lines(text.as_bytes(), ask, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "line 2: no object `question`");
    }
}

//! How many responses of the embedded server equal those of a real server, and the intended
//! differences.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Written by `cargo judge record`, and compared by a test of the engine.
const RESULT: &str = "judge/record/agreement.json";

pub(crate) fn text(root: &Path) -> Result<String, Box<dyn Error>> {
    let result: Value = serde_json::from_str(&fs::read_to_string(root.join(RESULT))?)?;
    Ok(render(&result))
}

fn render(result: &Value) -> String {
    let mut text = "\
`cargo judge record` sends the requests of `judge/record/corpus` to a real `kube-apiserver` and
stores its responses in `judge/record/fixtures`; uids, versions and times are masked. A
test of the engine sends the same requests to the embedded server. Each response must be equal,
or differ only as `judge/record/differences.yaml` lists it; a listed difference that does not
occur any more fails the suite.

`cargo judge documents DIR ../e2e/tests/kubectl/policies.rs` compares the examples of two documents of Kubernetes, about validating
admission policies and about admission controllers, with those that tests use.
"
    .to_owned();
    for (version, areas) in entries(&result["answers"]) {
        let _ = write!(
            text,
            "\nKubernetes {version}:\n\n\
             | area | responses | equal | equal except for intended differences | different, to be fixed |\n\
             |---|---:|---:|---:|---:|\n"
        );
        let mut sums = [0; 4];
        for (area, counts) in entries(areas) {
            let row = ["answers", "equal", "deliberate", "open"]
                .map(|it| counts[it].as_u64().unwrap_or(0));
            for (sum, count) in sums.iter_mut().zip(row) {
                *sum += count;
            }
            let [answers, equal, deliberate, open] = row;
            let _ = writeln!(
                text,
                "| {area} | {answers} | {equal} | {deliberate} | {open} |"
            );
        }
        let [answers, equal, deliberate, open] = sums;
        let _ = writeln!(
            text,
            "| **all** | **{answers}** | **{equal}** | **{deliberate}** | **{open}** |"
        );
    }
    write_differences(&mut text, result);
    text
}

fn write_differences(text: &mut String, result: &Value) {
    let titles = [
        (
            false,
            "The intended differences (a response may have several)",
        ),
        (true, "Known errors that are not fixed yet"),
    ];
    for (open, title) in titles {
        let differences = result["differences"].as_array();
        let mut rows = differences
            .into_iter()
            .flatten()
            .filter(|it| it["open"].as_bool().unwrap_or_default() == open)
            .peekable();
        if rows.peek().is_none() {
            continue;
        }
        let _ = write!(
            text,
            "\n{title}:\n\n| what | responses | why |\n|---|---:|---|\n"
        );
        for it in rows {
            let (what, why) = (cell(&it["what"]), cell(&it["why"]));
            let _ = writeln!(text, "| {what} | {} | {why} |", it["answers"]);
        }
    }
}

fn entries(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

/// A text as a cell of a table.
fn cell(text: &Value) -> String {
    let text = text.as_str().unwrap_or_default();
    text.trim().replace('\n', " ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::render;

    #[test]
    fn counts_are_added_up_and_reasons_fit_their_cells() {
        let text = render(&json!({
            "answers": {"1.36": {
                "apply": {"answers": 5, "equal": 4, "deliberate": 1},
                "watch": {"answers": 2, "equal": 2, "deliberate": 0},
            }},
            "differences": [{"what": "a|b", "answers": 1, "why": "two\nlines\n"}],
        }));
        assert!(
            text.contains("| **all** | **7** | **6** | **1** | **0** |"),
            "{text}"
        );
        assert!(text.contains("| a\\|b | 1 | two lines |"), "{text}");
    }
}

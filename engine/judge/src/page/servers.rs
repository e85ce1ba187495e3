//! The results of generated requests to a real API server and to the embedded one.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Written by `cargo judge server --record`.
const RESULT: &str = "judge/server/agreement.json";

/// Most characters that are printed of a response.
const MAX_PRINTED_CHARS: usize = 300;

/// The counts of each kind, in the order of the columns.
const COUNTS: [&str; 6] = [
    "cases", "requests", "verdict", "message", "object", "warnings",
];

pub(super) fn text(root: &Path) -> Result<String, Box<dyn Error>> {
    let result: Value = serde_json::from_str(&fs::read_to_string(root.join(RESULT))?)?;
    Ok(render(&result))
}

fn render(result: &Value) -> String {
    let sum = |name: &str| -> u64 {
        let kinds = result["kinds"].as_array().into_iter().flatten();
        kinds.filter_map(|it| it[name].as_u64()).sum()
    };
    let mut text = format!(
        "\
`cargo judge server --cases N --seed S` generates requests from a valid object of each
kind (create, update, the four forms of patches, status, scale, get, list, delete with options),
with one or two faults in them: a field that is removed, of another type, empty, too long, out of
bounds, unknown or duplicated. Some are sent by users with few permissions, and some to namespaces
with limits, quotas, pod security standards or policies, or to namespaces that are missing or being
removed. A case is the requests about one object. They go to a real `kube-apiserver` 1.36 and to the
embedded server, and a case is counted by its first response that differs: in its verdict (code or
reason), in the message or the details of an error, in the object or in the warnings.

The last recorded run (seed {}, from case {}) compared **{} requests**; **{} verdicts** differ.

| kind | cases | requests compared | verdict | message | object | warnings |
|---|---:|---:|---:|---:|---:|---:|
",
        result["seed"],
        result["first"],
        sum("requests"),
        sum("verdict")
    );
    for kind in result["kinds"].as_array().into_iter().flatten() {
        let row = COUNTS.map(|it| kind[it].as_u64().unwrap_or(0).to_string());
        let name = kind["kind"].as_str().unwrap_or_default();
        let _ = writeln!(text, "| {name} | {} |", row.join(" | "));
    }
    let sums = COUNTS.map(|it| format!("**{}**", sum(it))).join(" | ");
    let _ = writeln!(text, "| **all** | {sums} |");
    let unanswered = result["unanswered"].as_u64().unwrap_or_default();
    if unanswered > 0 {
        let _ = write!(
            text,
            "\nRequests that make the real server panic are not compared, such as a list as the key of a \
             list's\nentries: it closes the connection, which ended {unanswered} of the cases.\n"
        );
    }
    text.push_str(&explained(&result["explained"]));
    text.push_str(&unexplained(&result["unexplained"]));
    text
}

/// The differences with a known cause.
fn explained(list: &Value) -> String {
    let mut text = String::new();
    for (index, it) in list.as_array().into_iter().flatten().enumerate() {
        if index == 0 {
            text.push_str("\nDifferences with a known cause:\n\n");
            text.push_str("| cases | what | why |\n|---:|---|---|\n");
        }
        let word = |name: &str| it[name].as_str().unwrap_or_default();
        let (what, why) = (word("what"), word("why"));
        let _ = writeln!(text, "| {} | {what} | {why} |", it["cases"]);
    }
    text
}

/// The other differences, each with its text.
fn unexplained(list: &Value) -> String {
    let mut text = String::new();
    for (index, it) in list.as_array().into_iter().flatten().enumerate() {
        if index == 0 {
            text.push_str(
                "\nOther differences, grouped by their texts without the values:\n\n",
            );
            text.push_str("| cases | first | texts |\n|---:|---:|---|\n");
        }
        let words = it["words"].as_str().unwrap_or_default();
        let lines = words.lines().map(|line| {
            let plain = line.trim().replace('|', "\\|").replace('`', "'");
            let short: String = plain.chars().take(MAX_PRINTED_CHARS).collect();
            format!("`{short}`")
        });
        let lines = lines.collect::<Vec<_>>().join("<br>");
        let _ = writeln!(text, "| {} | {} | {lines} |", it["cases"], it["first"]);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_counts_of_the_kinds_are_added_up() {
        let kind =
            |name: &str| json!({"kind": name, "cases": 2, "requests": 5, "verdict": 1});
        let text = render(&json!({"seed": 7, "first": 0, "unanswered": 2,
            "kinds": [kind("Lease"), kind("Pod")],
            "explained": [{"what": "w", "why": "y", "cases": 3}],
            "unexplained": [{"aspect": "object", "cases": 1, "first": 9,
                "words": "object · get\n    kubernetes  a|b"}]}));
        assert!(text.contains("(seed 7, from case 0) compared **10 requests**"));
        assert!(text.contains("| Lease | 2 | 5 | 1 | 0 | 0 | 0 |"), "{text}");
        let all = "| **all** | **4** | **10** | **2** | **0** | **0** | **0** |";
        assert!(text.contains(all), "{text}");
        assert!(text.contains("| 3 | w | y |"), "{text}");
        assert!(text.contains("which ended 2 of the cases"), "{text}");
        let words = "| 1 | 9 | `object · get`<br>`kubernetes  a\\|b` |";
        assert!(text.contains(words), "{text}");
    }
}

//! What came of generated requests to a real API server and to the embedded one.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Written by `cargo xtask differential --server --record`.
const RESULT: &str = "e2e/differential/agreement.json";

/// What is counted of each kind, in the order of the columns.
const COUNTS: [&str; 6] = [
    "cases", "requests", "verdict", "message", "object", "warnings",
];

pub(super) fn text(root: &Path) -> Result<String, Box<dyn Error>> {
    let result: Value = serde_json::from_str(&fs::read_to_string(root.join(RESULT))?)?;
    Ok(render(&result))
}

fn render(result: &Value) -> String {
    let mut text = format!(
        "\
`cargo xtask differential --server --cases N --seed S` makes requests (create, update, the four
forms of patches, apply, status, scale, delete) from a valid object of each kind, with one or two
faults in it: a field that is removed, of another type, empty, too long, out of bounds, unknown
or said twice. A case is the requests about one object. They go to a real `kube-apiserver` 1.36
and to the embedded server, and a case counts as different in the first answer that is: in its
verdict (code or reason), in the message of a refusal, in the object or in the warnings.

The last recorded run (seed {}, from case {}):

| kind | cases | requests compared | verdict | message | object | warnings |
|---|---:|---:|---:|---:|---:|---:|
",
        result["seed"], result["first"]
    );
    let mut sums = [0; COUNTS.len()];
    for kind in result["kinds"].as_array().into_iter().flatten() {
        let row = COUNTS.map(|it| kind[it].as_u64().unwrap_or(0));
        for (sum, count) in sums.iter_mut().zip(row) {
            *sum += count;
        }
        let name = kind["kind"].as_str().unwrap_or_default();
        let _ = writeln!(
            text,
            "| {name} | {} |",
            row.map(|it| it.to_string()).join(" | ")
        );
    }
    let sums = sums.map(|it| format!("**{it}**")).join(" | ");
    let _ = writeln!(text, "| **all** | {sums} |");
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
        let text = render(
            &json!({"seed": 7, "first": 0, "kinds": [kind("Lease"), kind("Pod")]}),
        );
        assert!(text.contains("(seed 7, from case 0):"), "{text}");
        assert!(text.contains("| Lease | 2 | 5 | 1 | 0 | 0 | 0 |"), "{text}");
        let all = "| **all** | **4** | **10** | **2** | **0** | **0** | **0** |";
        assert!(text.contains(all), "{text}");
    }
}

//! How long it takes to create a Pod.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::creation::{RESULT, WAYS};

/// The bound in process, in microseconds.
const BOUND: f64 = 100.0;

pub(super) fn text(root: &Path) -> Result<String, Box<dyn Error>> {
    let result = serde_json::from_str(&fs::read_to_string(root.join(RESULT))?)?;
    Ok(render(&result))
}

fn render(result: &Value) -> String {
    let version = result["kubernetes"].as_str().unwrap_or_default();
    let mut text = format!(
        "\
`cargo judge creation` creates a Pod of an ordinary web application through the default admission plugins,
one at a time, on the embedded server and on a real `kube-apiserver` {version} with the same client, in one
run on one computer (`crates/apiserver/benches/create.rs`). The times are medians from the request to the
reply, with the interval in which the median lies with a probability of 95 percent. In process the bound is
{BOUND} microseconds.

| way | microseconds | interval | bound |
|---|---:|---:|---:|
"
    );
    let mut above = Vec::new();
    for (name, way) in WAYS {
        let measured = &result["nanoseconds"][name];
        let [median, least, most] = ["median", "least", "most"]
            .map(|it| measured[it].as_f64().unwrap_or_default() / 1000.0);
        let is_bound = matches!(name, "value" | "json");
        let bound = if is_bound {
            BOUND.to_string()
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "| {way} | {median:.1} | {least:.1} to {most:.1} | {bound} |"
        );
        if is_bound && median > BOUND {
            above.push(way);
        }
    }
    if !above.is_empty() {
        let _ = write!(text, "\nAbove the bound: {}.\n", above.join("; "));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_are_shown_in_microseconds_and_compared_with_the_bound() {
        let of =
            |median: u32| json!({"median": median, "least": 50_000, "most": 200_000});
        let text = render(&json!({"kubernetes": "1.36", "nanoseconds": {
            "value": of(90_000), "json": of(110_000),
            "embedded": of(500_000), "kubernetes": of(5_000_000)}}));
        let expected = "| in process, a value | 90.0 | 50.0 to 200.0 | 100 |";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("| 5000.0 | 50.0 to 200.0 |  |"), "{text}");
        assert!(
            text.ends_with("\nAbove the bound: in process, JSON.\n"),
            "{text}"
        );
    }
}

//! How long the engine takes, beside cel-go and Kubernetes' libraries.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::speed::RESULT;

/// What is measured: the key of the results, what the table calls it, and the bound in microseconds.
const ROWS: [(&str, &str, Option<f64>); 10] = [
    (
        "register definition",
        "the CRD read, validated and compiled",
        None,
    ),
    (
        "register policy",
        "the policy read, validated and compiled",
        None,
    ),
    ("compile policy", "the policy compiled", None),
    ("compile few", "the short policy compiled", Some(1_000.0)),
    (
        "ordinary definition",
        "the ordinary object through the CRD",
        None,
    ),
    (
        "ordinary policy",
        "the ordinary object through the policy",
        None,
    ),
    (
        "ordinary few",
        "the ordinary object through the short policy",
        Some(10.0),
    ),
    ("large definition", "the large object through the CRD", None),
    ("large policy", "the large object through the policy", None),
    (
        "large few",
        "the large object through the short policy",
        None,
    ),
];

/// The bound of `kubemu test`, in cases per second.
const CASES: f64 = 10_000.0;

pub(super) fn text(root: &Path) -> Result<String, Box<dyn Error>> {
    let result = serde_json::from_str(&fs::read_to_string(root.join(RESULT))?)?;
    Ok(render(&result))
}

fn render(result: &Value) -> String {
    let (rules, bytes) = (&result["rules"], &result["bytes"]);
    let mut text = format!(
        "\
`cargo judge speed` gives the CRD of ScheduledMachine ({} rules), its policy ({} rules), the same policy
with its first {} rules only (the short policy, which the bounds are about), and two new objects ({} and {}
bytes of JSON) to Kubernetes' own libraries of 1.36, to cel-go alone with the expressions of the policies, and to the engine in
profile `dist` (`crates/admission/benches/speed.rs`, `judge/oracle/speed.go`), in turns on one computer. The times are
medians, in microseconds of processor time: they count what Go spends on collecting garbage, and other work
on the computer does not count. Through a CRD an object is pruned, defaulted and validated; a policy gets
it decoded. The costs, in units of Kubernetes' limits, are equal on all sides, or there is no table.

| what | cel-go alone | Kubernetes' libraries | kubemu | bound | cost |
|---|---:|---:|---:|---:|---:|
",
        rules["definition"],
        rules["policy"],
        rules["few"],
        bytes["ordinary"],
        bytes["large"]
    );
    let measured = &result["measured"];
    for (key, what, bound) in ROWS {
        let [alone, theirs, ours] = ["celGo", "kubernetes", "kubemu"]
            .map(|side| shown(measured[side][key].as_f64().map(|it| it / 1e3)));
        let cost = measured["costs"][key].as_u64();
        let cost = cost.map(|it| it.to_string()).unwrap_or_default();
        let bound = shown(bound);
        let _ = writeln!(
            text,
            "| {what} | {alone} | {theirs} | {ours} | {bound} | {cost} |"
        );
    }
    let (count, seconds) = (&result["cases"]["count"], &result["cases"]["seconds"]);
    let number = |it: &Value| it.as_f64().unwrap_or_default();
    let rate = number(count) / number(seconds);
    let _ = writeln!(
        text,
        "\n`kubemu test` on {count} cases about the same CRD and policy, every second of which is refused:\n\
         {:.2} s of processor time, which two threads share, so {rate:.0} cases in a second of it (bound {CASES:.0}).",
        number(seconds)
    );
    text
}

/// A number with the digits that matter; empty if there is none.
fn shown(number: Option<f64>) -> String {
    match number {
        None => String::new(),
        Some(it) if it < 100.0 && it.fract() != 0.0 => format!("{it:.1}"),
        Some(it) => format!("{it:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_sides_are_shown_in_microseconds_beside_the_bound_and_the_cost() {
        let text = render(&json!({
            "rules": {"definition": 3, "policy": 2, "few": 1},
            "bytes": {"ordinary": 10, "large": 20},
            "measured": {
                "kubernetes": {"ordinary few": 183_790.0, "ordinary policy": 1_043_840.0},
                "celGo": {"ordinary few": 118_100.0},
                "kubemu": {"ordinary few": 7_020.0, "ordinary policy": 16_010.0},
                "costs": {"ordinary few": 447},
            },
            "cases": {"count": 10_000, "seconds": 0.5},
        }));
        let rows = "\
| the ordinary object through the policy |  | 1044 | 16.0 |  |  |
| the ordinary object through the short policy | 118 | 184 | 7.0 | 10 | 447 |
";
        assert!(text.contains(rows), "{text}");
        assert!(
            text.contains("20000 cases in a second of it (bound 10000)"),
            "{text}"
        );
    }
}

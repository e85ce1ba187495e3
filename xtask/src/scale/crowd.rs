//! What a crowd costs for each machine, beside few machines.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::{kept, number};

/// Where the measurements of `benches/scale` are kept that belong together: the first is the one
/// that the others are compared with.
const RESULTS: &str = "benches/crowd";

/// How many times as much a crowd may take for each machine.
const BOUND: f64 = 1.3;

const HEAD: &str = "
## A crowd

What one machine costs where there are many, measured one after the other on the embedded server without
Cluster API. Each column has the value per machine and, in parentheses, how many times that of the first row it is.
Memory is what is resident beyond an operator with no machines, when all objects had been created.

| machines | Clusters | floor | all created | operator's CPU time | requests | memory |
|---:|---:|---:|---:|---:|---:|---:|
";

/// What is compared.
struct Figure {
    unit: &'static str,
    of: fn(&Value) -> f64,
}

const FIGURES: [Figure; 5] = [
    Figure {
        unit: " ms",
        of: |of| 1_000.0 * number(&of["floorSeconds"]),
    },
    Figure {
        unit: " ms",
        of: |of| 1_000.0 * number(&of["latenessSeconds"][2]),
    },
    Figure {
        unit: " ms",
        of: |of| {
            let at = |when: &str| number(&of[when]["cpuSeconds"]);
            1_000.0 * (at("opened") - at("settled"))
        },
    },
    Figure {
        unit: "",
        of: |of| number(&of["opening"]["beyondIdling"]),
    },
    Figure {
        unit: " KiB",
        of: |of| super::beyond_base(&of["opened"]["residentKib"]).max(0.0),
    },
];

/// The section; empty where nothing is kept.
///
/// # Errors
/// A result cannot be read.
pub(super) fn part(root: &Path) -> Result<String, Box<dyn Error>> {
    let folder = root.join(RESULTS);
    if !folder.exists() {
        return Ok(String::new());
    }
    let mut all = kept::results(&folder)?;
    all.sort_by_key(|of| (of["machines"].as_u64(), of["clusters"].as_u64()));
    Ok(table(&all))
}

fn table(all: &[Value]) -> String {
    let Some(first) = all.first() else {
        return String::new();
    };
    let each = |of: &Value, figure: &Figure| (figure.of)(of) / number(&of["machines"]);
    let mut text = HEAD.to_owned();
    let mut above = Vec::new();
    for of in all {
        let _ = write!(text, "| {} | {} |", of["machines"], of["clusters"]);
        for (at, figure) in FIGURES.iter().enumerate() {
            let value = each(of, figure);
            let times = value / each(first, figure);
            let _ = write!(text, " {value:.2}{}", figure.unit);
            if times.is_finite() {
                let _ = write!(text, " ({times:.2})");
            }
            text.push_str(" |");
            // The floor is that of the server, not of the operator.
            if at > 0 && times.is_finite() && times > BOUND {
                above.push(format!(
                    "{} machines of {} Clusters",
                    of["machines"], of["clusters"]
                ));
            }
        }
        text.push('\n');
    }
    above.dedup();
    let _ = match above.as_slice() {
        [] => writeln!(
            text,
            "\nNone of the operator takes more than {BOUND} times as much for each machine."
        ),
        above => writeln!(
            text,
            "\nMore than {BOUND} times as much for each machine: {}.",
            above.join(", ")
        ),
    };
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::table;

    fn result(machines: u32, seconds: f64) -> Value {
        json!({
            "machines": machines, "clusters": 1, "floorSeconds": 1.0,
            "latenessSeconds": [0.0, 0.0, seconds],
            "settled": {"cpuSeconds": 0.0},
            "opened": {"cpuSeconds": f64::from(machines), "residentKib": 0},
            "opening": {"beyondIdling": machines},
        })
    }

    #[test]
    fn a_row_that_takes_more_for_each_machine_is_named() {
        let flat = table(&[result(10, 1.0), result(100, 13.0)]);
        assert!(flat.contains("None of the operator"), "{flat}");
        let steep = table(&[result(10, 1.0), result(100, 14.0)]);
        assert!(
            steep.contains("for each machine: 100 machines of 1 Clusters."),
            "{steep}"
        );
    }
}

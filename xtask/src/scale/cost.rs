//! The section about the cost of one event, from what `benches/hostile` has kept.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::stored_results::number;

/// The file in which `benches/hostile --record` keeps its second table.
const FILE: &str = "benches/costs/events.json";

/// The section.
///
/// # Errors
/// The result cannot be read.
pub(super) fn part(root: &Path) -> Result<String, Box<dyn Error>> {
    let kept: Value = serde_json::from_str(&fs::read_to_string(root.join(FILE))?)?;
    let mut page = format!(
        "CPU limit: {}m.\n\n\
         | existing | event | plans | requests | CPU | other tenant | Lease | `/healthz` | memory |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|\n",
        kept["cpuMillis"]
    );
    for row in kept["rows"].as_array().into_iter().flatten() {
        let _ = writeln!(page, "{}", line(row));
    }
    Ok(page)
}

fn line(row: &Value) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let or = |key: &str, unit: &str, otherwise: &str| match &row[key] {
        Value::Null => otherwise.to_owned(),
        value => format!("{} {unit}", number(value)),
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        text("state"),
        text("event"),
        row["plans"],
        row["requests"],
        or("cpuMillis", "ms", ""),
        or("latenessMillis", "ms", "never"),
        or("leaseMillis", "ms", "lapsed"),
        or("healthMillis", "ms", ""),
        or("memoryMib", "MiB", "ended"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::line;

    #[test]
    fn an_edge_that_was_never_met_and_a_lapsed_lease_are_said() {
        let row = json!({
            "state": "empty", "event": "a machine created", "plans": 2, "requests": 3,
            "cpuMillis": 10, "latenessMillis": null, "leaseMillis": null, "healthMillis": 4,
            "memoryMib": 20,
        });
        let shown = "| empty | a machine created | 2 | 3 | 10 ms | never | lapsed | 4 ms | 20 MiB |";
        assert_eq!(line(&row), shown);
    }
}

//! `docs/upgrades.md`: the results of the upgrade tests.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::marked_page::filled;
use crate::stored_results;

/// Where the page is, below the root.
pub(crate) const PATH: &str = "docs/upgrades.md";

/// The folder of the results, below the root; a file for each server.
const RESULTS: &str = "e2e/upgrades";

/// The whole page.
///
/// # Errors
/// A result cannot be read.
pub(crate) fn page(root: &Path) -> Result<String, Box<dyn Error>> {
    let mut sections = Vec::new();
    for kept in stored_results::results(&root.join(RESULTS))? {
        let (server, older) = (text(&kept, "/server"), text(&kept, "/older"));
        let (title, about) = match older {
            "" => (server.to_owned(), text(&kept, "/about").to_owned()),
            older => {
                let short = older.get(..12).unwrap_or(older);
                (
                    format!("On {server}"),
                    format!("*old* is commit `{short}`."),
                )
            }
        };
        let table = table(&kept["results"]);
        sections.push(format!("## {title}\n\n{about}\n\n{table}"));
    }
    filled(root, PATH, [("results", sections.join("\n"))])
}

/// A row for each machine, a column for each step.
fn table(results: &Value) -> String {
    let steps = list(&results["steps"]);
    let mut head = String::from("| machine | phase |");
    let mut line = String::from("|---|---|");
    for step in steps {
        let _ = write!(head, " {} |", column(step));
        line.push_str("---|");
    }
    let mut table = format!("{head} at the end |\n{line}---|\n");
    for (row, case) in list(&results["cases"]).iter().enumerate() {
        let _ = write!(
            table,
            "| {} | {} |",
            text(case, "/name"),
            text(case, "/phase")
        );
        for step in steps {
            let _ = write!(table, " {} |", text(&step["machines"][row], ""));
        }
        let _ = writeln!(table, " {} |", text(&results["ends"][row], ""));
    }
    table.push_str("| a new one | |");
    for step in steps {
        let _ = write!(table, " {} |", text(step, "/newMachine"));
    }
    table.push_str(" |\n");
    table
}

/// The versions of a step.
fn column(step: &Value) -> String {
    let named = [
        ("manifests", "/manifests"),
        ("operator", "/operator"),
        ("Kubernetes", "/kubernetes"),
        ("Cluster API", "/clusterAPI"),
    ];
    let parts = named.iter().filter_map(|(name, pointer)| {
        let version = text(step, pointer);
        (!version.is_empty()).then(|| format!("{name} {version}"))
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// The text at a JSON pointer; empty if there is none.
fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::table;

    #[test]
    fn a_machine_is_a_row_and_a_step_is_a_column() {
        let results = json!({
            "cases": [{"name": "active", "phase": "Active"}],
            "steps": [{
                "manifests": "new", "operator": "old",
                "machines": ["kept"], "newMachine": "opened and removed",
            }],
            "ends": ["Inactive"],
        });
        let expected = "\
| machine | phase | manifests new, operator old | at the end |
|---|---|---|---|
| active | Active | kept | Inactive |
| a new one | | opened and removed | |
";
        assert_eq!(table(&results), expected);
    }
}

//! `docs/upgrades.md`: the results of the upgrade tests.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::stored_results;

/// Where the page is, below the root.
pub(crate) const PATH: &str = "docs/upgrades.md";

/// The folder of the results, below the root; a file for each server.
const RESULTS: &str = "e2e/upgrades";

const INTRODUCTION: &str = "\
# Upgrades, as tested

`cargo run --bin upgrade` builds the operator of the first version (`v0.1.0`) and this one. It brings a machine
into every phase and changes one version at a time: that of the CRDs, policies and roles (*manifests*), or that
of the operator. After each step it compares every machine with the beginning, and a new machine is opened and
removed. *kept* means the same phase, the same Machine and the same `status.shutdown`. At the end, with
both new, each machine is changed and must reach the phase in the last column.

On the embedded server, and on a real one (`cargo xtask cluster up --name upgrade`, then
`cargo run --bin upgrade -- --cluster upgrade`). With `--record` the results are stored in `e2e/upgrades`, from which
`cargo xtask gen` writes this page.

`cargo run --bin upgrade -- --platform kubernetes` upgrades Kubernetes and then Cluster API under one running operator, in a
cluster of its own; with `cluster-api`, in the other order. etcd and the operator stay. Every program of Kubernetes and
Cluster API is replaced, and Cluster API migrates the stored objects. Both go from the oldest to the newest supported
version in one step, which Kubernetes does not recommend; the versions between are not run. [Upgrade](how-to/upgrade.md) has the steps for a cluster.
";

/// The whole page.
///
/// # Errors
/// A result cannot be read.
pub(crate) fn page(root: &Path) -> Result<String, Box<dyn Error>> {
    let mut page = INTRODUCTION.to_owned();
    let folder = root.join(RESULTS);
    if !folder.exists() {
        return Ok(page);
    }
    for kept in stored_results::results(&folder)? {
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
        let _ = write!(
            page,
            "\n## {title}\n\n{about}\n\n{}",
            table(&kept["results"])
        );
    }
    Ok(page)
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

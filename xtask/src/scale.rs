//! `docs/scale.md`: the costs of many machines, from the numbers that `benches/scale`,
//! `benches/hostile` and `benches/capacities` have kept.

use std::error::Error;
use std::fs;
use std::path::Path;

use fivespot_install::controller::MEMORY_LIMIT_MIB;
use serde_json::Value;

use crate::marked_page::filled;
use crate::stored_results::{self, items, number};

/// Where the page is, below the root.
pub(crate) const PATH: &str = "docs/scale.md";

/// The folder of the results.
const RESULTS: &str = "benches/results";

const HEAD: &str = "\
| server | machines | floor | all created | times the floor | CPU time for each | memory, peak |
|---|---:|---:|---:|---:|---:|---:|
";

/// The file in which `benches/hostile --record` keeps its second table.
const EVENTS: &str = "benches/costs/events.json";

/// The file in which `benches/capacities --record` keeps its outcome.
const CAPACITIES: &str = "benches/edges/capacities.json";

/// The bound of that benchmark that the page calls a minute.
const MAX_EDGE_SECONDS: f64 = 60.0;

const CAPACITIES_HEAD: &str = "\
| capacities | kinds | all written | writes of targets | of statuses | other requests | CPU time of the server | of the operator | memory, peak | requests afterwards |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";

/// The memory of an operator without machines.
const BASE_MIB: f64 = 25.0;

/// The whole page.
///
/// # Errors
/// A result cannot be read.
pub(crate) fn page(root: &Path) -> Result<String, Box<dyn Error>> {
    let mut results = stored_results::results(&root.join(RESULTS))?;
    results.sort_by_key(|of| (name(of).to_owned(), of["machines"].as_u64()));
    let rows: String = results.iter().map(row).collect();
    let read = |file: &str| fs::read_to_string(root.join(file));
    let parts = [
        ("openings", format!("{HEAD}{rows}{}", limit(&results))),
        ("events", events(&serde_json::from_str(&read(EVENTS)?)?)),
        (
            "capacities",
            capacities(&serde_json::from_str(&read(CAPACITIES)?)?),
        ),
    ];
    filled(root, PATH, parts)
}

/// What one event costs, from what `benches/hostile` has kept.
fn events(kept: &Value) -> String {
    let rows: String = items(&kept["rows"]).map(event).collect();
    format!(
        "CPU limit: {}m.\n\n\
         | existing | event | plans | requests | CPU | other tenant | Lease | `/healthz` | memory |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|\n{rows}",
        kept["cpuMillis"]
    )
}

fn event(row: &Value) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let or = |key: &str, unit: &str, otherwise: &str| match &row[key] {
        Value::Null => otherwise.to_owned(),
        value => format!("{} {unit}", number(value)),
    };
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
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

/// Many ScheduledCapacities at one edge, from what `benches/capacities` has kept.
fn capacities(of: &Value) -> String {
    let is_late = number(&of["edgeSeconds"]) > MAX_EDGE_SECONDS;
    let verdict = if is_late {
        "The minute was not kept.\n\n"
    } else {
        ""
    };
    let seconds = |key: &str| format!("{:.1} s", number(&of[key]));
    format!(
        "{verdict}{CAPACITIES_HEAD}| {} | {} | {} | {} | {} | {} | {} | {} | {} MiB | {} in {} s |\n",
        of["capacities"],
        of["kinds"],
        seconds("edgeSeconds"),
        of["targetWrites"],
        of["statusWrites"],
        of["otherRequests"],
        seconds("serverCpuSeconds"),
        seconds("operatorCpuSeconds"),
        of["memoryMib"],
        of["idleRequests"],
        of["idleSeconds"],
    )
}

fn row(of: &Value) -> String {
    let machines = number(&of["machines"]);
    let floor = number(&of["floorSeconds"]);
    let all = number(&of["latenessSeconds"][2]);
    let cpu = number(&of["opened"]["cpuSeconds"]) - number(&of["settled"]["cpuSeconds"]);
    format!(
        "| {} | {machines} | {floor:.1} s | {all:.1} s | {:.2} | {:.2} ms | {:.1} MiB |\n",
        name(of),
        all / floor,
        1_000.0 * cpu / machines,
        number(&of["opened"]["peakKib"]) / 1_024.0,
    )
}

/// The number of machines for which the default memory limit is enough, by the row with the most
/// memory per machine.
fn limit(results: &[Value]) -> String {
    let enough = [
        ("opened", "for an opening of"),
        ("closed", "for a whole cycle of"),
    ]
    .into_iter()
    .filter_map(|(stage, what)| {
        let of_row =
            |of: &Value| beyond_base(&of[stage]["peakKib"]) / number(&of["machines"]);
        let each = results.iter().map(of_row).fold(0.0, f64::max);
        let left = (f64::from(MEMORY_LIMIT_MIB) - BASE_MIB) * 1_024.0;
        (each > 0.0).then(|| {
            let machines = thousands(left / each);
            format!(
                "{what} {machines} machines ({BASE_MIB} MiB + {each:.1} KiB for each)"
            )
        })
    });
    let enough: Vec<String> = enough.collect();
    format!(
        "\nThe operator is shipped with a limit of {MEMORY_LIMIT_MIB} MiB. By the row that takes the \
         most for each machine, that is enough {}. For more of them set a higher one, \
         `resources.limits.memory` among the values of the chart or in the Deployment: an operator \
         that meets its limit is killed.\n",
        enough.join(", and "),
    )
}

/// The memory beyond that of an operator without machines, in KiB.
fn beyond_base(kib: &Value) -> f64 {
    number(kib) - BASE_MIB * 1_024.0
}

/// A number of machines as text, rounded down to thousands.
fn thousands(machines: f64) -> String {
    format!("{:.0},000", (machines / 1_000.0).floor())
}

fn name(of: &Value) -> &str {
    of["server"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{event, limit};

    #[test]
    fn the_limit_is_computed_from_the_row_with_the_most_memory_per_machine() {
        let results = [
            json!({"machines": 1000, "opened": {"peakKib": 25_600 + 2_000}, "closed": null}),
            json!({"machines": 1000, "opened": {"peakKib": 25_600 + 5_600},
                   "closed": {"peakKib": 25_600 + 8_800}}),
        ];
        let text = limit(&results);
        let expected = "limit of 256 MiB. By the row that takes the most for each machine, that is \
                    enough for an opening of 42,000 machines (25 MiB + 5.6 KiB for each), and for \
                    a whole cycle of 26,000 machines (25 MiB + 8.8 KiB for each). ";
        assert!(text.contains(expected), "{text}");
        assert!(!limit(&results[..1]).contains("cycle"));
    }

    #[test]
    fn an_edge_that_was_never_met_and_a_lapsed_lease_are_said() {
        let row = json!({
            "state": "empty", "event": "a machine created", "plans": 2, "requests": 3,
            "cpuMillis": 10, "latenessMillis": null, "leaseMillis": null, "healthMillis": 4,
            "memoryMib": 20,
        });
        let shown = "| empty | a machine created | 2 | 3 | 10 ms | never | lapsed | 4 ms | 20 MiB |";
        assert_eq!(event(&row), format!("{shown}\n"));
    }
}

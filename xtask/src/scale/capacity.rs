//! The section about many ScheduledCapacities at one edge, from what `benches/capacities` has kept.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::stored_results::number;

/// The file in which `benches/capacities --record` keeps its outcome.
const FILE: &str = "benches/edges/capacities.json";

/// The bound of the benchmark that the page calls a minute.
const MAX_EDGE_SECONDS: f64 = 60.0;

const TABLE: &str = "\
| capacities | kinds | all written | writes of targets | of statuses | other requests | CPU time of the server | of the operator | memory, peak | requests afterwards |
|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";

/// The section.
///
/// # Errors
/// The result cannot be read.
pub(super) fn part(root: &Path) -> Result<String, Box<dyn Error>> {
    let kept: Value = serde_json::from_str(&fs::read_to_string(root.join(FILE))?)?;
    let is_late = number(&kept["edgeSeconds"]) > MAX_EDGE_SECONDS;
    let verdict = if is_late {
        "The minute was not kept.\n\n"
    } else {
        ""
    };
    let mut page = format!("{verdict}{TABLE}");
    let _ = writeln!(page, "{}", line(&kept));
    Ok(page)
}

fn line(of: &Value) -> String {
    let seconds = |key: &str| format!("{:.1} s", number(&of[key]));
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} MiB | {} in {} s |",
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

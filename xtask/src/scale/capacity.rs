//! The section about many ScheduledCapacities at one edge, from what `benches/capacities` has kept.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::stored_results::number;

/// The file in which `benches/capacities --record` keeps its outcome.
const FILE: &str = "benches/edges/capacities.json";

/// The bound of the benchmark that [`HEAD`] calls a minute.
const MAX_EDGE_SECONDS: f64 = 60.0;

const HEAD: &str = "
## Many capacities at one edge

ScheduledCapacities with one schedule, in a hundred namespaces; the targets of three kinds are written through the
subresource `scale`. The time is from the edge until the last status is written. The embedded server, on one thread of
the benchmark, and the operator, on one thread too, share a computer with two cores. Other work on it lengthens the
time more than the CPU times.

```console
$ cargo build --profile dist --bin 5spot-controller --bin capacities \
    --features fivespot-controller/allocator,benches/allocator
$ target/dist/capacities --record benches/edges/capacities.json
```

The bounds that the program asserts are a minute, one write of each target and one of each status, 512 MiB, and no
request afterwards but watches and renewals of the Lease.";

const TABLE: &str = "

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
        " The minute was not kept."
    } else {
        ""
    };
    let mut page = format!("{HEAD}{verdict}{TABLE}");
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

//! `docs/scale.md`: the costs of many machines, from the numbers that `benches/scale`,
//! `benches/hostile` and `benches/capacities` have kept.

mod capacity;
mod cost;

use std::error::Error;
use std::path::Path;

use fivespot_install::controller::MEMORY_LIMIT_MIB;
use serde_json::Value;

use crate::stored_results::{self, number};

/// Where the page is, below the root.
pub(crate) const PATH: &str = "docs/scale.md";

/// The folder of the results.
const RESULTS: &str = "benches/results";

const HEAD: &str = "\
# Performance with many machines

Until the objects of a machine that opens by the clock exist, the operator sends four requests: it reads the
ScheduledMachine, and creates the Machine, its bootstrap object and its infrastructure object. Until the machine
serves it patches the status three times. While nothing changes it sends nothing but the renewals of its Lease.
`cargo xtask gen` writes this page from what `benches/scale`, `benches/hostile` and
`benches/capacities` have recorded.

## All windows open at once

The *floor* is the time of a plain client that only creates the three objects of as many machines, 32 machines
at a time, on the same server right before. *All created* is the time from the opening of all windows until all
objects exist. Server, Cluster API, operator and benchmark share one computer with two cores; identical runs vary
by up to a factor of two, the floor too, because Cluster API reconciles meanwhile and uses most of the server's
time. The rows without Cluster API show what the operator itself takes.

| server | machines | floor | all created | times the floor | CPU time for each | memory, peak |
|---|---:|---:|---:|---:|---:|---:|
";

const PLAN: &str = "
## Tens of thousands

- *What limits first* is the rate of writes to one API server, most of which are Cluster API's: an edge that all share
  takes as long as the rows above say, however many operators there are. Edges that differ, or
  `--max-starts-per-minute`, spread the same writes.
- *etcd* stores some 11 KiB for each machine, and the history since its last compaction (five minutes by default). Every
  status patch is a new version of its object, so an edge for all needs several times that for as long: set the quota
  accordingly, or use several management clusters.
- *Watches*: each write is sent once to each process that watches its kind: the operator's replicas, Cluster API's
  controllers and the providers.
- *N operators by namespace* (`--namespaces`) divide all costs of the operator: CPU time, memory and watches.
- *N replicas that divide the work* (`--instance-count`) divide the CPU time and the requests. Each needs the memory
  and the watches of a single operator, because a watch cannot select by the hash of a uid.
- *Several management clusters* are the only way to more writes, more storage and fewer watches per server.

To measure a cluster of your own, run `benches/scale`, which is in the source tree:

```console
$ cargo build --profile dist --bin 5spot-controller --features fivespot-controller/allocator
$ cargo run --release --bin scale -- --machines 1000 --opening-alone
```
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
    let cost = cost::part(root)?;
    let capacities = capacity::part(root)?;
    let limit = limit(&results);
    Ok(format!("{HEAD}{rows}{limit}{cost}{capacities}{PLAN}"))
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

    use super::limit;

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
}

//! The section about many machines that are wanted at once, each run with its own floor.

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::{name, number};
use crate::stored_results;

/// The folder in which `benches/scale --burst` keeps its numbers.
const RESULTS: &str = "benches/bursts";

/// The name of the status patches among the requests.
const PATCHES: &str = "patch scheduledmachines/status";

const HEAD: &str = "
## Many machines at once

A pair is one measurement of the floor and, right after it, one burst on the same server: machines
are created at once (`created`), `schedule.enabled` of all becomes true at once (`enabled`), or the
windows of all open at the same instant (`edge`). A row has the pairs of one run; the ratio, the
requests and the patches are the median of the pairs.

- *times the floor*: the time until the last Machine exists, divided by the floor of the same pair. For `created`
  and `enabled` the time includes the requests of the client that creates or edits the machines.
- *requests*: requests of the operator per machine before the last Machine is created.
- *status patches*: patches of ScheduledMachines' status per machine until all serve.
- *workload*: requests to the workload cluster per machine until all serve.

The floor has three requests per machine. `edge` has one more read, that of the ScheduledMachine.
`enabled` has the edit of the client as well, and `created` the creation by the client, the finalizer and the
first status instead. Meanwhile Cluster API writes about the machines that exist already, which it does for the
floor too, but later.

In the rows of 1,000 machines each opening had one more read, of the name of the Machine, which is left out
since they were measured.

The last two columns are empty for runs that ended when the last Machine existed (`--until-created`): Cluster
API takes long until a thousand machines serve.

```console
$ cargo build --profile dist --bin 5spot-controller --features fivespot-controller/allocator
$ cargo build --release --bin scale
$ target/release/scale --machines 300 --burst edge --pairs 3 --open-minutes 8 \\
    --record benches/bursts/edge-300.json
```

| server | burst | machines | floor | all created | times the floor | requests | status patches | workload |
|---|---|---:|---:|---:|---:|---:|---:|---:|
";

/// The section, with a row for each run that is kept.
///
/// # Errors
/// A result cannot be read.
pub(super) fn part(root: &Path) -> Result<String, Box<dyn Error>> {
    let mut runs = stored_results::results(&root.join(RESULTS))?;
    runs.sort_by_key(|run| (burst(run).to_owned(), run["machines"].as_u64()));
    let mut page = HEAD.to_owned();
    for run in &runs {
        page.push_str(&row(run));
    }
    Ok(page)
}

fn row(run: &Value) -> String {
    let machines = number(&run["machines"]);
    let floor = |pair: &Value| number(&pair["floorSeconds"]);
    let all = |pair: &Value| number(&pair["seconds"][2]);
    let serve = pairs(run)
        .iter()
        .all(|pair| pair["untilServing"].is_object());
    let until_serving = |of: fn(&Value) -> f64| {
        let each = serve.then(|| median(run, |pair| of(pair) / machines));
        each.map_or_else(String::new, |each| format!("{each:.2}"))
    };
    let mut row = String::new();
    let _ = writeln!(
        row,
        "| {} | {} | {machines} | {} | {} | {:.2} | {:.2} | {} | {} |",
        name(run),
        burst(run),
        seconds(run, floor),
        seconds(run, all),
        median(run, |pair| all(pair) / floor(pair)),
        median(run, |pair| sum(&pair["untilCreated"]["requests"])
            / machines),
        until_serving(|pair| number(&pair["untilServing"]["requests"][PATCHES])),
        until_serving(|pair| number(&pair["workloadRequests"])),
    );
    row
}

/// The seconds of each pair, in order.
fn seconds(run: &Value, of: impl Fn(&Value) -> f64) -> String {
    let pairs = pairs(run).iter().map(|pair| format!("{:.1}", of(pair)));
    format!("{} s", pairs.collect::<Vec<_>>().join(", "))
}

/// The median of the pairs' values; 0 without pairs.
fn median(run: &Value, of: impl Fn(&Value) -> f64) -> f64 {
    let mut values: Vec<f64> = pairs(run).iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn pairs(run: &Value) -> &[Value] {
    run["pairs"].as_array().map_or(&[], Vec::as_slice)
}

/// The number of requests of all kinds.
fn sum(requests: &Value) -> f64 {
    let counts = requests.as_object().into_iter().flatten();
    counts.map(|(_, count)| number(count)).sum()
}

fn burst(run: &Value) -> &str {
    run["burst"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::row;

    #[test]
    fn a_row_has_the_median_of_the_ratios_and_not_the_ratio_of_medians() {
        let pair = |floor: f64, all: f64| {
            json!({
                "floorSeconds": floor, "seconds": [0.0, 0.0, all], "workloadRequests": 20,
                "untilCreated": {"requests": {"create machines": 10, "get machines": 20}},
                "untilServing": {"requests": {"patch scheduledmachines/status": 40}},
            })
        };
        let run = json!({
            "server": "Kubernetes", "burst": "edge", "machines": 10,
            "pairs": [pair(2.0, 3.0), pair(4.0, 4.8), pair(1.0, 3.0)],
        });
        assert_eq!(
            row(&run),
            "| Kubernetes | edge | 10 | 2.0, 4.0, 1.0 s | 3.0, 4.8, 3.0 s | 1.50 | 3.00 | 4.00 \
             | 2.00 |\n"
        );
    }
}

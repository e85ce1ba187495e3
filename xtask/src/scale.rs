//! `docs/scale.md`: the costs of many machines, from the numbers that `benches/scale` and
//! `e2e/browser/figures.mjs` have kept.

mod bursts;
mod cost;
mod crowd;
mod dashboard;

use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use fivespot_install::controller::MEMORY_LIMIT_MIB;
use serde_json::Value;

use crate::stored_results;

/// Where the page is, below the root.
pub(crate) const PATH: &str = "docs/scale.md";

/// The folder of the results.
const RESULTS: &str = "benches/results";

const HEAD: &str = "\
# Performance with many machines

`benches/scale` measures the numbers of the operator on one computer that runs the API server, Cluster API, the
operator and the benchmark together. The operator is built with the profile `dist`, in which it is
shipped; it needs fewer resources than with `release`. The runs store their numbers in
`benches/results` and `benches/bursts`, and `cargo xtask gen` writes this page from them.
The page `internals/how-we-test.md` lists with which sources each was recorded.

The floor is the time of a plain client that only creates the three objects of as many machines,
32 machines at a time, on the same server. Identical runs vary by up to a factor of two, the floor
too: Cluster API reconciles while creation is in progress, and uses most of the server's time. So
times are shown only as pairs, each with its floor measured right before it.
";

const OF_A_RUN: &str = "
## One run, as a whole

Each row of the next three tables is a separate run on a new cluster, with one pair of a floor and an
opening by the clock.

On a real cluster:

```console
$ cargo xtask cluster up                       # and export what it prints
$ cargo build --profile dist --bin 5spot-controller --features fivespot-controller/allocator
$ cargo run --release --bin scale -- --machines 1000 --opening-alone \\
    --record benches/results/kubernetes-1000.json
```

Without `--opening-alone` the benchmark measures a whole cycle, which takes Cluster API a long time
with many machines.

The rows without Cluster API are from the embedded server alone, where no other controller reacts to
the created objects. They show whether what the operator needs per machine grows with the number of
machines. For 1,000 and 5,000 machines the median of three runs is kept.

```console
$ 5spot dev --no-controller --no-simulator --audit-log audit.json --kubeconfig dev.yaml --apply empty/
$ KUBECONFIG=dev.yaml cargo run --release --bin scale -- --machines 50000 \\
    --opening-alone --no-cluster-api --audit-log audit.json --lead-seconds 200 \\
    --server 'embedded, no Cluster API'
```
";

/// The memory of an operator without machines.
const BASE_MIB: f64 = 25.0;

/// The whole page.
///
/// # Errors
/// A result cannot be read.
pub(crate) fn page(root: &Path) -> Result<String, Box<dyn Error>> {
    let results = results(&root.join(RESULTS))?;
    let mut page = HEAD.to_owned();
    page.push_str(&bursts::part(root)?);
    page.push_str(OF_A_RUN);
    page.push_str(
        "\n### From the opening of the windows to all objects\n\n\
         | server | machines | floor | half | 99 in 100 | all | times the floor | per machine |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for of in &results {
        let late = |at: usize| of["latenessSeconds"][at].as_f64().unwrap_or_default();
        let (floor, all) = (number(&of["floorSeconds"]), late(2));
        let _ = writeln!(
            page,
            "| {} | {} | {floor:.2} s | {:.2} s | {:.2} s | {all:.2} s | {:.2} | {:.2} ms |",
            name(of),
            of["machines"],
            late(0),
            late(1),
            all / floor,
            1_000.0 * all / number(&of["machines"]),
        );
    }
    page.push_str(&crowd::part(root)?);
    page.push_str(&process(&results));
    page.push_str(&limit(&results));
    let cycles: Vec<&Value> = results
        .iter()
        .filter(|of| of["openingAlone"] == false)
        .collect();
    if !cycles.is_empty() {
        page.push_str(&whole(&cycles));
    }
    page.push_str(&cost::part(root)?);
    page.push_str(&dashboard::part(root)?);
    Ok(page)
}

/// The memory and CPU time of the process until all objects exist.
fn process(results: &[Value]) -> String {
    let mut page = String::from(
        "\n### The process\n\n\
         Resident memory when all machines were in the caches, when all objects had been created, \
         and its peak until then; the CPU time until then, and per machine between the two.\n\n\
         | server | machines | profile | all cached | all created | per machine | peak | CPU time | \
         per machine |\n\
         |---|---:|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for of in results {
        let made = &of["opened"];
        let beyond = beyond_base(&made["residentKib"]);
        let taken = number(&made["cpuSeconds"]);
        let opening = taken - number(&of["settled"]["cpuSeconds"]);
        let each = 1_000.0 * opening / number(&of["machines"]);
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} | {taken:.2} s | {each:.2} ms |",
            name(of),
            of["machines"],
            of["profile"].as_str().unwrap_or_default(),
            mebibytes(&of["settled"]["residentKib"]),
            mebibytes(&made["residentKib"]),
            if beyond > 0.0 {
                format!(
                    "{BASE_MIB} MiB + {:.1} KiB",
                    beyond / number(&of["machines"])
                )
            } else {
                format!("less than {BASE_MIB} MiB in all")
            },
            mebibytes(&made["peakKib"]),
        );
    }
    page
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

/// The results of whole cycles.
fn whole(cycles: &[&Value]) -> String {
    let mut text = "\n### A whole cycle\n\n\
         Writes per machine are counted from the opening of the window to the end of the shutdown, without\n\
         Events and Leases; those that only copy what Cluster API and the workload cluster report are in\n\
         parentheses. A machine that Cluster API has not removed when its grace period ends needs two more:\n\
         an annotation that makes Cluster API skip the volume detachment, and the status that the deadline\n\
         has passed. Requests while idle exclude watches and renewals of Leases. The baseline is measured\n\
         again before the second opening, because the server then stores more objects. Resident memory is\n\
         shown when all machines were in service, when all were deleted, and at its peak until then. A run\n\
         that was aborted early has empty cells.\n\n\
         | server | machines | grace period | writes | while idle | second opening | floor then | restart | answered 429 | deletion of all | all in service | all deleted | peak |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for of in cycles {
        let machines = number(&of["machines"]);
        let writes = number(&of["opening"]["writes"]) + number(&of["closing"]["writes"]);
        let _ = writeln!(
            text,
            "| {} | {machines} | {} min | {:.2} ({:.2}) | {} in {} min | {} | {} | {} | {} | {} | {} | {} | {} |",
            name(of),
            of["graceMinutes"],
            writes / machines,
            number(&of["repeated"]) / machines,
            of["idle"]["beyondIdling"],
            of["idleMinutes"],
            seconds(&of["againSeconds"][2]),
            seconds(&of["floorAgainSeconds"]),
            seconds(&of["restart"]["seconds"]),
            count(&of["restart"]["requests"]["refused"]),
            seconds(&of["deletionSeconds"]),
            mebibytes(&of["open"]["residentKib"]),
            mebibytes(&of["closed"]["residentKib"]),
            mebibytes(&of["closed"]["peakKib"]),
        );
    }
    text
}

/// A number of KiB as text in MiB; empty if it was not measured.
fn mebibytes(kib: &Value) -> String {
    kib.as_f64()
        .map_or_else(String::new, |kib| format!("{:.1} MiB", kib / 1_024.0))
}

/// A number of seconds as text; empty if it was not measured.
fn seconds(of: &Value) -> String {
    of.as_f64()
        .filter(|seconds| *seconds > 0.0)
        .map_or_else(String::new, |seconds| format!("{seconds:.2} s"))
}

/// A count as text; empty if it was not measured.
fn count(of: &Value) -> String {
    of.as_u64().map_or_else(String::new, |of| of.to_string())
}

/// All results, sorted by server and number of machines.
fn results(folder: &Path) -> Result<Vec<Value>, Box<dyn Error>> {
    let mut all = stored_results::results(folder)?;
    all.sort_by_key(|of| (name(of).to_owned(), of["machines"].as_u64()));
    Ok(all)
}

fn name(of: &Value) -> &str {
    of["server"].as_str().unwrap_or_default()
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or_default()
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

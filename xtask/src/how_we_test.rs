//! `internals/how-we-test.md`: what each layer of tests proves, how to run it, and the results of its
//! last run.
//!
//! The commands keep their numbers in the source tree; this module runs nothing.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::figure;
use crate::stored_results::items;

/// Where the page is, below the root.
pub(crate) const PATH: &str = "internals/how-we-test.md";

/// What `benches/validate --tree` has kept.
const VALIDATE: &str = "proof/results/validate.json";

/// Where `cargo xtask promises` stores the results of the scenarios with every fault, a file per
/// backend.
pub(crate) const FAULTS: &str = "proof/results/faults";

const LAYERS: &str = "\
# How we test

Each layer finds faults that the one before it cannot find. The commands below store their numbers in
`proof/results`; `cargo xtask gen` writes this page from them, and `cargo xtask gen --check` compares.

| layer | what it shows | how to run it |
|---|---|---|
| tables and properties | the planner decides each case as specified, whatever strings an object contains | `cargo test --test plan` |
| model | the shipped planner violates no invariant in any order of faults, handovers, edits and changes by others, for a small set of objects | `cargo run --release --bin proof -- model` |
| mutants | the model can fail: it detects deliberate faults in the planner | `cargo run --release --bin proof -- mutants` |
| tested mutants | tests can fail: each detects deliberate faults of code that the model does not run | `cargo run --release --bin proof -- tested-mutants` |
| simulation | the shipped operator, including its caches, retries and Leases, violates no invariant in simulated days | `cargo run --release --bin simulation` |
| long haul | in years of many machines each edge is met on its second, the account of usage and the metrics are those of the schedule, and memory does not grow | `cargo run --release --bin simulation --features simulation/allocator -- --years 10 --machines 200` |
| compressed day | on a real Kubernetes, with faults, memory and requests per hour of openings and closings stay constant, and no object is left behind | `cargo run --release --bin day` |
| promises | what users rely on is true as seen through the Kubernetes API, on the embedded server and on real ones | `cargo test --test promises`, and with `E2E_BACKEND=kubernetes` |
| faults between operator and server | an opening, a shutdown, a cancelled shutdown, a kill switch, a reclaim and a deletion end in the same state with a fault: before or after each write a crash, a conflict, an error or a lost response, and each watch dropped, delayed or started from an old version | `E2E_FAULTS=all cargo test --release --test promises survives_every_fault` |
| fuzzing | what parses untrusted bytes (expressions, patterns, CRDs, policies, reviews) returns, without a panic, the same answer each time | `cargo run --release --bin fuzz -- all --seconds 600` |
| benchmarks | nothing; they measure | `cargo bench --bench at --bench plan` |

`cargo test` injects one of these faults into each write and each watch, in turn; with `E2E_FAULTS=all` it
injects every fault into each. On a real cluster (`E2E_BACKEND=kubernetes`) they are injected only if
`E2E_FAULTS` is set to `all` or to `some`; `cargo xtask promises` stores the results of `all`.

The scenarios with faults run twice without one, and once with each; their final states are compared: the
remaining objects, except for uids and times, and what the operator created, deleted and evicted. The model
contains one ScheduledMachine, its objects, and its Node with a pod. In its parts `2-for-1` to `3-for-2` two or
three ScheduledMachines of different priorities compete for one or two hosts of a class, with two replicas that
hand over, and a class that is edited and deleted: no two have objects on one host, nothing is created before its
host is claimed and recorded, a host is given back once the objects are gone, no edit of the class takes the host
of a machine that exists, and a free host is taken. Equal seeds of the simulation give equal
runs, request by request; in a quarter of them two operators use leader election
([decision 49](decisions/0049-simulations-replay-from-a-seed.md)). Every fiftieth seed is a fleet of 200 machines
of 20 classes that have fewer hosts; half of the classes say how many may begin within a minute. Fuzzing has no guidance by coverage: an input
is kept and mutated again if its answer is new.

A violation is printed with the shortest sequence of steps that leads to it (model), or with a command that
replays the run (simulation). Write that as a test first, then fix the bug.
";

const FLAMES: &str = "\
## Where the time goes

The benchmarks time the schedule (`at`), one step of the planner and the comparison of a status
(`plan`). To see where one of them spends its time, with `perf` and `cargo install flamegraph`:

```console
$ CARGO_PROFILE_BENCH_DEBUG=line-tables-only \\
    cargo flamegraph --bench plan -- --bench 'a window has opened'
```

The same for a whole run of the simulation: `cargo flamegraph --bin simulation -- --seeds 0..20`.
";

/// The whole page.
///
/// # Errors
/// A result cannot be read.
pub(crate) fn page(root: &Path) -> Result<String, Box<dyn Error>> {
    let beside = serde_json::from_str(&fs::read_to_string(root.join(VALIDATE))?)?;
    Ok(format!(
        "{LAYERS}\n{}\n{}\n{FLAMES}",
        figure::section(&figure::figures(root)?),
        validate(&beside)
    ))
}

/// The verdicts of `5spot validate` and of another program about one tree.
fn validate(result: &Value) -> String {
    let names: Vec<_> = items(&result["programs"])
        .filter_map(|it| it["name"].as_str())
        .collect();
    let mut text = format!(
        "## Manifests beside kubectl-validate\n\n\
         What `5spot validate` and kubectl-validate say about one tree of manifests, for Kubernetes {}:\n\
         `cargo run --release --bin validate -- --tree --beside PROGRAM`. Both are given the CRDs.\n\
         `crates/testkit/src/manifest_tree.rs` has a text of each sort. kubectl-validate compares objects with schemas;\n\
         what a server decides by other code it does not know.\n\n\
         | sort | documents | a server says | {} |\n|---|---:|---|{}\n",
        result["kubernetes"].as_str().unwrap_or_default(),
        names.join(" | "),
        "---|".repeat(names.len()),
    );
    for sort in items(&result["sorts"]) {
        let verdicts = names.iter().map(|name| {
            let all = sort["verdicts"][name].as_object().into_iter().flatten();
            let all: Vec<_> =
                all.map(|(name, count)| format!("{count} {name}")).collect();
            all.join(", ")
        });
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            sort["sort"].as_str().unwrap_or_default(),
            sort["documents"],
            sort["expected"].as_str().unwrap_or_default(),
            verdicts.collect::<Vec<_>>().join(" | "),
        );
    }
    let _ = writeln!(
        text,
        "\n| program | time | peak memory | exit code |\n|---|---:|---:|---:|"
    );
    for of in items(&result["programs"]) {
        let _ = writeln!(
            text,
            "| {} | {:.1} s | {} MiB | {} |",
            of["name"].as_str().unwrap_or_default(),
            of["seconds"].as_f64().unwrap_or_default(),
            of["peakMib"],
            of["exitCode"],
        );
    }
    let _ = writeln!(
        text,
        "\n`5spot` was built with the profile `{}`.",
        result["profile"].as_str().unwrap_or_default()
    );
    text
}

//! `internals/how-we-test.md`: what each layer of tests proves, how to run it, and the results of its
//! last run.
//!
//! The commands keep their numbers in the source tree; this module runs nothing.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{figure, stored_results};

/// Where the page is, below the root.
pub(crate) const PATH: &str = "internals/how-we-test.md";

/// The folder of the results.
const RESULTS: &str = "proof/results";

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
    let mut page = LAYERS.to_owned();
    let figures = figure::figures(root)?;
    let texts = [
        ("The model", "model.json", model as fn(&Value) -> String),
        ("The model, deeper", "deep.json", deep),
        ("The mutants", "mutants.json", mutants),
        ("The simulation", "simulation.json", simulation),
        ("The long haul", "haul.json", haul),
        ("A compressed day on a real Kubernetes", "day.json", day),
        ("The agent", "reclaim.json", agent),
        ("Untrusted input", "fuzz.json", fuzz),
        (
            "Manifests beside kubectl-validate",
            "validate.json",
            validate,
        ),
    ];
    for (heading, file, text) in texts {
        let path = root.join(RESULTS).join(file);
        if path.exists() {
            let result = serde_json::from_str(&fs::read_to_string(&path)?)?;
            let recorded = figure::sentence(&figures, &format!("{RESULTS}/{file}"));
            let _ = write!(page, "\n## {heading}\n\n{recorded}{}", text(&result));
        }
    }
    let _ = write!(
        page,
        "\n{}\n{}\n{FLAMES}",
        faults(&stored_results::results(&root.join(FAULTS))?),
        figure::section(&figures)
    );
    Ok(page)
}

/// The results of the scenarios with every fault.
fn faults(results: &[Value]) -> String {
    let mut text = "\
## Faults between operator and server

Each scenario runs twice without a fault, and once with each. The final states are compared: the remaining
objects, except for uids and times, and what the operator created, deleted and evicted. A watch without events
cannot be delayed; one that is new in the scenario has no older version. A real Cluster API reports its progress
in one step or in two, so not every run has every status write: faults that did not occur in three runs are
counted as missed.

| backend | scenario | writes | faults | watches | faults | missed | other final state |
|---|---|---:|---:|---:|---:|---:|---:|
"
    .to_owned();
    for result in results {
        let backend = result["backend"].as_str().unwrap_or_default();
        for (scenario, of) in result["scenarios"].as_object().into_iter().flatten() {
            let missed = of["missed"].as_array().map_or(0, Vec::len);
            let _ = writeln!(
                text,
                "| {backend} | {scenario} | {} | {} | {} | {} | {missed} | {} |",
                of["writes"],
                of["faultsOfWrites"],
                of["watches"],
                of["faultsOfWatches"],
                of["otherwise"],
            );
        }
    }
    text
}

fn model(result: &Value) -> String {
    let mut text = format!(
        "{} unique states, each checked against {} invariants; {} violations. The model\n\
         contains one ScheduledMachine, its objects, and its Node with a pod. A part is a part of a day, and the\n\
         numbers before the states say how many faults of each kind may occur in it.\n\n",
        result["unique"], result["laws"], result["violations"]
    );
    text.push_str(&parts(result));
    text
}

fn deep(result: &Value) -> String {
    let mut text = format!(
        "{} unique states, {} violations: `cargo run --release --bin proof -- model --deep`. Parts\n\
         that are larger than those above are cut off at forty million generated states;\n\
         `--limit` sets another limit.\n\n",
        result["unique"], result["violations"]
    );
    text.push_str(&parts(result));
    text
}

/// The parts of a model search, as a table.
fn parts(result: &Value) -> String {
    let mut text = "\
        | part | failed requests | crashes | edits | changes by others | states | generated | depth |\n\
        |---|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for part in result["parts"].as_array().into_iter().flatten() {
        let name = part["part"].as_str().unwrap_or_default();
        let numbers = [
            "errors",
            "crashes",
            "edits",
            "meddling",
            "states",
            "generated",
        ];
        let numbers = numbers.map(|field| part[field].to_string()).join(" | ");
        let _ = writeln!(text, "| {name} | {numbers} | {} |", part["depth"]);
    }
    text
}

fn mutants(result: &Value) -> String {
    let all = result.as_object();
    let tried = all.map_or(0, serde_json::Map::len);
    let is_caught = |(_, of): &(&String, &Value)| of["caughtBy"].is_string();
    let caught = all.into_iter().flatten().filter(is_caught).count();
    let mut text = format!(
        "{caught} of {tried} were detected.\n\n| mutant | what it does | detected by |\n|---|---|---|\n"
    );
    for (id, of) in all.into_iter().flatten() {
        let words = |field: &str| of[field].as_str().unwrap_or("nothing").to_owned();
        let _ = writeln!(
            text,
            "| {id} | {} | {} |",
            words("fault"),
            words("caughtBy")
        );
    }
    text
}

fn fuzz(result: &Value) -> String {
    let mut text = format!(
        "Each target ran for at most {} seconds, on one core.\n\n\
         | target | inputs | different answers | slowest, ms | failed |\n\
         |---|---:|---:|---:|---|\n",
        result["seconds"]
    );
    for target in result["targets"].as_array().into_iter().flatten() {
        let number = |field: &str| {
            let number = &target[field];
            number.as_u64().map(|it| it.to_string()).unwrap_or_default()
        };
        let broke = if target["clean"] == true {
            "nothing".to_owned()
        } else {
            format!("text {}", number("texts"))
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {broke} |",
            target["target"].as_str().unwrap_or_default(),
            number("texts"),
            number("answers"),
            number("slowestMillis"),
        );
    }
    text.push_str(
        "\nAn input is kept and mutated again if its answer is new, except for numbers. There is no\n\
         guidance by coverage.\n",
    );
    text
}

fn simulation(result: &Value) -> String {
    let mut text = format!(
        "{} seeds, {} virtual years, {} writes, {} checks of invariants, {} actions of users and Cluster API;\n\
         {} violations. Of {} possible combinations of a phase, a write and a fault, {}\n\
         occurred.\n\n| fault | injected |\n|---|---:|\n",
        result["seeds"],
        result["virtualYears"],
        result["writes"],
        result["checks"],
        result["userActions"],
        result["violations"],
        result["cells"],
        result["cellsHit"],
    );
    for (fault, count) in result["faults"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "| {fault} | {count} |");
    }
    text.push_str(
        "\nEqual seeds give equal runs, request by request, whatever the random keys of hash maps. A run\n\
         of a hundred thousand seeds is `cargo run --release --bin simulation -- --seeds 0..100000`. In a quarter of the\n\
         runs two operators use leader election, and each may be disconnected from the server for up\n\
         to 40 minutes. In most runs the clock of their host is set back by up to nine minutes or\n\
         forward by up to half an hour and corrected later, or the host is suspended. A slow response\n\
         takes 1 to 28 seconds; how a write is judged then is described in\n\
         [decision 49](decisions/0049-simulations-replay-from-a-seed.md).\n",
    );
    text
}

fn haul(result: &Value) -> String {
    format!(
        "{} virtual years of {} machines with five kinds of schedules in five time zones, with nothing between the\n\
         operator and its server: {} machines were created and {} removed, each on the second of its edge and at\n\
         no other time; {} accounts of a month were compared with the schedule; {} deviations in {}\n\
         requests. After the first 14 months, which is how long a status keeps its account, {} MiB were resident in\n\
         the process of operator, server and simulator, and {} MiB in the last months.\n",
        result["virtualYears"],
        result["machines"],
        result["openings"],
        result["closings"],
        result["accounts"],
        result["broken"],
        result["requests"],
        result["residentMiB"]["first"],
        result["residentMiB"]["last"],
    )
}

fn day(result: &Value) -> String {
    let mut text = format!(
        "{} machines that are wanted for five of every ten minutes, for {} minutes on a real API server with a real\n\
         Cluster API; 2 % of all requests and events got a fault ({} in all). {} activations. After all\n\
         ScheduledMachines were deleted, {} objects were left behind.\n\n\
         | mean of | first third | last third |\n|---|---:|---:|\n",
        result["machines"],
        result["minutes"],
        result["faults"],
        result["activations"],
        result["leftBehind"],
    );
    for (name, of) in [
        ("requests of the operator in a minute", "requestsPerMinute"),
        ("resident memory, KiB", "residentKiB"),
    ] {
        let (first, last) = (&result[of]["first"], &result[of]["last"]);
        let _ = writeln!(text, "| {name} | {first} | {last} |");
    }
    text
}

fn agent(result: &Value) -> String {
    let mut text = format!(
        "From the start of a listed program to the annotation on its Node, {} starts beside {} other\n\
         processes, with the real agent over TLS, and the cost of the agent while nothing starts:\n\
         `cargo bench --bench reclaim`.\n\n\
         | detection | p50 | p99 | maximum | idle, of one core | resident memory |\n|---|---:|---:|---:|---:|---:|\n",
        result["starts"], result["processes"],
    );
    for (name, means) in [("process events", "events"), ("scans each 250 ms", "scan")] {
        let cost = &result[means];
        let resident = cost["resident"].as_f64().unwrap_or_default() / 1024.0;
        let _ = writeln!(
            text,
            "| {name} | {} ms | {} ms | {} ms | {} % | {resident:.1} MiB |",
            cost["p50"], cost["p99"], cost["most"], cost["idle"]
        );
    }
    text
}

/// The items of a list.
fn items(of: &Value) -> impl Iterator<Item = &Value> {
    of.as_array().into_iter().flatten()
}

fn validate(result: &Value) -> String {
    let names: Vec<_> = items(&result["programs"])
        .filter_map(|it| it["name"].as_str())
        .collect();
    let mut text = format!(
        "What `5spot validate` and kubectl-validate say about one tree of manifests, for Kubernetes {}:\n\
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::faults;

    #[test]
    fn each_scenario_of_a_backend_has_a_line_with_its_final_states() {
        let text = faults(&[json!({"backend": "A", "scenarios": {"closing": {
            "writes": 9, "faultsOfWrites": 44, "watches": 8, "faultsOfWatches": 15,
            "missed": ["a crash before write 9"], "otherwise": 1,
        }}})]);
        let line = "| A | closing | 9 | 44 | 8 | 15 | 1 | 1 |\n";
        assert!(text.ends_with(line), "{text}");
    }
}

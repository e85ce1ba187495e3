//! `docs/how-we-test.md`: what each layer of tests proves, how it is run, and what its last run
//! came to.
//!
//! The numbers are those that the commands have kept in the source tree; nothing is run here.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::kept;

/// Where the page is, below the root.
pub(crate) const PATH: &str = "docs/how-we-test.md";

/// Where the commands keep their numbers.
const RESULTS: &str = "proof/results";

/// Where `cargo xtask promises` keeps what the stories with every fault came to, a file per
/// backend.
pub(crate) const FAULTS: &str = "proof/results/faults";

const LAYERS: &str = "\
# How we test

Every layer proves what the one before it cannot. The numbers on this page are those that the
commands below have kept in `proof/results`; `cargo xtask gen` writes the page from them, and
`cargo xtask gen --check` compares.

| layer | what it proves | how to run it |
|---|---|---|
| tables and properties | the planner decides each case as it should, whatever strings an object holds | `cargo test -p fivespot-plan` |
| model | the shipped planner breaks no law in any order of faults, hand-overs, edits and meddling in a small world | `cargo run --release -p proof -- model` |
| mistakes | the model can fail: it finds deliberate mistakes in the planner | `cargo run --release -p proof -- mutants` |
| simulation | the shipped operator, its caches, retries and Leases included, breaks no law in stories of days | `cargo run --release -p simulation` |
| promises | what the product promises holds through the Kubernetes API alone, on the embedded server and on real ones | `cargo test -p e2e`, and with `E2E_BACKEND=kubernetes` |
| faults between operator and server | every write of an opening, a closing, a cancelled closing, a kill switch, a reclaim and a deletion with a crash before it and after it, a conflict, an error and a lost answer, and every watch dropped, delayed and begun from an old version, end as if nothing had been | `E2E_FAULTS=all cargo test --release -p e2e --test promises survives_every_fault` |
| fuzzing | what reads strangers' bytes (expressions, patterns, definitions, policies, reviews) ends, without a panic, with the same answer each time | `cargo run --release -p fuzz -- all --seconds 600` |
| benchmarks | nothing; they measure | `cargo bench -p fivespot-schedule`, `cargo bench -p fivespot-plan` |

`cargo test` plays of these faults one for each write and each watch, in turn; with `E2E_FAULTS=all`
each meets every fault. On a real cluster (`E2E_BACKEND=kubernetes`) they are played only where
`E2E_FAULTS` is set, to `all` or to `some`; `cargo xtask promises` keeps what came of `all`.

A law that is broken is printed with the shortest way there (model) or with a line that replays
the story (simulation). Write that as a test first, then mend it.
";

const FLAMES: &str = "\
## Where the time goes

The benchmarks time the schedule (`at`), one step of the planner and the comparison of a status
(`plan`). To see where one of them spends its time, with `perf` and `cargo install flamegraph`:

```console
$ CARGO_PROFILE_BENCH_DEBUG=line-tables-only \\
    cargo flamegraph -p fivespot-plan --bench plan -- --bench 'a window has opened'
```

The same for a whole story: `cargo flamegraph -p simulation -- --seeds 0..20`.
";

/// The whole page.
///
/// # Errors
/// A result cannot be read.
pub(crate) fn page(root: &Path) -> Result<String, Box<dyn Error>> {
    let mut page = LAYERS.to_owned();
    let texts = [
        ("The model", "model.json", model as fn(&Value) -> String),
        ("The model, deeper", "deep.json", deep),
        ("The mistakes", "mutants.json", mutants),
        ("The simulation", "simulation.json", simulation),
        ("The agent", "reclaim.json", agent),
        ("What strangers write", "fuzz.json", fuzz),
    ];
    for (heading, file, text) in texts {
        let path = root.join(RESULTS).join(file);
        if path.exists() {
            let result = serde_json::from_str(&fs::read_to_string(&path)?)?;
            let _ = write!(page, "\n## {heading}\n\n{}", text(&result));
        }
    }
    let _ = write!(
        page,
        "\n{}\n{FLAMES}",
        faults(&kept::results(&root.join(FAULTS))?)
    );
    Ok(page)
}

/// What became of the stories with every fault.
fn faults(results: &[Value]) -> String {
    let mut text = "\
## Faults between operator and server

Each story is played twice without a fault, and once with each; how it ends is compared: the
objects that are left, uids and times aside, and what the operator created, deleted and
evicted. A watch that tells of nothing cannot be held up; one that is new with the story has no
older version. A real Cluster API reports now in one step, now in two, so that not every play has
every write of a status: faults that three plays have not brought about are counted as missed.

| backend | story | writes | faults | watches | faults | missed | ended otherwise |
|---|---|---:|---:|---:|---:|---:|---:|
"
    .to_owned();
    for result in results {
        let backend = result["backend"].as_str().unwrap_or_default();
        for (story, of) in result["stories"].as_object().into_iter().flatten() {
            let missed = of["missed"].as_array().map_or(0, Vec::len);
            let _ = writeln!(
                text,
                "| {backend} | {story} | {} | {} | {} | {} | {missed} | {} |",
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
        "{} unique states, each held against {} laws; {} violations. The world holds one\n\
         ScheduledMachine, what is made for it, and its Node with a pod; a part is a part of a day, and\n\
         the numbers before the states are how much of each may go wrong in it.\n\n",
        result["unique"], result["laws"], result["violations"]
    );
    text.push_str(&parts(result));
    text
}

fn deep(result: &Value) -> String {
    let mut text = format!(
        "{} unique states, {} violations: `cargo run --release -p proof -- model --deep`. What it has\n\
         beyond the parts above ends, where it is that large, at forty million states generated;\n\
         `--limit` sets another bound.\n\n",
        result["unique"], result["violations"]
    );
    text.push_str(&parts(result));
    text
}

/// The parts of a search, as a table.
fn parts(result: &Value) -> String {
    let mut text = "\
        | part | failed requests | crashes | edits | meddling | states | generated | depth |\n\
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
        "{caught} of {tried} that were tried were caught.\n\n| mistake | what it does | caught by |\n|---|---|---|\n"
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
        "Each target was fed for at most {} seconds, on one core.\n\n\
         | target | texts | different answers | slowest, ms | what broke it |\n\
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
        "\nA text is kept and changed again where its answer is new, numbers apart. There is no\n\
         coverage to guide it: see [decision 33](decisions/0033-fuzzing-without-a-sanitizer.md).\n",
    );
    text
}

fn simulation(result: &Value) -> String {
    let mut text = format!(
        "{} seeds, {} virtual years, {} writes, {} checks of laws, {} deeds of people and Cluster API;\n\
         {} violations. Of {} combinations of a phase, a write and a fault that the stories offer, {}\n\
         were hit.\n\n| fault | struck |\n|---|---:|\n",
        result["seeds"],
        result["virtualYears"],
        result["writes"],
        result["checks"],
        result["deeds"],
        result["violations"],
        result["cells"],
        result["cellsHit"],
    );
    for (fault, count) in result["faults"].as_object().into_iter().flatten() {
        let _ = writeln!(text, "| {fault} | {count} |");
    }
    text.push_str(
        "\nEqual seeds tell equal stories, request by request, whatever the random keys of maps; a\n\
         hundred thousand are `cargo run --release -p simulation -- --seeds 0..100000`. In a quarter\n\
         of the stories two operators agree by a Lease which of them acts, and each may be cut off\n\
         from the server for up to 40 minutes. In most, the clock of their host is set back by up to\n\
         nine minutes or forward by up to half an hour and later set right, or the host is suspended.\n\
         An answer that is slow takes 1 to 28 seconds; what a write is judged by then is in\n\
         [decision 87](decisions/0087-slow-answers-in-the-simulation.md).\n",
    );
    text
}

fn agent(result: &Value) -> String {
    let mut text = format!(
        "From the start of a listed program to the annotation on its Node, {} starts beside {} other\n\
         processes, with the real agent over TLS, and what the agent costs while nothing starts:\n\
         `cargo bench -p fivespot-agent --bench reclaim`.\n\n\
         | by | p50 | p99 | most | idle, of one core | resident memory |\n|---|---:|---:|---:|---:|---:|\n",
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::faults;

    #[test]
    fn each_story_of_a_backend_has_a_line_with_what_ended_otherwise() {
        let text = faults(&[json!({"backend": "A", "stories": {"closing": {
            "writes": 9, "faultsOfWrites": 44, "watches": 8, "faultsOfWatches": 15,
            "missed": ["a crash before write 9"], "otherwise": 1,
        }}})]);
        let line = "| A | closing | 9 | 44 | 8 | 15 | 1 | 1 |\n";
        assert!(text.ends_with(line), "{text}");
    }
}

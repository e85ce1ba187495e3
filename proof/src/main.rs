//! `cargo run --release --bin proof -- model|mutants|tested-mutants|mutation|coverage`: searches for invariants that the
//! shipped planner violates, and for faults that tests do not detect. How: `internals/decisions/0047-the-planner-is-searched-with-stateright.md`.

#![allow(
    clippy::too_many_lines,
    reason = "what is searched and what must hold is read from its top"
)]

mod coverage;
mod model;
mod mutant;
mod mutation;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use clap::{Parser, Subcommand};

use serde_json::{Value, json};

use model::{DEEP, SearchLimits, SearchResult, SearchScope, USUAL};
use mutant::{MUTANTS, Mutant, MutantOutcome, MutatedSearch, TESTED, TestedCopy};
use mutation::SAMPLES;

#[derive(Parser)]
#[command(about = "Searches for violations of the laws.", after_help = EXAMPLE)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLE: &str = "Examples:
  cargo run --release --bin proof -- model
  cargo run --release --bin proof -- mutants
  cargo run --release --bin proof -- tested-mutants
  cargo run --bin proof -- mutation capi usage
  cargo run --bin proof -- coverage root.json engine.json";

/// How many files are printed of which tests leave the most out.
const LEAST_RUN: usize = 30;

const HEADING: &str =
    "part     errors crashes edits   others     states   generated  depth  seconds";

/// The default limit for a part of the deep search, in states counted each time they are reached:
/// what fits into 16 GiB of memory.
const DEEP_LIMIT: usize = 40_000_000;

/// The limit of the first, shallow search of each part, in states counted each time they are
/// reached: it detects most mutants.
const SHALLOW_LIMIT: usize = 20_000;

/// How many of the usual parts, from the smallest, are searched completely before the others are
/// begun.
const SMALL_PARTS: usize = 11;

/// The stored results of the mutants, relative to this crate: they determine where the search for
/// each mutant begins.
const STORED_RESULTS: &str = "results/mutants.json";

#[derive(Subcommand)]
enum Command {
    /// Searches every state that the planner can reach in a small cluster; exits with 1 if a law is
    /// violated.
    Model {
        /// Also searches the larger parts.
        #[arg(long)]
        deep: bool,
        /// Stops at the first violation.
        #[arg(long, conflicts_with_all = ["deep", "limit", "record"])]
        first: bool,
        /// Starts with this part, in the format in which it is printed, e.g. `opening 0 1 0 1`.
        #[arg(long, requires = "first")]
        begin: Option<SearchScope>,
        /// Number of threads; by default the number of cores.
        #[arg(long)]
        threads: Option<usize>,
        /// Stops each part after about this many states, counted each time they are reached.
        #[arg(long)]
        limit: Option<usize>,
        /// Writes the results to this file, as JSON.
        #[arg(long)]
        record: Option<PathBuf>,
    },
    /// Checks each mutant of the planner with the model; exits with 1 if the model misses one.
    Mutants {
        /// Only the mutants whose names contain one of these texts.
        names: Vec<String>,
        /// Writes the result of each mutant to this file, as JSON. Results of other mutants in the
        /// file are kept.
        #[arg(long)]
        record: Option<PathBuf>,
    },
    /// Checks each mutant of code that the model does not run with the test that is named with it;
    /// exits with 1 if that misses it.
    TestedMutants {
        /// Only the mutants whose names contain one of these texts.
        names: Vec<String>,
    },
    /// Tries a sample of the mutants that `cargo mutants` makes of the operator's crates, each with
    /// the tests of its crate, and records the result; exits with 1 if one is missed without a
    /// reason. Reasons are written into the file of results by hand and kept.
    Mutation {
        /// Only these crates, by the names of their folders.
        crates: Vec<String>,
    },
    /// Records which regions of each crate the tests run, and prints the files of which they leave the
    /// most out.
    Coverage {
        /// What `cargo llvm-cov --json` has written, for each workspace.
        #[arg(required = true)]
        exports: Vec<PathBuf>,
    },
}

fn main() -> ExitCode {
    let exit_code = match Arguments::parse().command {
        Command::Model {
            deep,
            first,
            begin,
            threads,
            limit,
            record,
        } => {
            let limits = SearchLimits {
                limit,
                ends_at_first: first,
                threads,
            };
            if first {
                Ok(search_first(begin, limits))
            } else {
                search(deep, limits, record.as_deref())
            }
        }
        Command::Mutants { names, record } => mutants(&names, record.as_deref()),
        Command::TestedMutants { names } => tested_mutants(&names),
        Command::Mutation { crates } => mutation(&crates),
        Command::Coverage { exports } => coverage(&exports),
    };
    exit_code.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}

fn search(
    deep: bool,
    limits: SearchLimits,
    record: Option<&Path>,
) -> std::io::Result<ExitCode> {
    let (mut unique, mut violations) = (0, 0);
    let mut parts = Vec::new();
    let invariant_count = model::invariant_count();
    println!("{HEADING}");
    let more = if deep { DEEP } else { &[] };
    let usual = USUAL.iter().map(|scope| (scope, limits.limit));
    let more = more
        .iter()
        .map(|scope| (scope, limits.limit.or(Some(DEEP_LIMIT))));
    for (scope, limit) in usual.chain(more) {
        let start = Instant::now();
        let result =
            model::search(&Arc::default(), scope, SearchLimits { limit, ..limits });
        print(scope, &result, start.elapsed().as_secs_f64());
        unique += result.unique;
        violations += result.broken.len();
        parts.push(scope.to_value(&result));
        if let Some(path) = record {
            // After each part, so that a run may be interrupted.
            let all = json!({
                "parts": parts, "unique": unique, "laws": invariant_count, "violations": violations,
            });
            std::fs::write(path, format!("{all:#}\n"))?;
        }
    }
    println!("unique states {unique}, laws {invariant_count}, violations {violations}");
    Ok(ExitCode::from(u8::from(violations > 0)))
}

/// Searches until the first violation: first the most likely part, then a little of every part,
/// then more, then all.
fn search_first(begin: Option<SearchScope>, limits: SearchLimits) -> ExitCode {
    println!("{HEADING}");
    let (small, large) = USUAL.split_at(SMALL_PARTS);
    let large = large.iter().chain(DEEP);
    let rounds = [
        (None, begin.as_slice().iter().chain(&[])),
        (Some(SHALLOW_LIMIT), USUAL.iter().chain(DEEP)),
        (None, small.iter().chain(&[])),
        (Some(100_000), large.clone()),
        (Some(1_000_000), large),
        (None, USUAL.iter().chain(&[])),
    ];
    let environment = Arc::default();
    for (limit, parts) in rounds {
        for scope in parts {
            let start = Instant::now();
            let result =
                model::search(&environment, scope, SearchLimits { limit, ..limits });
            print(scope, &result, start.elapsed().as_secs_f64());
            if !result.broken.is_empty() {
                return ExitCode::from(1);
            }
        }
    }
    ExitCode::SUCCESS
}

fn print(scope: &SearchScope, result: &SearchResult, seconds: f64) {
    let budget = scope.budget;
    println!(
        "{:<8} {:>6} {:>7} {:>5} {:>8} {:>10} {:>11} {:>6} {seconds:>8.1}",
        scope.subject.name(),
        budget.errors,
        budget.crashes,
        budget.edits,
        budget.external_changes,
        result.unique,
        result.generated,
        result.depth,
    );
    for (invariant, steps) in &result.broken {
        println!("broken: {invariant}");
        for step in steps {
            println!("    {step}");
        }
    }
}

fn mutants(names: &[String], record: Option<&Path>) -> std::io::Result<ExitCode> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    // A violation by the shipped planner itself would make the results of the mutants
    // meaningless.
    let environment = Arc::default();
    for scope in USUAL.iter().chain(DEEP) {
        let shallow = SearchLimits {
            limit: Some(SHALLOW_LIMIT),
            ends_at_first: true,
            threads: None,
        };
        let result = model::search(&environment, scope, shallow);
        if !result.broken.is_empty() {
            print(scope, &result, 0.0);
            let why = "the shipped planner violates a law: fix that first";
            return Err(std::io::Error::other(why));
        }
    }
    let search = MutatedSearch::of(&here.join("..").canonicalize()?)?;
    let kept = here.join(STORED_RESULTS);
    let kept = read(record.filter(|path| path.exists()).unwrap_or(&kept));
    let is_selected = |(_, mutant): &(usize, &Mutant)| {
        names.is_empty() || names.iter().any(|name| mutant.id.contains(name))
    };
    let all: Vec<_> = (1..).zip(MUTANTS).filter(is_selected).collect();
    let (next, caught) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let file_lock = Mutex::new(());
    let run_mutants = || -> std::io::Result<()> {
        while let Some((number, mutant)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let start = Instant::now();
            let likely = kept[mutant.id]["in"].as_str();
            let likely = likely.and_then(|likely| likely.parse().ok());
            let outcome = search.run(*number, likely.as_ref())?;
            let result = match &outcome {
                MutantOutcome::Caught(invariant, _) => {
                    caught.fetch_add(1, Ordering::Relaxed);
                    format!("caught  {}: {invariant}", mutant.fault)
                }
                MutantOutcome::Missed => format!("MISSED  {}", mutant.fault),
                MutantOutcome::SearchCrashed => "the search crashed".to_owned(),
            };
            let seconds = start.elapsed().as_secs_f64();
            println!("{:<32} {seconds:>6.1} s  {result}", mutant.id);
            if let Some(path) = record {
                let _file_lock = file_lock.lock().unwrap_or_else(PoisonError::into_inner);
                store(path, mutant, &outcome)?;
            }
        }
        Ok(())
    };
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(run_mutants)).collect();
        let panicked = || std::io::Error::other("a search panicked");
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(panicked())));
        ended.collect::<std::io::Result<()>>()
    })?;
    let (tried, caught) = (all.len(), caught.into_inner());
    println!("mutants {tried}, caught {caught}");
    Ok(ExitCode::from(u8::from(caught < tried)))
}

fn tested_mutants(names: &[String]) -> std::io::Result<ExitCode> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let copy = TestedCopy::of(&here.join("..").canonicalize()?)?;
    let (mut tried, mut caught) = (0, 0);
    for (number, tested) in (1..).zip(TESTED) {
        let mutant = &tested.mutant;
        if !names.is_empty() && !names.iter().any(|name| mutant.id.contains(name)) {
            continue;
        }
        let is_detected = copy.is_detected(number)?;
        let result = if is_detected { "caught" } else { "MISSED" };
        println!(
            "{:<36} {result}  {}: {}",
            mutant.id, mutant.fault, tested.test
        );
        tried += 1;
        caught += u32::from(is_detected);
    }
    println!("mutants {tried}, caught {caught}");
    Ok(ExitCode::from(u8::from(caught < tried)))
}

fn mutation(crates: &[String]) -> std::io::Result<ExitCode> {
    let mut is_explained = true;
    for sample in SAMPLES {
        if crates.is_empty() || crates.iter().any(|name| name == sample.name) {
            for mutant in mutation::record(sample)? {
                println!("missed without a reason: {mutant}");
                is_explained = false;
            }
        }
    }
    Ok(ExitCode::from(u8::from(!is_explained)))
}

fn coverage(exports: &[PathBuf]) -> std::io::Result<ExitCode> {
    println!("regions that no test runs, of all");
    for (file, missed, all) in coverage::record(exports)?.iter().take(LEAST_RUN) {
        println!("{missed:>6} {all:>6}  {file}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The contents of a file of results; empty if it cannot be read.
fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_else(|_| json!({}))
}

/// Stores the result of one mutant, so that a run may be interrupted.
fn store(path: &Path, mutant: &Mutant, outcome: &MutantOutcome) -> std::io::Result<()> {
    let mut all = read(path);
    all[mutant.id] = match outcome {
        MutantOutcome::Caught(invariant, part) => {
            json!({"fault": mutant.fault, "caughtBy": invariant, "in": part.to_string()})
        }
        MutantOutcome::Missed | MutantOutcome::SearchCrashed => {
            json!({"fault": mutant.fault, "caughtBy": null})
        }
    };
    // In the order of the table, without mutants that are no longer in it.
    let kept = MUTANTS.iter().filter_map(|mutant| {
        let of = all.get(mutant.id)?.clone();
        Some((mutant.id.to_owned(), of))
    });
    let all: serde_json::Map<String, Value> = kept.collect();
    std::fs::write(path, format!("{:#}\n", Value::Object(all)))
}

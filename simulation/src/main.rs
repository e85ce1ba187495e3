//! `cargo run --release --bin simulation`: simulates days of the whole operator by seeds.
//!
//! A seed determines a scenario: time zones, days, schedules, the faults of the network and of the
//! operator's host, and the actions of users, Cluster API and pods. The operator is the shipped
//! one. The API server and Cluster API are the embedded ones. The clock is virtual. Every write is
//! checked against the invariants when it is served, and the end of the scenario against what the
//! user wants. Some scenarios are fleets: 200 machines of 20 classes, which have fewer hosts.
//! Equal seeds give equal runs, request by request
//! (`internals/decisions/0049-simulations-replay-from-a-seed.md`).
//!
//! With `--years`, it runs the long haul instead: years with many machines and without faults. Each
//! edge must be met on its second.

#![allow(
    clippy::too_many_lines,
    reason = "what is searched and what must hold is read from its top"
)]

mod account;
mod departure;
mod effective_schedule;
mod end;
mod fault;
mod fleet;
mod interceptor;
mod invariant;
mod long_haul;
mod owner;
mod random;
mod report;
mod run;
mod scenario;
mod snapshot;
mod user_action;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Parser;

use long_haul::Length;
use report::Report;
use run::{Outcome, run, shrink};
use scenario::Scenario;

/// The same allocator as in `5spot`.
#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Parser)]
#[command(
    about = "Simulates days of the whole operator, by seeds.",
    after_help = "Examples:
  cargo run --release --bin simulation
  cargo run --release --bin simulation -- --seeds 0..100000
  cargo run --release --bin simulation -- --seeds 17..18 --keep 3,8 --trace
  cargo run --release --bin simulation --features simulation/allocator -- --years 10 --machines 200"
)]
struct Arguments {
    /// The range of seeds. The last one is not included.
    #[arg(long, default_value = "0..500", value_parser = range)]
    seeds: (u64, u64),
    /// Only the faults and user actions of each scenario that have these numbers.
    #[arg(long, value_parser = numbers)]
    keep: Option<Numbers>,
    /// Prints everything that happens.
    #[arg(long)]
    trace: bool,
    /// Writes the report to this file too, as JSON.
    #[arg(long)]
    record: Option<PathBuf>,
    /// Runs the long haul instead, for this many years of 365 days.
    #[arg(long, conflicts_with_all = ["seeds", "keep", "trace"])]
    years: Option<u32>,
    /// The number of machines in the long haul.
    #[arg(long, default_value_t = 200, requires = "years")]
    machines: usize,
}

/// The numbers of disruptions of a scenario.
#[derive(Clone, Debug)]
struct Numbers(Vec<usize>);

fn numbers(text: &str) -> Result<Numbers, String> {
    let all = text.split(',').filter(|_| text != "none");
    let all = all.map(|one| one.trim().parse());
    let all: Result<_, _> = all.collect();
    all.map(Numbers)
        .map_err(|_| "expected numbers such as 3,8, or none".to_owned())
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let expected = "expected FIRST..LAST, such as 0..500";
    let (first, last) = text.split_once("..").ok_or(expected)?;
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first < last => Ok((first, last)),
        _ => Err(expected.to_owned()),
    }
}

/// How many failed scenarios are shrunk.
const MAX_SHRUNK: usize = 3;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(years) = arguments.years {
        let machines = arguments.machines;
        let results = long_haul::run_long_haul(Length { years, machines }, |results| {
            write_report(&arguments, &results.to_value(), results.broken.is_empty());
        });
        results.print();
        return write_report(&arguments, &results.to_value(), results.broken.is_empty());
    }
    // A panic is reported as a violation.
    std::panic::set_hook(Box::new(|_| {}));
    let started = Instant::now();
    let (report, failed) = all(&arguments);
    report.print();
    let seconds = started.elapsed().as_secs_f64();
    println!("seconds             {seconds:.0}");
    for (seed, invariant) in failed.into_iter().take(MAX_SHRUNK) {
        print_minimal(seed, invariant, arguments.keep.as_ref());
    }
    write_report(&arguments, &report.to_value(), report.broken == 0)
}

/// Writes the report to the file of `--record`, if given. Returns the exit code.
fn write_report(
    arguments: &Arguments,
    report: &serde_json::Value,
    is_kept: bool,
) -> ExitCode {
    if let Some(path) = &arguments.record {
        let text = format!("{report:#}\n");
        if let Err(error) = std::fs::write(path, text) {
            eprintln!("error: {}: {error}", path.display());
            return ExitCode::from(2);
        }
    }
    ExitCode::from(u8::from(!is_kept))
}

/// Runs every seed on as many threads as there are processors.
fn all(arguments: &Arguments) -> (Report, Vec<(u64, &'static str)>) {
    let next = AtomicU64::new(arguments.seeds.0);
    let sum = Mutex::new((Report::default(), Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= arguments.seeds.1 {
                        break;
                    }
                    let outcome = run_caught(seed, arguments.keep.as_ref());
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    let (report, failed) = &mut *sum;
                    report.add(&outcome);
                    print(seed, &outcome, arguments.trace);
                    if let Some((invariant, _)) = outcome.broken.first() {
                        failed.push((seed, *invariant));
                    }
                }
            });
        }
    });
    let (report, mut failed) = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort_unstable();
    (report, failed)
}

fn scenario(seed: u64, keep: Option<&Numbers>) -> Scenario {
    let scenario = Scenario::of(seed);
    keep.map(|kept| scenario.only(&kept.0)).unwrap_or(scenario)
}

/// Runs a scenario on a thread of its own, so that a panic becomes an outcome.
fn run_caught(seed: u64, keep: Option<&Numbers>) -> Outcome {
    let scenario = scenario(seed, keep);
    let outcome = std::thread::spawn(move || run(&scenario)).join();
    outcome.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words =
            words.or_else(|| panic.downcast_ref::<&str>().map(|&it| it.to_owned()));
        Outcome {
            broken: vec![("nothing panics", words.unwrap_or_default())],
            ..Outcome::default()
        }
    })
}

fn print(seed: u64, outcome: &Outcome, traces: bool) {
    if traces {
        for line in &outcome.trace {
            println!("{line}");
        }
        println!("seed {seed}: trace {:016x}", outcome.hash);
    }
    for (invariant, how) in outcome.broken.iter().take(3) {
        println!("seed {seed}: broken: {invariant}: {how}");
    }
}

/// Prints a minimal set of disruptions that breaks the invariant, and the command that replays it.
fn print_minimal(seed: u64, invariant: &str, keep: Option<&Numbers>) {
    let scenario = scenario(seed, keep);
    let kept = shrink(&scenario, invariant);
    println!("seed {seed}, {invariant}, with only:");
    for at in &kept {
        println!("  {at}: {:?}", scenario.disruptions.get(*at));
    }
    let all = Scenario::of(seed).disruptions;
    let number = |at: &usize| {
        let disruption = scenario.disruptions.get(*at);
        all.iter().position(|one| Some(one) == disruption)
    };
    let kept: Vec<String> = kept
        .iter()
        .filter_map(number)
        .map(|at| at.to_string())
        .collect();
    println!(
        "replay: cargo run --release --bin simulation -- --seeds {seed}..{} --keep {} --trace",
        seed + 1,
        if kept.is_empty() {
            "none".to_owned()
        } else {
            kept.join(",")
        }
    );
}

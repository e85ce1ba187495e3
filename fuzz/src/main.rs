//! `cargo run --release -p fuzz -- TARGET --seconds N`: see `docs/decisions/0033`.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use fuzz::{Failure, FuzzRun, TARGETS, Target};
use serde_json::{Value, json};

/// Feeds generated and mutated inputs to one target, or to all of them.
#[derive(Parser)]
#[command(after_help = "Examples:
  cargo run --release -p fuzz -- all --seconds 600
  cargo run --release -p fuzz -- all --seconds 600 --record proof/results/fuzz.json
  cargo run --release -p fuzz -- evaluator --seed 7 --cases 100000
  cargo run --release -p fuzz -- review --replay found.bin")]
struct Arguments {
    /// The target: all, or one of parser, checker, evaluator, pattern, schema, policy, review
    target: String,
    /// The longest run of each target, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The number of inputs of each target
    #[arg(long)]
    cases: Option<u64>,
    /// The seed of the inputs; the same seed gives the same inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run the target only with the input in this file
    #[arg(long)]
    replay: Option<std::path::PathBuf>,
    /// Write the results to this file too, as JSON
    #[arg(long, conflicts_with = "replay")]
    record: Option<std::path::PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let is_meant =
        |it: &&Target| arguments.target == "all" || arguments.target == it.name;
    let targets: Vec<&'static Target> = TARGETS.iter().filter(is_meant).collect();
    if targets.is_empty() {
        let known: Vec<&str> = TARGETS.iter().map(|it| it.name).collect();
        eprintln!(
            "error: there is no target {}; use all or one of {}",
            arguments.target,
            known.join(", ")
        );
        return ExitCode::from(2);
    }
    let mut is_clean = true;
    let mut results = Vec::new();
    for target in targets {
        let Some(file) = &arguments.replay else {
            let result = run_target(target, &arguments);
            is_clean &= result["clean"] == true;
            results.push(result);
            continue;
        };
        match std::fs::read(file) {
            Ok(text) => println!("{}: {}", target.name, (target.feed)(&text)),
            Err(error) => {
                eprintln!("error: reading {}: {error}", file.display());
                return ExitCode::from(2);
            }
        }
    }
    if let Some(file) = &arguments.record {
        let text = format!(
            "{:#}\n",
            json!({"seconds": arguments.seconds, "targets": results})
        );
        if let Err(error) = std::fs::write(file, text) {
            eprintln!("error: writing {}: {error}", file.display());
            return ExitCode::from(2);
        }
    }
    if is_clean {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs one target and prints the result.
fn run_target(target: &'static Target, arguments: &Arguments) -> Value {
    let run = FuzzRun {
        seed: arguments.seed,
        cases: arguments.cases,
        time: Duration::from_secs(arguments.seconds),
    };
    match run.run(target) {
        Ok(counts) => {
            println!(
                "{}: {} inputs, {} different answers, the slowest took {:?}: no failure",
                target.name, counts.cases, counts.answers, counts.slowest
            );
            let _ = std::io::stdout().flush();
            json!({"target": target.name, "clean": true, "texts": counts.cases,
                "answers": counts.answers, "slowestMillis": counts.slowest.as_millis()})
        }
        Err(failure) => {
            report(target, &failure);
            json!({"target": target.name, "clean": false, "texts": failure.case})
        }
    }
}

fn report(target: &Target, failure: &Failure) {
    println!(
        "{}: input {}: {}",
        target.name, failure.case, failure.message
    );
    println!("{}", String::from_utf8_lossy(&failure.text).escape_debug());
    let file = format!("{}-found.bin", target.name);
    match std::fs::write(&file, &failure.text) {
        Ok(()) => println!("written to {file}; repeat it with --replay {file}"),
        Err(error) => println!("error: writing {file}: {error}"),
    }
}

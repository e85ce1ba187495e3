//! The command line: `TARGET --seconds N`, fuzzing on the stable compiler.
//!
//! A target is a function from bytes to text, with invariants that panic. The driver mutates valid
//! inputs by bytes and by tokens, and keeps an input whose *answer*, without numbers, is new: error
//! messages roughly replace coverage, which would need a nightly compiler and a sanitizer's
//! runtime. It finds less than libFuzzer in the same time; the targets could be used with it
//! unchanged. The thread has the stack size of a server's, so recursion that is too deep there is
//! too deep here.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use serde_json::{Value, json};

use crate::fuzz_run::{Failure, FuzzRun};
use crate::target::Target;

/// Feeds generated and mutated inputs to one target, or to all of them.
#[derive(Parser)]
#[command(
    after_help = "Examples, each behind `cargo run --release --bin` and the name of the program:
  -- all --seconds 600
  -- all --seconds 600 --record fuzz.json
  -- evaluator --seed 7 --cases 100000
  -- schema --replay found.bin"
)]
struct Arguments {
    /// The name of a target, or `all`
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
    /// Begin with the inputs that are in this folder, and add those that had a new answer
    #[arg(long, conflicts_with = "replay")]
    corpus: Option<std::path::PathBuf>,
    /// Run the target only with the input in this file
    #[arg(long)]
    replay: Option<std::path::PathBuf>,
    /// Write the results to this file too, as JSON
    #[arg(long, conflicts_with = "replay")]
    record: Option<std::path::PathBuf>,
}

/// Runs those of the targets that the arguments of the process name, and prints the results. An
/// input that fails is written to the current folder.
pub fn run(targets: impl IntoIterator<Item = &'static Target>) -> ExitCode {
    let arguments = Arguments::parse();
    let known: Vec<&'static Target> = targets.into_iter().collect();
    let is_meant =
        |it: &&&Target| arguments.target == "all" || arguments.target == it.name;
    let targets: Vec<&'static Target> = known.iter().filter(is_meant).copied().collect();
    if targets.is_empty() {
        let known: Vec<&str> = known.iter().map(|it| it.name).collect();
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
            let result = match run_target(target, &arguments) {
                Ok(result) => result,
                Err(error) => {
                    eprintln!("error: the corpus of {}: {error}", target.name);
                    return ExitCode::from(2);
                }
            };
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
fn run_target(target: &'static Target, arguments: &Arguments) -> io::Result<Value> {
    let corpus = arguments
        .corpus
        .as_ref()
        .map(|folder| folder.join(target.name));
    let run = FuzzRun {
        seed: arguments.seed,
        cases: arguments.cases,
        time: Duration::from_secs(arguments.seconds),
        corpus: corpus.as_deref().map_or_else(|| Ok(Vec::new()), read)?,
    };
    Ok(match run.run(target) {
        Ok(counts) => {
            println!(
                "{}: {} inputs, {} different answers, the slowest took {:?}: no failure",
                target.name, counts.cases, counts.answers, counts.slowest
            );
            let _ = io::stdout().flush();
            if let Some(folder) = corpus {
                write(&folder, &counts.kept)?;
            }
            json!({"target": target.name, "clean": true, "texts": counts.cases,
                "answers": counts.answers, "slowestMillis": counts.slowest.as_millis()})
        }
        Err(failure) => {
            report(target, &failure);
            json!({"target": target.name, "clean": false, "texts": failure.case})
        }
    })
}

/// The files of a folder, sorted by name; none if there is no such folder.
fn read(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let files: io::Result<Vec<_>> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect();
    let mut files = files?;
    files.sort();
    files.iter().map(fs::read).collect()
}

/// Replaces the files of a folder.
fn write(folder: &Path, texts: &[Vec<u8>]) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    for (number, text) in texts.iter().enumerate() {
        fs::write(folder.join(format!("{number:04}")), text)?;
    }
    Ok(())
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

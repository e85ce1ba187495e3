//! `cargo run --release -p proof -- model|mutants`: tries to break the shipped planner.

mod model;
mod mutant;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};

use model::{DEEP, USUAL};
use mutant::{Copy, Fate, MUTANTS};

#[derive(Parser)]
#[command(about = "Tries to break the shipped planner.", after_help = EXAMPLE)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

const EXAMPLE: &str = "Examples:
  cargo run --release -p proof -- model
  cargo run --release -p proof -- mutants";

#[derive(Subcommand)]
enum What {
    /// Searches every state that the planner can get into in a small world; exits with 1 when a
    /// law is broken.
    Model {
        /// Searches the larger parts too.
        #[arg(long)]
        deep: bool,
        /// Ends at the first law that is broken.
        #[arg(long)]
        first: bool,
        /// Ends each part after about so many states, counted each time they are reached.
        #[arg(long)]
        limit: Option<usize>,
    },
    /// Makes deliberate mistakes in the planner, one by one, and has the model catch them; exits
    /// with 1 when it misses one.
    Mutants {
        /// Only those whose names contain this.
        #[arg(default_value = "")]
        name: String,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().what {
        What::Model { deep, first, limit } => search(deep, first, limit),
        What::Mutants { name } => match mutants(&name) {
            Ok(code) => code,
            Err(error) => {
                eprintln!("error: mutants: {error}");
                ExitCode::from(2)
            }
        },
    }
}

fn search(deep: bool, first: bool, limit: Option<usize>) -> ExitCode {
    let (mut unique, mut violations) = (0, 0);
    let more = if deep { DEEP } else { &[] };
    println!(
        "part     errors crashes edits meddling     states   generated  depth  seconds"
    );
    for campaign in USUAL.iter().chain(more) {
        let start = Instant::now();
        let found = model::search(campaign, limit, first);
        let left = campaign.left;
        println!(
            "{:<8} {:>6} {:>7} {:>5} {:>8} {:>10} {:>11} {:>6} {:>8.1}",
            campaign.part.name(),
            left.errors,
            left.crashes,
            left.edits,
            left.meddling,
            found.unique,
            found.generated,
            found.depth,
            start.elapsed().as_secs_f64(),
        );
        for (law, steps) in &found.broken {
            println!("broken: {law}");
            for step in steps {
                println!("    {step}");
            }
        }
        unique += found.unique;
        violations += found.broken.len();
        if first && violations > 0 {
            break;
        }
    }
    println!(
        "unique states {unique}, laws {}, violations {violations}",
        model::laws()
    );
    ExitCode::from(u8::from(violations > 0))
}

fn mutants(name: &str) -> std::io::Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()?;
    let copy = Copy::of(&root)?;
    let (mut caught, mut tried) = (0, 0);
    for mutant in MUTANTS.iter().filter(|mutant| mutant.id.contains(name)) {
        print!("{:<32} ", mutant.id);
        std::io::stdout().flush()?;
        tried += 1;
        match copy.run(mutant)? {
            Fate::Caught(law) => {
                caught += 1;
                println!("caught  {}: {law}", mutant.fault);
            }
            Fate::Missed => println!("MISSED  {}", mutant.fault),
            Fate::Broken(why) => println!("BROKEN  {why}"),
        }
    }
    println!("mutants {tried}, caught {caught}");
    Ok(ExitCode::from(u8::from(caught < tried)))
}

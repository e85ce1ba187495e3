//! What many machines cost, and how soon their edges are met: for any operator and any API
//! server.
//!
//! ```console
//! $ cargo xtask cluster up                       # and export what it prints
//! $ cargo build --profile dist --bin 5spot
//! $ cargo run --release -p benches --bin scale -- --machines 1000
//! ```
//!
//! Measures first the floor: a bare client that creates just the three objects of so many
//! machines, with so many machines in flight. Then makes so many ScheduledMachines whose windows
//! open at one instant; counts and times from the API server's audit log what the operator does
//! about it until each serves, until each is gone again, in an idle span, when their windows open
//! once more after it, beside the floor of then, after a restart while all serve, and when all are
//! deleted. With many machines that takes long; `--opening-alone` ends it when all objects have
//! been created. On the embedded server:
//!
//! ```console
//! $ 5spot dev --no-controller --audit-log audit.json --apply empty/
//! $ cargo run --release -p benches --bin scale -- --audit-log audit.json
//! ```
//!
//! There `--no-simulator`, with `--no-cluster-api --opening-alone` here, leaves Cluster API out:
//! what it does about each Machine costs a server several times as much as making it.
//!
//! With `--burst` it measures pairs instead: the floor, and right after it a burst of so many machines
//! that are created, that are enabled, or whose windows open. Only the two of a pair are compared: at
//! another time the same server takes half as long or twice.
//!
//! ```console
//! $ cargo run --release -p benches --bin scale -- --machines 300 --burst created
//! ```
//!
//! Another operator than the one that was built is described by `--controller FILE`, JSON:
//!
//! ```json
//! {"command": ["5spot", "controller", "--namespaces", "$NAMESPACE"],
//!  "environment": {"RUST_LOG": "warn"}, "edge": "cron"}
//! ```
//!
//! `$NAMESPACE` stands for the namespace of the measurement; $KUBECONFIG is set, to a user of
//! its own. An operator that knows no `cron` has `"edge": "switch"`: its schedules span the
//! whole week, and are switched on and off.

mod burst;
mod floor;
mod operator;
mod report;
mod run;
mod span;
mod watcher;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

/// Measures what many machines cost, and how soon their edges are met.
#[derive(Debug, Parser)]
struct Args {
    /// How many machines
    #[arg(long, default_value_t = 1_000)]
    machines: usize,
    /// Of how many Clusters they are, in turn
    #[arg(long, default_value = "1")]
    clusters: std::num::NonZeroUsize,
    /// For how many minutes the window is open: enough for all to serve
    #[arg(long, default_value_t = 5)]
    open_minutes: u32,
    /// How many minutes a machine may take to leave. Each that Cluster API has not taken down by
    /// then costs more writes
    #[arg(long, default_value_t = 5)]
    grace_minutes: u32,
    /// For how many minutes to count when nothing happens
    #[arg(long, default_value_t = 1)]
    idle_minutes: u32,
    /// For how many seconds the machines are there before their window opens; by default what
    /// making so many takes
    #[arg(long)]
    lead_seconds: Option<u32>,
    /// How many machines the bare client makes at a time
    #[arg(long, default_value_t = 32)]
    in_flight: usize,
    /// The profile with which the operator was built: that in target/dist is as it is shipped
    #[arg(long, default_value = "dist")]
    profile: String,
    /// A description of the operator; by default the one of the profile
    #[arg(long)]
    controller: Option<PathBuf>,
    /// The audit log of the API server
    #[arg(long, default_value = "target/cluster/run/audit.log")]
    audit_log: PathBuf,
    /// Ends when all objects have been created, and measures nothing after that
    #[arg(long)]
    opening_alone: bool,
    /// No Cluster API runs, so that nothing but the operator and the API server is measured
    #[arg(long, requires = "opening_alone")]
    no_cluster_api: bool,
    /// Measures bursts of that kind instead, each right after the floor
    #[arg(long, value_enum)]
    burst: Option<burst::Burst>,
    /// How many bursts
    #[arg(long, default_value_t = 3, requires = "burst")]
    pairs: usize,
    /// Ends each pair when the last Machine exists: with thousands, Cluster API takes long until all
    /// serve
    #[arg(long, requires = "burst")]
    until_created: bool,
    /// A program that is run with `begin` before each pair and with `end` after it, for instance to
    /// suspend what else runs on this computer
    #[arg(long, requires = "burst")]
    around: Option<PathBuf>,
    /// Keeps the numbers in this file as well, as JSON, part by part while they are measured
    #[arg(long)]
    record: Option<PathBuf>,
    /// Which API server this is, for the record
    #[arg(long, default_value = "Kubernetes 1.36, Cluster API 1.14")]
    server: String,
    /// What to print
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let measured = match runtime {
        Ok(runtime) => {
            runtime.block_on(unless_broken_off(watcher::beside(measure(&args))))
        }
        Err(error) => Err(error.into()),
    };
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Measures what is asked for, and prints it.
async fn measure(args: &Args) -> Result<(), world::Failure> {
    let Some(burst) = args.burst else {
        return print(args, &run::run(args).await?);
    };
    let bursts = burst::measure(args, burst).await?;
    println!("{}", serde_json::to_string_pretty(&bursts)?);
    Ok(())
}

/// Lets go of all that runs, the operator above all, when somebody breaks it off.
async fn unless_broken_off<T>(
    result: impl Future<Output = Result<T, world::Failure>>,
) -> Result<T, world::Failure> {
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        result = result => result,
        broken_off = tokio::signal::ctrl_c() => {
            broken_off?;
            Err("broken off".into())
        }
        _ = terminated.recv() => Err("broken off".into()),
    }
}

/// Prints the report, and keeps it where that is asked for.
fn print(args: &Args, report: &report::Report) -> Result<(), world::Failure> {
    keep(args, report)?;
    match args.output {
        Output::Text => print!("{report}"),
        Output::Json => println!("{}", serde_json::to_string_pretty(report)?),
    }
    Ok(())
}

/// Keeps the report as it is so far, where that is asked for: what takes an hour may be broken
/// off.
fn keep(args: &Args, report: &impl serde::Serialize) -> Result<(), world::Failure> {
    let Some(file) = &args.record else {
        return Ok(());
    };
    let text = serde_json::to_string_pretty(report)?;
    std::fs::write(file, format!("{text}\n"))
        .map_err(|error| format!("{}: {error}", file.display()).into())
}

//! The cost of many machines, and how soon their edges are met, for any operator and any API
//! server.
//!
//! ```console
//! $ cargo xtask cluster up                       # and export what it prints
//! $ cargo build --profile dist --bin 5spot-controller --features fivespot-controller/allocator
//! $ cargo run --release --bin scale -- --machines 1000
//! ```
//!
//! Measures first the floor: a plain client that creates only the three objects of each machine,
//! with a number of machines in flight. Then creates the ScheduledMachines, whose windows open at
//! one instant. Counts and times the operator's requests from the API server's audit log: until all
//! machines serve, until all are removed again, while idle, at a second edge (with its own floor),
//! after a restart while all serve, and during the deletion of all. With many machines that takes
//! long; `--opening-alone` ends it when all objects have been created. On the embedded server:
//!
//! ```console
//! $ 5spot dev --no-controller --audit-log audit.json --apply empty/
//! $ cargo run --release --bin scale -- --audit-log audit.json
//! ```
//!
//! There, `--no-simulator`, with `--no-cluster-api --opening-alone` here, leaves Cluster API out.
//! Its work for a Machine costs a server several times as much as creating it.
//!
//! With `--burst`, it measures pairs instead: the floor, and right after it a burst of machines
//! that are created, that are enabled, or whose windows open. Only the two values of a pair are
//! compared: at another time, the same server takes half as long or twice.
//!
//! Start the cluster and this in one session, for example in one terminal. Linux gives each session
//! its share of the processors (`sched_autogroup_enabled`), and when all are busy, an operator in
//! another session than the server may wait for seconds although it has used little of its share.
//! The objects of earlier runs stay in the server, which takes longer for each request then: begin
//! with a new cluster.
//!
//! ```console
//! $ cargo run --release --bin scale -- --machines 300 --burst created
//! ```
//!
//! `--controller FILE` describes another operator than the one that was built, as JSON:
//!
//! ```json
//! {"command": ["5spot-controller", "--namespaces", "$NAMESPACE"],
//!  "environment": {"RUST_LOG": "warn"}, "edge": "cron"}
//! ```
//!
//! `$NAMESPACE` represents the namespace of the measurement. $KUBECONFIG is set, to a user of its
//! own. An operator without support for `cron` has `"edge": "switch"`: its schedules span the whole
//! week, and are enabled and disabled.

mod burst;
mod fleet;
mod floor;
mod operator;
mod report;
mod run;
mod span;
mod watcher;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

/// Measures the cost of many machines, and how soon their edges are met.
#[derive(Debug, Parser)]
struct Args {
    /// The number of machines
    #[arg(long, default_value_t = 1_000)]
    machines: usize,
    /// The number of Clusters, to which the machines are assigned in turn
    #[arg(long, default_value = "1")]
    clusters: std::num::NonZeroUsize,
    /// How many minutes the window is open: long enough for all machines to become Active
    #[arg(long, default_value_t = 5)]
    open_minutes: u32,
    /// How many minutes a shutdown may take. Each machine that Cluster API has not removed by then
    /// costs more writes
    #[arg(long, default_value_t = 5)]
    grace_minutes: u32,
    /// How many minutes to count requests while idle
    #[arg(long, default_value_t = 1)]
    idle_minutes: u32,
    /// How many seconds the machines exist before their window opens; by default, as long as
    /// creating them takes
    #[arg(long)]
    lead_seconds: Option<u32>,
    /// How many machines the plain client creates at a time
    #[arg(long, default_value_t = 32)]
    in_flight: usize,
    /// The cargo profile with which the operator was built; dist is the one of releases
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
    /// No Cluster API runs, so that only the operator and the API server are measured
    #[arg(long, requires = "opening_alone")]
    no_cluster_api: bool,
    /// Measures bursts of this kind instead, each right after the floor
    #[arg(long, value_enum)]
    burst: Option<burst::Burst>,
    /// The number of bursts
    #[arg(long, default_value_t = 3, requires = "burst")]
    pairs: usize,
    /// Ends each pair when the last Machine exists: with thousands, Cluster API takes long until
    /// all are Active
    #[arg(long, requires = "burst")]
    until_created: bool,
    /// A program that is run with `begin` before each pair and with `end` after it, for instance to
    /// suspend the other programs on this computer
    #[arg(long, requires = "burst")]
    around: Option<PathBuf>,
    /// Writes the numbers to this file too, as JSON, after each part of the measurement
    #[arg(long)]
    record: Option<PathBuf>,
    /// The name of the API server in the record
    #[arg(long, default_value = "Kubernetes 1.36, Cluster API 1.14")]
    server: String,
    /// The output format
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
        Ok(runtime) => runtime.block_on(unless_interrupted(watcher::with_local_tasks(
            measure(&args),
        ))),
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

/// Runs the requested measurement, and prints the result.
async fn measure(args: &Args) -> Result<(), fleet::BoxError> {
    let Some(burst) = args.burst else {
        return print(args, &run::run(args).await?);
    };
    let bursts = burst::measure(args, burst).await?;
    println!("{}", serde_json::to_string_pretty(&bursts)?);
    Ok(())
}

/// Drops the measurement on an interrupt, so that its processes, such as the operator, are ended.
async fn unless_interrupted<T>(
    result: impl Future<Output = Result<T, fleet::BoxError>>,
) -> Result<T, fleet::BoxError> {
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        result = result => result,
        interrupted = tokio::signal::ctrl_c() => {
            interrupted?;
            Err("interrupted".into())
        }
        _ = terminated.recv() => Err("interrupted".into()),
    }
}

/// Prints the report, and writes it to the file of `--record`, if given.
fn print(args: &Args, report: &report::Report) -> Result<(), fleet::BoxError> {
    write_report(args, report)?;
    match args.output {
        Output::Text => print!("{report}"),
        Output::Json => println!("{}", serde_json::to_string_pretty(report)?),
    }
    Ok(())
}

/// Writes the report so far to the file of `--record`, if given. A measurement of an hour may be
/// interrupted.
fn write_report(
    args: &Args,
    report: &impl serde::Serialize,
) -> Result<(), fleet::BoxError> {
    let Some(file) = &args.record else {
        return Ok(());
    };
    let text = serde_json::to_string_pretty(report)?;
    std::fs::write(file, format!("{text}\n"))
        .map_err(|error| format!("{}: {error}", file.display()).into())
}

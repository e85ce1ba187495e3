//! How long machines are without an operator when one is killed, with real processes.
//!
//! ```console
//! $ cargo xtask cluster up                       # and export what it prints
//! $ cargo build --release -p fivespot-cli
//! $ cargo run --release -p benches --bin hand_over
//! ```
//!
//! Creates a namespace with some ScheduledMachines and runs two scenarios. In the first, two
//! operators use leader election: the leader is killed, and every schedule is then disabled. In the
//! second, there are three shards: all schedules are enabled; one shard is killed, and all
//! schedules are disabled; one shard is added, and all schedules are enabled. Each operator has a
//! user of its own in the audit log (by kubeconfigs that impersonate), which shows which operator
//! wrote for which machine. Exits with 1 if a machine was not handled within 20 s of a kill, or if
//! two operators alternated in writing for one machine.

mod cast;
mod stage;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use cast::{Cast, Role};
use stage::Stage;

/// Kubernetes waits 15 s before it takes over. The promise is 20 s.
const PROMISE: Duration = Duration::from_secs(20);

/// Measures how long machines are without an operator when one is killed.
#[derive(Debug, Parser)]
struct Args {
    /// The number of machines
    #[arg(long, default_value_t = 30)]
    machines: usize,
    /// The program to run
    #[arg(long, default_value = "target/release/5spot")]
    operator: PathBuf,
    /// The audit log of the API server
    #[arg(long, default_value = "target/cluster/run/audit.log")]
    audit_log: PathBuf,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let kept = match runtime {
        Ok(runtime) => runtime.block_on(run(&args)),
        Err(error) => Err(error.into()),
    };
    match kept {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run(args: &Args) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    let stage = Stage::set(args.machines, &args.audit_log).await?;
    let mut cast = Cast::new(args.operator.clone(), &stage)?;
    let leader = lead(&stage, &mut cast).await?;
    let shards = share(&stage, &mut cast).await?;
    Ok(leader && shards)
}

async fn lead(
    stage: &Stage,
    cast: &mut Cast,
) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    println!("two operators with leader election");
    cast.enter("leader-a", Role::Candidate)?;
    stage.wait_for_phase("Inactive").await?;
    cast.enter("leader-b", Role::Candidate)?;
    // Waits until the standby has read the Lease.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let from = stage.log_length()?;
    cast.kill("leader-a").await?;
    let death = Instant::now();
    stage.switch("false").await?;
    stage.wait_for_phase("Disabled").await?;
    let kept = report("leader-a was killed: all are Disabled", death);
    let alternated = stage.alternated(from)?;
    println!("  machines with alternating writers: {alternated:?}");
    stage.switch("true").await?;
    stage.wait_for_phase("Inactive").await?;
    cast.kill("leader-b").await?;
    Ok(kept && alternated.is_empty())
}

async fn share(
    stage: &Stage,
    cast: &mut Cast,
) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    println!("three shards");
    let from = stage.log_length()?;
    for name in ["shard-a", "shard-b", "shard-c"] {
        cast.enter(name, Role::Shard)?;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    stage.switch("false").await?;
    stage.wait_for_phase("Disabled").await?;
    println!("  machines by shard: {:?}", stage.shares(from)?);
    let killed = stage.log_length()?;
    cast.kill("shard-b").await?;
    let death = Instant::now();
    stage.switch("true").await?;
    stage.wait_for_phase("Inactive").await?;
    let kept = report("shard-b was killed: all are Inactive", death);
    println!("  machines by shard: {:?}", stage.shares(killed)?);
    let added = stage.log_length()?;
    cast.enter("shard-d", Role::Shard)?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    stage.switch("false").await?;
    stage.wait_for_phase("Disabled").await?;
    println!("  machines by shard: {:?}", stage.shares(added)?);
    let alternated = stage.alternated(from)?;
    println!("  machines with alternating writers: {alternated:?}");
    Ok(kept && alternated.is_empty())
}

fn report(what: &str, since: Instant) -> bool {
    let took = since.elapsed();
    println!("  {what} after {:.1} s", took.as_secs_f64());
    took <= PROMISE
}

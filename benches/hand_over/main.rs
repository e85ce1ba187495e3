//! How long machines are without an operator when one is killed, with real processes.
//!
//! ```console
//! $ cargo xtask cluster up                       # and export what it prints
//! $ cargo build --release --bin 5spot
//! $ cargo run --release --bin hand_over
//! ```
//!
//! Creates a namespace with some ScheduledMachines and runs two scenarios. In the first, two
//! operators use leader election: the leader is killed, and every schedule is then disabled. In the
//! second, there are three shards: all schedules are enabled; one shard is killed, and all
//! schedules are disabled; one shard is added, and all schedules are enabled. Each operator has a
//! user of its own in the audit log (by kubeconfigs that impersonate), which shows which operator
//! wrote for which machine. Exits with 1 if a machine was not handled within 20 s of a kill, or if
//! two operators alternated in writing for one machine.

mod fixture;
mod operators;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use fixture::Fixture;
use operators::{Operators, Role};

/// Kubernetes waits 15 s before it takes over. The promise is 20 s.
const MAX_TAKEOVER: Duration = Duration::from_secs(20);

/// Measures how long machines are without an operator when one is killed.
#[derive(Debug, Parser)]
struct Args {
    /// The number of machines
    #[arg(long, default_value_t = 30)]
    machines: usize,
    /// The program to run
    #[arg(long, default_value = "target/release/5spot-controller")]
    operator: PathBuf,
    /// The audit log of the API server
    #[arg(long, default_value = "target/cluster/run/audit.log")]
    audit_log: PathBuf,
}

fn main() -> ExitCode {
    let args = Args::parse();
    benches::run(run(&args))
}

async fn run(args: &Args) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    let fixture = Fixture::create(args.machines, &args.audit_log).await?;
    let mut operators = Operators::new(args.operator.clone(), &fixture)?;
    let leader = leader_election(&fixture, &mut operators).await?;
    let shards = sharding(&fixture, &mut operators).await?;
    Ok(leader && shards)
}

async fn leader_election(
    fixture: &Fixture,
    operators: &mut Operators,
) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    println!("two operators with leader election");
    operators.start("leader-a", Role::Candidate)?;
    fixture.wait_for_phase("Inactive").await?;
    operators.start("leader-b", Role::Candidate)?;
    // Waits until the standby has read the Lease.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let from = fixture.log_length()?;
    operators.kill("leader-a").await?;
    let killed_at = Instant::now();
    fixture.switch("false").await?;
    fixture.wait_for_phase("Disabled").await?;
    let is_in_time = report("leader-a was killed: all are Disabled", killed_at);
    let alternated = fixture.alternated(from)?;
    println!("  machines with alternating writers: {alternated:?}");
    fixture.switch("true").await?;
    fixture.wait_for_phase("Inactive").await?;
    operators.kill("leader-b").await?;
    Ok(is_in_time && alternated.is_empty())
}

async fn sharding(
    fixture: &Fixture,
    operators: &mut Operators,
) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    println!("three shards");
    let from = fixture.log_length()?;
    for name in ["shard-a", "shard-b", "shard-c"] {
        operators.start(name, Role::Shard)?;
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    fixture.switch("false").await?;
    fixture.wait_for_phase("Disabled").await?;
    println!("  machines by shard: {:?}", fixture.shares(from)?);
    let killed = fixture.log_length()?;
    operators.kill("shard-b").await?;
    let killed_at = Instant::now();
    fixture.switch("true").await?;
    fixture.wait_for_phase("Inactive").await?;
    let is_in_time = report("shard-b was killed: all are Inactive", killed_at);
    println!("  machines by shard: {:?}", fixture.shares(killed)?);
    let added = fixture.log_length()?;
    operators.start("shard-d", Role::Shard)?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    fixture.switch("false").await?;
    fixture.wait_for_phase("Disabled").await?;
    println!("  machines by shard: {:?}", fixture.shares(added)?);
    let alternated = fixture.alternated(from)?;
    println!("  machines with alternating writers: {alternated:?}");
    Ok(is_in_time && alternated.is_empty())
}

fn report(what: &str, since: Instant) -> bool {
    let took = since.elapsed();
    println!("  {what} after {:.1} s", took.as_secs_f64());
    took <= MAX_TAKEOVER
}

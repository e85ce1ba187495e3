//! The cost of idle machines for an API server: requests of the operator, counted from the audit
//! log.
//!
//! ```console
//! $ cargo xtask cluster up                       # and export what it prints
//! $ cargo build --release --bin 5spot-controller --features fivespot-controller/allocator
//! $ cargo run --release --bin idle -- --machines 1000 --minutes 60
//! ```
//!
//! Creates a namespace with this many ScheduledMachines, none of which is wanted for days. Starts
//! two operators with leader election. Waits until each machine is reported as Inactive, and then
//! counts for the given time. Exits with 1 if there was any request except watches and renewals of
//! the Lease. `--backend embedded` does the same on a virtual clock, with one operator.

mod count;
mod kubernetes;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use fivespot_testkit::{Cluster, cluster_object, instant, scheduled_machine};
use jiff::SignedDuration;
use serde_json::{Value, json};

use count::Counts;

/// Counts the requests that idle machines cause.
#[derive(Debug, Parser)]
struct Args {
    /// The number of machines
    #[arg(long, default_value_t = 1_000)]
    machines: usize,
    /// How many minutes to count
    #[arg(long, default_value_t = 60)]
    minutes: u32,
    /// The API server
    #[arg(long, value_enum, default_value_t)]
    backend: Backend,
    /// The program to run, on a real Kubernetes
    #[arg(long, default_value = "target/release/5spot-controller")]
    operator: PathBuf,
    /// The audit log of the API server, on a real Kubernetes
    #[arg(long, default_value = "target/cluster/run/audit.log")]
    audit_log: PathBuf,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Backend {
    /// The cluster of $KUBECONFIG.
    #[default]
    Kubernetes,
    /// The embedded API server, on a virtual clock.
    Embedded,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let counted = match runtime {
        Ok(runtime) => runtime.block_on(async {
            match args.backend {
                Backend::Kubernetes => kubernetes::count(&args).await,
                Backend::Embedded => Ok(embedded(&args).await),
            }
        }),
        Err(error) => Err(error.into()),
    };
    match counted {
        Ok(counts) => {
            print!("{counts}");
            ExitCode::from(u8::from(!counts.is_idle()))
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// A machine that is not wanted for days, at whatever time it is evaluated.
fn idle_machine(name: &str, days_ahead: &str) -> Value {
    let mut machine = scheduled_machine(name);
    machine["spec"]["schedule"] = json!({
        "daysOfWeek": [days_ahead],
        "hoursOfDay": ["12"],
        "timezone": "UTC",
    });
    machine
}

async fn embedded(args: &Args) -> Counts {
    // A Friday.
    let cluster = Cluster::start(instant("2026-03-06T12:00:00Z")).await;
    cluster.apply(&cluster_object(cluster.contract())).await;
    for number in 0..args.machines {
        let machine = idle_machine(&format!("idle-{number}"), "mon");
        if let Err(error) = cluster.create(&machine).await {
            eprintln!("idle-{number}: {error}");
        }
    }
    let _operator = cluster.operator();
    let settled = cluster.deadline_in(SignedDuration::from_mins(1));
    cluster.advance_until(settled).await;
    let before = cluster.operator_requests().len();
    let end = cluster.deadline_in(SignedDuration::from_mins(i64::from(args.minutes)));
    cluster.advance_until(end).await;
    let mut counts = Counts::default();
    for event in &cluster.operator_requests()[before..] {
        counts.add(&event.verb, &event.resource, event.code);
    }
    counts
}

//! The measurement on a real Kubernetes.

use std::error::Error;
use std::fs::File;
use std::process::Stdio;
use std::time::Duration;

use benches::{Log, TestNamespace};
use jiff::{Timestamp, ToSpan as _};
use tokio::process::{Child, Command};

use crate::count::Counts;
use crate::{Args, idle_machine};

/// The prefix of the operator's user agent in the audit log.
const AGENT: &str = "5spot/";

/// The interval of checks whether the machines have settled, and their maximum number.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
const MAX_POLLS: usize = 300;

/// Runs the measurement and returns the counts.
pub(crate) async fn count(args: &Args) -> Result<Counts, Box<dyn Error + Send + Sync>> {
    let test_namespace = prepare(args.machines).await?;
    let namespace = test_namespace.namespace();
    eprintln!("{} machines in namespace {namespace}", args.machines);
    let log = Log::at(&args.audit_log);
    let begun = log.length()?;
    let operators = [start(args, namespace, "a")?, start(args, namespace, "b")?];
    settle(&test_namespace, args.machines).await?;
    let settled = log.length()?;
    let start_up = Counts::of(&log.since(begun)?, AGENT);
    eprintln!(
        "settled after {} requests, {} rejected with 429:\n{start_up}",
        start_up.total(),
        start_up.answered(429)
    );
    // Waits until the last writes have reached the caches.
    tokio::time::sleep(POLL_INTERVAL * 5).await;
    let from = log.length()?;
    eprintln!(
        "counting for {} min, from byte {from} (settled at {settled})",
        args.minutes
    );
    tokio::time::sleep(Duration::from_mins(1) * args.minutes).await;
    let counts = Counts::of(&log.since(from)?, AGENT);
    for mut operator in operators {
        operator.start_kill()?;
        operator.wait().await?;
    }
    Ok(counts)
}

/// Creates a namespace with this many machines.
async fn prepare(machines: usize) -> Result<TestNamespace, Box<dyn Error + Send + Sync>> {
    let test_namespace = TestNamespace::create_new("idle").await?;
    test_namespace.add_cluster("production-cluster").await?;
    let day = in_three_days()?;
    for number in 0..machines {
        let machine = idle_machine(&format!("idle-{number}"), &day);
        test_namespace.create(machine).await?;
    }
    Ok(test_namespace)
}

/// The name of the weekday in three days.
#[expect(clippy::disallowed_methods, reason = "real machines, real time")]
fn in_three_days() -> Result<String, jiff::Error> {
    let then = Timestamp::now().checked_add(72.hours())?;
    Ok(then.strftime("%a").to_string().to_lowercase())
}

/// Starts one of the two operators of the namespace.
fn start(
    args: &Args,
    namespace: &str,
    name: &str,
) -> Result<Child, Box<dyn Error + Send + Sync>> {
    let log = File::create(args.audit_log.with_file_name(format!("idle-{name}.log")))?;
    let child = Command::new(&args.operator)
        .arg("--enable-leader-election")
        .args(["--namespaces", namespace, "--lease-namespace", namespace])
        .args(["--metrics-port", "0", "--health-port", "0"])
        .env("POD_NAME", format!("idle-{name}"))
        .stderr(Stdio::from(log))
        .kill_on_drop(true)
        .spawn();
    child.map_err(|error| format!("{}: {error}", args.operator.display()).into())
}

/// Waits until every machine is reported as Inactive.
async fn settle(
    test_namespace: &TestNamespace,
    machines: usize,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    for _ in 0..MAX_POLLS {
        if test_namespace.in_phase("Inactive").await? == machines {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Err("the machines have not settled".into())
}

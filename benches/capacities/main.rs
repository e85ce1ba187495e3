//! Many ScheduledCapacities at one edge: how long until all of them are written, with which requests,
//! and in how much memory.
//!
//! ```console
//! $ cargo build --profile dist --bin 5spot-controller --bin capacities \
//!     --features fivespot-controller/allocator,benches/allocator
//! $ target/dist/capacities --record benches/edges/capacities.json
//! ```
//!
//! Runs an API server of its own, in this process, and the operator as a child process with
//! `--controllers capacity`. The capacities are spread over a hundred namespaces and ten kinds of
//! targets, three of them through the subresource `scale`. Exits with 1 if a bound is exceeded: a
//! minute from the edge until all are written, one write of the target and one of the status for
//! each, 512 MiB, and no request afterwards.

mod outcome;
mod target;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use benches::{ApiServer, BoxError};
use clap::Parser;
use fivespot_api::name;
use jiff::{SignedDuration, Timestamp, Unit};
use kubemu_apiserver::AuditEvent;
use kubemu_clock::Clock;
use serde_json::json;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use outcome::Outcome;
use target::TARGETS;

/// That of what is shipped. `.cargo/config.toml` configures it.
#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How many of the requests are printed that should not be there.
const MAX_LISTED: usize = 20;
/// How often progress is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Measures many ScheduledCapacities at one edge.
#[derive(Debug, Parser)]
struct Args {
    /// The number of capacities
    #[arg(long, default_value_t = 100_000)]
    capacities: usize,
    /// The number of namespaces
    #[arg(long, default_value_t = 100)]
    namespaces: usize,
    /// The operator, as it is shipped
    #[arg(long, default_value = "target/dist/5spot-controller")]
    controller: PathBuf,
    /// How many seconds after the last object was created the schedules open: as long as the operator
    /// needs to write the first values
    #[arg(long, default_value_t = 180)]
    lead_seconds: i64,
    /// How many seconds are counted after everything was written
    #[arg(long, default_value_t = 120)]
    idle_seconds: u64,
    /// The folder for the kubeconfig and the log
    #[arg(long, default_value = "target/capacities")]
    folder: PathBuf,
    /// Write the outcome to this file
    #[arg(long)]
    record: Option<PathBuf>,
}

/// What the operator has asked for.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Writes of targets.
    targets: usize,
    /// Writes of the status of ScheduledCapacities.
    statuses: usize,
    /// Other requests.
    others: usize,
    /// When one of the first two was last received.
    last: Option<Timestamp>,
}

/// Whether a request is one of the operator, and neither a watch nor about a Lease.
fn counts(event: &AuditEvent) -> bool {
    event.user != ApiServer::USER && event.verb != "watch" && event.resource != "leases"
}

impl Seen {
    fn note(&mut self, event: &AuditEvent) {
        let is_capacity = event.resource == name::CAPACITY_PLURAL;
        if is_capacity && event.subresource == "status" && event.is_write() {
            self.statuses += 1;
            self.last = Some(event.at);
        } else if !is_capacity && event.resource != "events" && event.is_write() {
            self.targets += 1;
            self.last = Some(event.at);
        } else {
            self.others += 1;
        }
    }
}

/// The API server, and what it was asked for.
struct Management {
    server: ApiServer,
    requests: Arc<Mutex<Requests>>,
}

/// The requests of the operator.
#[derive(Default)]
struct Requests {
    seen: Seen,
    /// Each of them in a line, once they are few.
    listed: Option<Vec<String>>,
}

impl Management {
    /// Starts one with the CRDs of the targets too.
    async fn start(kubeconfig: &Path) -> Result<Self, BoxError> {
        let requests: Arc<Mutex<Requests>> = Arc::default();
        let shared = requests.clone();
        let definitions = TARGETS.iter().filter_map(target::Target::definition);
        let audit = move |event: &AuditEvent| {
            if !counts(event) {
                return;
            }
            let mut requests = shared.lock().unwrap_or_else(PoisonError::into_inner);
            requests.seen.note(event);
            if let Some(listed) = &mut requests.listed {
                let AuditEvent { at, verb, path, .. } = event;
                listed.push(format!("{at} {verb} {path}"));
            }
        };
        let server = ApiServer::start(kubeconfig, definitions, audit).await?;
        Ok(Self { server, requests })
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> Seen {
        self.requests().seen
    }

    /// What was seen until now. The requests from now on are listed.
    fn settled(&self) -> Seen {
        let mut requests = self.requests();
        requests.listed = Some(Vec::new());
        requests.seen
    }

    /// The requests since they are listed.
    fn listed(&self) -> Vec<String> {
        self.requests().listed.take().unwrap_or_default()
    }

    /// Waits until the operator has written as many targets and statuses as given.
    async fn written(
        &self,
        operator: &mut Child,
        count: usize,
    ) -> Result<Seen, BoxError> {
        loop {
            let seen = self.seen();
            if seen.targets >= count && seen.statuses >= count {
                return Ok(seen);
            }
            if let Some(status) = operator.try_wait()? {
                return Err(format!("the operator has ended: {status}").into());
            }
            sleep(LOOK).await;
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    benches::run(measure(&args))
}

/// Creates everything and measures. Returns whether all values are within the bounds.
async fn measure(args: &Args) -> Result<bool, BoxError> {
    std::fs::create_dir_all(&args.folder)?;
    let kubeconfig = args.folder.join("kubeconfig");
    let management = Management::start(&kubeconfig).await?;
    let edge = create_all(args, &management).await?;
    let mut operator = start(args, &kubeconfig)?;
    // The first reconcile writes the inactive values, which differ from those that were created.
    let first = management.written(&mut operator, args.capacities).await?;
    let now = Clock::system().now();
    if edge <= now {
        return Err("the schedules opened first; give a longer --lead-seconds".into());
    }
    println!("{} first values after {}", args.capacities, ago(edge, now));
    println!("{:<42} {:>8}", "other requests until then", first.others);
    let left = edge.duration_since(now);
    sleep(Duration::try_from(left)?).await;
    let processes = [Some(std::process::id()), operator.id()];
    let before = processes.map(cpu_time);
    let written = management
        .written(&mut operator, 2 * args.capacities)
        .await?;
    let after = processes.map(cpu_time);
    let took = written.last.unwrap_or(edge).duration_since(edge);
    sleep(Duration::from_secs(5)).await;
    let settled = management.settled();
    sleep(Duration::from_secs(args.idle_seconds)).await;
    let listed = management.listed();
    let memory = operator.id().and_then(benches::peak_memory);
    let memory = memory.ok_or("the operator has ended")?;
    let outcome = Outcome {
        capacities: args.capacities,
        kinds: TARGETS.len(),
        edge_seconds: took.as_secs_f64(),
        target_writes: settled.targets - args.capacities,
        status_writes: settled.statuses - args.capacities,
        other_requests: settled.others - first.others,
        idle_seconds: args.idle_seconds,
        idle_requests: listed.len(),
        server_cpu_seconds: after[0].saturating_sub(before[0]).as_secs_f64(),
        operator_cpu_seconds: after[1].saturating_sub(before[1]).as_secs_f64(),
        memory_mib: memory.div_ceil(1 << 20),
    };
    print!("{outcome}");
    for request in listed.iter().take(MAX_LISTED) {
        println!("  {request}");
    }
    if let Some(file) = &args.record {
        std::fs::write(file, serde_json::to_string_pretty(&outcome)? + "\n")?;
    }
    Ok(outcome.is_within_bounds())
}

/// The CPU time of a process so far; zero if it has ended.
fn cpu_time(process: Option<u32>) -> Duration {
    process.map_or(Duration::ZERO, benches::cpu_time)
}

fn ago(edge: Timestamp, now: Timestamp) -> String {
    format!(
        "{:#} before the edge",
        edge.duration_since(now)
            .round(Unit::Second)
            .unwrap_or_default()
    )
}

/// Creates the targets, and then the capacities. Returns when they open.
async fn create_all(args: &Args, management: &Management) -> Result<Timestamp, BoxError> {
    for number in 0..args.namespaces {
        let namespace = json!({"metadata": {"name": format!("tenant-{number}")}});
        management
            .server
            .create("/api/v1/namespaces", namespace)
            .await?;
    }
    let begun = std::time::Instant::now();
    for number in 0..args.capacities {
        let (namespace, name, target) = place(args, number);
        let (path, object) = (target.path(&namespace), target.object(&name));
        management.server.create(&path, object).await?;
    }
    // The capacities take about as long, and admission longer.
    let lead = 3 * begun.elapsed().as_secs().cast_signed() + args.lead_seconds;
    let soon = Clock::system().now() + SignedDuration::from_secs(lead);
    let edge = soon.round(Unit::Minute)?;
    for number in 0..args.capacities {
        let (namespace, name, target) = place(args, number);
        let path = format!(
            "/apis/{}/namespaces/{namespace}/{}",
            name::API_VERSION,
            name::CAPACITY_PLURAL
        );
        let mut object = target.capacity(&name);
        let cron = edge.strftime("%-M %-H * * *").to_string();
        object["spec"]["schedule"] = json!({"cron": cron, "duration": "10h"});
        management.server.create(&path, object).await?;
    }
    println!(
        "{} targets and capacities in {:?}",
        args.capacities,
        begun.elapsed()
    );
    Ok(edge)
}

/// The namespace, name and target of a capacity.
fn place(args: &Args, number: usize) -> (String, String, &'static target::Target) {
    let namespace = format!("tenant-{}", number % args.namespaces);
    let target = &TARGETS[(number / args.namespaces) % TARGETS.len()];
    (namespace, format!("it-{number}"), target)
}

fn start(args: &Args, kubeconfig: &Path) -> Result<Child, BoxError> {
    let log = std::fs::File::create(args.folder.join("operator.log"))?;
    let started = Command::new(&args.controller)
        .args(["--controllers", "capacity", "--kubeconfig"])
        .arg(kubeconfig)
        .args([
            "--bind-address",
            "127.0.0.1",
            "--metrics-port",
            "0",
            "--health-port",
            "0",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::from(log))
        .kill_on_drop(true)
        .spawn();
    started.map_err(|error| {
        format!(
            "{}: {error}; `capacities/main.rs` says how to build it",
            args.controller.display()
        )
        .into()
    })
}

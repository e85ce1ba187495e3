//! A compressed day on a real Kubernetes: many machines with schedules of a few minutes are created
//! and deleted for an hour, with faults between the operator and its API servers.
//!
//! ```console
//! $ cargo xtask cluster up
//! $ cargo run --release --bin day -- --minutes 60 --record proof/results/day.json
//! ```
//!
//! For each minute, it prints the requests of the operator, the number of machines and the resident
//! memory of this process. At the end, every ScheduledMachine is deleted, and the remaining objects
//! are counted. It fails if any remain, or if memory or requests of the last third exceed those of
//! the first third by more than a fifth. The first minutes, in which all machines are created, are
//! not counted.

mod faults;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use fivespot_testkit::{Cluster, resident_kib, scheduled_machine};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use faults::Faults;

#[derive(Parser)]
#[command(about = "A compressed day on a real Kubernetes, with faults.")]
struct Arguments {
    /// The number of machines
    #[arg(long, default_value_t = 200)]
    machines: u32,
    /// The duration in minutes
    #[arg(long, default_value_t = 60)]
    minutes: u32,
    /// The number of faults per thousand requests and events
    #[arg(long, default_value_t = 20)]
    faults: u32,
    /// Writes the result to this file too, as JSON
    #[arg(long)]
    record: Option<PathBuf>,
}

/// Each machine is wanted for half of this period, in minutes. The machines are staggered.
const PERIOD: u32 = 10;

/// The number of first minutes that are not counted.
const WARM_UP: usize = 10;

/// The largest allowed ratio of the last third to the first.
const MAX_GROWTH: f64 = 1.2;

/// How long the machines may take to be deleted at the end.
const LEAVING: Duration = Duration::from_mins(15);

/// The measurements at the end of a minute.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    requests: usize,
    machines: usize,
    resident_kib: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = day(&arguments).await;
    println!("{result:#}");
    if let Some(path) = &arguments.record
        && let Err(error) = fs::write(path, format!("{result:#}\n"))
    {
        eprintln!("error: {}: {error}", path.display());
        return ExitCode::from(2);
    }
    ExitCode::from(u8::from(
        result["isFlat"] != true || result["leftBehind"] != 0,
    ))
}

async fn day(arguments: &Arguments) -> Value {
    let cluster = Cluster::live().await;
    cluster.add_cluster().await;
    let faults = Arc::new(Faults::new(arguments.faults));
    let operator = cluster.operator_behind(faults.clone(), |_| {});
    for number in 0..arguments.machines {
        cluster.apply(&machine(number)).await;
    }
    let begun = Instant::now();
    let mut samples = Vec::new();
    let mut created = 0;
    for minute in 1..=arguments.minutes {
        sleep_until(begun + Duration::from_mins(1) * minute).await;
        let requests = cluster.take_requests();
        created += requests
            .iter()
            .filter(|it| {
                it.verb == "create" && it.resource == "machines" && it.code < 300
            })
            .count();
        let sample = Sample {
            requests: requests.len(),
            machines: machines(&cluster).await,
            resident_kib: resident_kib(),
        };
        println!(
            "minute {minute:>3}  {:>5} requests  {:>4} machines  {:>6} KiB  {:>6} faults",
            sample.requests,
            sample.machines,
            sample.resident_kib,
            faults.injected()
        );
        samples.push(sample);
    }
    for number in 0..arguments.machines {
        cluster.delete(&path(number)).await;
    }
    let left = remaining_objects(&cluster).await;
    let has_ended = operator.has_ended();
    drop(operator);
    let requests = thirds(&samples, |it| it.requests as u64);
    let resident = thirds(&samples, |it| it.resident_kib);
    let is_flat = |(first, last): (f64, f64)| last <= first * MAX_GROWTH;
    json!({
        "machines": arguments.machines,
        "minutes": arguments.minutes,
        "activations": created,
        "faults": faults.injected(),
        "requestsPerMinute": {"first": requests.0.round(), "last": requests.1.round()},
        "residentKiB": {"first": resident.0.round(), "last": resident.1.round()},
        "isFlat": is_flat(requests) && is_flat(resident) && !has_ended,
        "leftBehind": left,
    })
}

/// A machine that is wanted for half of every [`PERIOD`], from its own minute on.
fn machine(number: u32) -> Value {
    let mut machine = scheduled_machine(&name(number));
    let first = number % PERIOD;
    machine["spec"]["schedule"] = json!({
        "cron": format!("{first}-59/{PERIOD} * * * *"),
        "duration": format!("{}m", PERIOD / 2),
        "timezone": "UTC",
    });
    machine["spec"]["gracefulShutdownTimeout"] = json!("1m");
    machine
}

fn name(number: u32) -> String {
    format!("worker-{number}")
}

fn path(number: u32) -> String {
    fivespot_testkit::machine_path(&name(number))
}

/// The resources of which a machine must leave no object behind.
const RESOURCES: [&str; 4] = [
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledmachines",
    "/apis/bootstrap.cluster.x-k8s.io/v1beta1/namespaces/default/k0sworkerconfigs",
    "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default/remotemachines",
    "/api/v1/nodes",
];

async fn machines(cluster: &Cluster) -> usize {
    cluster.list(&machines_path(cluster)).await.len()
}

fn machines_path(cluster: &Cluster) -> String {
    let version = cluster.contract().name();
    format!("/apis/cluster.x-k8s.io/{version}/namespaces/default/machines")
}

/// The number of objects that remain when the time limit is over. 0 as soon as there are none.
async fn remaining_objects(cluster: &Cluster) -> usize {
    let until = Instant::now() + LEAVING;
    let namespace = cluster.node_name("x");
    let suffix = namespace.trim_start_matches('x');
    loop {
        let mut left = machines(cluster).await;
        for resource in RESOURCES {
            let all = cluster.list(resource).await;
            let is_own = |object: &&Value| {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                !resource.ends_with("nodes") || name.ends_with(suffix)
            };
            left += all.iter().filter(is_own).count();
        }
        if left == 0 || Instant::now() > until {
            return left;
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// The means of the first and of the last third of the counted minutes.
fn thirds(samples: &[Sample], of: impl Fn(&Sample) -> u64) -> (f64, f64) {
    let counted = samples.get(WARM_UP..).unwrap_or_default();
    let third = counted.len().div_ceil(3);
    let mean = |samples: &[Sample]| {
        let sum: u64 = samples.iter().map(&of).sum();
        let count = u32::try_from(samples.len().max(1)).unwrap_or(u32::MAX);
        f64::from(u32::try_from(sum).unwrap_or(u32::MAX)) / f64::from(count)
    };
    (
        mean(&counted[..third]),
        mean(&counted[counted.len() - third..]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minutes_in_which_machines_are_created_are_not_counted() {
        let of = |requests| Sample {
            requests,
            ..Sample::default()
        };
        let mut samples = vec![of(9_000); WARM_UP];
        samples.extend([of(1), of(1), of(5), of(5), of(2), of(2)]);
        assert_eq!(thirds(&samples, |it| it.requests as u64), (1.0, 2.0));
        assert_eq!(thirds(&[], |it| it.requests as u64), (0.0, 0.0));
    }
}

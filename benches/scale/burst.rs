//! Bursts: many machines that become wanted at once, each measured right after the floor.

use std::time::Duration;

use benches::{Entry, Log};
use clap::ValueEnum;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::json;
use tokio::process::Command;

use crate::Args;
use crate::fleet::{BoxError, Fleet, Schedule, Window, now};
use crate::operator::{Description, Operator, ResourceUsage, USER, is_operator};
use crate::run;
use crate::span::{Span, latenesses, quantiles};
use crate::watcher::Watcher;

/// Why machines are wanted at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Burst {
    /// They are created, and wanted from the start: a sync of GitOps, or a restore.
    Created,
    /// `schedule.enabled` becomes true.
    Enabled,
    /// Their windows open.
    Edge,
}

/// Bursts of one kind, each with its floor.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Bursts {
    server: String,
    profile: String,
    machines: usize,
    burst: Burst,
    pub(crate) pairs: Vec<Pair>,
}

/// A burst, and the floor that was measured right before it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pair {
    /// How long a plain client took to create the objects of all machines.
    pub(crate) floor_seconds: f64,
    /// When the objects of half, of 99 in 100 and of all machines existed.
    pub(crate) seconds: [f64; 3],
    /// The requests of the operator until the last of them existed.
    pub(crate) until_created: Span,
    /// Its requests until all machines served and it was idle. `None` if that was not measured.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) serving: Option<Serving>,
    taken: ResourceUsage,
}

/// The requests of an operator until all machines served and it was idle.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Serving {
    pub(crate) until_serving: Span,
    /// How many of them were sent to the workload cluster.
    workload_requests: usize,
}

/// Measures the requested number of pairs. Each has a namespace and an operator of its own.
pub(crate) async fn measure(args: &Args, burst: Burst) -> Result<Bursts, BoxError> {
    let mut bursts = Bursts {
        server: args.server.clone(),
        profile: args.profile.clone(),
        machines: args.machines,
        burst,
        pairs: Vec::new(),
    };
    for number in 1..=args.pairs {
        eprintln!("pair {number} of {}", args.pairs);
        let pair = pair(args, burst).await?;
        let [_, _, all] = pair.seconds;
        let requests = crate::report::ratio(pair.until_created.total(), args.machines);
        eprintln!(
            "  {all:.2} s, {:.2} times the floor, {requests:.2} requests per machine",
            all / pair.floor_seconds,
        );
        bursts.pairs.push(pair);
        crate::write_report(args, &bursts)?;
    }
    Ok(bursts)
}

async fn pair(args: &Args, burst: Burst) -> Result<Pair, BoxError> {
    let log = Log::at(&args.audit_log);
    run_hook(args, "begin").await?;
    let fleet = Fleet::create(args).await?;
    let watcher = Watcher::start(&fleet.test_namespace);
    let description = Description::read(args)?;
    let mut operator =
        Operator::new(description, fleet.test_namespace.namespace(), log.folder());
    operator.start()?;
    let window = run::window(args, 2)?;
    match burst {
        Burst::Created => {}
        Burst::Enabled => {
            fleet.populate(&Schedule::Always { enabled: false }).await?;
            watcher.settle("Disabled", args.machines).await?;
        }
        Burst::Edge => {
            fleet.populate(&Schedule::Once(window)).await?;
            watcher.settle("Inactive", args.machines).await?;
        }
    }
    let floor = run::floor(args).await?;
    let from = log.length()?;
    let begun = begin(&fleet, burst, window).await?;
    let entries = run::until_created(&log, from, begun, args.machines).await?;
    run_hook(args, "end").await?;
    let seconds = quantiles(&latenesses(&entries, begun));
    let until_created = Span::of(&until_last_create(entries));

    let serving = if args.until_created {
        None
    } else {
        watcher.settle("Active", args.machines).await?;
        run::wait_until_idle(&log).await?;
        let entries = log.since(from)?;
        Some(Serving {
            until_serving: Span::of(&entries),
            workload_requests: entries
                .iter()
                .filter(|entry| is_of_workload(entry))
                .count(),
        })
    };
    let taken = operator.resource_usage()?;
    operator.kill().await?;
    // Deleting thousands of machines takes Cluster API longer than the whole measurement.
    let paused = json!({"spec": {"paused": true}});
    fleet
        .test_namespace
        .merge(&fleet.cluster_path(), &paused)
        .await?;
    Ok(Pair {
        floor_seconds: floor.as_secs_f64(),
        seconds,
        until_created,
        serving,
        taken,
    })
}

/// Makes all machines wanted. Returns when that began.
async fn begin(
    fleet: &Fleet,
    burst: Burst,
    window: Window,
) -> Result<Timestamp, BoxError> {
    let begun = now();
    match burst {
        Burst::Created => fleet.populate(&Schedule::Always { enabled: true }).await?,
        Burst::Enabled => fleet.edit(&json!({"enabled": true})).await?,
        Burst::Edge => {
            let left = window.opens.duration_since(begun);
            if left < SignedDuration::ZERO {
                return Err("the windows opened before the floor was measured".into());
            }
            tokio::time::sleep(Duration::try_from(left)?).await;
            return Ok(window.opens);
        }
    }
    Ok(begun)
}

/// The requests that began before the last Machine was created.
fn until_last_create(mut entries: Vec<Entry>) -> Vec<Entry> {
    let created = entries.iter().filter(|entry| {
        is_operator(entry) && entry.verb == "create" && entry.resource == "machines"
    });
    if let Some(last) = created.filter_map(|entry| entry.ended).max() {
        entries.retain(|entry| entry.begun.is_none_or(|begun| begun <= last));
    }
    entries
}

/// A request to the workload cluster. The user of its kubeconfig differs from the operator's.
fn is_of_workload(entry: &Entry) -> bool {
    is_operator(entry) && entry.user != USER
}

/// Runs the program of `--around` before and after each pair.
async fn run_hook(args: &Args, when: &str) -> Result<(), BoxError> {
    let Some(program) = &args.around else {
        return Ok(());
    };
    let status = Command::new(program).arg(when).status().await?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} {when}: {status}", program.display()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(user: &str, verb: &str, resource: &str, second: u32) -> Entry {
        let at = format!("2026-03-06T14:00:{second:02}Z");
        let line = json!({
            "stage": "ResponseComplete", "verb": verb, "user": {"username": user},
            "userAgent": "5spot/0.1.0",
            "objectRef": {"resource": resource}, "responseStatus": {"code": 201},
            "requestReceivedTimestamp": at, "stageTimestamp": at,
        });
        Entry::read(&line.to_string()).expect("an event")
    }

    #[test]
    fn requests_after_the_last_machine_are_not_counted() {
        let entries = vec![
            entry(USER, "create", "machines", 1),
            entry(USER, "patch", "scheduledmachines", 2),
            entry(USER, "create", "machines", 3),
            entry(USER, "patch", "scheduledmachines", 4),
        ];
        assert_eq!(Span::of(&until_last_create(entries)).total(), 3);
    }

    #[test]
    fn a_request_as_the_user_of_the_workload_cluster_is_sent_to_it() {
        assert!(is_of_workload(&entry("workload-admin", "list", "pods", 1)));
        assert!(!is_of_workload(&entry(USER, "list", "machines", 1)));
    }
}

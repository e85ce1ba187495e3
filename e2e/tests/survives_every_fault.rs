//! With any single fault between the operator and its servers, everything ends as without it. For
//! every write of every scenario, the fault is a crash before it or after it, a conflict, an error
//! or a lost response. Every watch is dropped, delayed, or started again from an old version.

pub(crate) mod account;
mod fault_injector;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use fivespot_api::{name, reclaim};
use fivespot_testkit::{
    BEFORE_CLOSING, Backend, CLOSING, Cluster, CrashableOperator, condition, instant,
    machine_path, mask, node_path, scheduled_machine,
};
use futures::{FutureExt as _, StreamExt as _, stream};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::promise::{Promise, promise};
use account::Account;
use fault_injector::{Fault, FaultInjector, InjectedFault, Target};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(of_an_opening).on_request(VARIABLE),
    promise!(of_a_closing).on_request(VARIABLE),
    promise!(of_a_closing_that_is_cancelled).on_request(VARIABLE),
    promise!(of_the_kill_switch).on_request(VARIABLE),
    promise!(of_a_reclaim).on_request(VARIABLE),
    promise!(of_a_deletion).on_request(VARIABLE),
];

/// If this is `all`, every fault is injected into each write and each watch. Otherwise, one of the
/// faults is, in turn. On a real cluster, nothing runs unless it is set to `all` or `some`.
const VARIABLE: &str = "E2E_FAULTS";

/// The value of [`VARIABLE`] for all faults.
const ALL: &str = "all";

/// The value of [`VARIABLE`], if it is set.
fn requested_faults() -> Option<String> {
    std::env::var(VARIABLE).ok()
}

/// The number of concurrent faults of a scenario.
const CONCURRENT_FAULTS: usize = 8;

/// The number of concurrent runs of all scenarios on a shared cluster.
static CONCURRENT_RUNS: Semaphore = Semaphore::const_new(12);

/// The maximum number of runs until a fault is injected. A real Cluster API may report in one step
/// or in two, and the operator then writes once more or less.
const MAX_ATTEMPTS: usize = 3;

/// The maximum number of checks until the end is the same as without a fault.
const MAX_CHECKS: usize = 50;

/// The result of a run.
struct RunResult {
    snapshot: Value,
    writes: Vec<String>,
    fault_injector: Arc<FaultInjector>,
}

impl RunResult {
    /// How it differs from `other`. `None` if it does not.
    fn difference(&self, other: &Self) -> Option<String> {
        if self.writes != other.writes {
            return Some(format!(
                "did {:?} instead of {:?}",
                self.writes, other.writes
            ));
        }
        let (ours, theirs) = (&self.snapshot, &other.snapshot);
        let parts = [ours, theirs].map(Value::as_object).into_iter().flatten();
        let mut parts = parts.flat_map(serde_json::Map::keys);
        let part = parts.find(|part| ours[part.as_str()] != theirs[part.as_str()])?;
        let (is, was) = (&ours[part.as_str()], &theirs[part.as_str()]);
        Some(format!("{part} is {is} instead of {was}"))
    }
}

/// A scenario: its preparation and its steps.
struct Scenario<P, S> {
    prepare: P,
    steps: S,
}

/// Runs a scenario without a fault, and then with every fault. Every run must have the same end.
async fn with_every_fault(
    name: &'static str,
    prepare: impl AsyncFn(&Cluster),
    steps: impl AsyncFn(&Cluster),
) {
    let scenario = Scenario { prepare, steps };
    let undisturbed = scenario.run(None, None).await;
    let again = scenario.run(None, Some(&undisturbed)).await;
    let difference = again.difference(&undisturbed);
    assert_eq!(difference, None, "two runs without a fault");
    let planned_faults = planned_faults(&undisturbed.fault_injector);
    let (writes, watches) = {
        let log = undisturbed.fault_injector.log();
        (log.writes.values().sum(), log.began.len())
    };
    assert!(writes > 0, "the operator must write");
    let mut account = Account::new(name, (writes, watches), &planned_faults);
    let mut ends = stream::iter(planned_faults)
        .map(async |injected_fault| {
            let end = scenario.end_with(&injected_fault, &undisturbed).await;
            (injected_fault, end)
        })
        .buffer_unordered(CONCURRENT_FAULTS);
    while let Some((injected_fault, end)) = ends.next().await {
        account.note(&injected_fault, end);
    }
    if let Err(wrong) = account.close(Backend::chosen() == Backend::Embedded) {
        panic!("{wrong}");
    }
}

/// One fault for each write and watch, in turn, or all of them.
fn planned_faults(undisturbed: &FaultInjector) -> Vec<InjectedFault> {
    let is_whole = requested_faults().is_some_and(|text| text == ALL);
    let (writes, began, reported) = {
        let log = undisturbed.log();
        let began: Vec<String> = log.began.keys().cloned().collect();
        (log.writes.clone(), began, log.reported.clone())
    };
    let writes = writes.into_iter().flat_map(|(kind, count)| {
        (0..count).map(move |number| Target::Write(kind.clone(), number))
    });
    let mut planned_faults = Vec::new();
    for (at, target) in writes
        .chain(began.into_iter().map(Target::Watch))
        .enumerate()
    {
        let faults = match &target {
            Target::Write(..) => Fault::OF_WRITES.as_slice(),
            Target::Watch(_) => Fault::OF_WATCHES.as_slice(),
        };
        for (turn, fault) in faults.iter().enumerate() {
            let is_possible = match &target {
                Target::Write(..) => true,
                // A watch that no earlier operator had has no older version. A watch without events
                // has none to delay.
                Target::Watch(watch) if *fault == Fault::Old => {
                    undisturbed.knows_older(watch)
                }
                Target::Watch(watch) => reported.contains(watch),
            };
            if is_possible && (is_whole || at % faults.len() == turn) {
                let (target, fault) = (target.clone(), *fault);
                planned_faults.push(InjectedFault { target, fault });
            }
        }
    }
    planned_faults
}

impl<P: AsyncFn(&Cluster), S: AsyncFn(&Cluster)> Scenario<P, S> {
    /// Runs it with a fault. Returns whether the fault was injected, or how the end differs.
    async fn end_with(
        &self,
        injected_fault: &InjectedFault,
        like: &RunResult,
    ) -> Result<bool, String> {
        for _ in 0..MAX_ATTEMPTS {
            let run = AssertUnwindSafe(self.run(Some(injected_fault), Some(like)));
            let end = run.catch_unwind().await;
            let end = end.map_err(|panic| match panic.downcast_ref::<String>() {
                Some(words) => words.clone(),
                None => "it did not run to its end".to_owned(),
            })?;
            if let Some(difference) = end.difference(like) {
                return Err(difference);
            }
            if end.fault_injector.log().is_injected {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs it. At its end, waits a while for the same end as in `like`, if given.
    async fn run(
        &self,
        injected_fault: Option<&InjectedFault>,
        like: Option<&RunResult>,
    ) -> RunResult {
        let _turn = CONCURRENT_RUNS.acquire().await;
        let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
        cluster.add_cluster().await;
        let node = cluster.node_name("worker");
        let first = FaultInjector::new(None, BTreeMap::new(), node.clone());
        let healthy = cluster.operator_behind(first.clone(), |_| {});
        (self.prepare)(&cluster).await;
        cluster.settle().await;
        drop(healthy);
        let before = cluster.operator_writes().len();
        let old = first.log().began.clone();
        let fault_injector = FaultInjector::new(injected_fault.cloned(), old, node);
        let crashing = cluster.operator_behind(fault_injector.clone(), |_| {});
        let replacement = async {
            crashing.crash_switch().crashed().await;
            // The new operator starts before the old one is dropped, so that time does not pass in
            // between.
            let _replacement: CrashableOperator =
                cluster.operator_behind(fault_injector.clone(), |_| {});
            drop(crashing);
            std::future::pending::<Infallible>().await
        };
        let end = async {
            (self.steps)(&cluster).await;
            end(&cluster, (&fault_injector, before), like).await
        };
        let end = tokio::select! {
            end = end => end,
            never = replacement => match never {},
        };
        cluster.delete_leftovers("worker").await;
        end
    }
}

/// The end of a run after its last write.
async fn end(
    cluster: &Cluster,
    (fault_injector, before): (&Arc<FaultInjector>, usize),
    like: Option<&RunResult>,
) -> RunResult {
    let observe = async || RunResult {
        snapshot: snapshot(cluster).await,
        writes: writes(cluster, before),
        fault_injector: fault_injector.clone(),
    };
    let mut end = observe().await;
    // The embedded server is known to be idle, a real Cluster API is not.
    if let (Some(like), Backend::Kubernetes) = (like, Backend::chosen()) {
        for _ in 0..MAX_CHECKS {
            if end.difference(like).is_none() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            cluster.settle().await;
            end = observe().await;
        }
    }
    end
}

/// Accepted creations, deletions and evictions since the `before`-th write.
fn writes(cluster: &Cluster, before: usize) -> Vec<String> {
    let writes = cluster.operator_writes();
    let accepted = writes[before..]
        .iter()
        .filter(|event| event.verb != "patch" && event.code < 300)
        .map(|event| format!("{} {} {}", event.verb, event.resource, event.subresource));
    let mut writes: Vec<String> = accepted.collect();
    writes.sort();
    writes
}

/// The state that the operator is responsible for, without uids, versions and times.
async fn snapshot(cluster: &Cluster) -> Value {
    let mut parts = serde_json::Map::new();
    let mut uids = Vec::new();
    let owned = cluster.owned_paths("worker");
    let paths = [machine_path("worker")].into_iter().chain(owned);
    for path in paths.chain([node_path("worker"), cluster.cluster_path()]) {
        let object = cluster.get(&path).await.unwrap_or_default();
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        if !uid.is_empty() {
            uids.push((uid.to_owned(), format!("<uid of {kind}>")));
        }
        let kept = match kind.as_str() {
            "ScheduledMachine" => json!({
                "metadata": kept(&object["metadata"]), "spec": object["spec"],
                "status": object["status"],
            }),
            "Node" => json!({
                "annotations": ours(&object["metadata"]["annotations"]),
                "labels": ours(&object["metadata"]["labels"]),
                "taints": object["spec"]["taints"],
                "unschedulable": object["spec"]["unschedulable"],
            }),
            "Cluster" | "" => continue,
            _ => json!({"metadata": kept(&object["metadata"]), "spec": object["spec"]}),
        };
        parts.insert(kind, kept);
    }
    let mut snapshot = Value::Object(parts);
    let places = ["default", "worker"].map(|name| {
        let meant = [cluster.node_name(name), cluster.namespace(name)];
        (meant, name)
    });
    for (meant, name) in places {
        uids.extend(
            meant
                .into_iter()
                .filter(|it| it != name)
                .map(|it| (it, name.to_owned())),
        );
    }
    mask(&mut snapshot, &uids);
    snapshot
}

fn kept(meta: &Value) -> Value {
    json!({
        "labels": meta["labels"], "annotations": meta["annotations"],
        "finalizers": meta["finalizers"], "owners": meta["ownerReferences"],
    })
}

fn ours(keys: &Value) -> Value {
    let all = keys.as_object().into_iter().flatten();
    let ours = all.filter(|(key, _)| key.contains(name::GROUP));
    Value::Object(
        ours.map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

/// Waits at most half an hour until the worker is reported in this state. With a fault, everything
/// takes longer.
async fn until(cluster: &Cluster, holds: impl Fn(&Value) -> bool) {
    let limit = cluster.deadline_in(SignedDuration::from_mins(30));
    cluster
        .wait_for(&machine_path("worker"), limit, holds)
        .await;
}

async fn until_phase(cluster: &Cluster, phase: &str) {
    until(cluster, |worker| worker["status"]["phase"] == phase).await;
}

/// Waits until nothing is left of the machine, and then until this is reported.
async fn until_gone(cluster: &Cluster) {
    let limit = cluster.deadline_in(SignedDuration::from_mins(30));
    for path in cluster.owned_paths("worker") {
        cluster.wait_until_gone(&path, limit).await;
    }
    cluster.wait_until_gone(&node_path("worker"), limit).await;
    cluster
        .advance_until(cluster.deadline_in(SignedDuration::from_mins(3)))
        .await;
}

/// Hours that end when the scenarios of a closing end.
const SHORT: &str = "9-17";

/// Hours that end long after any scenario.
const LONG: &str = "9-22";

fn worker(hours: &str) -> Value {
    let mut worker = scheduled_machine("worker");
    worker["spec"]["schedule"]["hoursOfDay"] = json!([hours]);
    worker["spec"]["nodeTaints"] =
        json!([{"key": "example.com/shift", "value": "day", "effect": "NoSchedule"}]);
    worker
}

/// Brings the worker up to Active, with a pod.
async fn bring_up(cluster: &Cluster, hours: &str) {
    cluster.bring_up(&worker(hours)).await;
    cluster.run_pod("only", "worker").await;
}

async fn in_service(cluster: &Cluster) {
    bring_up(cluster, LONG).await;
}

async fn in_service_until_its_closing(cluster: &Cluster) {
    bring_up(cluster, SHORT).await;
}

async fn of_an_opening() {
    let prepare = async |cluster: &Cluster| {
        cluster.apply(&worker("18-22")).await;
        until_phase(cluster, "Inactive").await;
    };
    with_every_fault("opening", prepare, async |cluster| {
        cluster.advance_to(CLOSING).await;
        until(cluster, |worker| {
            let status = &worker["status"];
            status["phase"] == "Active"
                && condition(status, "NodeTainted")["status"] == "True"
        })
        .await;
        cluster
            .advance_until(cluster.deadline_in(SignedDuration::from_mins(3)))
            .await;
    })
    .await;
}

async fn of_a_closing() {
    with_every_fault("closing", in_service_until_its_closing, async |cluster| {
        cluster.advance_to(CLOSING).await;
        until_phase(cluster, "Inactive").await;
        until_gone(cluster).await;
    })
    .await;
}

async fn of_a_closing_that_is_cancelled() {
    let prepare = async |cluster: &Cluster| {
        in_service_until_its_closing(cluster).await;
        cluster.hold_last_pod().await;
    };
    with_every_fault("cancelled closing", prepare, async |cluster| {
        cluster.advance_to(CLOSING).await;
        let limit = cluster.deadline_in(SignedDuration::from_mins(30));
        let is_cordoned = |node: &Value| node["spec"]["unschedulable"] == true;
        cluster
            .wait_for(&node_path("worker"), limit, is_cordoned)
            .await;
        let longer = json!({"spec": {"schedule": {"hoursOfDay": [LONG]}}});
        cluster.patch(&machine_path("worker"), &longer).await;
        let is_open = |node: &Value| node["spec"]["unschedulable"] != true;
        cluster.wait_for(&node_path("worker"), limit, is_open).await;
        until_phase(cluster, "Active").await;
        cluster
            .advance_until(cluster.deadline_in(SignedDuration::from_mins(3)))
            .await;
    })
    .await;
}

async fn of_the_kill_switch() {
    with_every_fault("kill switch", in_service, async |cluster| {
        let kill = json!({"spec": {"killSwitch": true}});
        cluster.patch(&machine_path("worker"), &kill).await;
        until_phase(cluster, "Terminated").await;
        until_gone(cluster).await;
    })
    .await;
}

async fn of_a_reclaim() {
    with_every_fault("reclaim", in_service, async |cluster| {
        let request = json!({"metadata": {"annotations": {
            name::RECLAIM_REQUESTED_ANNOTATION: reclaim::REQUESTED,
            name::RECLAIM_REASON_ANNOTATION: "process-match: steam",
        }}});
        cluster.patch(&node_path("worker"), &request).await;
        until_phase(cluster, "Disabled").await;
        until_gone(cluster).await;
    })
    .await;
}

async fn of_a_deletion() {
    with_every_fault("deletion", in_service, async |cluster| {
        cluster.delete(&machine_path("worker")).await;
        let limit = cluster.deadline_in(SignedDuration::from_mins(30));
        cluster
            .wait_until_gone(&machine_path("worker"), limit)
            .await;
        until_gone(cluster).await;
    })
    .await;
}

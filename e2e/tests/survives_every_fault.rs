//! Whatever single fault strikes between the operator and its servers, everything ends as it
//! would have ended without: every write of every scenario, with a crash before it and after it, a
//! conflict, an error and an answer that is lost; every watch dropped, delayed, and begun again
//! from an old version.

pub(crate) mod account;
mod striker;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use fivespot_api::{name, reclaim};
use fivespot_testkit::{
    BEFORE_CLOSING, Backend, CLOSING, Cluster, Mortal, condition, instant, machine_path,
    mask, node_path, scheduled_machine,
};
use futures::{FutureExt as _, StreamExt as _, stream};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::promise::{Promise, promise};
use account::Account;
use striker::{Fault, Strike, Striker, Target};

/// What is promised here.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(of_an_opening).on_request(VARIABLE),
    promise!(of_a_closing).on_request(VARIABLE),
    promise!(of_a_closing_that_is_cancelled).on_request(VARIABLE),
    promise!(of_the_kill_switch).on_request(VARIABLE),
    promise!(of_a_reclaim).on_request(VARIABLE),
    promise!(of_a_deletion).on_request(VARIABLE),
];

/// With this set to `all`, each write and each watch meets every fault; else one of them in turn.
/// On a real cluster nothing runs unless it is set: to `all`, or to `some`.
const VARIABLE: &str = "E2E_FAULTS";

/// What [`VARIABLE`] is set to for every fault.
const ALL: &str = "all";

/// What [`VARIABLE`] is set to, if it is.
fn asked_for() -> Option<String> {
    std::env::var(VARIABLE).ok()
}

/// How many faults of a scenario are injected at the same time.
const WAVE: usize = 8;

/// How many runs of all scenarios run on a shared cluster at the same time.
static TURNS: Semaphore = Semaphore::const_new(12);

/// How often a fault is injected at most until it strikes: a real Cluster API may report now in
/// one step, now in two, and the operator then writes once more or less.
const TRIES: usize = 3;

/// How many looks an end may take to be as it was without a fault.
const LOOKS: usize = 50;

/// The result of a run.
struct End {
    picture: Value,
    writes: Vec<String>,
    striker: Arc<Striker>,
}

impl End {
    /// How it differs from `other`; not at all, if that is none.
    fn difference(&self, other: &Self) -> Option<String> {
        if self.writes != other.writes {
            return Some(format!(
                "did {:?} instead of {:?}",
                self.writes, other.writes
            ));
        }
        let (ours, theirs) = (&self.picture, &other.picture);
        let parts = [ours, theirs].map(Value::as_object).into_iter().flatten();
        let mut parts = parts.flat_map(serde_json::Map::keys);
        let part = parts.find(|part| ours[part.as_str()] != theirs[part.as_str()])?;
        let (is, was) = (&ours[part.as_str()], &theirs[part.as_str()]);
        Some(format!("{part} is {is} instead of {was}"))
    }
}

/// A scenario: what comes before it, and what happens in it.
struct Scenario<P, S> {
    prepare: P,
    steps: S,
}

/// Runs a scenario undisturbed, and then with every fault; every run must end alike.
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
    let strikes = strikes(&undisturbed.striker);
    let (writes, watches) = {
        let passed = undisturbed.striker.passed();
        (passed.writes.values().sum(), passed.began.len())
    };
    assert!(writes > 0, "the operator had something to do");
    let mut account = Account::new(name, (writes, watches), &strikes);
    let mut ends = stream::iter(strikes)
        .map(async |strike| {
            let end = scenario.end_with(&strike, &undisturbed).await;
            (strike, end)
        })
        .buffer_unordered(WAVE);
    while let Some((strike, end)) = ends.next().await {
        account.note(&strike, end);
    }
    if let Err(wrong) = account.close(Backend::chosen() == Backend::Embedded) {
        panic!("{wrong}");
    }
}

/// One for each write and watch, in turn, or all of them.
fn strikes(undisturbed: &Striker) -> Vec<Strike> {
    let is_whole = asked_for().is_some_and(|text| text == ALL);
    let (writes, began, reported) = {
        let passed = undisturbed.passed();
        let began: Vec<String> = passed.began.keys().cloned().collect();
        (passed.writes.clone(), began, passed.reported.clone())
    };
    let writes = writes.into_iter().flat_map(|(kind, count)| {
        (0..count).map(move |number| Target::Write(kind.clone(), number))
    });
    let mut strikes = Vec::new();
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
                // A watch that nobody had before has no older version; one without events has
                // none to hold up.
                Target::Watch(watch) if *fault == Fault::Old => {
                    undisturbed.knows_older(watch)
                }
                Target::Watch(watch) => reported.contains(watch),
            };
            if is_possible && (is_whole || at % faults.len() == turn) {
                let (target, fault) = (target.clone(), *fault);
                strikes.push(Strike { target, fault });
            }
        }
    }
    strikes
}

impl<P: AsyncFn(&Cluster), S: AsyncFn(&Cluster)> Scenario<P, S> {
    /// Runs it with a fault. Says whether that has struck, or how it ended otherwise.
    async fn end_with(&self, strike: &Strike, like: &End) -> Result<bool, String> {
        for _ in 0..TRIES {
            let run = AssertUnwindSafe(self.run(Some(strike), Some(like)));
            let end = run.catch_unwind().await;
            let end = end.map_err(|panic| match panic.downcast_ref::<String>() {
                Some(words) => words.clone(),
                None => "it did not run to its end".to_owned(),
            })?;
            if let Some(difference) = end.difference(like) {
                return Err(difference);
            }
            if end.striker.passed().has_struck {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs it, and waits a while at its end for that to be like another, if one is given.
    async fn run(&self, strike: Option<&Strike>, like: Option<&End>) -> End {
        let _turn = TURNS.acquire().await;
        let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
        cluster.add_cluster().await;
        let node = cluster.node_name("worker");
        let first = Striker::new(None, BTreeMap::new(), node.clone());
        let healthy = cluster.operator_behind(first.clone(), |_| {});
        (self.prepare)(&cluster).await;
        cluster.settle().await;
        drop(healthy);
        let before = cluster.operator_writes().len();
        let old = first.passed().began.clone();
        let striker = Striker::new(strike.cloned(), old, node);
        let struck = cluster.operator_behind(striker.clone(), |_| {});
        let succession = async {
            struck.life().ended().await;
            // The heir is there first, so that time does not pass in between.
            let _heir: Mortal = cluster.operator_behind(striker.clone(), |_| {});
            drop(struck);
            std::future::pending::<Infallible>().await
        };
        let end = async {
            (self.steps)(&cluster).await;
            end(&cluster, (&striker, before), like).await
        };
        let end = tokio::select! {
            end = end => end,
            never = succession => match never {},
        };
        cluster.clear_away("worker").await;
        end
    }
}

/// How a run ends that has come to its last write.
async fn end(
    cluster: &Cluster,
    (striker, before): (&Arc<Striker>, usize),
    like: Option<&End>,
) -> End {
    let look = async || End {
        picture: picture(cluster).await,
        writes: writes(cluster, before),
        striker: striker.clone(),
    };
    let mut end = look().await;
    // The embedded server is known to have come to rest, a real Cluster API is not.
    if let (Some(like), Backend::Kubernetes) = (like, Backend::chosen()) {
        for _ in 0..LOOKS {
            if end.difference(like).is_none() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            cluster.settle().await;
            end = look().await;
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

/// What the operator is answerable for, without uids, versions and times.
async fn picture(cluster: &Cluster) -> Value {
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
    let mut picture = Value::Object(parts);
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
    mask(&mut picture, &uids);
    picture
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

/// Waits, for half an hour at most, until the worker is reported as so; with a fault, everything
/// takes longer.
async fn until(cluster: &Cluster, holds: impl Fn(&Value) -> bool) {
    let limit = cluster.within(SignedDuration::from_mins(30));
    cluster
        .wait_for(&machine_path("worker"), limit, holds)
        .await;
}

async fn until_phase(cluster: &Cluster, phase: &str) {
    until(cluster, |worker| worker["status"]["phase"] == phase).await;
}

/// Nothing is left of the machine, and everybody knows.
async fn until_gone(cluster: &Cluster) {
    let limit = cluster.within(SignedDuration::from_mins(30));
    for path in cluster.owned_paths("worker") {
        cluster.wait_until_gone(&path, limit).await;
    }
    cluster.wait_until_gone(&node_path("worker"), limit).await;
    cluster
        .pass_until(cluster.within(SignedDuration::from_mins(3)))
        .await;
}

/// The hours that end when the scenarios of a closing do.
const SHORT: &str = "9-17";

/// The hours that end long after any scenario has.
const LONG: &str = "9-22";

fn worker(hours: &str) -> Value {
    let mut worker = scheduled_machine("worker");
    worker["spec"]["schedule"]["hoursOfDay"] = json!([hours]);
    worker["spec"]["nodeTaints"] =
        json!([{"key": "example.com/shift", "value": "day", "effect": "NoSchedule"}]);
    worker
}

/// The worker is Active, and runs a pod.
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
        cluster.pass_to(CLOSING).await;
        until(cluster, |worker| {
            let status = &worker["status"];
            status["phase"] == "Active"
                && condition(status, "NodeTainted")["status"] == "True"
        })
        .await;
        cluster
            .pass_until(cluster.within(SignedDuration::from_mins(3)))
            .await;
    })
    .await;
}

async fn of_a_closing() {
    with_every_fault("closing", in_service_until_its_closing, async |cluster| {
        cluster.pass_to(CLOSING).await;
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
        cluster.pass_to(CLOSING).await;
        let limit = cluster.within(SignedDuration::from_mins(30));
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
            .pass_until(cluster.within(SignedDuration::from_mins(3)))
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
        let limit = cluster.within(SignedDuration::from_mins(30));
        cluster
            .wait_until_gone(&machine_path("worker"), limit)
            .await;
        until_gone(cluster).await;
    })
    .await;
}

//! Whatever single fault strikes between the operator and its servers, everything ends as it
//! would have ended without: every write of every story, with a crash before it and after it, a
//! conflict, an error and an answer that is lost; every watch dropped, delayed, and begun again
//! from an old version.

mod striker;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fivespot_api::{name, reclaim};
use fivespot_testkit::{
    BEFORE_CLOSING, Backend, CLOSING, Cluster, Mortal, condition, instant, machine_path,
    mask, node_path, scheduled_machine,
};
use futures::future::join_all;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::promise::{Promise, promise};
use striker::{Fault, Striker, Target};

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
/// On a real cluster nothing is played unless it is set: to `all`, or to `some`.
const VARIABLE: &str = "E2E_FAULTS";

/// How many faults are played at the same time.
const WAVE: usize = 8;

/// What a play came to.
struct End {
    picture: Value,
    deeds: Vec<String>,
    striker: Arc<Striker>,
}

/// Plays a story undisturbed, and then with every fault; every play must end alike.
async fn with_every_fault(
    prepare: impl AsyncFn(&Cluster),
    story: impl AsyncFn(&Cluster),
) {
    let undisturbed = play(None, &prepare, &story).await;
    let (writes, watches) = {
        let passed = undisturbed.striker.passed();
        (passed.writes, passed.told.clone())
    };
    assert!(writes > 0, "the operator had something to do");
    let old = &undisturbed.striker.old;
    let mut strikes = strikes(writes, watches);
    // A watch that nobody had before has no older version.
    strikes.retain(|(target, fault)| match target {
        Target::Watch(watch) => *fault != Fault::Old || old.contains_key(watch),
        Target::Write(_) => true,
    });
    for wave in strikes.chunks(WAVE) {
        let plays = wave.iter().map(async |strike| {
            let end = play(Some(strike.clone()), &prepare, &story).await;
            let was_struck = end.striker.passed().has_struck;
            let is_exact = Backend::chosen() == Backend::Embedded;
            assert!(was_struck || !is_exact, "{strike:?} has struck");
            assert_eq!(end.deeds, undisturbed.deeds, "{strike:?}");
            for (part, then) in undisturbed.picture.as_object().into_iter().flatten() {
                assert_eq!(end.picture[part], *then, "{part} after {strike:?}");
            }
        });
        join_all(plays).await;
    }
}

/// One for each write and watch, in turn, or all of them.
fn strikes(writes: usize, watches: BTreeSet<String>) -> Vec<(Target, Fault)> {
    let is_whole = std::env::var(VARIABLE).is_ok_and(|text| text == "all");
    let targets = (0..writes)
        .map(Target::Write)
        .chain(watches.into_iter().map(Target::Watch));
    let mut strikes = Vec::new();
    for (at, target) in targets.enumerate() {
        let faults = match target {
            Target::Write(_) => Fault::OF_WRITES.as_slice(),
            Target::Watch(_) => Fault::OF_WATCHES.as_slice(),
        };
        for (turn, fault) in faults.iter().enumerate() {
            if is_whole || at % faults.len() == turn {
                strikes.push((target.clone(), *fault));
            }
        }
    }
    strikes
}

async fn play(
    strike: Option<(Target, Fault)>,
    prepare: &impl AsyncFn(&Cluster),
    story: &impl AsyncFn(&Cluster),
) -> End {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    cluster.add_cluster().await;
    let first = Striker::new(None, BTreeMap::new());
    let healthy = cluster.operator_behind(first.clone(), |_| {});
    prepare(&cluster).await;
    cluster.settle().await;
    drop(healthy);
    let before = cluster.operator_writes().len();
    let old = first.passed().began.clone();
    let striker = Striker::new(strike, old);
    let struck = cluster.operator_behind(striker.clone(), |_| {});
    let succession = async {
        struck.life().ended().await;
        // The heir is there first, so that time does not pass in between.
        let _heir: Mortal = cluster.operator_behind(striker.clone(), |_| {});
        drop(struck);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = story(&cluster) => {}
        () = succession => {}
    }
    End {
        picture: picture(&cluster).await,
        deeds: deeds(&cluster, before),
        striker,
    }
}

/// Accepted creations, deletions and evictions since the `before`-th write.
fn deeds(cluster: &Cluster, before: usize) -> Vec<String> {
    let writes = cluster.operator_writes();
    let accepted = writes[before..]
        .iter()
        .filter(|event| event.verb != "patch" && event.code < 300)
        .map(|event| format!("{} {} {}", event.verb, event.resource, event.subresource));
    let mut deeds: Vec<String> = accepted.collect();
    deeds.sort();
    deeds
}

/// What the operator is answerable for, without uids, versions and times.
async fn picture(cluster: &Cluster) -> Value {
    let mut parts = serde_json::Map::new();
    let mut uids = Vec::new();
    let triple = cluster.triple("worker");
    let paths = [machine_path("worker")].into_iter().chain(triple);
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

/// Waits, for half an hour at most, until the worker is told to be so; with a fault, everything
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
    for path in cluster.triple("worker") {
        cluster.wait_until_gone(&path, limit).await;
    }
    cluster.wait_until_gone(&node_path("worker"), limit).await;
    cluster
        .pass_until(cluster.within(SignedDuration::from_mins(3)))
        .await;
}

/// The hours that end when the stories of a closing do.
const SHORT: &str = "9-17";

/// The hours that end long after any story has.
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
    with_every_fault(prepare, async |cluster| {
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
    with_every_fault(in_service_until_its_closing, async |cluster| {
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
    with_every_fault(prepare, async |cluster| {
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
    with_every_fault(in_service, async |cluster| {
        let kill = json!({"spec": {"killSwitch": true}});
        cluster.patch(&machine_path("worker"), &kill).await;
        until_phase(cluster, "Terminated").await;
        until_gone(cluster).await;
    })
    .await;
}

async fn of_a_reclaim() {
    with_every_fault(in_service, async |cluster| {
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
    with_every_fault(in_service, async |cluster| {
        cluster.delete(&machine_path("worker")).await;
        let limit = cluster.within(SignedDuration::from_mins(30));
        cluster
            .wait_until_gone(&machine_path("worker"), limit)
            .await;
        until_gone(cluster).await;
    })
    .await;
}

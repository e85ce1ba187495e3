//! Whatever single fault strikes between the operator and its servers, everything ends as it
//! would have ended without: every write of every story, with a crash before it and after it, a
//! conflict, an error and an answer that is lost; every watch dropped, delayed, and begun again
//! from an old version.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::{name, reclaim};
use fivespot_testkit::{
    Asked, BEFORE_CLOSING, Backend, CLOSING, Cluster, Delivery, Fate, Mortal, Opening,
    Proxy, instant, machine_path, node_path, scheduled_machine,
};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// What is promised here.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(of_a_closing_that_is_cancelled).on_request(VARIABLE),
    promise!(of_the_kill_switch).on_request(VARIABLE),
    promise!(of_a_reclaim).on_request(VARIABLE),
];

/// With this set to `all`, each write and each watch meets every fault; else one of them in turn.
/// On a real cluster nothing is played unless it is set: to `all`, or to `some`.
const VARIABLE: &str = "E2E_FAULTS";

/// How many faults are played at the same time.
const WAVE: usize = 8;

/// What becomes of a write or a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    CrashBefore,
    CrashAfter,
    Conflict,
    Error,
    Lost,
    Dropped,
    Delayed,
    Old,
}

impl Fault {
    const OF_WRITES: [Self; 5] = [
        Self::CrashBefore,
        Self::CrashAfter,
        Self::Conflict,
        Self::Error,
        Self::Lost,
    ];
    const OF_WATCHES: [Self; 3] = [Self::Dropped, Self::Delayed, Self::Old];
}

/// What a fault strikes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// The write of that number, from 0.
    Write(usize),
    /// The first event of that watch.
    Watch(String),
}

/// Strikes one fault, and remembers what passes.
struct Striker {
    strike: Option<(Target, Fault)>,
    /// The versions that an earlier operator's watches began from.
    old: BTreeMap<String, String>,
    passed: Mutex<Passed>,
}

#[derive(Debug, Default)]
struct Passed {
    writes: usize,
    /// The versions that watches began from.
    began: BTreeMap<String, String>,
    /// The watches that have delivered something.
    told: BTreeSet<String>,
    has_struck: bool,
}

/// For how long a watch is delayed: longer than a host takes to come up.
const DELAY: SignedDuration = SignedDuration::from_secs(40);

impl Striker {
    fn new(strike: Option<(Target, Fault)>, old: BTreeMap<String, String>) -> Arc<Self> {
        Arc::new(Self {
            strike,
            old,
            passed: Mutex::default(),
        })
    }

    fn passed(&self) -> MutexGuard<'_, Passed> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fate(&self, asked: &Asked) -> Fate {
        if !asked.event.is_write() || asked.event.resource == "events" {
            return Fate::Pass;
        }
        let mut passed = self.passed();
        let number = passed.writes;
        passed.writes += 1;
        match &self.strike {
            Some((Target::Write(struck), fault)) if *struck == number => {
                passed.has_struck = true;
                match fault {
                    Fault::CrashBefore => Fate::CrashBefore,
                    Fault::CrashAfter => Fate::CrashAfter,
                    Fault::Conflict => Fate::Refuse(409, None),
                    Fault::Error => Fate::Refuse(500, None),
                    _ => Fate::Lose,
                }
            }
            _ => Fate::Pass,
        }
    }
}

/// A watch, whatever the names in the cluster.
fn watch(asked: &Asked) -> String {
    let selector = asked
        .query
        .split('&')
        .find_map(|word| word.strip_prefix("fieldSelector="));
    let field = selector.and_then(|text| text.split(['=', '%']).next());
    format!("{} {}", asked.event.resource, field.unwrap_or_default())
}

impl Proxy for Striker {
    fn request<'a>(
        &'a self,
        asked: &'a Asked,
    ) -> Pin<Box<dyn Future<Output = Fate> + Send + 'a>> {
        Box::pin(std::future::ready(self.fate(asked)))
    }

    fn opening(&self, asked: &Asked) -> Opening {
        let key = watch(asked);
        let version = asked
            .query
            .split('&')
            .find_map(|word| word.strip_prefix("resourceVersion="));
        let mut passed = self.passed();
        if let Some(version) = version {
            let began = passed.began.entry(key.clone());
            began.or_insert_with(|| version.to_owned());
        }
        let is_struck = self.strike == Some((Target::Watch(key.clone()), Fault::Old));
        match self.old.get(&key) {
            Some(old) if is_struck && !passed.has_struck => {
                passed.has_struck = true;
                Opening::From(old.clone())
            }
            _ => Opening::Pass,
        }
    }

    fn event(&self, asked: &Asked, _: &[u8]) -> Delivery {
        let key = watch(asked);
        let mut passed = self.passed();
        passed.told.insert(key.clone());
        let fault = match &self.strike {
            Some((Target::Watch(struck), fault)) if *struck == key => *fault,
            _ => return Delivery::Pass,
        };
        if passed.has_struck {
            return Delivery::Pass;
        }
        match fault {
            Fault::Dropped => {
                passed.has_struck = true;
                Delivery::End
            }
            Fault::Delayed => {
                passed.has_struck = true;
                Delivery::Late(DELAY)
            }
            _ => Delivery::Pass,
        }
    }
}

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

fn mask(value: &mut Value, uids: &[(String, String)]) {
    match value {
        Value::String(text) => {
            for (uid, name) in uids {
                *text = text.replace(uid, name);
            }
            let words = text.split(' ').map(|word| {
                let is_time = word.parse::<Timestamp>().is_ok();
                if is_time { "<time>" } else { word }
            });
            *text = words.collect::<Vec<_>>().join(" ");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, uids)),
        Value::Object(members) => {
            members.values_mut().for_each(|member| mask(member, uids));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
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

/// Open for an hour longer than the stories last.
fn worker() -> Value {
    let mut worker = scheduled_machine("worker");
    worker["spec"]["nodeTaints"] =
        json!([{"key": "example.com/shift", "value": "day", "effect": "NoSchedule"}]);
    worker
}

/// The worker is Active, and runs a pod.
async fn bring_up(cluster: &Cluster) {
    cluster.bring_up(&worker()).await;
    cluster.run_pod("only", "worker").await;
}

async fn of_a_closing_that_is_cancelled() {
    let prepare = async |cluster: &Cluster| {
        bring_up(cluster).await;
        cluster.hold_last_pod().await;
    };
    with_every_fault(prepare, async |cluster| {
        cluster.pass_to(CLOSING).await;
        let limit = cluster.within(SignedDuration::from_mins(30));
        let is_cordoned = |node: &Value| node["spec"]["unschedulable"] == true;
        cluster
            .wait_for(&node_path("worker"), limit, is_cordoned)
            .await;
        let longer = json!({"spec": {"schedule": {"hoursOfDay": ["9-18"]}}});
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
    with_every_fault(bring_up, async |cluster| {
        let kill = json!({"spec": {"killSwitch": true}});
        cluster.patch(&machine_path("worker"), &kill).await;
        until_phase(cluster, "Terminated").await;
        until_gone(cluster).await;
    })
    .await;
}

async fn of_a_reclaim() {
    with_every_fault(bring_up, async |cluster| {
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

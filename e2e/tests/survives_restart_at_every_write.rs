//! An operator that crashes after any of its writes and is started again reaches the same state as
//! without a crash: nothing is duplicated, nothing is orphaned.

use fivespot_testkit::{
    Cluster, instant, machine_path, mask, pod, pod_path, scheduled_machine,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// Why these do not run on a real cluster.
const DAYS: &str = "runs a day per write and compares all objects at equal instants";

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(while_a_window_opens).on_embedded_alone(DAYS),
    promise!(while_a_window_closes).on_embedded_alone(DAYS),
    promise!(while_a_closing_is_cancelled).on_embedded_alone(DAYS),
    promise!(while_a_machine_is_deleted).on_embedded_alone(DAYS),
    promise!(while_the_kill_switch_takes_a_machine_out).on_embedded_alone(DAYS),
];

const PODS: &str = "/api/v1/namespaces/default/pods";

/// The day of a scenario's run.
#[derive(Clone, Copy)]
struct Day(Timestamp);

impl Day {
    /// A time of the day in UTC, such as `22:00`. The window is open from 13:00 to 22:00.
    fn at(self, time: &str) -> Timestamp {
        let (hours, minutes) = time.split_once(':').unwrap();
        let minutes =
            hours.parse::<i64>().unwrap() * 60 + minutes.parse::<i64>().unwrap();
        self.0 + SignedDuration::from_mins(minutes)
    }

    fn next(self) -> Self {
        Self(self.0 + SignedDuration::from_hours(24))
    }
}

/// The result of a run.
struct RunResult {
    /// All objects, without values that differ from run to run.
    cluster_objects: Vec<Value>,
    /// The operator's creations, deletions and evictions.
    actions: Vec<String>,
    /// Whether the observed operator sent so many writes.
    has_crashed: bool,
}

/// Runs a scenario without a crash and then with a crash after each write. Every run has its own
/// day and must have the same end. `prepare` runs with a healthy operator.
async fn with_every_crash(
    prepare: impl AsyncFn(&Cluster, Day),
    scenario: impl AsyncFn(&Cluster, Day),
) {
    let mut day = Day(instant("2026-03-09T00:00:00Z"));
    let cluster = Cluster::start(day.0).await;
    cluster.add_cluster().await;
    let undisturbed = run(
        &cluster,
        day,
        &prepare,
        async |day| scenario(&cluster, day).await,
        0,
    )
    .await;
    for limit in 1.. {
        day = day.next();
        cluster.advance_until(day.0).await;
        let crashed = run(
            &cluster,
            day,
            &prepare,
            async |day| scenario(&cluster, day).await,
            limit,
        )
        .await;
        assert_eq!(crashed.actions, undisturbed.actions, "crash after {limit}");
        for (crashed, undisturbed) in crashed
            .cluster_objects
            .iter()
            .zip(&undisturbed.cluster_objects)
        {
            assert_eq!(crashed, undisturbed, "crash after {limit}");
        }
        assert_eq!(
            crashed.cluster_objects.len(),
            undisturbed.cluster_objects.len()
        );
        assert!(crashed.has_crashed || limit > 1, "the operator must write");
        if !crashed.has_crashed {
            return;
        }
    }
}

async fn run(
    cluster: &Cluster,
    day: Day,
    prepare: &impl AsyncFn(&Cluster, Day),
    scenario: impl AsyncFn(Day),
    limit: usize,
) -> RunResult {
    let healthy = cluster.operator();
    prepare(cluster, day).await;
    drop(healthy);
    let before = cluster.operator_writes().len();
    let crashing = cluster.operator_crashing_after(limit);
    let crash_switch = crashing.crash_switch().clone();
    let after_the_crash = async {
        crash_switch.crashed().await;
        // The new operator starts before the old one is dropped, so that time does not pass in
        // between.
        let _heir = cluster.operator();
        drop(crashing);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = scenario(day) => {}
        () = after_the_crash => {}
    }
    let end = RunResult {
        cluster_objects: cluster_objects(cluster).await,
        actions: actions(cluster, before),
        has_crashed: crash_switch.is_crashed(),
    };
    let _sweeper = cluster.operator();
    delete_everything(cluster, day).await;
    end
}

/// Accepted creations, deletions and evictions since the `before`-th write.
fn actions(cluster: &Cluster, before: usize) -> Vec<String> {
    let mut actions: Vec<String> = cluster.operator_writes()[before..]
        .iter()
        .filter(|event| event.verb != "patch" && event.code < 300)
        .map(|event| {
            let parts = [&event.resource, &event.subresource, &event.name];
            format!("{} {parts:?}", event.verb)
        })
        .collect();
    actions.sort();
    actions
}

/// Removes everything before the next day.
async fn delete_everything(cluster: &Cluster, day: Day) {
    let limit = day.at("23:30");
    let worker = machine_path("worker");
    if cluster.get(&worker).await.is_some() {
        cluster.delete(&worker).await;
    }
    cluster.wait_until_gone(&worker, limit).await;
    // A deleted pod may be replaced.
    while let Some(pod) = cluster.list(PODS).await.first() {
        let path = pod_path(pod["metadata"]["name"].as_str().unwrap());
        if pod["metadata"].get("deletionTimestamp").is_none() {
            cluster.delete(&path).await;
        }
        cluster.wait_until_gone(&path, limit).await;
    }
}

/// All objects, without uids, versions and times.
async fn cluster_objects(cluster: &Cluster) -> Vec<Value> {
    let mut objects = Vec::new();
    for path in [machine_path("")]
        .into_iter()
        .chain(cluster.owned_paths(""))
        .chain(["/api/v1/nodes", PODS].map(str::to_owned))
    {
        objects.extend(cluster.list(path.trim_end_matches('/')).await);
    }
    let names: Vec<(String, String)> = objects
        .iter()
        .map(|object| {
            let meta = &object["metadata"];
            let name = format!("<uid of {} {}>", object["kind"], meta["name"]);
            (meta["uid"].as_str().unwrap().to_owned(), name)
        })
        .collect();
    for object in &mut objects {
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("managedFields");
        object["metadata"]["resourceVersion"] = Value::Null;
        mask(object, &names);
    }
    objects
}

fn worker() -> Value {
    let mut worker = scheduled_machine("worker");
    worker["spec"]["schedule"]["daysOfWeek"] = json!(["mon-sun"]);
    worker
}

/// Brings the worker up to Active with `pods`, each of which is replaced a minute after its
/// eviction.
async fn bring_up(cluster: &Cluster, day: Day, pods: &[&str]) {
    cluster.advance_until(day.at("21:50")).await;
    cluster.bring_up(&worker()).await;
    for name in pods {
        let mut pod = pod(name, "shop", "worker");
        pod["metadata"]["annotations"] =
            json!({"sim.5spot.finos.org/replace-after": "60s"});
        cluster.apply(&pod).await;
    }
    cluster.hold_last_pod().await;
    cluster.advance_until(day.at("21:55")).await;
}

async fn while_a_window_opens() {
    let nothing = async |_: &Cluster, _: Day| {};
    with_every_crash(nothing, async |cluster, day| {
        cluster.advance_until(day.at("12:59")).await;
        cluster.apply(&worker()).await;
        cluster.advance_until(day.at("13:05")).await;
        assert_eq!(cluster.status("worker").await["phase"], "Active");
    })
    .await;
}

async fn while_a_window_closes() {
    let prepare = async |cluster: &Cluster, day| {
        bring_up(cluster, day, &["first", "second"]).await;
    };
    with_every_crash(prepare, async |cluster, day| {
        cluster.advance_until(day.at("22:10")).await;
        assert_eq!(cluster.status("worker").await["phase"], "Inactive");
    })
    .await;
}

async fn while_a_closing_is_cancelled() {
    let prepare = async |cluster: &Cluster, day| bring_up(cluster, day, &["only"]).await;
    with_every_crash(prepare, async |cluster, day| {
        cluster.advance_until(day.at("22:01")).await;
        assert_eq!(cluster.status("worker").await["phase"], "ShuttingDown");
        let longer = json!({"spec": {"schedule": {"hoursOfDay": ["9-18"]}}});
        cluster.patch(&machine_path("worker"), &longer).await;
        cluster.advance_until(day.at("22:10")).await;
        assert_eq!(cluster.status("worker").await["phase"], "Active");
    })
    .await;
}

async fn while_a_machine_is_deleted() {
    let prepare = async |cluster: &Cluster, day| {
        bring_up(cluster, day, &["first", "second"]).await;
    };
    with_every_crash(prepare, async |cluster, day| {
        cluster.delete(&machine_path("worker")).await;
        cluster.advance_until(day.at("22:10")).await;
        assert_eq!(cluster.get(&machine_path("worker")).await, None);
    })
    .await;
}

async fn while_the_kill_switch_takes_a_machine_out() {
    let prepare = async |cluster: &Cluster, day| bring_up(cluster, day, &["only"]).await;
    with_every_crash(prepare, async |cluster, day| {
        let kill = json!({"spec": {"killSwitch": true}});
        cluster.patch(&machine_path("worker"), &kill).await;
        cluster.advance_until(day.at("21:59")).await;
        assert_eq!(cluster.status("worker").await["phase"], "Terminated");
    })
    .await;
}

//! A class limits what the machines of one namespace may use together.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use fivespot_testkit::{
    Cluster, condition, instant, machine_path, path_of, scheduled_machine,
};
use serde_json::{Value, json};

use crate::classes;
use crate::promise::{Promise, promise};
use crate::shares_hosts_of_a_class::{hosts_of, ready};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(of_more_machines_than_the_class_allows_the_rest_waits_for_its_turn),
    promise!(an_edit_of_the_limits_stops_nothing_and_lets_the_next_one_begin),
    promise!(a_window_for_which_the_hours_of_the_week_do_not_suffice_opens_later),
    promise!(two_replicas_keep_to_the_limits_of_a_class)
        .on_embedded_alone("runs two replicas with the same clock"),
    promise!(machines_of_a_class_with_a_jitter_begin_one_after_the_other),
    promise!(an_override_that_is_longer_than_the_class_allows_is_ignored)
        .on_embedded_alone("measures from the creation, by the operator's clock"),
];

/// A Friday, an hour after the opening and eight before the closing.
const WINDOW: &str = "2026-03-06T15:00:00Z";

/// More hosts than any limit here, so that each machine has an address of its own.
const HOSTS: [&str; 6] = ["host-1", "host-2", "host-3", "host-4", "host-5", "host-6"];

/// The class of the test, with these limits.
fn class(cluster: &Cluster, limits: &Value) -> Value {
    let mut class = classes::class(cluster);
    class["spec"]["hosts"] = hosts_of(&HOSTS);
    class["spec"]["limits"] = limits.clone();
    class["spec"]["timezone"] = json!("America/New_York");
    class
}

/// A machine of that class.
fn machine_of(cluster: &Cluster, own: &str, priority: u8) -> Value {
    let mut machine = scheduled_machine(own);
    machine["spec"] = json!({
        "schedule": machine["spec"]["schedule"],
        "classRef": {"name": classes::name(cluster)},
        "priority": priority,
    });
    machine
}

async fn set_limits(cluster: &Cluster, limits: &Value) {
    let edit = json!({"spec": {"limits": limits}});
    let path = path_of(&class(cluster, limits));
    cluster.patch(&path, &edit).await;
}

async fn of_more_machines_than_the_class_allows_the_rest_waits_for_its_turn() {
    let cluster = Cluster::start(instant("2026-03-06T13:59:00Z")).await;
    cluster.add_cluster().await;
    let limits = json!({"machinesPerNamespace": 1});
    cluster.apply(&class(&cluster, &limits)).await;
    for (own, priority) in [("low", 1), ("middle", 50), ("high", 200)] {
        cluster.apply(&machine_of(&cluster, own, priority)).await;
    }
    let operator = cluster.operator();
    cluster.advance_to("2026-03-06T14:05:00Z").await;
    ready(&cluster, "high", "MachineRunning").await;
    for waiting in ["middle", "low"] {
        let status = ready(&cluster, waiting, "LimitReached").await;
        assert_eq!(status["phase"], "Pending");
        assert_eq!(condition(&status, "Ready")["status"], "False");
        let [_, _, machine] = cluster.owned_paths(waiting);
        assert!(cluster.get(&machine).await.is_none());
    }
    let status = cluster.status("middle").await;
    let message = status["message"].as_str().unwrap();
    assert!(
        message.ends_with("from 2026-03-06T23:00:00Z on"),
        "{message}"
    );
    // Another operator decides the same.
    drop(operator);
    let _operator = cluster.operator();
    cluster.settle().await;
    ready(&cluster, "middle", "LimitReached").await;
    ready(&cluster, "low", "LimitReached").await;
    for (leaving, next) in [("high", "middle"), ("middle", "low")] {
        cluster.delete(&machine_path(leaving)).await;
        ready(&cluster, next, "MachineRunning").await;
    }
}

async fn an_edit_of_the_limits_stops_nothing_and_lets_the_next_one_begin() {
    let cluster = Cluster::start(instant(WINDOW)).await;
    let _operator = cluster.operator();
    let none = json!({"machinesPerNamespace": 5});
    cluster.apply(&class(&cluster, &none)).await;
    cluster.bring_up(&machine_of(&cluster, "worker", 50)).await;
    set_limits(&cluster, &json!({"machinesPerNamespace": 0})).await;
    cluster.apply(&machine_of(&cluster, "other", 50)).await;
    ready(&cluster, "other", "LimitReached").await;
    cluster.settle().await;
    ready(&cluster, "worker", "MachineRunning").await;
    set_limits(&cluster, &json!({"machinesPerNamespace": 2})).await;
    ready(&cluster, "other", "MachineRunning").await;
    let stop = json!({"spec": {"killSwitch": true}});
    set_limits(&cluster, &json!({"machinesPerNamespace": 0})).await;
    cluster.patch(&machine_path("worker"), &stop).await;
    ready(&cluster, "worker", "Terminated").await;
}

async fn a_window_for_which_the_hours_of_the_week_do_not_suffice_opens_later() {
    let cluster = Cluster::start(instant(WINDOW)).await;
    let _operator = cluster.operator();
    let limits = json!({"hoursPerWeekPerNamespace": 10});
    cluster.apply(&class(&cluster, &limits)).await;
    cluster.bring_up(&machine_of(&cluster, "worker", 50)).await;
    cluster.apply(&machine_of(&cluster, "other", 200)).await;
    let status = ready(&cluster, "other", "LimitReached").await;
    let message = status["message"].as_str().unwrap();
    // The first one has begun at 15:00 and is needed until 23:00.
    let two_hours_before = ["T20:59", "T21:00"];
    let is_said = two_hours_before.iter().any(|it| message.contains(it));
    assert!(is_said, "{message}");
    let limit = instant("2026-03-06T21:10:00Z");
    let runs = |object: &Value| object["status"]["phase"] == "Active";
    cluster.wait_for(&machine_path("other"), limit, runs).await;
    cluster.advance_to("2026-03-07T01:00:00Z").await;
    for machine in ["worker", "other"] {
        ready(&cluster, machine, "Inactive").await;
    }
    let used = |status: Value| status["weeklyUse"]["seconds"].as_i64().unwrap();
    let sum = used(cluster.status("worker").await) + used(cluster.status("other").await);
    assert!((35_700..=36_000).contains(&sum), "{sum} s of 10 h");
    // A new week: nine hours of one, and not of the other.
    cluster.advance_to("2026-03-09T13:05:00Z").await;
    ready(&cluster, "other", "MachineRunning").await;
    ready(&cluster, "worker", "LimitReached").await;
}

async fn two_replicas_keep_to_the_limits_of_a_class() {
    let cluster = Cluster::start(instant("2026-03-06T13:59:00Z")).await;
    cluster.add_cluster().await;
    let limits = json!({"machinesPerNamespace": 3});
    cluster.apply(&class(&cluster, &limits)).await;
    let machines = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for machine in machines {
        cluster.apply(&machine_of(&cluster, machine, 50)).await;
    }
    let count = NonZeroU32::new(2).unwrap();
    let _replicas = ["shard-a", "shard-b"].map(|name| cluster.shard(name, count));
    cluster.advance_to("2026-03-06T14:02:30Z").await;
    let mut running = Vec::new();
    for machine in machines {
        let [_, _, path] = cluster.owned_paths(machine);
        if cluster.get(&path).await.is_some() {
            running.push(machine);
        }
    }
    assert_eq!(running, ["a", "b", "c"]);
}

async fn machines_of_a_class_with_a_jitter_begin_one_after_the_other() {
    let cluster = Cluster::start(instant("2026-03-06T13:59:00Z")).await;
    cluster.add_cluster().await;
    let mut class = class(&cluster, &json!({}));
    class["spec"]["jitter"] = json!("30m");
    cluster.apply(&class).await;
    let machines = ["a", "b", "c", "d", "e", "f"];
    for machine in machines {
        cluster.apply(&machine_of(&cluster, machine, 50)).await;
    }
    let _operator = cluster.operator();
    cluster.advance_to("2026-03-06T14:31:00Z").await;
    let mut begun = BTreeSet::new();
    for machine in machines {
        let status = ready(&cluster, machine, "MachineRunning").await;
        let time = status["lastScheduledTime"].as_str().unwrap();
        assert!(time >= "2026-03-06T14:00:00Z", "{time}");
        begun.insert(time.to_owned());
    }
    assert!(begun.len() > 3, "{begun:?}");
}

async fn an_override_that_is_longer_than_the_class_allows_is_ignored() {
    let cluster = Cluster::start(instant("2026-03-07T15:00:00Z")).await;
    let _operator = cluster.operator();
    let limits = json!({"maxOverride": "2h"});
    cluster.apply(&class(&cluster, &limits)).await;
    cluster.add_cluster().await;
    cluster.apply(&machine_of(&cluster, "worker", 50)).await;
    ready(&cluster, "worker", "Inactive").await;
    let run = |own: &str, until: &str| {
        json!({
            "apiVersion": "5spot.finos.org/v1alpha1",
            "kind": "ScheduleOverride",
            "metadata": {"name": own, "namespace": "default"},
            "spec": {"targetRef": {"name": "worker"}, "mode": "Run", "endTime": until},
        })
    };
    let long = run("long", "2026-03-07T18:00:00Z");
    cluster.apply(&long).await;
    let is_ignored = |object: &Value| {
        let found = condition(&object["status"], "Ignored");
        found["status"] == "True" && found["reason"] == "LongerThanClassAllows"
    };
    cluster.wait_briefly(&path_of(&long), is_ignored).await;
    cluster.settle().await;
    ready(&cluster, "worker", "Inactive").await;
    cluster.apply(&run("short", "2026-03-07T16:30:00Z")).await;
    ready(&cluster, "worker", "MachineRunning").await;
    set_limits(&cluster, &json!({"maxOverride": "3h"})).await;
    let applies =
        |object: &Value| condition(&object["status"], "Ignored")["status"] == "False";
    cluster.wait_briefly(&path_of(&long), applies).await;
}

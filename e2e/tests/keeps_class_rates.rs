//! A class says how many of its machines begin and leave within a minute, and how many stay active.

use std::num::NonZeroU32;

use fivespot_testkit::{
    BEFORE_CLOSING, Cluster, condition, instant, machine_path, path_of, scheduled_machine,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::classes;
use crate::promise::{Promise, promise};
use crate::shares_hosts_of_a_class::{hosts_of, ready};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(machines_of_a_class_begin_by_its_rate_the_highest_priority_first),
    promise!(machines_of_a_class_leave_by_its_rate_the_lowest_priority_first),
    promise!(
        as_many_machines_as_the_class_says_stay_active_and_a_kill_switch_is_not_held
    ),
    promise!(two_replicas_keep_to_the_rate_of_a_class)
        .on_embedded_alone("runs two replicas with the same clock"),
];

/// A minute before the opening.
const BEFORE: &str = "2026-03-06T13:59:00Z";

/// As many hosts as machines here, so that each has an address of its own.
const HOSTS: [&str; 6] = ["host-1", "host-2", "host-3", "host-4", "host-5", "host-6"];

/// Machines, with their priorities.
const MACHINES: [(&str, u8); 4] =
    [("low", 1), ("middle", 50), ("high", 200), ("top", 250)];

/// The class of the test, with these rates.
fn class(cluster: &Cluster, rates: &Value) -> Value {
    let mut class = classes::class(cluster);
    class["spec"]["hosts"] = hosts_of(&HOSTS);
    for (field, value) in rates.as_object().unwrap() {
        class["spec"][field] = value.clone();
    }
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

/// An instant in the status.
fn time(status: &Value, field: &str) -> Timestamp {
    status[field].as_str().unwrap().parse().unwrap()
}

/// Asserts that never more of these than `most` are within a minute.
fn assert_spread(times: &[Timestamp], most: usize) {
    let minute = SignedDuration::from_mins(1);
    for from in times {
        let is_near = |at: &&Timestamp| *at >= from && at.duration_since(*from) < minute;
        let count = times.iter().filter(is_near).count();
        assert!(count <= most, "{count} within a minute: {times:?}");
    }
}

async fn machines_of_a_class_begin_by_its_rate_the_highest_priority_first() {
    let cluster = Cluster::start(instant(BEFORE)).await;
    cluster.add_cluster().await;
    let rates = json!({"startsPerMinute": 2});
    cluster.apply(&class(&cluster, &rates)).await;
    for (own, priority) in MACHINES {
        cluster.apply(&machine_of(&cluster, own, priority)).await;
    }
    let operator = cluster.operator();
    cluster.advance_to("2026-03-06T14:00:30Z").await;
    for waiting in ["low", "middle"] {
        let status = ready(&cluster, waiting, "LimitReached").await;
        assert_eq!(status["phase"], "Pending");
        let message = status["message"].as_str().unwrap();
        assert!(
            message.contains("may be made from 2026-03-06T14:01:"),
            "{message}"
        );
    }
    // Another operator decides the same.
    drop(operator);
    let _operator = cluster.operator();
    cluster.advance_to("2026-03-06T14:05:00Z").await;
    let mut times = Vec::new();
    for (own, _) in MACHINES {
        let status = ready(&cluster, own, "MachineRunning").await;
        times.push(time(&status, "lastScheduledTime"));
    }
    assert_spread(&times, 2);
    let [low, middle, high, top] = times[..] else {
        panic!("four machines");
    };
    assert!(low.max(middle) > high.max(top), "{times:?}");
    assert!(low.min(middle) > high.max(top), "{times:?}");
}

async fn machines_of_a_class_leave_by_its_rate_the_lowest_priority_first() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let rates = json!({"stopsPerMinute": 1});
    cluster.apply(&class(&cluster, &rates)).await;
    for (own, priority) in &MACHINES[..3] {
        cluster
            .bring_up(&machine_of(&cluster, own, *priority))
            .await;
    }
    cluster.advance_to("2026-03-06T23:00:30Z").await;
    let status = cluster.status("high").await;
    assert_eq!(status["phase"], "Active");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.contains("; leaves from 2026-03-06T23:0"),
        "{message}"
    );
    cluster.advance_to("2026-03-06T23:12:00Z").await;
    let mut times = Vec::new();
    for (own, _) in &MACHINES[..3] {
        let status = ready(&cluster, own, "Inactive").await;
        times.push(time(&status, "lastShutdownTime"));
    }
    assert_spread(&times, 1);
    assert!(times.is_sorted(), "{times:?}");
}

async fn as_many_machines_as_the_class_says_stay_active_and_a_kill_switch_is_not_held() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let rates = json!({"minimumActive": 2});
    let class = class(&cluster, &rates);
    cluster.apply(&class).await;
    for (own, priority) in &MACHINES[..3] {
        cluster
            .bring_up(&machine_of(&cluster, own, *priority))
            .await;
    }
    cluster.advance_to("2026-03-06T23:12:00Z").await;
    ready(&cluster, "low", "Inactive").await;
    for kept in ["middle", "high"] {
        let status = ready(&cluster, kept, "MachineRunning").await;
        assert_eq!(status["phase"], "Active");
        let message = status["message"].as_str().unwrap();
        assert!(message.contains("; kept: minimumActive 2 of"), "{message}");
        assert_eq!(condition(&status, "Scheduled")["status"], "False");
    }
    let stop = json!({"spec": {"killSwitch": true}});
    cluster.patch(&machine_path("high"), &stop).await;
    ready(&cluster, "high", "Terminated").await;
    ready(&cluster, "middle", "MachineRunning").await;
    // With a lower minimum the last one leaves, too.
    let edit = json!({"spec": {"minimumActive": 0}});
    cluster.patch(&path_of(&class), &edit).await;
    ready(&cluster, "middle", "Inactive").await;
}

async fn two_replicas_keep_to_the_rate_of_a_class() {
    let cluster = Cluster::start(instant(BEFORE)).await;
    cluster.add_cluster().await;
    let rates = json!({"startsPerMinute": 2});
    cluster.apply(&class(&cluster, &rates)).await;
    let machines = ["a", "b", "c", "d", "e", "f"];
    for machine in machines {
        cluster.apply(&machine_of(&cluster, machine, 50)).await;
    }
    let count = NonZeroU32::new(2).unwrap();
    let _replicas = ["shard-a", "shard-b"].map(|name| cluster.shard(name, count));
    cluster.advance_to("2026-03-06T14:06:00Z").await;
    let mut times = Vec::new();
    for machine in machines {
        let status = ready(&cluster, machine, "MachineRunning").await;
        times.push(time(&status, "lastScheduledTime"));
    }
    assert_spread(&times, 2);
    assert!(times.is_sorted(), "{times:?}");
}

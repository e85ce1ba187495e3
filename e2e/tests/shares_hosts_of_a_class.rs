//! Machines of a class with hosts: each has one to itself.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use fivespot_api::host_claim::HostClaim;
use fivespot_controller::Namespaces;
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, condition, instant, machine_path, path_of,
    scheduled_machine,
};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::classes;
use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_machine_waits_for_a_host_and_takes_the_next_one),
    promise!(of_machines_that_wait_the_highest_priority_comes_first),
    promise!(a_host_that_is_named_is_refused_with_the_name_of_its_holder),
    promise!(a_host_that_is_removed_stays_until_its_machine_leaves),
    promise!(a_machine_gives_its_host_back_when_its_class_is_gone),
    promise!(a_claim_that_somebody_deletes_is_made_again),
    promise!(a_claim_of_a_machine_that_is_gone_is_given_back),
    promise!(the_host_of_a_machine_that_was_deleted_by_force_is_taken_over)
        .on_embedded_alone("removes the finalizer of a machine that runs"),
    promise!(who_waits_hears_that_the_holder_of_a_host_is_gone)
        .on_embedded_alone("removes the finalizer of a machine that runs"),
    promise!(a_crash_after_any_write_leaves_every_host_to_one_machine)
        .on_embedded_alone("starts a cluster for each write"),
    promise!(two_replicas_give_no_host_to_two_machines)
        .on_embedded_alone("runs two replicas with the same clock"),
];

const WINDOW: &str = "2026-03-06T15:00:00Z";

/// The class of the test, with these hosts.
fn class(cluster: &Cluster, hosts: &[&str]) -> Value {
    let mut class = classes::class(cluster);
    class["spec"]["hosts"] = hosts_of(hosts);
    class
}

/// Hosts of a class: each with an address of its own.
pub(crate) fn hosts_of(names: &[&str]) -> Value {
    let host = |name: &&str| json!({"name": name, "infrastructure": {"address": format!("{name}.example")}});
    names.iter().map(host).collect()
}

/// A machine of that class.
fn machine_of(cluster: &Cluster, own: &str, host: Option<&str>) -> Value {
    let mut machine = scheduled_machine(own);
    machine["spec"] = json!({
        "schedule": machine["spec"]["schedule"],
        "classRef": {"name": classes::name(cluster)},
    });
    if let Some(host) = host {
        machine["spec"]["classRef"]["host"] = json!(host);
    }
    machine
}

/// The path of the Lease of a host.
fn lease(cluster: &Cluster, host: &str) -> String {
    let class = classes::name(cluster);
    format!(
        "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases/5spot-host.{host}.{class}"
    )
}

/// Waits until `Ready` has this reason.
pub(crate) async fn ready(cluster: &Cluster, machine: &str, reason: &str) -> Value {
    let has_reason =
        |object: &Value| condition(&object["status"], "Ready")["reason"] == reason;
    let path = machine_path(machine);
    let object = cluster.wait_briefly(&path, has_reason).await;
    object["status"].clone()
}

async fn a_machine_waits_for_a_host_and_takes_the_next_one() {
    let cluster = Cluster::start(instant(WINDOW)).await;
    let _operator = cluster.operator();
    cluster.apply(&class(&cluster, &["desk-1"])).await;
    let first = cluster
        .bring_up(&machine_of(&cluster, "worker", None))
        .await;
    assert_eq!(first["status"]["host"], "desk-1");
    let [_, infrastructure, _] = cluster.owned_paths("worker");
    let made = cluster.get(&infrastructure).await.unwrap();
    if cluster.kind("RemoteMachine") == "RemoteMachine" {
        assert_eq!(made["spec"]["address"], "desk-1.example");
        assert_eq!(made["spec"]["port"], 22);
    }
    cluster.apply(&machine_of(&cluster, "other", None)).await;
    let status = ready(&cluster, "other", "NoHostFree").await;
    assert_eq!(status["phase"], "Pending");
    assert_eq!(status["host"], Value::Null);
    cluster.settle().await;
    let [_, _, machine] = cluster.owned_paths("other");
    assert!(cluster.get(&machine).await.is_none());
    cluster.delete(&machine_path("worker")).await;
    let status = ready(&cluster, "other", "MachineRunning").await;
    assert_eq!(status["host"], "desk-1");
    // One more host, and nobody has to leave.
    cluster.apply(&machine_of(&cluster, "third", None)).await;
    ready(&cluster, "third", "NoHostFree").await;
    let edit = json!({"spec": {"hosts": hosts_of(&["desk-0", "desk-1"])}});
    cluster.patch(&path_of(&class(&cluster, &[])), &edit).await;
    let status = ready(&cluster, "third", "MachineRunning").await;
    assert_eq!(status["host"], "desk-0");
}

async fn of_machines_that_wait_the_highest_priority_comes_first() {
    let cluster = Cluster::start(instant(WINDOW)).await;
    let _operator = cluster.operator();
    cluster.apply(&class(&cluster, &["desk-1"])).await;
    cluster
        .bring_up(&machine_of(&cluster, "worker", None))
        .await;
    for (name, priority) in [("low", 1), ("high", 200), ("middle", 100)] {
        let mut machine = machine_of(&cluster, name, None);
        machine["spec"]["priority"] = json!(priority);
        cluster.apply(&machine).await;
        ready(&cluster, name, "NoHostFree").await;
    }
    for (leaving, next) in [("worker", "high"), ("high", "middle"), ("middle", "low")] {
        cluster.delete(&machine_path(leaving)).await;
        let status = ready(&cluster, next, "MachineRunning").await;
        assert_eq!(status["host"], "desk-1");
    }
}

async fn a_host_that_is_named_is_refused_with_the_name_of_its_holder() {
    let cluster = Cluster::start(instant(WINDOW)).await;
    let _operator = cluster.operator();
    cluster.apply(&class(&cluster, &["desk-1", "desk-2"])).await;
    let second = Some("desk-2");
    cluster
        .bring_up(&machine_of(&cluster, "worker", second))
        .await;
    cluster.apply(&machine_of(&cluster, "other", second)).await;
    let status = ready(&cluster, "other", "HostTaken").await;
    let namespace = cluster.namespace("default");
    let words = format!("is used by ScheduledMachine {namespace}/");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains(&words), "{message}");
    cluster.delete(&machine_path("worker")).await;
    let status = ready(&cluster, "other", "MachineRunning").await;
    assert_eq!(status["host"], "desk-2");
    cluster
        .apply(&machine_of(&cluster, "third", Some("desk-9")))
        .await;
    ready(&cluster, "third", "HostNotFound").await;
}

async fn a_host_that_is_removed_stays_until_its_machine_leaves() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.apply(&class(&cluster, &["desk-1", "desk-2"])).await;
    cluster
        .bring_up(&machine_of(&cluster, "worker", None))
        .await;
    let edit = json!({"spec": {"hosts": hosts_of(&["desk-2"])}});
    cluster.patch(&path_of(&class(&cluster, &[])), &edit).await;
    let status = ready(&cluster, "worker", "PendingChanges").await;
    assert_eq!(status["host"], "desk-1");
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:10:00Z");
    let left = cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_eq!(left["status"]["host"], Value::Null);
    cluster.advance_to("2026-03-09T13:05:00Z").await;
    let status = ready(&cluster, "worker", "MachineRunning").await;
    assert_eq!(status["host"], "desk-2");
    assert!(cluster.get(&lease(&cluster, "desk-1")).await.is_none());
}

async fn a_machine_gives_its_host_back_when_its_class_is_gone() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.apply(&class(&cluster, &["desk-1"])).await;
    cluster
        .bring_up(&machine_of(&cluster, "worker", None))
        .await;
    cluster.delete(&path_of(&class(&cluster, &[]))).await;
    let status = ready(&cluster, "worker", "ClassNotFound").await;
    assert_eq!(status["host"], "desk-1");
    assert!(cluster.get(&lease(&cluster, "desk-1")).await.is_some());
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:10:00Z");
    let is_left = |object: &Value| object["status"]["host"].is_null();
    cluster
        .wait_for(&machine_path("worker"), limit, is_left)
        .await;
    cluster
        .wait_until_gone(&lease(&cluster, "desk-1"), limit)
        .await;
}

async fn a_claim_that_somebody_deletes_is_made_again() {
    let cluster = Cluster::start(instant(WINDOW)).await;
    let _operator = cluster.operator();
    cluster.apply(&class(&cluster, &["desk-1"])).await;
    cluster
        .bring_up(&machine_of(&cluster, "worker", None))
        .await;
    cluster.apply(&machine_of(&cluster, "other", None)).await;
    ready(&cluster, "other", "NoHostFree").await;
    let lease = lease(&cluster, "desk-1");
    let before = cluster.get(&lease).await.unwrap();
    cluster.delete(&lease).await;
    let uid = |object: &Value| object["metadata"]["uid"].clone();
    let is_new = |object: &Value| !uid(object).is_null() && uid(object) != uid(&before);
    let after = cluster.wait_briefly(&lease, is_new).await;
    assert_eq!(
        after["spec"]["holderIdentity"],
        before["spec"]["holderIdentity"]
    );
    cluster.delete(&machine_path("worker")).await;
    ready(&cluster, "other", "MachineRunning").await;
}

/// An operator that has not seen yet that a machine is deleted claims a host for it.
async fn a_claim_of_a_machine_that_is_gone_is_given_back() {
    let cluster = Cluster::start(instant(WINDOW)).await;
    let only = Namespaces::Only([cluster.namespace("default")].into());
    let _operator = cluster.operator_with(|options| options.namespaces = only);
    let hosts = ["desk-1", "desk-2", "desk-3"];
    cluster.apply(&class(&cluster, &hosts)).await;
    cluster
        .bring_up(&machine_of(&cluster, "worker", None))
        .await;
    let first = cluster.get(&lease(&cluster, "desk-1")).await.unwrap();
    let of_worker = HostClaim::read(&first).unwrap();
    let mut of_nobody = of_worker.clone();
    "nobody".clone_into(&mut of_nobody.holder.name);
    let mut of_another_operator = of_nobody.clone();
    "elsewhere".clone_into(&mut of_another_operator.holder.namespace);
    for (host, mut claim) in [("desk-3", of_another_operator), ("desk-2", of_nobody)] {
        claim.host = host.to_owned();
        cluster.apply(&claim.lease("5spot-system")).await;
    }
    let limit = instant(WINDOW) + SignedDuration::from_mins(20);
    cluster
        .wait_until_gone(&lease(&cluster, "desk-2"), limit)
        .await;
    cluster.settle().await;
    for host in ["desk-1", "desk-3"] {
        assert!(cluster.get(&lease(&cluster, host)).await.is_some());
    }
    cluster.delete(&lease(&cluster, "desk-3")).await;
}

async fn the_host_of_a_machine_that_was_deleted_by_force_is_taken_over() {
    let cluster = Cluster::start(instant(WINDOW)).await;
    let operator = cluster.operator();
    cluster.apply(&class(&cluster, &["desk-1"])).await;
    cluster
        .bring_up(&machine_of(&cluster, "worker", None))
        .await;
    cluster.apply(&machine_of(&cluster, "other", None)).await;
    ready(&cluster, "other", "NoHostFree").await;
    drop(operator);
    let [_, _, machine] = cluster.owned_paths("worker");
    cluster.hold(&machine).await;
    let without = json!({"metadata": {"finalizers": []}});
    cluster.patch(&machine_path("worker"), &without).await;
    cluster.delete(&machine_path("worker")).await;
    let _operator = cluster.operator();
    cluster.settle().await;
    let status = ready(&cluster, "other", "NoHostFree").await;
    assert_eq!(status["host"], Value::Null, "its Machine exists");
    let asked = cluster.operator_requests().len();
    let next = cluster.clock().now() + SignedDuration::from_secs(5);
    cluster.advance_until(next).await;
    assert!(
        cluster.operator_requests().len() <= asked + 2,
        "it waits for an event"
    );
    cluster.delete(&machine).await;
    cluster.release(&machine).await;
    let limit = instant(WINDOW) + SignedDuration::from_mins(20);
    let has_host = |object: &Value| object["status"]["host"] == "desk-1";
    cluster
        .wait_for(&machine_path("other"), limit, has_host)
        .await;
}

async fn who_waits_hears_that_the_holder_of_a_host_is_gone() {
    let cluster = Cluster::start(instant(WINDOW)).await;
    let _operator = cluster.operator();
    cluster.apply(&class(&cluster, &["desk-1"])).await;
    cluster
        .bring_up(&machine_of(&cluster, "worker", None))
        .await;
    let named = machine_of(&cluster, "other", Some("desk-1"));
    cluster.apply(&named).await;
    ready(&cluster, "other", "HostTaken").await;
    // The operator does not add its finalizer again.
    let worker = machine_path("worker");
    let paused =
        json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": "true"}}});
    cluster.patch(&worker, &paused).await;
    cluster.settle().await;
    let without = json!({"metadata": {"finalizers": []}});
    cluster.patch(&worker, &without).await;
    cluster.delete(&worker).await;
    let [_, _, machine] = cluster.owned_paths("worker");
    cluster.delete(&machine).await;
    let limit = instant(WINDOW) + SignedDuration::from_mins(20);
    let has_host = |object: &Value| object["status"]["host"] == "desk-1";
    cluster
        .wait_for(&machine_path("other"), limit, has_host)
        .await;
}

/// The hosts that are recorded, none of them twice.
async fn recorded(cluster: &Cluster, machines: &[&str]) -> BTreeSet<String> {
    let mut hosts = BTreeSet::new();
    for machine in machines {
        let object = cluster.get(&machine_path(machine)).await;
        let object = object.unwrap_or_default();
        if let Some(host) = object["status"]["host"].as_str() {
            assert!(hosts.insert(host.to_owned()), "{host} has two machines");
        }
    }
    hosts
}

async fn a_crash_after_any_write_leaves_every_host_to_one_machine() {
    let machines = ["one", "two"];
    for limit in (1..).step_by(2) {
        let cluster = Cluster::start(instant(WINDOW)).await;
        cluster.add_cluster().await;
        cluster.apply(&class(&cluster, &["desk-1"])).await;
        for machine in machines {
            cluster.apply(&machine_of(&cluster, machine, None)).await;
        }
        let crashing = cluster.operator_crashing_after(limit);
        let minutes = |count| instant(WINDOW) + SignedDuration::from_mins(count);
        // A crashed operator stops the clock.
        tokio::select! {
            () = crashing.crash_switch().crashed() => {}
            () = cluster.advance_until(minutes(1)) => {}
        }
        recorded(&cluster, &machines).await;
        let is_whole = !crashing.crash_switch().is_crashed();
        let _operator = cluster.operator();
        drop(crashing);
        cluster.advance_until(minutes(2)).await;
        let hosts = recorded(&cluster, &machines).await;
        assert_eq!(hosts.len(), 1, "after {limit} writes: {hosts:?}");
        for machine in machines {
            cluster.delete(&machine_path(machine)).await;
        }
        cluster
            .wait_until_gone(&lease(&cluster, "desk-1"), minutes(9))
            .await;
        if is_whole {
            return;
        }
    }
}

async fn two_replicas_give_no_host_to_two_machines() {
    let cluster = Cluster::start(instant("2026-03-06T13:59:00Z")).await;
    cluster.add_cluster().await;
    cluster
        .apply(&class(&cluster, &["desk-1", "desk-2", "desk-3"]))
        .await;
    let machines = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for machine in machines {
        cluster.apply(&machine_of(&cluster, machine, None)).await;
    }
    let count = NonZeroU32::new(2).unwrap();
    let _replicas = ["shard-a", "shard-b"].map(|name| cluster.shard(name, count));
    cluster.advance_to("2026-03-06T14:01:30Z").await;
    assert_eq!(recorded(&cluster, &machines).await.len(), 3);
    for _ in 0..5 {
        let mut leaving = None;
        for machine in machines {
            let object = cluster.get(&machine_path(machine)).await;
            if object.is_some_and(|of| of["status"]["host"] == "desk-2") {
                leaving = Some(machine);
            }
        }
        cluster.delete(&machine_path(leaving.unwrap())).await;
        let next = cluster.clock().now() + SignedDuration::from_secs(90);
        cluster.advance_until(next).await;
        assert_eq!(recorded(&cluster, &machines).await.len(), 3);
    }
}

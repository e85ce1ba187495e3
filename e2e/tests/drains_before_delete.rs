//! When its window has closed, a machine's pods are evicted before it is deleted, as far as their
//! disruption budgets and the grace period allow.

use fivespot_api::name;
use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, instant, machine_path, node_path, pod, pod_path,
    scheduled_machine,
};
use serde_json::{Value, json};

use crate::promise::{Promise, promise};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(the_second_eviction_waits_for_the_replacement_and_the_machine_for_both)
        .on_embedded_alone(
            "has `sim` replace pods, and records the steps of all clients in order",
        ),
    promise!(
        a_budget_that_never_yields_holds_the_machine_until_the_deadline_and_no_longer
    ),
    promise!(pods_that_nobody_can_move_are_not_waited_for),
    promise!(a_pod_created_during_the_drain_is_evicted_too),
    promise!(a_pod_that_takes_its_time_to_end_is_waited_for),
    promise!(a_machine_without_a_node_is_removed_at_once).on_embedded_alone(
        "needs a host that takes seconds of the operator's time to join",
    ),
    promise!(a_grace_of_nothing_waits_for_nobody),
];

const BUSINESS_HOURS: &str = include_str!("../../examples/business-hours.yaml");
const BUSINESS_HOURS_WORKER: &str = "business-hours-worker";
const EXCLUDE_DRAIN: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
const EXCLUDE_DETACH: &str =
    "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach";

/// The writes to nodes, pods and the three objects from the closing on, with their users.
/// Consecutive repetitions are listed once.
fn steps(cluster: &Cluster) -> Vec<String> {
    let shown = [
        "nodes",
        "pods",
        "machines",
        "remotemachines",
        "k0sworkerconfigs",
    ];
    let mut steps: Vec<String> = cluster
        .requests()
        .iter()
        .filter(|event| event.at >= instant(CLOSING) && event.is_write())
        .filter(|event| shown.contains(&event.resource.as_str()) && event.code != 409)
        .filter(|event| event.subresource != "status" || event.resource == "pods")
        .filter(|event| event.resource != "pods" || !event.name.is_empty())
        .map(|event| {
            let who = event.user.rsplit(':').next().unwrap_or_default();
            let what = [&event.resource, &event.name, &event.subresource]
                .into_iter()
                .filter(|part| !part.is_empty())
                .fold(String::new(), |path, part| path + "/" + part);
            format!("{who} {} {} {}", event.verb, &what[1..], event.code)
        })
        .collect();
    steps.dedup();
    steps
}

async fn the_second_eviction_waits_for_the_replacement_and_the_machine_for_both() {
    let cluster = Cluster::start(instant("2026-03-06T21:30:00Z")).await;
    let _operator = cluster.operator();
    cluster.apply_yaml(BUSINESS_HOURS).await;
    cluster
        .wait_for_phase(
            BUSINESS_HOURS_WORKER,
            "Active",
            instant("2026-03-06T21:31:00Z"),
        )
        .await;
    cluster.advance_to("2026-03-06T22:59:59Z").await;
    let node = cluster.get(&node_path(BUSINESS_HOURS_WORKER)).await;
    assert_eq!(node.unwrap()["spec"].get("unschedulable"), None);

    cluster.advance_to(CLOSING).await;
    let machine = cluster.get(&machine_path(BUSINESS_HOURS_WORKER)).await;
    let machine = machine.unwrap();
    let status = &machine["status"];
    assert_eq!(status["phase"], "ShuttingDown");
    assert_eq!(
        status["shutdown"],
        json!({
            "machineUID": status["machineRef"]["uid"],
            "startedAt": CLOSING,
            "deadline": "2026-03-06T23:05:00Z",
            "reason": "ScheduleEnded",
        })
    );
    assert_eq!(status["nextCleanup"], "2026-03-06T23:05:00Z");
    let node = cluster.get(&node_path(BUSINESS_HOURS_WORKER)).await;
    let node = node.unwrap();
    assert_eq!(node["spec"]["unschedulable"], true);
    assert_eq!(
        node["metadata"]["annotations"][name::CORDONED_ANNOTATION],
        machine["metadata"]["uid"]
    );

    let end = instant("2026-03-06T23:05:00Z");
    let inactive = cluster
        .wait_for_phase(BUSINESS_HOURS_WORKER, "Inactive", end)
        .await;
    for path in cluster.owned_paths(BUSINESS_HOURS_WORKER) {
        assert_eq!(cluster.get(&path).await, None);
    }
    assert_eq!(inactive["status"].get("machineRef"), None);
    assert_eq!(inactive["status"].get("shutdown"), None);
    assert_eq!(inactive["status"]["nextActivation"], "2026-03-09T13:00:00Z");
    assert!(cluster.clock().now() < end, "the Node was empty earlier");
    assert_eq!(
        steps(&cluster),
        [
            "5spot-controller patch nodes/business-hours-worker 200",
            "5spot-controller create pods/shop-0/eviction 201",
            "5spot-controller create pods/shop-1/eviction 429",
            "capi-manager delete pods/shop-0 200",
            "5spot-controller create pods/shop-1/eviction 429",
            "capi-manager patch pods/shop-0-replacement/status 200",
            "5spot-controller create pods/shop-1/eviction 201",
            "capi-manager delete pods/shop-1 200",
            "5spot-controller patch machines/business-hours-worker 200",
            "5spot-controller delete machines/business-hours-worker 200",
            "capi-manager delete remotemachines/business-hours-worker 200",
            "capi-manager patch remotemachines/business-hours-worker 200",
            "capi-manager delete k0sworkerconfigs/business-hours-worker 200",
            "capi-manager delete nodes/business-hours-worker 200",
            "capi-manager patch machines/business-hours-worker 200",
        ]
    );
    let replacement = cluster.get(&pod_path("shop-0-replacement")).await.unwrap();
    assert_eq!(replacement["spec"]["nodeName"], "sim-node-0");
}

async fn a_budget_that_never_yields_holds_the_machine_until_the_deadline_and_no_longer() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let mut worker = scheduled_machine("worker");
    worker["spec"]["nodeDrainTimeout"] = json!("3m");
    cluster.bring_up(&worker).await;
    cluster.run_pod("only", "worker").await;
    cluster.hold_last_pod().await;

    let [_, _, machine] = cluster.owned_paths("worker");
    cluster.hold(&machine).await;

    cluster.advance_to("2026-03-06T23:02:59Z").await;
    assert_eq!(
        cluster.operator_writes_to("machines").len(),
        1,
        "it was created"
    );
    let status = cluster.status("worker").await;
    assert_eq!(status["phase"], "ShuttingDown");
    assert!(
        status["message"].as_str().unwrap().contains(&format!(
            "{}/only is not evicted",
            cluster.namespace("default")
        )),
        "{status:#}"
    );
    cluster.advance_to("2026-03-06T23:03:00Z").await;
    assert_eq!(
        cluster.operator_writes_to("machines")[1..],
        [
            "2026-03-06T23:03:00Z patch worker 200",
            "2026-03-06T23:03:00Z delete worker 200",
        ]
    );
    let going = cluster.get(&machine).await.unwrap();
    let annotations = &going["metadata"]["annotations"];
    assert!(annotations.get(EXCLUDE_DRAIN).is_some(), "{going:#}");
    assert!(annotations.get(EXCLUDE_DETACH).is_some(), "{going:#}");
    cluster.release(&machine).await;
    cluster
        .wait_for_phase("worker", "Inactive", instant("2026-03-06T23:04:00Z"))
        .await;
    let evictions = cluster.operator_writes_to("pods/eviction");
    assert!(evictions.len() > 2, "tried again and again: {evictions:?}");
    assert!(evictions.iter().all(|eviction| eviction.ends_with(" 429")));
}

/// The number of watches of pods that the operator has started.
fn watches_of_pods(cluster: &Cluster) -> usize {
    let requests = cluster.operator_requests();
    let watches = requests
        .iter()
        .filter(|event| event.resource == "pods" && event.verb == "watch");
    watches.count()
}

async fn pods_that_nobody_can_move_are_not_waited_for() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    let mut of_daemon_set = pod("of-daemon-set", "log", "worker");
    of_daemon_set["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "log",
        "uid": cluster.daemon_set("log").await,
        "controller": true,
    }]);
    let mut mirror = pod("mirror", "proxy", "worker");
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    for pod in [of_daemon_set, mirror, pod("finished", "job", "worker")] {
        cluster.apply(&pod).await;
    }
    cluster.advance_to("2026-03-06T22:55:00Z").await;
    let finished = pod_path("finished") + "/status";
    cluster
        .patch(&finished, &json!({"status": {"phase": "Succeeded"}}))
        .await;

    cluster.advance_to(CLOSING).await;
    assert_eq!(cluster.operator_writes_to("pods/eviction"), [""; 0]);
    assert_eq!(
        cluster.operator_writes_to("machines")[1..],
        [
            "2026-03-06T23:00:00Z patch worker 200",
            "2026-03-06T23:00:00Z delete worker 200",
        ]
    );
    for pod in ["of-daemon-set", "mirror", "finished"] {
        assert!(cluster.get(&pod_path(pod)).await.is_some(), "{pod}");
    }
    // Otherwise, each of a thousand machines that leave at one edge would hold a watch.
    assert_eq!(watches_of_pods(&cluster), 0);
}

async fn a_pod_created_during_the_drain_is_evicted_too() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("first", "worker").await;
    cluster.hold_last_pod().await;
    cluster.advance_to(CLOSING).await;
    cluster.apply(&pod("second", "log", "worker")).await;
    let limit = instant("2026-03-06T23:04:00Z");
    cluster.wait_until_gone(&pod_path("second"), limit).await;
    let evictions = cluster.operator_writes_to("pods/eviction");
    let is_evicted = |pod: &str| evictions.iter().any(|line| line.ends_with(pod));
    assert!(is_evicted("create second 201"), "{evictions:?}");
    assert!(!is_evicted("create first 201"), "{evictions:?}");
}

async fn a_pod_that_takes_its_time_to_end_is_waited_for() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.bring_up(&scheduled_machine("worker")).await;
    cluster.run_pod("slow", "worker").await;
    cluster.hold(&pod_path("slow")).await;
    cluster.advance_to(CLOSING).await;
    let ends = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
    cluster.wait_briefly(&pod_path("slow"), ends).await;
    cluster.advance_to("2026-03-06T23:02:00Z").await;
    let [_, _, machine] = cluster.owned_paths("worker");
    let machine = cluster.get(&machine).await.expect("it waits");
    assert_eq!(machine["metadata"].get("deletionTimestamp"), None);
    assert_eq!(watches_of_pods(&cluster), 1);
    cluster.release(&pod_path("slow")).await;
    let limit = instant("2026-03-06T23:04:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn a_machine_without_a_node_is_removed_at_once() {
    let cluster = Cluster::start(instant("2026-03-06T22:59:57Z")).await;
    let _operator = cluster.operator();
    cluster.add_cluster().await;
    cluster.apply(&scheduled_machine("worker")).await;
    cluster.advance_to(CLOSING).await;
    assert_eq!(
        cluster.operator_writes_to("machines"),
        [
            "2026-03-06T22:59:57Z create  201",
            "2026-03-06T23:00:00Z delete worker 200",
        ]
    );
    cluster
        .wait_for_phase("worker", "Inactive", instant("2026-03-06T23:00:30Z"))
        .await;
    assert_eq!(cluster.operator_writes_to("nodes"), [""; 0]);
}

async fn a_grace_of_nothing_waits_for_nobody() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let mut worker = scheduled_machine("worker");
    worker["spec"]["gracefulShutdownTimeout"] = json!("0s");
    worker["spec"]["nodeDrainTimeout"] = json!("0s");
    cluster.bring_up(&worker).await;
    cluster.run_pod("only", "worker").await;
    let [_, _, machine] = cluster.owned_paths("worker");
    let created = cluster.get(&machine).await.unwrap();
    // For Cluster API, 0 means no limit.
    assert_eq!(cluster.drain_timeout(&created).as_secs(), 1);
    cluster.hold(&machine).await;

    cluster.advance_to(CLOSING).await;
    let deleted = cluster.get(&machine).await.unwrap();
    assert_ne!(deleted["metadata"]["deletionTimestamp"], Value::Null);
    let annotations = &deleted["metadata"]["annotations"];
    assert!(annotations.get(EXCLUDE_DRAIN).is_some(), "{deleted:#}");
    assert_eq!(cluster.operator_writes_to("pods/eviction"), [""; 0]);
    cluster.release(&machine).await;
    cluster
        .wait_for_phase("worker", "Inactive", instant("2026-03-06T23:02:00Z"))
        .await;
}

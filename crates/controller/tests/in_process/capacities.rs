//! ScheduledCapacities, where they have a process of their own.

#![expect(clippy::unwrap_used, reason = "what goes wrong here ends the test")]

use fivespot_controller::{Controllers, Options};
use serde_json::{Value, json};

use crate::cluster::{RunningController, SCHEDULED, TestCluster};
use crate::faults::refusal;

const CAPACITIES: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduledcapacities";
const OVERRIDES: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduleoverrides";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

const CAPACITY: Controllers = Controllers {
    machines: false,
    capacity: true,
};
const MACHINES: Controllers = Controllers {
    machines: true,
    capacity: false,
};

/// Creates a capacity of that name with its quota.
async fn create(cluster: &TestCluster, name: &str, node: Option<&str>) {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": {"pods": "1"}},
    });
    cluster.client.create(QUOTAS, quota).await.unwrap();
    let mut object = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledCapacity",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"], "timezone": "UTC"},
            "target": {"apiVersion": "v1", "kind": "ResourceQuota", "name": name},
            "capacity": {"field": "hard.pods", "activeValue": "4", "inactiveValue": "0"},
        },
    });
    if let Some(node) = node {
        object["spec"]["nodeName"] = node.into();
    }
    cluster.client.create(CAPACITIES, object).await.unwrap();
}

async fn stop(cluster: &TestCluster, capacity: &str) {
    let object = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
        "metadata": {"name": "stop", "namespace": "default"},
        "spec": {
            "mode": "Stop", "endTime": "2026-03-07T00:00:00Z",
            "targetRef": {"kind": "ScheduledCapacity", "name": capacity},
        },
    });
    cluster.client.create(OVERRIDES, object).await.unwrap();
}

async fn status(cluster: &TestCluster, path: &str) -> Value {
    cluster.get(path).await.unwrap()["status"].clone()
}

fn run(cluster: &TestCluster, controllers: Controllers) -> RunningController {
    cluster.run(move |client, clock| {
        let mut options = Options::new(client, clock);
        options.controllers = controllers;
        options
    })
}

#[tokio::test]
async fn without_the_controller_of_machines_no_machine_is_watched() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T12:00:00Z").await;
    create(&cluster, "team", None).await;
    cluster.create_scheduled_machine("worker").await;
    let _controller = run(&cluster, CAPACITY);
    cluster.advance_to("2026-03-06T12:01:00Z").await;
    let found = status(&cluster, &format!("{CAPACITIES}/team")).await;
    assert_eq!(found["phase"], "Active", "{found}");
    stop(&cluster, "team").await;
    cluster.advance_to("2026-03-06T12:02:00Z").await;
    let found = status(&cluster, &format!("{CAPACITIES}/team")).await;
    assert_eq!(found["phase"], "Inactive", "{found}");
    let lists_of_machines = |cluster: &TestCluster| {
        let mut all = cluster.requests();
        all.retain(|it| it.starts_with("list "));
        all.retain(|it| {
            it.contains("scheduledmachines") || it.contains("cluster.x-k8s.io")
        });
        // The definition says which fields are stored.
        all.retain(|it| !it.contains("customresourcedefinitions"));
        all
    };
    assert_eq!(lists_of_machines(&cluster), [""; 0]);
    assert!(cluster.status("worker").await["phase"].is_null());
    // One that names a Node needs to know whose it is.
    create(&cluster, "host", Some("node-1")).await;
    cluster.advance_to("2026-03-06T12:03:00Z").await;
    let found = status(&cluster, &format!("{CAPACITIES}/host")).await;
    assert_eq!(found["phase"], "Active", "{found}");
    assert_eq!(lists_of_machines(&cluster).len(), 1);
}

#[tokio::test]
async fn an_override_of_a_capacity_is_reported_by_the_controller_of_machines() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T12:00:00Z").await;
    create(&cluster, "team", None).await;
    stop(&cluster, "team").await;
    let _controller = run(&cluster, MACHINES);
    cluster.advance_to("2026-03-06T12:02:00Z").await;
    let found = status(&cluster, &format!("{OVERRIDES}/stop")).await;
    assert_eq!(found["matchedMachines"], 1, "{found}");
    let found = status(&cluster, &format!("{CAPACITIES}/team")).await;
    assert!(found["phase"].is_null(), "{found}");
}

/// What an unreadable list hides may be the machine whose Node it is.
#[tokio::test]
async fn a_capacity_of_a_node_keeps_its_value_until_it_is_known_whose_node_it_is() {
    let all = "/apis/5spot.finos.org/v1alpha1/scheduledmachines";
    for code in [429, 500, 403] {
        let cluster = TestCluster::with_cluster_api("2026-03-06T12:00:00Z").await;
        cluster.create_scheduled_machine("worker").await;
        let node = json!({"status": {"nodeRef": {
            "apiVersion": "v1", "kind": "Node", "name": "node-1",
        }}});
        let worker = format!("{SCHEDULED}/worker/status");
        cluster.merge(&worker, node).await;
        create(&cluster, "host", Some("node-1")).await;
        let response = refusal(code, "not now");
        cluster.inject_fault(2, &format!("GET {all}"), (code, &response));
        let _controller = run(&cluster, CAPACITY);
        cluster.clock.wait_until_idle().await;
        let quota = async || cluster.get(&format!("{QUOTAS}/host")).await.unwrap();
        assert_eq!(quota().await["spec"]["hard"]["pods"], "1", "{code}");
        let found = status(&cluster, &format!("{CAPACITIES}/host")).await;
        assert!(found.to_string().contains("not now"), "{code}: {found:#}");
        cluster.advance_to("2026-03-06T12:20:00Z").await;
        assert_eq!(quota().await["spec"]["hard"]["pods"], "0", "{code}");
        let found = status(&cluster, &format!("{CAPACITIES}/host")).await;
        let is_governed = found.to_string().contains("HostGovernanceConflict");
        assert!(is_governed, "{code}: {found:#}");
    }
}

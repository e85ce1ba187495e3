//! Machines of a class with one host.

#![expect(clippy::unwrap_used, reason = "what goes wrong here ends the test")]

use std::sync::Mutex;

use serde_json::{Value, json};

use crate::cluster::{SCHEDULED, TestCluster};

/// Creates the class `desks` with the host `desk-1`, whose infrastructure objects have this spec, and the
/// namespace of its Lease.
pub(crate) async fn create_class(cluster: &TestCluster, infrastructure: Value) {
    cluster.create_namespace("5spot-system").await;
    let class = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachineClass",
        "metadata": {"name": "desks"},
        "spec": {
            "clusterNames": ["prod"],
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                "kind": "K0sWorkerConfig", "spec": {},
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "RemoteMachine", "spec": infrastructure,
            },
            "hosts": [{"name": "desk-1", "infrastructure": {"address": "10.0.0.7"}}],
        },
    });
    let classes = "/apis/5spot.finos.org/v1alpha1/scheduledmachineclasses";
    cluster.client.create(classes, class).await.unwrap();
}

/// A ScheduledMachine of that class, active on weekdays from 09:00 to 18:00 in New York.
fn machine_of_class(priority: u8) -> Value {
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
        "metadata": {"name": "worker"},
        "spec": {
            "schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"],
                         "timezone": "America/New_York"},
            "classRef": {"name": "desks"}, "priority": priority,
        },
    })
}

/// Creates that machine as `worker` in the namespace `default`.
pub(crate) async fn create_machine_of_class(cluster: &TestCluster) {
    let machine = machine_of_class(50);
    cluster.client.create(SCHEDULED, machine).await.unwrap();
}

/// Who is reconciled first must not take what a machine of another namespace, which opens at the same
/// instant, has more right to.
#[tokio::test]
async fn of_machines_that_open_at_one_instant_the_highest_priority_gets_the_host() {
    for priorities in [[10, 90], [90, 10]] {
        let cluster = TestCluster::with_cluster_api("2026-03-06T13:00:00Z").await;
        create_class(&cluster, json!({"address": "none"})).await;
        let paths =
            ["default", "team"].map(|namespace| SCHEDULED.replace("default", namespace));
        cluster.create_namespace("team").await;
        cluster.create_cluster_in("team").await;
        for (path, priority) in paths.iter().zip(priorities) {
            let machine = machine_of_class(priority);
            cluster.client.create(path, machine).await.unwrap();
        }
        let _controller = cluster.run(|client, clock| cluster.options(client, clock));
        cluster.advance_to("2026-03-06T14:01:00Z").await;
        for (path, priority) in paths.iter().zip(priorities) {
            let machine = cluster.get(&format!("{path}/worker")).await.unwrap();
            let has_host = machine["status"]["host"] == "desk-1";
            assert_eq!(has_host, priority == 90, "{priorities:?}: {machine:#}");
        }
    }
}

#[tokio::test]
async fn an_override_that_a_class_does_not_allow_makes_no_machine_late() {
    let cluster = TestCluster::with_cluster_api("2026-03-06T12:00:00Z").await;
    create_class(&cluster, json!({"address": "none"})).await;
    let class = "/apis/5spot.finos.org/v1alpha1/scheduledmachineclasses/desks";
    let limits = json!({"maxOverride": "1h"});
    let spec = json!({"limits": limits, "provisioning": {"leadTime": "10m"}});
    cluster.merge(class, json!({"spec": spec})).await;
    create_machine_of_class(&cluster).await;
    cluster.create_kubeconfig(&json!({"token": "abc"})).await;
    let longer = json!({
        "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduleOverride",
        "metadata": {"name": "long", "namespace": "default"},
        "spec": {"targetRef": {"name": "worker"}, "mode": "Run",
                 "endTime": "2026-03-06T17:00:00Z"},
    });
    let overrides = SCHEDULED.replace("scheduledmachines", "scheduleoverrides");
    cluster.client.create(&overrides, longer).await.unwrap();
    let instruments = Mutex::new(None);
    let _controller = cluster.run(|client, clock| {
        let options = cluster.options(client, clock);
        *instruments.lock().unwrap() = Some(options.instruments.clone());
        options
    });
    // The window opens at 14:00.
    cluster.advance_to("2026-03-06T13:50:00Z").await;
    cluster.join("worker").await;
    cluster.advance_to("2026-03-06T14:00:30Z").await;
    cluster.ready("worker", true).await;
    cluster.clock.wait_until_idle().await;
    let instruments = instruments.lock().unwrap().take().unwrap();
    let metrics = instruments.metrics();
    let sum = "fivespot_ready_lateness_seconds_sum 30.0\n";
    assert!(metrics.contains(sum), "{metrics}");
}

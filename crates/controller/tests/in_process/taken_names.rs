//! Objects of others that have the name that a ScheduledMachine needs.

use fivespot_api::name;
use fivespot_controller::Options;
use serde_json::json;

use crate::cluster::{OWNED, TestCluster};

#[tokio::test]
async fn a_name_that_an_object_labelled_for_another_has_is_used_as_soon_as_it_is_free() {
    let kinds = [
        ("bootstrap.cluster.x-k8s.io/v1beta1", "K0sWorkerConfig"),
        ("infrastructure.cluster.x-k8s.io/v1beta1", "RemoteMachine"),
        ("cluster.x-k8s.io/v1beta2", "Machine"),
    ];
    for ((api_version, kind), path) in kinds.into_iter().zip(OWNED) {
        for label in ["other", ""] {
            let cluster = TestCluster::with_cluster_api("2026-03-06T15:00:00Z").await;
            let copied = json!({
                "apiVersion": api_version, "kind": kind,
                "metadata": {
                    "name": "worker", "namespace": "default",
                    "labels": {name::SCHEDULED_MACHINE_LABEL: label},
                },
                "spec": {"clusterName": "prod"},
            });
            cluster.client.create(path, copied).await.unwrap();
            cluster.create_scheduled_machine("worker").await;
            let _controller = cluster.run(Options::new);
            cluster.advance_to("2026-03-06T15:10:00Z").await;
            let status = cluster.status("worker").await;
            let stalled = TestCluster::condition(&status, "Stalled");
            assert_eq!(stalled["reason"], "NameTaken", "{kind} {label:?}");
            cluster.delete(&format!("{path}/worker")).await;
            cluster.advance_to("2026-03-06T15:10:05Z").await;
            assert_eq!(
                cluster.names(OWNED[2]).await,
                ["worker"],
                "{kind} {label:?}"
            );
            let status = cluster.status("worker").await;
            let stalled = TestCluster::condition(&status, "Stalled");
            assert_eq!(stalled, json!(null), "{kind} {label:?}");
        }
    }
}

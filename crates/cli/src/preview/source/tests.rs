use fivespot_testkit::{Cluster, instant, scheduled_machine};
use kubemu_apiserver::User;
use serde_json::json;

use super::*;

/// A client of a user who may only read these resources of 5-Spot.
async fn reader_of(cluster: &Cluster, resources: &[&str]) -> Client {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "planner"},
        "rules": [{
            "apiGroups": [name::GROUP, name::SPOT_GROUP], "resources": resources, "verbs": ["get", "list"],
        }],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "planner"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "planner",
        },
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "planner"}],
    });
    cluster.apply(&role).await;
    cluster.apply(&binding).await;
    let planner = User::new("planner", &["system:authenticated"]);
    Client::new(cluster.server().in_process_as(planner), "default")
}

async fn cluster_with_an_override() -> Cluster {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    cluster.apply(&scheduled_machine("worker")).await;
    cluster
        .apply(&json!({
            "apiVersion": name::API_VERSION,
            "kind": name::OVERRIDE_KIND,
            "metadata": {"name": "late", "namespace": "default"},
            "spec": {
                "targetRef": {"name": "worker"},
                "mode": "Run",
                "endTime": "2026-03-07T02:00:00Z",
            },
        }))
        .await;
    cluster
}

#[tokio::test]
async fn overrides_without_read_permission_are_an_error() {
    let cluster = cluster_with_an_override().await;
    let client = reader_of(&cluster, &["scheduledmachines"]).await;
    let failure = read(client, "the test", Selection::All)
        .await
        .unwrap_err()
        .to_string();
    let begin = "reading ScheduleOverrides: scheduleoverrides.5spot.finos.org is forbidden: \
                 User \"planner\" cannot list resource \"scheduleoverrides\"";
    assert!(failure.starts_with(begin), "{failure}");
    assert!(failure.contains("5spot-view"), "{failure}");
    let all = [
        "scheduledmachines",
        "scheduleoverrides",
        "schedulecalendars",
        "timebasedspotschedules",
        "capitalmarketsschedules",
    ];
    let client = reader_of(&cluster, &all).await;
    let found = read(client, "the test", Selection::All).await.unwrap();
    let origins: Vec<_> = found.iter().map(|it| it.origin.as_str()).collect();
    assert_eq!(
        origins,
        [
            "scheduledmachine default/worker",
            "scheduleoverride default/late"
        ]
    );
}

#[tokio::test]
async fn a_cluster_that_does_not_serve_overrides_is_read_without_them() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    cluster.apply(&scheduled_machine("worker")).await;
    for plural in ["scheduleoverrides", "schedulecalendars"] {
        let definition = format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{}",
            name::GROUP
        );
        cluster.delete(&definition).await;
        cluster
            .wait_until_gone(&definition, instant("2026-03-06T15:10:00Z"))
            .await;
    }
    let found = read(cluster.client(), "the test", Selection::All)
        .await
        .unwrap();
    assert_eq!(found.len(), 1);
}

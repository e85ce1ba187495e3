//! Graceful termination of pods, evictions and disruption budgets.

use fivespot_apiserver::{Delete, Reason, Selector, Server};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::fixture::{PODS, create_running_pod, pod, send_json, server};

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn budget(limit: &Value) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"app": "web"}}});
    spec.as_object_mut()
        .unwrap()
        .extend(limit.as_object().unwrap().clone());
    json!({"metadata": {"name": "web"}, "spec": spec})
}

async fn status(server: &Server) -> Value {
    server.clock().wait_until_idle().await;
    let budget = server
        .client()
        .get(&format!("{BUDGETS}/web"))
        .await
        .unwrap();
    budget["status"].clone()
}

#[tokio::test]
async fn the_status_of_a_budget_follows_its_pods() {
    let server = server();
    let client = server.client();
    client
        .create(BUDGETS, budget(&json!({"minAvailable": 2})))
        .await
        .unwrap();
    for name in ["a", "b", "c"] {
        create_running_pod(&client, pod(name, "n1", "web")).await;
    }
    create_running_pod(&client, pod("other", "n1", "db")).await;
    let seen = status(&server).await;
    assert_eq!(seen["expectedPods"], 3);
    assert_eq!(seen["currentHealthy"], 3);
    assert_eq!(seen["desiredHealthy"], 2);
    assert_eq!(seen["disruptionsAllowed"], 1);
    assert_eq!(seen["conditions"][0]["reason"], "SufficientPods");
    let now = Delete {
        grace_seconds: Some(0),
        ..Delete::default()
    };
    client.delete(&format!("{PODS}/a"), &now).await.unwrap();
    assert_eq!(status(&server).await["disruptionsAllowed"], 0);
}

#[tokio::test]
async fn percentages_are_rounded_up() {
    for (limit, desired) in [
        (json!({"minAvailable": "50%"}), 2),
        (json!({"maxUnavailable": "50%"}), 1),
        (json!({"maxUnavailable": 1}), 2),
    ] {
        let server = server();
        let client = server.client();
        client.create(BUDGETS, budget(&limit)).await.unwrap();
        for name in ["a", "b", "c"] {
            create_running_pod(&client, pod(name, "n1", "web")).await;
        }
        assert_eq!(status(&server).await["desiredHealthy"], desired, "{limit}");
    }
}

#[tokio::test]
async fn an_eviction_that_violates_the_budget_is_rejected_with_429() {
    let server = two_pods().await;
    let client = server.client();
    client.evict("default", "a").await.unwrap();
    server.clock().wait_until_idle().await;
    let refused = client.evict("default", "b").await.unwrap_err();
    assert_eq!(refused.code, 429);
    assert_eq!(
        refused.message,
        "Cannot evict pod as it would violate the pod's disruption budget."
    );
    let cause = &refused.details.unwrap().causes[0];
    assert_eq!(cause.reason, "DisruptionBudget");
    assert_eq!(
        cause.message,
        "The disruption budget web needs 1 healthy pods and has 1 currently"
    );
    create_running_pod(&client, pod("c", "n2", "web")).await;
    server.clock().wait_until_idle().await;
    client.evict("default", "b").await.unwrap();
}

#[tokio::test]
async fn two_consecutive_evictions_cannot_both_use_the_last_disruption() {
    let server = two_pods().await;
    let client = server.client();
    client.evict("default", "a").await.unwrap();
    assert_eq!(client.evict("default", "b").await.unwrap_err().code, 429);
}

#[tokio::test]
async fn a_running_pod_is_deleted_after_its_kubelet_confirms() {
    let server = server();
    let client = server.client();
    let mut web = pod("a", "n1", "web");
    web["spec"]["terminationGracePeriodSeconds"] = 20.into();
    create_running_pod(&client, web).await;
    let path = format!("{PODS}/a");
    let stopping = client.delete(&path, &Delete::default()).await.unwrap();
    assert_eq!(stopping["metadata"]["deletionGracePeriodSeconds"], 20);
    assert_eq!(
        stopping["metadata"]["deletionTimestamp"],
        "2026-03-06T21:30:20Z"
    );
    let longer = Delete {
        grace_seconds: Some(60),
        ..Delete::default()
    };
    let same = client.delete(&path, &longer).await.unwrap();
    assert_eq!(same["metadata"]["deletionGracePeriodSeconds"], 20);
    let stopped = Delete {
        grace_seconds: Some(0),
        ..Delete::default()
    };
    client.delete(&path, &stopped).await.unwrap();
    assert_eq!(client.get(&path).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn an_unscheduled_pod_is_deleted_immediately() {
    let server = server();
    let client = server.client();
    client.create(PODS, pod("a", "", "web")).await.unwrap();
    client
        .delete(&format!("{PODS}/a"), &Delete::default())
        .await
        .unwrap();
    assert_eq!(
        client.get(&format!("{PODS}/a")).await.unwrap_err().code,
        404
    );
}

#[tokio::test]
async fn pods_are_listed_by_node() {
    let server = server();
    let client = server.client();
    for (name, node) in [("a", "n1"), ("b", "n2"), ("c", "n1")] {
        client.create(PODS, pod(name, node, "web")).await.unwrap();
    }
    let on = Selector::fields("spec.nodeName=n1");
    let list = client.list("/api/v1/pods", &on).await.unwrap();
    let names: Vec<_> = list
        .items
        .iter()
        .map(|it| &it["metadata"]["name"])
        .collect();
    assert_eq!(names, ["a", "c"]);
}

/// A server with two running pods and a budget with `minAvailable: 1`.
async fn two_pods() -> Server {
    let server = server();
    let client = server.client();
    client
        .create(BUDGETS, budget(&json!({"minAvailable": 1})))
        .await
        .unwrap();
    for name in ["a", "b"] {
        create_running_pod(&client, pod(name, "n1", "web")).await;
    }
    server.clock().wait_until_idle().await;
    server
}

#[tokio::test]
async fn a_failed_eviction_stops_counting_after_two_minutes() {
    let server = two_pods().await;
    let client = server.client();
    let stale = json!({"metadata": {"name": "a"},
        "deleteOptions": {"preconditions": {"uid": "of-an-earlier-a"}}});
    let eviction = format!("{PODS}/a/eviction");
    assert_eq!(send_json(&server, "POST", &eviction, stale).await.0, 409);
    server.clock().wait_until_idle().await;
    assert_eq!(client.evict("default", "b").await.unwrap_err().code, 429);
    let later = server.clock().now() + SignedDuration::from_mins(2);
    server.clock().advance_to(later).await;
    client.evict("default", "b").await.unwrap();
}

#[tokio::test]
async fn a_budget_without_a_bound_allows_no_disruption() {
    let server = server();
    let client = server.client();
    client.create(BUDGETS, budget(&json!({}))).await.unwrap();
    create_running_pod(&client, pod("a", "n1", "web")).await;
    let seen = status(&server).await;
    assert_eq!(seen["expectedPods"], 0);
    assert_eq!(seen["desiredHealthy"], 0);
    assert_eq!(seen["disruptionsAllowed"], 0);
    let refused = client.evict("default", "a").await.unwrap_err();
    assert_eq!(
        refused.details.unwrap().causes[0].message,
        "The disruption budget web does not allow evicting pods currently"
    );
}

#[tokio::test]
async fn a_pod_with_two_budgets_cannot_be_evicted() {
    let server = two_pods().await;
    let client = server.client();
    let mut second = budget(&json!({"minAvailable": 1}));
    second["metadata"]["name"] = "second".into();
    client.create(BUDGETS, second).await.unwrap();
    let refused = client.evict("default", "a").await.unwrap_err();
    assert_eq!((refused.code, refused.reason), (500, Reason::Unknown));
}

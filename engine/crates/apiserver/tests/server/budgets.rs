//! Graceful termination of pods, evictions and disruption budgets.

use std::sync::Arc;

use jiff::SignedDuration;
use kubemu_apiserver::{Delete, Reason, Selector, Server};
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
async fn a_budget_expects_the_replicas_of_the_controller_of_its_pods() {
    let server = server();
    let client = server.client();
    let limit = json!({"maxUnavailable": 1});
    client.create(BUDGETS, budget(&limit)).await.unwrap();
    let labels = json!({"app": "web"});
    let set = json!({"metadata": {"name": "web"}, "spec": {"replicas": 3,
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": pod("a", "n1", "web")["spec"]}}});
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    let set = client.create(sets, set).await.unwrap();
    for name in ["a", "b", "c"] {
        let mut pod = pod(name, "n1", "web");
        // It is gone when it is evicted.
        pod["spec"]["terminationGracePeriodSeconds"] = 0.into();
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1",
            "kind": "ReplicaSet", "name": "web", "uid": set["metadata"]["uid"],
            "controller": true}]);
        create_running_pod(&client, pod).await;
    }
    assert_eq!(status(&server).await["expectedPods"], 3);
    client.evict("default", "a").await.unwrap();
    let seen = status(&server).await;
    assert_eq!(seen["expectedPods"], 3);
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

/// Only of a pod: a template keeps what is written.
#[tokio::test]
async fn a_negative_grace_period_is_one_when_a_pod_is_created_and_replaced() {
    let server = server();
    let client = server.client();
    let mut web = pod("a", "n1", "web");
    web["spec"]["terminationGracePeriodSeconds"] = (-1).into();
    let mut created = Value::clone(&*client.create(PODS, web).await.unwrap());
    let grace = |pod: &Value| pod["spec"]["terminationGracePeriodSeconds"].clone();
    assert_eq!(grace(&created), 1);
    created["spec"]["terminationGracePeriodSeconds"] = (-1).into();
    let replaced = client.update(&format!("{PODS}/a"), created).await.unwrap();
    assert_eq!(grace(&replaced), 1);
}

/// A server with a running pod `a`, at its path, with a grace period of 30 seconds.
async fn one_pod() -> (Server, String) {
    let server = server();
    create_running_pod(&server.client(), pod("a", "n1", "web")).await;
    (server, format!("{PODS}/a"))
}

/// Deletes an object with a grace period, and returns its last state.
async fn stop(server: &Server, path: &str, grace_seconds: Option<i64>) -> Arc<Value> {
    let how = Delete {
        grace_seconds,
        ..Delete::default()
    };
    server.client().delete(path, &how).await.unwrap()
}

/// The deletion timestamp and grace period of an object.
fn deadline(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!([
        metadata["deletionTimestamp"],
        metadata["deletionGracePeriodSeconds"]
    ])
}

#[tokio::test]
async fn a_second_delete_without_a_period_changes_nothing() {
    let (server, path) = one_pod().await;
    let first = stop(&server, &path, Some(120)).await;
    assert_eq!(deadline(&first), json!(["2026-03-06T21:32:00Z", 120]));
    let version = server.version();
    let second = stop(&server, &path, None).await;
    assert_eq!(second, first);
    assert_eq!(server.version(), version);
}

#[tokio::test]
async fn a_terminating_pod_that_has_ended_is_left_to_its_kubelet() {
    let (server, path) = one_pod().await;
    let client = server.client();
    let stopping = stop(&server, &path, None).await;
    let mut pod = Value::clone(&stopping);
    pod["status"]["phase"] = "Succeeded".into();
    client.update_status(&path, pod).await.unwrap();
    stop(&server, &path, None).await;
    client.get(&path).await.unwrap();
    let shorter = stop(&server, &path, Some(5)).await;
    assert_eq!(deadline(&shorter), json!(["2026-03-06T21:30:05Z", 5]));
    stop(&server, &path, Some(0)).await;
    assert_eq!(client.get(&path).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn a_shorter_grace_period_counts_from_the_first_delete() {
    let (server, path) = one_pod().await;
    let first = server.clock().now();
    stop(&server, &path, None).await;
    let after = async |seconds| {
        let later = first + SignedDuration::from_secs(seconds);
        server.clock().advance_to(later).await;
    };
    after(2).await;
    let shorter = stop(&server, &path, Some(20)).await;
    assert_eq!(deadline(&shorter), json!(["2026-03-06T21:30:20Z", 20]));
    after(12).await;
    let passed = stop(&server, &path, Some(5)).await;
    assert_eq!(
        deadline(&passed),
        json!(["2026-03-06T21:30:12Z", 1]),
        "a deadline is never in the past, and the kubelet still confirms"
    );
}

#[tokio::test]
async fn a_delete_that_is_already_pending_skips_admission_and_finalizers() {
    let (server, path) = one_pod().await;
    let client = server.client();
    let first = stop(&server, &path, None).await;
    let policy = json!({"metadata": {"name": "keep"}, "spec": {
        "matchConstraints": {"resourceRules": [{"operations": ["DELETE"],
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]},
        "validations": [{"expression": "false"}]}});
    let binding = json!({"metadata": {"name": "keep"},
        "spec": {"policyName": "keep", "validationActions": ["Deny"]}});
    let registration = "/apis/admissionregistration.k8s.io/v1";
    for (plural, object) in [
        ("validatingadmissionpolicies", policy),
        ("validatingadmissionpolicybindings", binding),
    ] {
        let path = format!("{registration}/{plural}");
        client.create(&path, object).await.unwrap();
    }
    let foreground = Delete {
        propagation: Some("Foreground".to_owned()),
        ..Delete::default()
    };
    assert_eq!(client.delete(&path, &foreground).await.unwrap(), first);
    client
        .delete_collection(PODS, &Selector::default())
        .await
        .unwrap();
    assert_eq!(client.get(&path).await.unwrap(), first);
    let now = Delete {
        grace_seconds: Some(0),
        ..Delete::default()
    };
    let refused = client.delete(&path, &now).await.unwrap_err();
    assert_eq!(
        refused.code, 422,
        "a shorter period passes through admission"
    );
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
async fn an_eviction_may_require_the_version_of_the_pod() {
    let server = two_pods().await;
    let client = server.client();
    let path = format!("{PODS}/a");
    let pod = client.get(&path).await.unwrap();
    let version = &pod["metadata"]["resourceVersion"];
    let body = json!({"metadata": {"name": "a"},
        "deleteOptions": {"preconditions": {"resourceVersion": version}}});
    let (code, answer) =
        send_json(&server, "POST", &format!("{path}/eviction"), body.clone()).await;
    assert_eq!(code, 201, "{answer}");
    let pod = client.get(&path).await.unwrap();
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    let (code, _) = send_json(&server, "POST", &format!("{path}/eviction"), body).await;
    assert_eq!(code, 409, "that version has been replaced");
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
async fn a_budget_that_a_trial_of_an_eviction_finds_out_of_date_is_counted_again() {
    let server = two_pods().await;
    let stale = json!({"metadata": {"name": "a"},
        "deleteOptions": {"preconditions": {"uid": "of-an-earlier-a"}}});
    let eviction = format!("{PODS}/a/eviction");
    assert_eq!(send_json(&server, "POST", &eviction, stale).await.0, 409);
    assert!(status(&server).await["disruptedPods"]["a"].is_string());
    let later = server.clock().now() + SignedDuration::from_mins(2);
    server.clock().advance_to(later).await;
    let trial = json!({"metadata": {"name": "b"}, "deleteOptions": {"dryRun": ["All"]}});
    let eviction = format!("{PODS}/b/eviction");
    assert_eq!(send_json(&server, "POST", &eviction, trial).await.0, 201);
    let seen = status(&server).await;
    assert!(seen["disruptedPods"].is_null(), "{seen}");
    assert_eq!(seen["disruptionsAllowed"], 1);
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

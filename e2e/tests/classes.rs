//! A machine is made from a class that a platform team has prepared.

use fivespot_testkit::{
    BEFORE_CLOSING, CLOSING, Cluster, condition, instant, machine_path, path_of,
    scheduled_machine,
};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::promise::{Promise, promise};
use crate::reclaims_the_host::{host_is_free, request};

/// The promises of this file.
pub(crate) const PROMISES: &[Promise] = &[
    promise!(a_machine_of_a_class_comes_and_goes),
    promise!(an_edited_class_waits_for_the_next_machines_of_it),
    promise!(without_its_class_a_machine_leaves_and_none_is_created),
    promise!(a_machine_that_is_reclaimed_without_its_class_keeps_its_schedule),
    promise!(a_class_that_does_not_select_the_namespace_makes_no_machine),
    promise!(an_inline_field_beside_a_class_is_refused),
    promise!(where_only_classes_are_used_an_inline_machine_is_refused_and_can_be_ended)
        .on_embedded_alone("labels the namespace of all other promises"),
    promise!(who_may_not_use_a_class_cannot_name_it),
];

/// The name of the class of a test. Classes are in no namespace, and promises may share a cluster.
pub(crate) fn name(cluster: &Cluster) -> String {
    format!("desks-{}", cluster.namespace("default"))
}

/// A class with everything of the machine `worker`.
pub(crate) fn class(cluster: &Cluster) -> Value {
    let spec = &scheduled_machine("worker")["spec"];
    json!({
        "apiVersion": "5spot.finos.org/v1alpha1",
        "kind": "ScheduledMachineClass",
        "metadata": {"name": name(cluster)},
        "spec": {
            "clusterNames": ["production-cluster"],
            "bootstrapSpec": spec["bootstrapSpec"],
            "infrastructureSpec": spec["infrastructureSpec"],
        },
    })
}

/// A machine of that class.
fn machine_of(cluster: &Cluster) -> Value {
    let mut machine = machine();
    machine["spec"]["classRef"]["name"] = json!(name(cluster));
    machine
}

/// A machine of the class `desks`.
pub(crate) fn machine() -> Value {
    let mut machine = scheduled_machine("worker");
    machine["spec"] = json!({
        "schedule": machine["spec"]["schedule"],
        "classRef": {"name": "desks"},
    });
    machine
}

/// Waits until `Ready` has this reason.
async fn ready(cluster: &Cluster, reason: &str) -> Value {
    let has_reason =
        |object: &Value| condition(&object["status"], "Ready")["reason"] == reason;
    cluster
        .wait_briefly(&machine_path("worker"), has_reason)
        .await
}

async fn a_machine_of_a_class_comes_and_goes() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    let mut class = class(&cluster);
    class["spec"]["provisioning"] = json!({"leadTime": "45m"});
    cluster.apply(&class).await;
    let status = cluster.bring_up(&machine_of(&cluster)).await["status"].clone();
    assert_eq!(status["phase"], "Active");
    assert_eq!(status["leadTime"], "45m");
    assert_eq!(status["clusterName"], "production-cluster");
    cluster.advance_to(CLOSING).await;
    let limit = instant("2026-03-06T23:10:00Z");
    cluster.wait_for_phase("worker", "Inactive", limit).await;
}

async fn an_edited_class_waits_for_the_next_machines_of_it() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    cluster.apply(&class(&cluster)).await;
    let active = cluster.bring_up(&machine_of(&cluster)).await;
    let edit = json!({"spec": {"machineTemplate": {"labels": {"team": "a"}}}});
    cluster.patch(&path_of(&class(&cluster)), &edit).await;
    let noted = ready(&cluster, "PendingChanges").await;
    let uid = |object: &Value| object["status"]["machineRef"]["uid"].clone();
    assert_eq!(uid(&noted), uid(&active));
}

/// Deletes the class, and waits until the machine says that there is none. Returns the machine.
async fn lose_class(cluster: &Cluster) -> Value {
    cluster.delete(&path_of(&class(cluster))).await;
    let is_known = |object: &Value| {
        condition(&object["status"], "ReferencesValid")["reason"] == "ClassNotFound"
    };
    cluster
        .wait_briefly(&machine_path("worker"), is_known)
        .await
}

async fn without_its_class_a_machine_leaves_and_none_is_created() {
    let cluster = Cluster::start(instant(BEFORE_CLOSING)).await;
    let _operator = cluster.operator();
    cluster.apply(&class(&cluster)).await;
    cluster.bring_up(&machine_of(&cluster)).await;
    let object = lose_class(&cluster).await;
    let message = &object["status"]["message"];
    assert_eq!(object["status"]["phase"], "Active", "{message}");
    cluster.advance_to(CLOSING).await;
    let [_, _, machine] = cluster.owned_paths("worker");
    cluster.advance_to("2026-03-06T23:10:00Z").await;
    assert!(cluster.get(&machine).await.is_none());
    cluster.advance_to("2026-03-09T13:05:00Z").await;
    assert!(cluster.get(&machine).await.is_none());
    cluster.apply(&class(&cluster)).await;
    ready(&cluster, "MachineRunning").await;
}

async fn a_machine_that_is_reclaimed_without_its_class_keeps_its_schedule() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    let mut class = class(&cluster);
    class["spec"]["reclaim"] = json!({"return": {"after": "10m"}});
    cluster.apply(&class).await;
    cluster.bring_up(&machine_of(&cluster)).await;
    lose_class(&cluster).await;
    request(&cluster).await;
    let limit = instant("2026-03-06T15:30:00Z");
    let object = cluster.wait_for_phase("worker", "Inactive", limit).await;
    assert_ne!(object["spec"]["schedule"]["enabled"], false);
    for path in cluster.owned_paths("worker") {
        assert_eq!(cluster.get(&path).await, None, "{path}");
    }
    // What the class says about the return holds as soon as the class is there.
    cluster.apply(&class).await;
    let since = cluster.clock().now();
    let due = since + SignedDuration::from_mins(10);
    cluster.advance_until(due).await;
    cluster
        .patch(&machine_path("worker"), &host_is_free(since, due))
        .await;
    let limit = due + SignedDuration::from_mins(2);
    cluster.wait_for_phase("worker", "Active", limit).await;
}

async fn a_class_that_does_not_select_the_namespace_makes_no_machine() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let _operator = cluster.operator();
    let mut elsewhere = class(&cluster);
    elsewhere["spec"]["namespaceSelector"] = json!({"matchLabels": {"desks": "yes"}});
    cluster.apply(&elsewhere).await;
    cluster.apply(&machine_of(&cluster)).await;
    ready(&cluster, "ClassNotAllowed").await;
    let [_, _, machine] = cluster.owned_paths("worker");
    assert!(cluster.get(&machine).await.is_none());
}

async fn an_inline_field_beside_a_class_is_refused() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let mut inline = scheduled_machine("worker");
    inline["spec"]["classRef"] = json!({"name": "desks"});
    let refused = cluster.try_apply(&inline).await.unwrap_err().to_string();
    assert!(
        refused.contains("classRef is mutually exclusive"),
        "{refused}"
    );
    let mut neither = machine_of(&cluster);
    if let Some(spec) = neither["spec"].as_object_mut() {
        spec.remove("classRef");
    }
    let refused = cluster.try_apply(&neither).await.unwrap_err().to_string();
    assert!(
        refused.contains("spec.bootstrapSpec: Required value"),
        "{refused}"
    );
}

async fn where_only_classes_are_used_an_inline_machine_is_refused_and_can_be_ended() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    let inline = scheduled_machine("worker");
    cluster.apply(&inline).await;
    let labels = json!({"metadata": {"labels": {"5spot.finos.org/class-only": "true"}}});
    cluster.patch("/api/v1/namespaces/default", &labels).await;
    cluster.settle().await;

    let refused = |result: Result<Value, String>| {
        let refused = result.unwrap_err();
        let words =
            "spec.classRef: in this namespace machines are made from classes only";
        assert!(refused.contains(words), "{refused}");
    };
    refused(create_as(&cluster, &scheduled_machine("other"), None).await);
    let edit = json!({"spec": {"infrastructureSpec": {"spec": {"address": "10.9.9.9"}}}});
    refused(merge(&cluster, "worker", &edit).await);
    for ending in [
        json!({"spec": {"enabled": false}}),
        json!({"spec": {"killSwitch": true}}),
        json!({"metadata": {"finalizers": []}}),
    ] {
        merge(&cluster, "worker", &ending).await.unwrap();
    }
    cluster.delete(&machine_path("worker")).await;
    cluster.apply(&class(&cluster)).await;
    create_as(&cluster, &machine_of(&cluster), None)
        .await
        .unwrap();
}

async fn who_may_not_use_a_class_cannot_name_it() {
    let cluster = Cluster::start(instant("2026-03-06T15:00:00Z")).await;
    for object in rights_of_joe() {
        cluster.apply(&object).await;
    }
    cluster.settle().await;
    let mut other = machine();
    other["metadata"]["name"] = json!("other");
    other["spec"]["classRef"]["name"] = json!("servers");
    let refused = create_as(&cluster, &other, Some("joe")).await.unwrap_err();
    let words = "spec.classRef.name: you may not use this class";
    assert!(refused.contains(words), "{refused}");
    create_as(&cluster, &machine(), Some("joe")).await.unwrap();
}

/// Joe may write machines, and use the class `desks`.
pub(crate) fn rights_of_joe() -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    let version = "rbac.authorization.k8s.io/v1";
    let rules = [
        json!({
            "apiGroups": ["5spot.finos.org"],
            "resources": ["scheduledmachines", "scheduledmachinesets"],
            "verbs": ["create", "patch"],
        }),
        json!({
            "apiGroups": ["5spot.finos.org"], "resources": ["scheduledmachineclasses"],
            "resourceNames": ["desks"], "verbs": ["use"],
        }),
    ];
    vec![
        json!({
            "apiVersion": version, "kind": "ClusterRole", "metadata": {"name": "joe"},
            "rules": rules,
        }),
        json!({
            "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": "joe"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "joe"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "joe"}],
        }),
    ]
}

/// Creates an object as a user; `Err` is the message of the refusal.
pub(crate) async fn create_as(
    cluster: &Cluster,
    object: &Value,
    user: Option<&str>,
) -> Result<Value, String> {
    let namespace = cluster.namespace("default");
    let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
    let path = format!("/apis/5spot.finos.org/v1alpha1/namespaces/{namespace}/{kind}s");
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(namespace);
    let mut request =
        http::Request::post(path).header("Content-Type", "application/json");
    if let Some(user) = user {
        request = request.header("Impersonate-User", user);
    }
    send(cluster, request, &object).await
}

async fn merge(cluster: &Cluster, name: &str, change: &Value) -> Result<Value, String> {
    let request = http::Request::patch(machine_path(name))
        .header("Content-Type", "application/merge-patch+json");
    send(cluster, request, change).await
}

async fn send(
    cluster: &Cluster,
    request: http::request::Builder,
    body: &Value,
) -> Result<Value, String> {
    let request = request.body(body.to_string().into_bytes()).unwrap();
    let sent = cluster.client().request::<Value>(request).await;
    sent.map_err(|error| error.to_string())
}

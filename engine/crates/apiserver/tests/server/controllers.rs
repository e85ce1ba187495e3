//! Requests of the server's own controllers pass through admission with their service accounts.

use std::sync::Arc;
use std::time::Duration;

use kubemu_apiserver::{
    Attributes, Client, Cluster, Delete, Options, Patch, Plugin, Server, Status,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::fixture::{MAPS, PODS, at, create_running_pod, map, options, pod, server};
use crate::policies::{BINDINGS, POLICIES, binding, policy};

/// A server with a policy that allows the deletion of config maps only if `expression` is true.
async fn guarded(expression: &str) -> (Server, Client) {
    let server = server();
    let client = server.client();
    let mut keep = policy(expression);
    keep["spec"]["matchConstraints"]["resourceRules"][0]["operations"] =
        json!(["DELETE"]);
    client.create(POLICIES, keep).await.unwrap();
    client.create(BINDINGS, binding("Deny")).await.unwrap();
    (server, client)
}

async fn unbind(client: &Client) {
    let path = format!("{BINDINGS}/everywhere");
    client.delete(&path, &Delete::default()).await.unwrap();
}

/// Creates an owner with a dependent, and deletes the owner.
async fn orphaned(client: &Client) {
    let owner = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "owner"}});
    let secrets = "/api/v1/namespaces/default/secrets";
    let owner = client.create(secrets, owner).await.unwrap();
    let mut owned = map("owned");
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Secret",
        "name": "owner", "uid": owner["metadata"]["uid"]}]);
    client.create(MAPS, owned).await.unwrap();
    let path = format!("{secrets}/owner");
    client.delete(&path, &Delete::default()).await.unwrap();
}

#[tokio::test]
async fn a_policy_can_reject_deletions_by_the_garbage_collector() {
    let (server, client) = guarded("false").await;
    orphaned(&client).await;
    server.clock().wait_until_idle().await;
    client.get(&at("owned")).await.unwrap();
    unbind(&client).await;
    server.clock().wait_until_idle().await;
    assert_eq!(client.get(&at("owned")).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn the_garbage_collector_deletes_as_its_service_account() {
    let is_collector = "request.userInfo.username == \
        'system:serviceaccount:kube-system:generic-garbage-collector' && \
        'system:serviceaccounts:kube-system' in request.userInfo.groups && \
        request.name == 'owned' && \
        request.options.propagationPolicy == 'Background' && \
        request.options.preconditions.uid == oldObject.metadata.uid";
    let (server, client) = guarded(is_collector).await;
    orphaned(&client).await;
    server.clock().wait_until_idle().await;
    assert_eq!(client.get(&at("owned")).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn a_policy_can_reject_that_the_garbage_collector_removes_an_owner() {
    let (server, client) = guarded("true").await;
    let mut refuse = policy(
        "request.userInfo.username != \
         'system:serviceaccount:kube-system:generic-garbage-collector'",
    );
    refuse["metadata"]["name"] = "no-collector".into();
    client.create(POLICIES, refuse).await.unwrap();
    let mut bound = binding("Deny");
    bound["metadata"]["name"] = "no-collector".into();
    bound["spec"]["policyName"] = "no-collector".into();
    client.create(BINDINGS, bound).await.unwrap();
    let owner = client.create(MAPS, map("owner")).await.unwrap();
    let mut owned = map("owned");
    owned["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1",
        "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    client.create(MAPS, owned).await.unwrap();
    let orphan = Delete {
        propagation: Some("Orphan".to_owned()),
        ..Delete::default()
    };
    client.delete(&at("owner"), &orphan).await.unwrap();
    server.clock().wait_until_idle().await;
    let waits = client.get(&at("owner")).await.unwrap();
    assert_eq!(waits["metadata"]["finalizers"], json!(["orphan"]));
    let path = format!("{BINDINGS}/no-collector");
    client.delete(&path, &Delete::default()).await.unwrap();
    server.clock().wait_until_idle().await;
    assert_eq!(client.get(&at("owner")).await.unwrap_err().code, 404);
    let free = client.get(&at("owned")).await.unwrap();
    assert_eq!(free["metadata"].get("ownerReferences"), None);
}

const BLUE: &str = "/api/v1/namespaces/blue";

/// Creates a namespace with a config map and a secret, and deletes it.
async fn create_terminating_namespace(client: &Client) {
    let blue = json!({"metadata": {"name": "blue"}});
    client.create("/api/v1/namespaces", blue).await.unwrap();
    let maps = format!("{BLUE}/configmaps");
    client.create(&maps, map("kept")).await.unwrap();
    let secret = json!({"metadata": {"name": "s"}});
    client
        .create(&format!("{BLUE}/secrets"), secret)
        .await
        .unwrap();
    client.delete(BLUE, &Delete::default()).await.unwrap();
}

fn condition<'a>(namespace: &'a Value, kind: &str) -> &'a Value {
    let all = namespace["status"]["conditions"].as_array().unwrap();
    all.iter().find(|it| it["type"] == kind).unwrap()
}

#[tokio::test]
async fn a_policy_can_block_a_namespace_and_its_status_reports_it() {
    let (server, client) = guarded("oldObject.metadata.name != 'kept'").await;
    create_terminating_namespace(&client).await;
    server.clock().wait_until_idle().await;
    let blue = client.get(BLUE).await.unwrap();
    assert_eq!(blue["status"]["phase"], "Terminating");
    let failure = condition(&blue, "NamespaceDeletionContentFailure");
    assert_eq!(failure["status"], "True");
    assert_eq!(failure["reason"], "ContentDeletionFailed");
    assert_eq!(
        failure["message"],
        "Failed to delete all resource types, 1 remaining: configmaps \"Unknown\" is \
         forbidden: \
         ValidatingAdmissionPolicy 'blue-only' with binding 'everywhere' denied request: the \
         sky is blue"
    );
    let secret = format!("{BLUE}/secrets/s");
    assert_eq!(client.get(&secret).await.unwrap_err().code, 404);
    unbind(&client).await;
    server.clock().wait_until_idle().await;
    assert_eq!(client.get(BLUE).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn a_blocked_namespace_is_deleted_when_the_policy_allows_it() {
    let (server, client) = guarded(
        "!has(oldObject.metadata.labels) || !('keep' in oldObject.metadata.labels)",
    )
    .await;
    let blue = json!({"metadata": {"name": "blue"}});
    client.create("/api/v1/namespaces", blue).await.unwrap();
    let mut retained = map("kept");
    retained["metadata"]["labels"] = json!({"keep": ""});
    client
        .create(&format!("{BLUE}/configmaps"), retained)
        .await
        .unwrap();
    client.delete(BLUE, &Delete::default()).await.unwrap();
    server.clock().wait_until_idle().await;
    client.get(BLUE).await.unwrap();
    let free = Patch::Merge(json!({"metadata": {"labels": null}}));
    client
        .patch(&format!("{BLUE}/configmaps/kept"), free)
        .await
        .unwrap();
    server.clock().wait_until_idle().await;
    assert_eq!(client.get(BLUE).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn the_namespace_controller_deletes_as_its_service_account() {
    let is_controller = "request.userInfo.username == \
        'system:serviceaccount:kube-system:namespace-controller' && \
        request.namespace == 'blue'";
    let (server, client) = guarded(is_controller).await;
    create_terminating_namespace(&client).await;
    server.clock().wait_until_idle().await;
    assert_eq!(client.get(BLUE).await.unwrap_err().code, 404);
}

/// A budget that allows one disruption of two pods, and a policy that allows writes to its status
/// only if `expression` is true.
async fn budget(expression: &str) -> (Server, Client) {
    let server = server();
    let client = server.client();
    let mut keep = policy(expression);
    keep["spec"]["matchConstraints"]["resourceRules"] = json!([{"operations": ["UPDATE"],
        "apiGroups": ["policy"], "apiVersions": ["v1"],
        "resources": ["poddisruptionbudgets/status"]}]);
    client.create(POLICIES, keep).await.unwrap();
    client.create(BINDINGS, binding("Deny")).await.unwrap();
    for name in ["a", "b"] {
        create_running_pod(&client, pod(name, "n", "web")).await;
    }
    let budget = json!({"metadata": {"name": "web"}, "spec": {"minAvailable": 1,
        "selector": {"matchLabels": {"app": "web"}}}});
    client.create(BUDGETS, budget).await.unwrap();
    server.clock().wait_until_idle().await;
    (server, client)
}

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

async fn allowed(client: &Client) -> Value {
    let budget = client.get(&format!("{BUDGETS}/web")).await.unwrap();
    budget["status"]["disruptionsAllowed"].clone()
}

#[tokio::test]
async fn the_disruption_controller_writes_as_its_service_account() {
    let is_controller = "request.userInfo.username == \
        'system:serviceaccount:kube-system:disruption-controller'";
    let (_server, client) = budget(is_controller).await;
    assert_eq!(allowed(&client).await, 1);
}

#[tokio::test]
async fn a_policy_can_block_the_status_of_a_budget_until_it_is_unbound() {
    let (server, client) = budget("false").await;
    assert_eq!(allowed(&client).await, 0);
    let path = format!("{PODS}/a/eviction");
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": {"name": "a"}});
    let refused = client.create(&path, eviction).await.unwrap_err();
    assert_eq!(refused.code, 429, "{refused}");
    unbind(&client).await;
    server.clock().wait_until_idle().await;
    assert_eq!(allowed(&client).await, 1);
}

/// A config map of the server's authority, in every namespace of a server that has one.
const AUTHORITY: &str = "kube-root-ca.crt";

#[tokio::test]
async fn a_changed_or_deleted_authority_of_a_namespace_is_restored() {
    let authority = Some("the CA".to_owned());
    let server = Server::new(Options {
        authority,
        ..options()
    })
    .unwrap();
    let client = server.client();
    let changed = Patch::Merge(json!({"data": {"ca.crt": "another", "more": "x"},
        "metadata": {"annotations": null, "labels": {"mine": "1"}}}));
    client.patch(&at(AUTHORITY), changed).await.unwrap();
    server.clock().wait_until_idle().await;
    let restored = client.get(&at(AUTHORITY)).await.unwrap();
    assert_eq!(restored["data"], json!({"ca.crt": "the CA"}));
    let metadata = &restored["metadata"];
    assert_eq!(metadata["labels"], json!({"mine": "1"}));
    let description = &metadata["annotations"]["kubernetes.io/description"];
    assert!(description.is_string(), "{metadata}");
    client
        .delete(&at(AUTHORITY), &Delete::default())
        .await
        .unwrap();
    server.clock().wait_until_idle().await;
    let restored = client.get(&at(AUTHORITY)).await.unwrap();
    assert_eq!(restored["data"], json!({"ca.crt": "the CA"}));
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

/// Waits until nothing is queued; fails if that does not happen soon.
async fn becomes_idle(server: &Server) {
    let idle = server.clock().wait_until_idle();
    timeout(Duration::from_secs(10), idle).await.unwrap();
}

#[test]
fn controllers_go_on_after_the_end_of_the_runtime_that_they_ran_on() {
    let server = server();
    let client = server.client();
    runtime().block_on(create_terminating_namespace(&client));
    runtime().block_on(async {
        client.create(MAPS, map("x")).await.unwrap();
        becomes_idle(&server).await;
        assert_eq!(client.get(BLUE).await.unwrap_err().code, 404);
    });
}

/// Panics when the garbage collector deletes something.
#[derive(Debug)]
struct Panicking;

impl Plugin for Panicking {
    fn name(&self) -> &'static str {
        "Panicking"
    }

    fn validate(
        &self,
        _cluster: &Cluster,
        attributes: &Attributes<'_>,
        _object: Option<&Value>,
    ) -> Result<(), Status> {
        let user = &attributes.user().name;
        assert!(
            !user.ends_with(":generic-garbage-collector"),
            "as it should"
        );
        Ok(())
    }
}

#[tokio::test]
async fn controllers_go_on_after_a_plugin_has_panicked() {
    let server = Server::new(Options {
        plugins: vec![Arc::new(Panicking)],
        ..options()
    })
    .unwrap();
    let client = server.client();
    orphaned(&client).await;
    becomes_idle(&server).await;
    client.get(&at("owned")).await.unwrap();
    create_terminating_namespace(&client).await;
    becomes_idle(&server).await;
    assert_eq!(client.get(BLUE).await.unwrap_err().code, 404);
}

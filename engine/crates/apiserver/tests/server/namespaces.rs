//! Creation and deletion of namespaces.

use kubemu_apiserver::{Delete, Options, Patch, Selector, Server};
use serde_json::json;

use crate::fixture::{client, map, options, pod, send_json, server};

const BLUE: &str = "/api/v1/namespaces/blue/configmaps";

#[tokio::test]
async fn every_cluster_has_four_namespaces() {
    let list = client()
        .list("/api/v1/namespaces", &Selector::default())
        .await
        .unwrap();
    let names: Vec<_> = list
        .items
        .iter()
        .map(|it| &it["metadata"]["name"])
        .collect();
    assert_eq!(
        names,
        ["default", "kube-node-lease", "kube-public", "kube-system"]
    );
}

#[tokio::test]
async fn creating_an_object_in_a_missing_namespace_fails() {
    let refused = client().create(BLUE, map("x")).await.unwrap_err();
    assert_eq!(refused.code, 404);
    assert_eq!(refused.message, "namespaces \"blue\" not found");
}

#[tokio::test]
async fn namespace_auto_provision_creates_a_missing_namespace() {
    let plugins = vec!["NamespaceAutoProvision".to_owned()];
    let server = Server::new(Options {
        enable_plugins: plugins,
        ..options()
    })
    .unwrap();
    server.client().create(BLUE, map("x")).await.unwrap();
    server
        .client()
        .get("/api/v1/namespaces/blue")
        .await
        .unwrap();
}

#[tokio::test]
async fn an_unknown_plugin_is_an_error_with_the_known_names() {
    let plugins = vec!["Nonsense".to_owned()];
    let refused = Server::new(Options {
        disable_plugins: plugins,
        ..options()
    })
    .unwrap_err();
    let why = refused.to_string();
    let start = "admission plugin 'Nonsense' is not known, use one of AlwaysAdmit, AlwaysDeny, \
         AlwaysPullImages, ";
    assert!(why.starts_with(start), "{why}");
    assert!(why.ends_with("ValidatingAdmissionWebhook"), "{why}");
}

/// kube-apiserver reports the same error (k8s.io/apiserver/pkg/server/options/admission.go).
#[tokio::test]
async fn a_plugin_that_is_both_enabled_and_disabled_is_an_error() {
    let plugins = || vec!["Priority".to_owned()];
    let refused = Server::new(Options {
        enable_plugins: plugins(),
        disable_plugins: plugins(),
        ..options()
    })
    .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "admission plugin 'Priority' is both enabled and disabled"
    );
}

#[tokio::test]
async fn deleting_a_namespace_deletes_its_contents() {
    let server = server();
    let client = server.client();
    let blue = json!({"metadata": {"name": "blue"}});
    client.create("/api/v1/namespaces", blue).await.unwrap();
    client.create(BLUE, map("x")).await.unwrap();
    let ending = client
        .delete("/api/v1/namespaces/blue", &Delete::default())
        .await
        .unwrap();
    assert_eq!(ending["status"]["phase"], "Terminating");
    server.clock().wait_until_idle().await;
    assert_eq!(
        client
            .get("/api/v1/namespaces/blue")
            .await
            .unwrap_err()
            .code,
        404
    );
    let remaining = client.list(BLUE, &Selector::default()).await.unwrap();
    assert_eq!(remaining.items.len(), 0);
}

#[tokio::test]
async fn a_terminating_namespace_waits_for_finalizers_and_rejects_creates() {
    let server = server();
    let client = server.client();
    let blue = json!({"metadata": {"name": "blue"}});
    client.create("/api/v1/namespaces", blue).await.unwrap();
    let mut retained = map("x");
    retained["metadata"]["finalizers"] = json!(["example.com/keep"]);
    client.create(BLUE, retained).await.unwrap();
    client
        .delete("/api/v1/namespaces/blue", &Delete::default())
        .await
        .unwrap();
    server.clock().wait_until_idle().await;
    let refused = client.create(BLUE, map("y")).await.unwrap_err();
    assert_eq!(refused.code, 403);
    assert_eq!(
        refused.message,
        "configmaps \"y\" is forbidden: unable to create new content in namespace blue \
         because it is being terminated"
    );
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    client.patch(&format!("{BLUE}/x"), release).await.unwrap();
    server.clock().wait_until_idle().await;
    assert_eq!(
        client
            .get("/api/v1/namespaces/blue")
            .await
            .unwrap_err()
            .code,
        404
    );
}

#[tokio::test]
async fn the_default_namespace_cannot_be_deleted() {
    let refused = client()
        .delete("/api/v1/namespaces/default", &Delete::default())
        .await
        .unwrap_err();
    assert_eq!(
        refused.message,
        "namespaces \"default\" is forbidden: this namespace may not be deleted"
    );
}

#[tokio::test]
async fn a_terminating_namespace_rejects_evictions_and_token_requests() {
    let server = server();
    let client = server.client();
    let blue = json!({"metadata": {"name": "blue"}});
    client.create("/api/v1/namespaces", blue).await.unwrap();
    let mut held = pod("a", "", "web");
    held["metadata"]["finalizers"] = json!(["example.com/keep"]);
    let pods = "/api/v1/namespaces/blue/pods";
    client.create(pods, held).await.unwrap();
    client
        .delete("/api/v1/namespaces/blue", &Delete::default())
        .await
        .unwrap();
    let refused = client.evict("blue", "a").await.unwrap_err();
    assert_eq!(refused.code, 403);
    let why =
        "unable to create new content in namespace blue because it is being terminated";
    assert_eq!(refused.message, format!("pods \"a\" is forbidden: {why}"));
    let cause = &refused.details.unwrap().causes[0];
    assert_eq!(cause.reason, "NamespaceTerminating");
    let path = "/api/v1/namespaces/blue/serviceaccounts/default/token";
    let (code, answer) = send_json(&server, "POST", path, json!({"spec": {}})).await;
    let expected = format!("serviceaccounts \"default\" is forbidden: {why}");
    assert_eq!((code, answer["message"].as_str()), (403, Some(&*expected)));
}

/// A namespace `blue` that is being deleted, with a config map and with a pod that waits for a
/// finalizer.
async fn deleted_with_a_pod(server: &Server) {
    let client = server.client();
    let blue = json!({"metadata": {"name": "blue"}});
    client.create("/api/v1/namespaces", blue).await.unwrap();
    client.create(BLUE, map("x")).await.unwrap();
    let mut pod = pod("p", "", "a");
    pod["metadata"]["finalizers"] = json!(["example.com/keep"]);
    client.create(BLUE_PODS, pod).await.unwrap();
    let path = "/api/v1/namespaces/blue";
    client.delete(path, &Delete::default()).await.unwrap();
    server.clock().wait_until_idle().await;
}

const BLUE_PODS: &str = "/api/v1/namespaces/blue/pods";

#[tokio::test]
async fn the_pods_of_a_namespace_are_gone_before_anything_else_is_deleted() {
    let server = server();
    deleted_with_a_pod(&server).await;
    let client = server.client();
    let map = client.get(&format!("{BLUE}/x")).await.unwrap();
    assert!(map["metadata"]["deletionTimestamp"].is_null(), "{map}");
    let blue = client.get("/api/v1/namespaces/blue").await.unwrap();
    let conditions = blue["status"]["conditions"].as_array().unwrap();
    let message = |kind: &str| {
        let found = conditions.iter().find(|it| it["type"] == kind).unwrap();
        found["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        message("NamespaceContentRemaining"),
        "Some resources are remaining: pods. has 1 resource instances"
    );
    assert_eq!(
        message("NamespaceFinalizersRemaining"),
        "Some content in the namespace has finalizers remaining: example.com/keep in 1 \
         resource instances"
    );
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    client.patch(&format!("{BLUE_PODS}/p"), free).await.unwrap();
    server.clock().wait_until_idle().await;
    let gone = client.get("/api/v1/namespaces/blue").await.unwrap_err();
    assert_eq!(gone.code, 404);
}

/// The order is the default since Kubernetes 1.33.
#[tokio::test]
async fn before_1_33_the_contents_of_a_namespace_are_deleted_in_any_order() {
    let server = Server::new(Options {
        kube: "1.32".parse().unwrap(),
        ..options()
    })
    .unwrap();
    deleted_with_a_pod(&server).await;
    let gone = server.client().get(&format!("{BLUE}/x")).await.unwrap_err();
    assert_eq!(gone.code, 404);
}

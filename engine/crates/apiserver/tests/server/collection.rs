//! Garbage collection of objects that have lost their owners.

use kubemu_apiserver::{Client, Delete, Patch, Selector, Server};
use serde_json::{Value, json};

use crate::fixture::{
    MAPS, PODS, at, map, name_of, pod, read, request, send, send_json, server,
};

/// A config map with `owner` as its owner.
fn owned(name: &str, owner: &Value, blocks: bool) -> Value {
    let mut map = map(name);
    map["metadata"]["ownerReferences"] = json!([reference(owner, blocks)]);
    map
}

fn reference(owner: &Value, blocks: bool) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    })
}

async fn names(server: &Server) -> Vec<String> {
    server.clock().wait_until_idle().await;
    let list = server
        .client()
        .list(MAPS, &Selector::default())
        .await
        .unwrap();
    list.items.iter().map(|it| name_of(it).to_owned()).collect()
}

async fn delete(client: &Client, name: &str, propagation: &str) {
    let how = Delete {
        propagation: Some(propagation.to_owned()),
        ..Delete::default()
    };
    client.delete(&at(name), &how).await.unwrap();
}

/// An owner, its dependent and the dependent's dependent.
async fn family(client: &Client) -> Value {
    let owner = client.create(MAPS, map("owner")).await.unwrap();
    let child = client
        .create(MAPS, owned("child", &owner, true))
        .await
        .unwrap();
    client
        .create(MAPS, owned("grandchild", &child, true))
        .await
        .unwrap();
    Value::clone(&owner)
}

#[tokio::test]
async fn background_deletion_deletes_dependents_afterwards() {
    let server = server();
    family(&server.client()).await;
    delete(&server.client(), "owner", "Background").await;
    assert_eq!(names(&server).await, Vec::<String>::new());
}

#[tokio::test]
async fn foreground_deletion_keeps_the_owner_until_dependents_are_deleted() {
    let server = server();
    let client = server.client();
    family(&client).await;
    let keep = json!({"metadata": {"finalizers": ["example.com/keep"]}});
    client
        .patch(&at("grandchild"), Patch::Merge(keep))
        .await
        .unwrap();
    delete(&client, "owner", "Foreground").await;
    assert_eq!(names(&server).await, ["child", "grandchild", "owner"]);
    let release = json!({"metadata": {"finalizers": null}});
    client
        .patch(&at("grandchild"), Patch::Merge(release))
        .await
        .unwrap();
    assert_eq!(names(&server).await, Vec::<String>::new());
}

#[tokio::test]
async fn foreground_deletion_does_not_wait_for_dependents_that_do_not_block() {
    let server = server();
    let client = server.client();
    let owner = client.create(MAPS, map("owner")).await.unwrap();
    let mut child = owned("child", &owner, false);
    child["metadata"]["finalizers"] = json!(["example.com/keep"]);
    client.create(MAPS, child).await.unwrap();
    delete(&client, "owner", "Foreground").await;
    assert_eq!(names(&server).await, ["child"]);
}

#[tokio::test]
async fn orphaned_dependents_are_kept_without_their_owner_reference() {
    let server = server();
    let client = server.client();
    family(&client).await;
    delete(&client, "owner", "Orphan").await;
    assert_eq!(names(&server).await, ["child", "grandchild"]);
    let child = client.get(&at("child")).await.unwrap();
    assert!(child["metadata"].get("ownerReferences").is_none());
}

#[tokio::test]
async fn an_object_with_one_remaining_owner_is_kept() {
    let server = server();
    let client = server.client();
    let first = client.create(MAPS, map("first")).await.unwrap();
    let second = client.create(MAPS, map("second")).await.unwrap();
    let mut child = map("child");
    child["metadata"]["ownerReferences"] =
        json!([reference(&first, false), reference(&second, false)]);
    client.create(MAPS, child).await.unwrap();
    delete(&client, "first", "Background").await;
    assert_eq!(names(&server).await, ["child", "second"]);
    let child = client.get(&at("child")).await.unwrap();
    assert_eq!(
        child["metadata"]["ownerReferences"],
        json!([reference(&second, false)])
    );
    delete(&client, "second", "Background").await;
    assert_eq!(names(&server).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_object_whose_owner_never_existed_is_collected() {
    let server = server();
    let client = server.client();
    let stranger = json!({"metadata": {"name": "nobody", "uid": "no-such-uid"}});
    client
        .create(MAPS, owned("child", &stranger, false))
        .await
        .unwrap();
    assert_eq!(names(&server).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_object_with_the_same_name_and_another_uid_is_not_the_owner() {
    let server = server();
    let client = server.client();
    family(&client).await;
    delete(&client, "owner", "Orphan").await;
    let other = json!({"metadata": {"name": "child", "uid": "uid-of-an-earlier-child"}});
    client
        .create(MAPS, owned("lost", &other, false))
        .await
        .unwrap();
    assert_eq!(names(&server).await, ["child", "grandchild"]);
}

#[tokio::test]
async fn an_owner_in_another_namespace_does_not_count() {
    let server = server();
    let client = server.client();
    let other = json!({"metadata": {"name": "other"}});
    client.create("/api/v1/namespaces", other).await.unwrap();
    let owner = client.create(MAPS, map("owner")).await.unwrap();
    let others = "/api/v1/namespaces/other/configmaps";
    let stray = owned("stray", &owner, false);
    client.create(others, stray).await.unwrap();
    server.clock().wait_until_idle().await;
    let gone = client.get(&format!("{others}/stray")).await.unwrap_err();
    assert_eq!(gone.code, 404);
    assert_eq!(names(&server).await, ["owner"]);
}

#[tokio::test]
async fn an_owner_with_another_name_or_kind_does_not_count() {
    let server = server();
    let client = server.client();
    let owner = client.create(MAPS, map("owner")).await.unwrap();
    for (field, word) in [("name", "namesake"), ("kind", "Secret")] {
        let mut stray = owned("stray", &owner, false);
        stray["metadata"]["ownerReferences"][0][field] = word.into();
        client.create(MAPS, stray).await.unwrap();
        assert_eq!(names(&server).await, ["owner"], "{field}");
    }
}

#[tokio::test]
async fn a_cluster_scoped_object_with_a_namespaced_owner_is_not_collected() {
    let server = server();
    let client = server.client();
    let owner = client.create(MAPS, map("owner")).await.unwrap();
    let mut node = json!({"metadata": {"name": "n1"}});
    node["metadata"]["ownerReferences"] = json!([reference(&owner, false)]);
    client.create("/api/v1/nodes", node).await.unwrap();
    server.clock().wait_until_idle().await;
    client.get("/api/v1/nodes/n1").await.unwrap();
    delete(&client, "owner", "Background").await;
    server.clock().wait_until_idle().await;
    client.get("/api/v1/nodes/n1").await.unwrap();
}

/// The template of a pod with a label.
fn template() -> Value {
    json!({"metadata": {"labels": {"app": "a"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}})
}

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const CONTROLLERS: &str = "/api/v1/namespaces/default/replicationcontrollers";

/// An object that keeps itself, so that the finalizers of its deletion are seen.
fn kept(spec: Value) -> Value {
    json!({"metadata": {"name": "x", "finalizers": ["example.com/keep"]}, "spec": spec})
}

#[tokio::test]
async fn a_deleted_job_keeps_its_pods_unless_the_client_says_otherwise() {
    let warning = "299 - \"child pods are preserved by default when jobs are deleted; set \
         propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
         suppress this warning\"";
    let rows = [
        ("", true, vec![warning]),
        ("?orphanDependents=true", true, vec![]),
        ("?propagationPolicy=Orphan", true, vec![]),
        ("?propagationPolicy=Background", false, vec![]),
    ];
    for (query, orphans, warnings) in rows {
        let server = server();
        let job = kept(json!({"template": template()}));
        let created = server.client().create(JOBS, job).await.unwrap();
        let mut pod = pod("p", "n", "a");
        pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "batch/v1",
            "kind": "Job", "name": "x", "uid": created["metadata"]["uid"]}]);
        server.client().create(PODS, pod).await.unwrap();
        let delete = request("DELETE", &format!("{JOBS}/x{query}"), &Value::Null);
        let response = send(&server, delete).await;
        let all = response.headers().get_all("warning").iter();
        let sent: Vec<_> = all.map(|it| it.to_str().unwrap().to_owned()).collect();
        assert_eq!(sent, warnings, "{query}");
        let (_, body) = read(response).await;
        assert_eq!(body.contains("\"orphan\""), orphans, "{query}: {body}");
        server.clock().wait_until_idle().await;
        let path = format!("{PODS}/p");
        let left = server.client().get(&path).await.unwrap();
        let owners = &left["metadata"]["ownerReferences"];
        // Without the policy the pod waits for its owner, which still exists.
        assert_eq!(owners.is_null(), orphans, "{query}: {left}");
    }
}

#[tokio::test]
async fn a_collection_of_jobs_is_deleted_with_the_same_warning() {
    let server = server();
    let job = kept(json!({"template": template()}));
    server.client().create(JOBS, job).await.unwrap();
    let response = send(&server, request("DELETE", JOBS, &Value::Null)).await;
    assert_eq!(response.headers().get_all("warning").iter().count(), 1);
    // The clock stands still until the response is read.
    read(response).await;
    server.clock().wait_until_idle().await;
    let left = server.client().get(&format!("{JOBS}/x")).await.unwrap();
    assert!(left["metadata"]["deletionTimestamp"].is_string());
}

#[tokio::test]
async fn a_deleted_replication_controller_keeps_its_pods_by_default() {
    let (_, deleted) = {
        let server = server();
        let mut template = template();
        template["spec"]["restartPolicy"] = "Always".into();
        let controller = kept(json!({"selector": {"app": "a"}, "template": template}));
        server
            .client()
            .create(CONTROLLERS, controller)
            .await
            .unwrap();
        let path = format!("{CONTROLLERS}/x");
        send_json(&server, "DELETE", &path, Value::Null).await
    };
    let expected = json!(["example.com/keep", "orphan"]);
    assert_eq!(deleted["metadata"]["finalizers"], expected);
}

#[tokio::test]
async fn a_finalizer_of_the_object_overrides_the_default_propagation() {
    let server = server();
    let mut job = kept(json!({"template": template()}));
    job["metadata"]["finalizers"] = json!(["foregroundDeletion", "example.com/keep"]);
    server.client().create(JOBS, job).await.unwrap();
    let path = format!("{JOBS}/x");
    let (_, deleted) = send_json(&server, "DELETE", &path, Value::Null).await;
    let expected = json!(["foregroundDeletion", "example.com/keep"]);
    assert_eq!(deleted["metadata"]["finalizers"], expected);
}

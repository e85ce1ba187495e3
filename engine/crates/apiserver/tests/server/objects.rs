//! Objects are created, updated and deleted as by kube-apiserver.

use kubemu_apiserver::{Delete, Options, Patch, Reason, Selector, Server};
use serde_json::{Value, json};

use crate::fixture::{MAPS, PODS, at, client, map, options, pod, send_json, server};

#[tokio::test]
async fn a_created_object_gets_server_set_metadata() {
    let client = client();
    let created = client.create(MAPS, map("x")).await.unwrap();
    let metadata = &created["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["creationTimestamp"], "2026-03-06T21:30:00Z");
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert!(metadata["resourceVersion"].is_string());
    assert_eq!(client.get(&at("x")).await.unwrap(), created);
}

#[tokio::test]
async fn a_duplicate_name_is_a_conflict() {
    let client = client();
    client.create(MAPS, map("x")).await.unwrap();
    let refused = client.create(MAPS, map("x")).await.unwrap_err();
    assert_eq!((refused.code, refused.reason), (409, Reason::AlreadyExists));
    assert_eq!(refused.message, "configmaps \"x\" already exists");
}

#[tokio::test]
async fn a_missing_object_is_not_found() {
    let refused = client().get("/api/v1/nodes/n1").await.unwrap_err();
    assert_eq!((refused.code, refused.reason), (404, Reason::NotFound));
    assert_eq!(refused.message, "nodes \"n1\" not found");
}

#[tokio::test]
async fn an_update_from_an_old_version_conflicts() {
    let client = client();
    let created = client.create(MAPS, map("x")).await.unwrap();
    let mut next = Value::clone(&created);
    next["data"]["a"] = "2".into();
    client.update(&at("x"), next.clone()).await.unwrap();
    let refused = client.update(&at("x"), next).await.unwrap_err();
    assert_eq!((refused.code, refused.reason), (409, Reason::Conflict));
    assert_eq!(
        refused.message,
        "Operation cannot be fulfilled on configmaps \"x\": the object has been modified; \
         please apply your changes to the latest version and try again"
    );
}

#[tokio::test]
async fn an_update_that_changes_nothing_writes_nothing() {
    let client = client();
    let created = client.create(MAPS, map("x")).await.unwrap();
    let same = client
        .update(&at("x"), Value::clone(&created))
        .await
        .unwrap();
    assert_eq!(
        same["metadata"]["resourceVersion"],
        created["metadata"]["resourceVersion"]
    );
}

#[tokio::test]
async fn generated_names_depend_on_the_seed() {
    let name = generated(Some(7)).await.0;
    assert_eq!(name.as_str().unwrap().len(), "x-".len() + 5);
    assert_eq!(name, generated(Some(7)).await.0);
    assert_ne!(name, generated(Some(8)).await.0);
}

#[tokio::test]
async fn without_a_seed_two_servers_have_different_uids_and_generated_names() {
    let (name, uid) = generated(None).await;
    let (other_name, other_uid) = generated(None).await;
    assert_ne!(name, other_name);
    assert_ne!(uid, other_uid);
}

/// The generated name of an object on a server with this seed, and the uid of a namespace.
async fn generated(seed: Option<u64>) -> (Value, Value) {
    let server = Server::new(Options { seed, ..options() }).unwrap();
    let mut map = map("");
    map["metadata"] = json!({"generateName": "x-"});
    let created = server.client().create(MAPS, map).await.unwrap();
    let path = "/api/v1/namespaces/default";
    let namespace = server.client().get(path).await.unwrap();
    (
        created["metadata"]["name"].clone(),
        namespace["metadata"]["uid"].clone(),
    )
}

#[tokio::test]
async fn an_object_without_any_name_is_invalid() {
    let refused = client().create(MAPS, map("")).await.unwrap_err();
    assert_eq!((refused.code, refused.reason), (422, Reason::Invalid));
    assert_eq!(
        refused.message,
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is \
         required"
    );
}

#[tokio::test]
async fn removing_all_labels_removes_the_map() {
    let client = client();
    let mut labelled = map("x");
    labelled["metadata"]["labels"] = json!({"a": "b"});
    labelled["metadata"]["annotations"] = json!({});
    let created = client.create(MAPS, labelled).await.unwrap();
    assert_eq!(created["metadata"].get("annotations"), None);
    let off = Patch::Merge(json!({"metadata": {"labels": {"a": null}}}));
    let remaining = client.patch(&at("x"), off).await.unwrap();
    assert_eq!(remaining["metadata"].get("labels"), None);
}

#[tokio::test]
async fn removing_the_last_finalizer_returns_the_deleted_object() {
    let client = client();
    let mut retained = map("x");
    retained["metadata"]["finalizers"] = json!(["example.com/mine"]);
    client.create(MAPS, retained).await.unwrap();
    client.delete(&at("x"), &Delete::default()).await.unwrap();
    let off = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let gone = client.patch(&at("x"), off).await.unwrap();
    assert_eq!(gone["metadata"].get("finalizers"), None);
    assert_eq!(client.get(&at("x")).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn a_finalizer_keeps_an_object_until_it_is_removed() {
    let client = client();
    let mut retained = map("x");
    retained["metadata"]["finalizers"] = json!(["example.com/mine"]);
    client.create(MAPS, retained).await.unwrap();
    let waiting = client.delete(&at("x"), &Delete::default()).await.unwrap();
    assert_eq!(
        waiting["metadata"]["deletionTimestamp"],
        "2026-03-06T21:30:00Z"
    );
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    client.patch(&at("x"), patch).await.unwrap();
    assert_eq!(client.get(&at("x")).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn a_deletion_can_have_a_uid_precondition() {
    let client = client();
    let created = client.create(MAPS, map("x")).await.unwrap();
    let other = Delete {
        uid: Some("other".to_owned()),
        ..Delete::default()
    };
    let refused = client.delete(&at("x"), &other).await.unwrap_err();
    assert_eq!(refused.code, 409);
    let uid = created["metadata"]["uid"].as_str().unwrap();
    assert_eq!(
        refused.message,
        format!(
            "Operation cannot be fulfilled on ConfigMap \"x\": the UID in the precondition \
             (other) does not match the UID in record ({uid}). The object might have been \
             deleted and then recreated"
        )
    );
    let right = Delete {
        uid: Some(uid.to_owned()),
        ..Delete::default()
    };
    client.delete(&at("x"), &right).await.unwrap();
}

#[tokio::test]
async fn a_list_is_filtered_by_labels_and_fields() {
    let client = client();
    for (name, color) in [("a", "red"), ("b", "blue"), ("c", "red")] {
        let mut map = map(name);
        map["metadata"]["labels"] = json!({"color": color});
        client.create(MAPS, map).await.unwrap();
    }
    let names = |selector: Selector| {
        let client = client.clone();
        async move {
            let list = client.list(MAPS, &selector).await.unwrap();
            let names = list
                .items
                .iter()
                .map(|it| it["metadata"]["name"].to_string());
            names.collect::<Vec<_>>().join(",")
        }
    };
    assert_eq!(names(Selector::labels("color=red")).await, "\"a\",\"c\"");
    assert_eq!(
        names(Selector::fields("metadata.name!=a")).await,
        "\"b\",\"c\""
    );
}

#[tokio::test]
async fn status_and_spec_are_written_through_different_endpoints() {
    let client = client();
    let node = json!({"metadata": {"name": "n1"}, "spec": {"unschedulable": true}});
    client.create("/api/v1/nodes", node).await.unwrap();
    let both = json!({"spec": {"unschedulable": null}, "status": {"phase": "Running"}});
    let path = "/api/v1/nodes/n1";
    let through_status = client
        .patch(&format!("{path}/status"), Patch::Merge(both.clone()))
        .await
        .unwrap();
    assert_eq!(through_status["spec"]["unschedulable"], true);
    assert_eq!(through_status["status"]["phase"], "Running");
    let other = json!({"spec": {"unschedulable": null}, "status": {"phase": "Pending"}});
    let through_main = client.patch(path, Patch::Merge(other)).await.unwrap();
    assert!(through_main["spec"].get("unschedulable").is_none());
    assert_eq!(through_main["status"]["phase"], "Running");
}

#[tokio::test]
async fn a_new_object_cannot_have_a_version() {
    let mut map = map("x");
    map["metadata"]["resourceVersion"] = "7".into();
    let refused = client().create(MAPS, map).await.unwrap_err();
    assert_eq!(
        refused.message,
        "resourceVersion should not be set on objects to be created"
    );
}

#[tokio::test]
async fn uid_and_creation_timestamp_are_immutable() {
    let client = client();
    let created = client.create(MAPS, map("x")).await.unwrap();
    let mut other = Value::clone(&created);
    other["metadata"]["uid"] = "another".into();
    assert_eq!(client.update(&at("x"), other).await.unwrap_err().code, 409);
    let mut renamed = Value::clone(&created);
    renamed["metadata"]["name"] = "y".into();
    let refused = client.update(&at("x"), renamed).await.unwrap_err();
    assert_eq!(
        refused.message,
        "the name of the object (y) does not match the name on the URL (x)"
    );
    let mut older = Value::clone(&created);
    older["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    let retained = client.update(&at("x"), older).await.unwrap();
    assert_eq!(
        retained["metadata"]["creationTimestamp"],
        created["metadata"]["creationTimestamp"]
    );
}

#[tokio::test]
async fn a_deleted_object_accepts_no_new_finalizer() {
    let client = client();
    let mut retained = map("x");
    retained["metadata"]["finalizers"] = json!(["example.com/mine"]);
    client.create(MAPS, retained).await.unwrap();
    client.delete(&at("x"), &Delete::default()).await.unwrap();
    let more =
        json!({"metadata": {"finalizers": ["example.com/mine", "example.com/more"]}});
    let refused = client
        .patch(&at("x"), Patch::Merge(more))
        .await
        .unwrap_err();
    assert_eq!(refused.code, 422);
    assert!(
        refused.message.contains(
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object \
             is being deleted, found new finalizers []string{\"example.com/more\"}"
        ),
        "{}",
        refused.message
    );
}

#[tokio::test]
async fn deleting_a_collection_deletes_the_selected_objects() {
    let client = client();
    for (name, color) in [("a", "red"), ("b", "blue")] {
        let mut map = map(name);
        map["metadata"]["labels"] = json!({"color": color});
        client.create(MAPS, map).await.unwrap();
    }
    client
        .delete_collection(MAPS, &Selector::labels("color=red"))
        .await
        .unwrap();
    let remaining = client.list(MAPS, &Selector::default()).await.unwrap();
    let names: Vec<_> = remaining
        .items
        .iter()
        .map(|it| &it["metadata"]["name"])
        .collect();
    assert_eq!(names, ["b"]);
}

#[tokio::test]
async fn data_of_config_maps_and_secrets_is_limited_to_one_mebibyte() {
    let server = server();
    let secrets = "/api/v1/namespaces/default/secrets";
    let sized = |kind: &str, size: usize| {
        let texts = if kind == "Secret" {
            "stringData"
        } else {
            "data"
        };
        json!({"kind": kind, "apiVersion": "v1", "metadata": {"name": "x"},
            texts: {"a": "x".repeat(size)}})
    };
    for (path, kind, field) in [(MAPS, "ConfigMap", "[]"), (secrets, "Secret", "data")] {
        let (code, answer) =
            send_json(&server, "POST", path, sized(kind, (1 << 20) + 1)).await;
        let expected = format!(
            "{kind} \"x\" is invalid: {field}: Too long: may not be more than 1048576 bytes"
        );
        assert_eq!((code, answer["message"].as_str()), (422, Some(&*expected)));
        assert_eq!(
            send_json(&server, "POST", path, sized(kind, 1 << 20))
                .await
                .0,
            201
        );
    }
}

#[tokio::test]
async fn most_of_a_pods_spec_is_immutable() {
    let client = client();
    client.create(PODS, pod("a", "n1", "web")).await.unwrap();
    let path = format!("{PODS}/a");
    let image = json!({"spec": {"containers": [{"name": "c", "image": "other"}]}});
    client.patch(&path, Patch::Strategic(image)).await.unwrap();
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = client.patch(&path, Patch::Merge(label)).await.unwrap();
    client.update(&path, Value::clone(&labelled)).await.unwrap();
    let policy = Patch::Merge(json!({"spec": {"restartPolicy": "Never"}}));
    let refused = client.patch(&path, policy).await.unwrap_err();
    assert_eq!(refused.code, 422);
    let start = "Pod \"a\" is invalid: spec: Forbidden: pod updates may not change fields \
                 other than `spec.containers[*].image`,";
    assert!(refused.message.starts_with(start), "{}", refused.message);
}

#[tokio::test]
async fn a_finalizer_requires_a_domain_on_update_too() {
    let server = server();
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let class = |finalizers: Value| json!({"metadata": {"name": "c", "finalizers": finalizers}, "value": 1});
    send_json(&server, "POST", classes, class(json!(["example.com/f"]))).await;
    let path = format!("{classes}/c");
    let (code, refused) = send_json(&server, "PUT", &path, class(json!(["odd"]))).await;
    let field = &refused["details"]["causes"][0]["field"];
    assert_eq!((code, field), (422, &json!("metadata.finalizers[0]")));
}

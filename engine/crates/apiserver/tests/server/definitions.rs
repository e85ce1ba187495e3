//! A CustomResourceDefinition is served as soon as it is created.

use kubemu_apiserver::{Delete, Patch, Selector};
use serde_json::{Value, json};

use crate::fixture::{
    DEFINITIONS, MAPS, THINGS, at, definition, map, send_json, server, thing,
};

#[tokio::test]
async fn a_new_kind_is_established_and_served_at_once() {
    let server = server();
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    let path = format!("{DEFINITIONS}/things.example.com");
    let stored = client.get(&path).await.unwrap();
    let conditions = stored["status"]["conditions"].as_array().unwrap();
    for kind in ["NamesAccepted", "Established"] {
        let found = conditions.iter().find(|it| it["type"] == kind).unwrap();
        assert_eq!(found["status"], "True", "{kind}");
    }
    assert_eq!(stored["status"]["acceptedNames"]["singular"], "thing");
    assert_eq!(stored["status"]["storedVersions"], json!(["v1"]));
    client.create(THINGS, thing("x")).await.unwrap();
    let (code, group) =
        send_json(&server, "GET", "/apis/example.com/v1", Value::Null).await;
    assert_eq!(
        (code, &group["resources"][0]["name"]),
        (200, &"things".into())
    );
}

#[tokio::test]
async fn only_changes_of_the_spec_increment_the_generation() {
    let server = server();
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    let path = format!("{THINGS}/x");
    let created = client.create(THINGS, thing("x")).await.unwrap();
    assert_eq!(created["metadata"]["generation"], 1);
    let label = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    let labelled = client.patch(&path, label).await.unwrap();
    assert_eq!(labelled["metadata"]["generation"], 1);
    let status = Patch::Merge(json!({"status": {"phase": "Good"}, "spec": {"size": 9}}));
    let reported = client
        .patch(&format!("{path}/status"), status)
        .await
        .unwrap();
    assert_eq!(reported["metadata"]["generation"], 1);
    assert_eq!(reported["status"]["phase"], "Good");
    assert_ne!(reported["spec"]["size"], 9);
    let grown = Patch::Merge(json!({"spec": {"size": 5}, "status": {"phase": "Bad"}}));
    let grown = client.patch(&path, grown).await.unwrap();
    assert_eq!(grown["metadata"]["generation"], 2);
    assert_eq!(grown["status"]["phase"], "Good");
}

#[tokio::test]
async fn a_status_default_is_in_reads_and_not_in_the_response_to_a_create() {
    let server = server();
    let client = server.client();
    let mut definition = definition();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["status"]["default"] = json!({"phase": "Unknown"});
    client.create(DEFINITIONS, definition).await.unwrap();
    let mut sent = thing("x");
    sent["status"] = json!({"phase": "Good"});
    let created = client.create(THINGS, sent).await.unwrap();
    assert_eq!(created.get("status"), None);
    let path = format!("{THINGS}/x");
    let read = client.get(&path).await.unwrap();
    assert_eq!(read["status"], json!({"phase": "Unknown"}));
    assert_eq!(
        read["metadata"]["resourceVersion"],
        created["metadata"]["resourceVersion"]
    );
    let grown = Patch::Merge(json!({"spec": {"size": 5}}));
    let grown = client.patch(&path, grown).await.unwrap();
    assert_eq!(grown["status"], json!({"phase": "Unknown"}));
}

#[tokio::test]
async fn objects_are_read_with_the_defaults_that_their_definition_got_later() {
    let server = server();
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    client.create(THINGS, thing("x")).await.unwrap();
    let mut changed = definition();
    let schema = &mut changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["color"] = json!({"type": "string", "default": "blue"});
    let schema = json!({"spec": {"versions": changed["spec"]["versions"]}});
    let path = format!("{DEFINITIONS}/things.example.com");
    client.patch(&path, Patch::Merge(schema)).await.unwrap();
    let read = client.get(&format!("{THINGS}/x")).await.unwrap();
    assert_eq!(read["color"], "blue");
    let listed = client.list(THINGS, &Selector::default()).await.unwrap();
    assert_eq!(listed.items[0]["color"], "blue");
}

#[tokio::test]
async fn an_update_of_a_custom_object_requires_a_resource_version() {
    let server = server();
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    client.create(THINGS, thing("x")).await.unwrap();
    let refused = client
        .update(&format!("{THINGS}/x"), thing("x"))
        .await
        .unwrap_err();
    assert_eq!(
        refused.message,
        "things.example.com \"x\" is invalid: metadata.resourceVersion: Invalid value: 0: \
         must be specified for an update"
    );
}

#[tokio::test]
async fn deleting_a_definition_deletes_its_objects() {
    let server = server();
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    let mut retained = thing("x");
    retained["metadata"]["finalizers"] = json!(["example.com/keep"]);
    client.create(THINGS, retained).await.unwrap();
    let path = format!("{DEFINITIONS}/things.example.com");
    client.delete(&path, &Delete::default()).await.unwrap();
    server.clock().wait_until_idle().await;
    let refused = client.create(THINGS, thing("y")).await.unwrap_err();
    assert_eq!(
        refused.message,
        "create not allowed while custom resource definition is terminating"
    );
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    client.patch(&format!("{THINGS}/x"), release).await.unwrap();
    server.clock().wait_until_idle().await;
    assert_eq!(client.get(&path).await.unwrap_err().code, 404);
    assert_eq!(send_json(&server, "GET", THINGS, Value::Null).await.0, 404);
}

/// A definition of a group with the short name of `definition()`.
fn rival(group: &str) -> Value {
    let mut rival = definition();
    rival["metadata"]["name"] = format!("rivals.{group}").into();
    rival["spec"]["group"] = group.into();
    rival["spec"]["names"] =
        json!({"kind": "Rival", "plural": "rivals", "shortNames": ["th"]});
    rival
}

#[tokio::test]
async fn a_kind_with_a_conflicting_short_name_is_not_served() {
    let server = server();
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    client
        .create(DEFINITIONS, rival("example.com"))
        .await
        .unwrap();
    let stored = client
        .get(&format!("{DEFINITIONS}/rivals.example.com"))
        .await
        .unwrap();
    let names = &stored["status"]["conditions"][0];
    assert_eq!(names["reason"], "ShortNamesConflict");
    assert_eq!(names["message"], "\"th\" is already in use");
    let rivals = "/apis/example.com/v1/rivals";
    assert_eq!(send_json(&server, "GET", rivals, Value::Null).await.0, 404);
}

#[tokio::test]
async fn names_conflict_only_within_a_group() {
    let server = server();
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    client
        .create(DEFINITIONS, rival("other.example.com"))
        .await
        .unwrap();
    let rivals = "/apis/other.example.com/v1/rivals";
    assert_eq!(send_json(&server, "GET", rivals, Value::Null).await.0, 200);
}

#[tokio::test]
async fn a_second_version_serves_the_same_objects() {
    let server = server();
    let client = server.client();
    let mut two = definition();
    let mut beta = two["spec"]["versions"][0].clone();
    beta["name"] = "v1beta1".into();
    beta["storage"] = false.into();
    two["spec"]["versions"].as_array_mut().unwrap().push(beta);
    client.create(DEFINITIONS, two).await.unwrap();
    client.create(THINGS, thing("x")).await.unwrap();
    let beta = "/apis/example.com/v1beta1/namespaces/default/things";
    let list = client.list(beta, &Selector::default()).await.unwrap();
    assert_eq!(list.items[0]["apiVersion"], "example.com/v1beta1");
    let patch = Patch::Merge(json!({"spec": {"color": "red"}}));
    client.patch(&format!("{beta}/x"), patch).await.unwrap();
    let first = client.get(&format!("{THINGS}/x")).await.unwrap();
    assert_eq!(first["apiVersion"], "example.com/v1");
    assert_eq!(first["spec"]["color"], "red");
}

#[tokio::test]
async fn dependents_of_objects_of_a_removed_kind_are_collected() {
    let server = server();
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    let owner = client.create(THINGS, thing("x")).await.unwrap();
    let mut owned = map("owned");
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "name": "x",
        "uid": owner["metadata"]["uid"],
    }]);
    client.create(MAPS, owned).await.unwrap();
    let path = format!("{DEFINITIONS}/things.example.com");
    client.delete(&path, &Delete::default()).await.unwrap();
    server.clock().wait_until_idle().await;
    assert_eq!(client.get(&at("owned")).await.unwrap_err().code, 404);
}

#[tokio::test]
async fn a_scale_reads_and_writes_the_declared_paths() {
    let server = server();
    let client = server.client();
    let mut scaled = definition();
    scaled["spec"]["versions"][0]["subresources"]["scale"] = json!({
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.size",
    });
    let status = &mut scaled["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    status["properties"]["status"]["properties"]["size"] = json!({"type": "integer"});
    client.create(DEFINITIONS, scaled).await.unwrap();
    client.create(THINGS, thing("x")).await.unwrap();
    let path = format!("{THINGS}/x/scale");
    let scale = client.get(&path).await.unwrap();
    assert_eq!(
        (&scale["kind"], &scale["spec"]["replicas"]),
        (&"Scale".into(), &3.into())
    );
    let more = Patch::Merge(json!({"spec": {"replicas": 5}}));
    let scale = client.patch(&path, more).await.unwrap();
    assert_eq!(scale["spec"]["replicas"], 5);
    let object = client.get(&format!("{THINGS}/x")).await.unwrap();
    assert_eq!(object["spec"]["size"], 5);
}

#[tokio::test]
async fn group_kind_and_scope_of_a_definition_are_immutable() {
    let server = server();
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    let path = format!("{DEFINITIONS}/things.example.com");
    let rows = [
        (json!({"scope": "Cluster"}), "spec.scope"),
        (json!({"group": "other.example.com"}), "spec.group"),
        (json!({"names": {"kind": "Other"}}), "spec.names.kind"),
    ];
    for (spec, field) in rows {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let refused = client.patch(&path, patch).await.unwrap_err();
        let message = refused.to_string();
        assert!(
            message.contains(&format!("{field}: Invalid value")),
            "{message}"
        );
        assert!(message.ends_with("field is immutable"), "{message}");
    }
}

#[tokio::test]
async fn conflicting_names_are_accepted_when_the_other_kind_is_deleted() {
    let server = server();
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    let mut second = definition();
    second["metadata"]["name"] = "others.example.com".into();
    second["spec"]["names"] = json!({"kind": "Thing", "plural": "others"});
    client.create(DEFINITIONS, second).await.unwrap();
    let path = format!("{DEFINITIONS}/others.example.com");
    let waiting = client.get(&path).await.unwrap();
    assert_eq!(
        waiting["status"]["conditions"][0]["reason"],
        "ListKindConflict"
    );
    assert_eq!(waiting["status"]["conditions"][1]["status"], "False");
    let first = format!("{DEFINITIONS}/things.example.com");
    client.delete(&first, &Delete::default()).await.unwrap();
    server.clock().wait_until_idle().await;
    let others = "/apis/example.com/v1/namespaces/default/others";
    let listed = client.list(others, &Selector::default()).await;
    assert!(listed.is_ok(), "{listed:?}");
    let served = client.get(&path).await.unwrap();
    assert_eq!(served["status"]["acceptedNames"]["listKind"], "ThingList");
}

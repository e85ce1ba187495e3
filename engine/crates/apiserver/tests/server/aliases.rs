//! API group aliases: one set of objects, and responses with the group of the request.

use kubemu_apiserver::{GroupAlias, Options, Patch, Selector, Server, User};
use serde_json::{Value, json};

use crate::fixture::{
    DEFINITIONS, THINGS, definition, name_of, next, options, send_json, thing,
};

const OLD: &str = "/apis/old.example.com/v1/namespaces/default/things";

async fn server() -> Server {
    let server = Server::new(Options {
        aliases: vec![GroupAlias {
            group: "old.example.com".to_owned(),
            of: "example.com".to_owned(),
        }],
        ..options()
    })
    .unwrap();
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    server.clock().wait_until_idle().await;
    server
}

fn old_thing(name: &str) -> Value {
    let mut thing = thing(name);
    thing["apiVersion"] = "old.example.com/v1".into();
    thing
}

#[tokio::test]
async fn objects_are_stored_once_and_returned_in_the_requested_group() {
    let server = server().await;
    let client = server.client();
    let created = client.create(OLD, old_thing("a")).await.unwrap();
    assert_eq!(created["apiVersion"], "old.example.com/v1");
    assert_eq!(created["spec"]["size"], 3, "defaults are set");
    client.create(THINGS, thing("b")).await.unwrap();
    for (path, version) in [(OLD, "old.example.com/v1"), (THINGS, "example.com/v1")] {
        let (_, list) = send_json(&server, "GET", path, Value::Null).await;
        assert_eq!(list["apiVersion"], version);
        for (item, name) in list["items"].as_array().unwrap().iter().zip(["a", "b"]) {
            assert_eq!(item["metadata"]["name"], name);
            assert_eq!(item["apiVersion"], version);
        }
    }
    let grow = || Patch::Merge(json!({"spec": {"size": 4}}));
    let grown = client.patch(&format!("{OLD}/b"), grow()).await.unwrap();
    assert_eq!(grown["apiVersion"], "old.example.com/v1");
    let apply = Patch::Apply {
        body: json!({"apiVersion": "old.example.com/v1", "kind": "Thing",
            "metadata": {"name": "b"}, "spec": {"color": "red"}}),
        manager: "m".to_owned(),
        force: false,
    };
    client.patch(&format!("{OLD}/b"), apply).await.unwrap();
    let b = client.get(&format!("{THINGS}/b")).await.unwrap();
    assert_eq!(b["spec"], json!({"size": 4, "color": "red"}));
    assert_eq!(b["apiVersion"], "example.com/v1");
}

#[tokio::test]
async fn watch_events_and_errors_have_the_requested_group() {
    let server = server().await;
    let client = server.client();
    let mut watch = client.watch(OLD, &Selector::default(), "").unwrap();
    client.create(THINGS, thing("a")).await.unwrap();
    let event = next(&mut watch).await;
    assert_eq!(name_of(&event.object), "a");
    assert_eq!(event.object["apiVersion"], "old.example.com/v1");
    let gone = client.get(&format!("{OLD}/x")).await.unwrap_err();
    assert_eq!(gone.message, "things.old.example.com \"x\" not found");
    let mut small = old_thing("small");
    small["spec"]["size"] = 0.into();
    let refused = client.create(OLD, small).await.unwrap_err();
    assert!(
        refused
            .message
            .starts_with("Thing.old.example.com \"small\" is invalid: spec.size"),
        "{}",
        refused.message
    );
}

#[tokio::test]
async fn both_groups_are_in_discovery_and_the_alias_has_no_short_names() {
    let server = server().await;
    let path = "/apis/old.example.com/v1";
    let (code, found) = send_json(&server, "GET", path, Value::Null).await;
    assert_eq!(code, 200);
    assert_eq!(found["resources"][0]["name"], "things");
    assert_eq!(found["resources"][0].get("shortNames"), None);
    let path = "/openapi/v3/apis/old.example.com/v1";
    let (code, _) = send_json(&server, "GET", path, Value::Null).await;
    assert_eq!(code, 200);
    let client = server.client();
    let definition = format!("{DEFINITIONS}/things.example.com");
    client
        .delete(&definition, &kubemu_apiserver::Delete::default())
        .await
        .unwrap();
    server.clock().wait_until_idle().await;
    let (code, _) =
        send_json(&server, "GET", "/apis/old.example.com/v1", Value::Null).await;
    assert_eq!(code, 404);
}

#[tokio::test]
async fn roles_for_a_group_apply_to_its_alias() {
    let server = server().await;
    let admin = server.client();
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "r"}, "rules": [
        {"verbs": ["list"], "apiGroups": ["example.com"], "resources": ["things"]}]});
    let roles = format!("{group}/clusterroles");
    admin.create(&roles, role).await.unwrap();
    let bound = json!({"metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "r"},
        "subjects": [{"kind": "User", "name": "jane"}]});
    let bindings = format!("{group}/clusterrolebindings");
    admin.create(&bindings, bound).await.unwrap();
    let jane = server.client_as(User::new("jane", &[]));
    jane.list(OLD, &Selector::default()).await.unwrap();
    let may = async |verb: &str| {
        let review = json!({"apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview", "spec": {"user": "jane", "resourceAttributes": {
                "verb": verb, "group": "old.example.com", "resource": "things"}}});
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = admin.create(path, review).await.unwrap();
        answer["status"]["allowed"] == true
    };
    assert!(
        may("list").await,
        "a review uses the same group as a request"
    );
    assert!(!may("create").await);
    let refused = jane.get(&format!("{OLD}/x")).await.unwrap_err();
    assert_eq!(
        refused.message,
        "things.old.example.com \"x\" is forbidden: User \"jane\" cannot get resource \
         \"things\" in API group \"old.example.com\" in the namespace \"default\""
    );
}

//! Replacement of objects: the required resourceVersion, and creation by PUT.

use kubemu_apiserver::User;
use serde_json::{Value, json};

use crate::fixture::{DEFINITIONS, THINGS, definition, patch, send_json, server, thing};

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn lease() -> Value {
    json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
}

#[tokio::test]
async fn a_put_of_a_missing_lease_creates_it() {
    let server = server();
    let path = format!("{LEASES}/l");
    let (code, created) = send_json(&server, "PUT", &path, lease()).await;
    assert_eq!(
        (code, &created["spec"]["holderIdentity"]),
        (201, &"me".into())
    );
    let mut other = lease();
    other["metadata"]["name"] = "m".into();
    other["metadata"]["uid"] = "of-one-that-was".into();
    let (code, answer) = send_json(&server, "PUT", &format!("{LEASES}/m"), other).await;
    assert_eq!((code, &answer["reason"]), (409, &"Conflict".into()));
    let map = json!({"metadata": {"name": "m"}});
    let maps = "/api/v1/namespaces/default/configmaps/m";
    assert_eq!(send_json(&server, "PUT", maps, map).await.0, 404);
}

#[tokio::test]
async fn creating_by_put_requires_permission_to_create() {
    let server = server();
    let client = server.client();
    let group = "rbac.authorization.k8s.io";
    let roles = format!("/apis/{group}/v1/namespaces/default/roles");
    let role = json!({"metadata": {"name": "r"}, "rules": [{"verbs": ["update"],
        "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}]});
    client.create(&roles, role).await.unwrap();
    let bound = json!({"metadata": {"name": "r"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "r"},
        "subjects": [{"kind": "User", "name": "jane"}]});
    let bindings = format!("/apis/{group}/v1/namespaces/default/rolebindings");
    client.create(&bindings, bound).await.unwrap();
    let jane = server.client_as(User::new("jane", &[]));
    let path = format!("{LEASES}/l");
    let refused = jane.update(&path, lease()).await.unwrap_err();
    assert_eq!(
        refused.message,
        "leases.coordination.k8s.io \"l\" is forbidden: User \"jane\" cannot create resource \
         \"leases\" in API group \"coordination.k8s.io\" in the namespace \"default\""
    );
    client.create(LEASES, lease()).await.unwrap();
    let mut next = lease();
    let now = client.get(&path).await.unwrap();
    next["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
    jane.update(&path, next).await.unwrap();
}

#[tokio::test]
async fn some_kinds_require_a_resource_version_on_update() {
    let server = server();
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    server.clock().wait_until_idle().await;
    client.create(LEASES, lease()).await.unwrap();
    let budget = json!({"metadata": {"name": "b"}, "spec": {"minAvailable": 1}});
    client.create(BUDGETS, budget.clone()).await.unwrap();
    client.create(THINGS, thing("t")).await.unwrap();
    let mut none = thing("t");
    none["metadata"]["resourceVersion"] = "0".into();
    let rows = [
        (
            DEFINITIONS,
            definition(),
            "customresourcedefinitions.apiextensions.k8s.io",
        ),
        (LEASES, lease(), "leases.coordination.k8s.io"),
        (BUDGETS, budget, "poddisruptionbudgets.policy"),
        (THINGS, none, "things.example.com"),
    ];
    for (collection, object, what) in rows {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let path = format!("{collection}/{name}");
        let (code, answer) = send_json(&server, "PUT", &path, object).await;
        let expected = format!(
            "{what} \"{name}\" is invalid: metadata.resourceVersion: Invalid value: 0: must be \
             specified for an update"
        );
        assert_eq!((code, answer["message"].as_str()), (422, Some(&*expected)));
    }
}

#[tokio::test]
async fn a_patch_requires_no_resource_version() {
    let server = server();
    let client = server.client();
    client.create(LEASES, lease()).await.unwrap();
    let path = format!("{LEASES}/l");
    let body = json!({"spec": {"holderIdentity": "you"}});
    assert_eq!(patch(&server, "merge-patch+json", &path, body).await.0, 200);
}

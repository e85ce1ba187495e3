//! Writing a policy or binding with parameters requires the permission to read them.

use kubemu_apiserver::{Client, Patch, Reason, Server, User};
use serde_json::{Value, json};

use crate::fixture::{DEFINITIONS, definition, server};
use crate::policies::{BINDINGS, POLICIES, binding, policy};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const GRANTS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// Allows `bob` the actions of `rules`.
async fn allow(client: &Client, name: &str, rules: Value) {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    client.create(ROLES, role).await.unwrap();
    let grant = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": name},
        "subjects": [{"kind": "User", "name": "bob"}],
    });
    client.create(GRANTS, grant).await.unwrap();
}

/// A client as `bob`, who may only write policies and bindings.
async fn bob(server: &Server) -> Client {
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    let rules = json!([{"verbs": ["*"], "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["*"]}]);
    allow(&client, "policies", rules).await;
    server.clock().wait_until_idle().await;
    server.client_as(User::new("bob", &["dev"]))
}

fn with_params(kind: &str) -> Value {
    let mut policy = policy("true");
    policy["spec"]["paramKind"] = json!({"apiVersion": "example.com/v1", "kind": kind});
    policy
}

fn with_reference(reference: Value) -> Value {
    let mut binding = binding("Deny");
    binding["spec"]["paramRef"] = reference;
    binding
}

#[tokio::test]
async fn writing_a_policy_requires_permission_to_read_its_parameter_kind() {
    let server = server();
    let bob = bob(&server).await;
    let refused = bob
        .create(POLICIES, with_params("Thing"))
        .await
        .unwrap_err();
    assert_eq!((refused.code, refused.reason), (422, Reason::Invalid));
    assert_eq!(
        refused.message,
        "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"blue-only\" is invalid: \
         spec.paramKind: Forbidden: user &{bob  [dev] map[]} must have \"get\" permission on \
         all objects of the referenced paramKind (kind=Thing, apiVersion=example.com/v1)"
    );
    bob.create(POLICIES, policy("true")).await.unwrap();
    let path = format!("{POLICIES}/blue-only");
    let patch = Patch::Merge(json!({"spec": {"paramKind":
        {"apiVersion": "example.com/v1", "kind": "Thing"}}}));
    let refused = bob.patch(&path, patch.clone()).await.unwrap_err();
    assert_eq!(refused.code, 422);
    let rules = json!([{"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["things"]}]);
    allow(&server.client(), "read", rules).await;
    bob.patch(&path, patch).await.unwrap();
}

#[tokio::test]
async fn an_unserved_parameter_kind_requires_permission_for_its_whole_group() {
    let server = server();
    let bob = bob(&server).await;
    let rules = json!([{"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["things"]}]);
    allow(&server.client(), "things", rules).await;
    let refused = bob
        .create(POLICIES, with_params("Other"))
        .await
        .unwrap_err();
    assert_eq!(refused.code, 422);
    let rules =
        json!([{"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["*"]}]);
    allow(&server.client(), "all", rules).await;
    bob.create(POLICIES, with_params("Other")).await.unwrap();
}

#[tokio::test]
async fn binding_parameters_requires_permission_to_read_them() {
    let server = server();
    let bob = bob(&server).await;
    let client = server.client();
    client.create(POLICIES, with_params("Thing")).await.unwrap();
    let named = || {
        with_reference(json!({"name": "x", "namespace": "default",
            "parameterNotFoundAction": "Deny"}))
    };
    let refused = bob.create(BINDINGS, named()).await.unwrap_err();
    assert_eq!(
        refused.message,
        "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io \"everywhere\" is \
         invalid: spec.paramRef: Forbidden: user &{bob  [dev] map[]} does not have \"get\" \
         permission on the object referenced by paramRef"
    );
    let rules = json!([{"verbs": ["get"], "apiGroups": ["example.com"],
        "resources": ["things"], "resourceNames": ["x"]}]);
    allow(&client, "read-x", rules).await;
    bob.create(BINDINGS, named()).await.unwrap();
    let mut selected =
        with_reference(json!({"selector": {}, "parameterNotFoundAction": "Deny"}));
    selected["metadata"]["name"] = "selected".into();
    let refused = bob.create(BINDINGS, selected).await.unwrap_err();
    assert!(
        refused.message.ends_with(
            "user &{bob  [dev] map[]} does not have \"list\" permission on the object \
             referenced by paramRef"
        ),
        "{}",
        refused.message
    );
}

#[tokio::test]
async fn a_binding_of_a_missing_policy_requires_permission_for_all_resources() {
    let server = server();
    let bob = bob(&server).await;
    let lost = || with_reference(json!({"name": "x", "parameterNotFoundAction": "Deny"}));
    let refused = bob.create(BINDINGS, lost()).await.unwrap_err();
    assert!(
        refused.message.ends_with(
            "unable to get policy blue-only to determine minimum required permissions and \
             user &{bob  [dev] map[]} does not have \"get\" permission for all groups, \
             versions and resources"
        ),
        "{}",
        refused.message
    );
    server.client().create(BINDINGS, lost()).await.unwrap();
}

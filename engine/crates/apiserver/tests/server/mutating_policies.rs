//! Mutating admission policies change objects as on a real API server.

use kubemu_apiserver::{Client, Delete, Options, Reason, Server, User};
use serde_json::{Value, json};

use crate::fixture::{
    DEFINITIONS, MAPS, PODS, THINGS, definition, map, options, server, thing,
};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";

fn apply(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": expression}})
}

fn operations(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

/// A policy over one resource, with one mutation.
fn policy(name: &str, resource: &str, mutation: Value) -> Value {
    let group = if resource == "things" {
        "example.com"
    } else {
        ""
    };
    json!({
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": [resource],
            }]},
            "mutations": [mutation],
            "reinvocationPolicy": "Never",
        },
    })
}

async fn bind(client: &Client, policy: Value) {
    let name = policy["metadata"]["name"].clone();
    client.create(POLICIES, policy).await.unwrap();
    let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
    client.create(BINDINGS, binding).await.unwrap();
}

/// A server with one bound policy.
async fn with(resource: &str, mutation: Value) -> Client {
    let client = server().client();
    if resource == "things" {
        client.create(DEFINITIONS, definition()).await.unwrap();
    }
    bind(&client, policy("p", resource, mutation)).await;
    client
}

/// The status code and message of a rejected create.
async fn rejection(client: &Client, path: &str, object: Value) -> (u16, String) {
    let refused = client.create(path, object).await.unwrap_err();
    (refused.code, refused.message)
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i", "args": ["x"]}]}})
}

#[tokio::test]
async fn lists_and_maps_are_merged_by_their_keys() {
    let expression = "Object{
        metadata: Object.metadata{labels: {'team': 'blue'}},
        spec: Object.spec{containers: [
            Object.spec.containers{name: 'proxy', image: 'mesh/proxy:1'},
            Object.spec.containers{name: 'c', imagePullPolicy: 'Never'}]}}";
    let client = with("pods", apply(expression)).await;
    let created = client.create(PODS, pod("x")).await.unwrap();
    assert_eq!(
        created["metadata"]["labels"],
        json!({"app": "a", "team": "blue"})
    );
    let containers: Vec<Value> = created["spec"]["containers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!([it["name"], it["image"], it["args"], it["imagePullPolicy"]]))
        .collect();
    assert_eq!(
        containers,
        [
            json!(["proxy", "mesh/proxy:1", null, "IfNotPresent"]),
            json!(["c", "i", ["x"], "Never"]),
        ]
    );
}

#[tokio::test]
async fn atomic_lists_cannot_be_mutated() {
    let expression = "Object{spec: Object.spec{containers: [
        Object.spec.containers{name: 'c', args: ['y']}]}}";
    let client = with("pods", apply(expression)).await;
    let refused = client.create(PODS, pod("x")).await.unwrap_err();
    assert_eq!((refused.code, refused.reason), (403, Reason::Invalid));
    let value = "policy 'p' with binding 'p' denied request: error applying patch: invalid \
                ApplyConfiguration: may not mutate atomic arrays, maps or structs: \
                .spec.containers[0].args";
    assert_eq!(refused.message, value);
    let details = refused.details.unwrap();
    assert_eq!(
        (details.kind.as_str(), details.name.as_str()),
        ("pods", "x")
    );
    let causes: Vec<&str> = details
        .causes
        .iter()
        .map(|it| it.message.as_str())
        .collect();
    assert_eq!(causes, [value]);
}

#[tokio::test]
async fn fields_that_are_not_in_the_schema_are_rejected() {
    let client = with("pods", apply("Object{spec: Object.spec{colour: 'red'}}")).await;
    let (code, message) = rejection(&client, PODS, pod("x")).await;
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "policy 'p' with binding 'p' denied request: error applying patch: failed to convert \
         patch object to typed object: .spec.colour: field not declared in schema"
    );
}

#[tokio::test]
async fn json_patch_operations_are_applied_in_order() {
    let expression = "[
        JSONPatch{op: 'test', path: '/data/a', value: '1'},
        JSONPatch{op: 'add', path: '/metadata/labels', value: {}},
        JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/team'),
            value: 'blue'},
        JSONPatch{op: 'move', from: '/data/a', path: '/data/b'}]";
    let client = with("configmaps", operations(expression)).await;
    let created = client.create(MAPS, map("x")).await.unwrap();
    assert_eq!(
        created["metadata"]["labels"],
        json!({"example.com/team": "blue"})
    );
    assert_eq!(created["data"], json!({"b": "1"}));
    let mut other = map("y");
    other["data"]["a"] = "2".into();
    let created = client.create(MAPS, other).await.unwrap();
    assert_eq!(created["data"], json!({"a": "2"}), "the test fails");
}

#[tokio::test]
async fn a_failed_operation_has_the_message_of_kubernetes() {
    let rows = [
        (
            "op: 'add', path: '/metadata/annotations/a', value: 'b'",
            "add operation does not apply: doc is missing path: \"/metadata/annotations/a\": \
             missing value",
        ),
        (
            "op: 'remove', path: '/data/z'",
            "error in remove for path: '/data/z': Unable to remove nonexistent key: z: missing \
             value",
        ),
        (
            "op: 'replace', path: '/spec/x', value: 1",
            "replace operation does not apply: doc is missing path: /spec/x: missing value",
        ),
        (
            "op: 'move', from: '/spec/x', path: '/data/x'",
            "move operation does not apply: doc is missing from path: /spec/x: missing value",
        ),
        (
            "op: 'copy', from: '/data/a', path: '/spec/x'",
            "copy operation does not apply: doc is missing destination path: /spec/x: missing \
             value",
        ),
        ("op: 'put', path: '/data/a'", "Unexpected kind: put"),
    ];
    for (operation, requested) in rows {
        let expression = format!("[JSONPatch{{{operation}}}]");
        let client = with("configmaps", operations(&expression)).await;
        let (code, message) = rejection(&client, MAPS, map("x")).await;
        let requested = format!(
            "policy 'p' with binding 'p' denied request: JSON Patch: {requested}"
        );
        assert_eq!((code, message), (403, requested));
    }
}

#[tokio::test]
async fn a_patch_to_an_invalid_object_is_an_internal_error() {
    let expression = "[JSONPatch{op: 'add', path: '/data', value: 'text'}]";
    let client = with("configmaps", operations(expression)).await;
    let (code, message) = rejection(&client, MAPS, map("x")).await;
    assert_eq!(code, 500);
    assert!(
        message.starts_with("Internal error occurred: "),
        "{message}"
    );
    let expression = "[JSONPatch{op: 'add', path: '/colour', value: 'red'}]";
    let client = with("configmaps", operations(expression)).await;
    assert_eq!(
        rejection(&client, MAPS, map("x")).await,
        (
            500,
            "Internal error occurred: strict decoding error: unknown field \"colour\""
                .to_owned()
        )
    );
}

#[tokio::test]
async fn custom_resources_are_mutated_defaulted_and_validated() {
    let larger = "Object{spec: Object.spec{color: 'size ' + string(object.spec.size)}}";
    let client = with("things", apply(larger)).await;
    let created = client.create(THINGS, thing("x")).await.unwrap();
    assert_eq!(created["spec"], json!({"size": 3, "color": "size 3"}));
    let client = with("things", apply("Object{spec: Object.spec{size: 0}}")).await;
    let (code, message) = rejection(&client, THINGS, thing("x")).await;
    assert_eq!(code, 422);
    assert!(
        message.contains("spec.size in body should be greater than"),
        "{message}"
    );
}

#[tokio::test]
async fn a_policy_sees_a_new_object_without_the_fields_that_the_server_sets() {
    let expression = "Object{metadata: Object.metadata{labels: {
        'uid': string(has(object.metadata.uid)),
        'generation': string(has(object.metadata.generation)),
        'creationTimestamp': string(has(object.metadata.creationTimestamp))}}}";
    let client = with("things", apply(expression)).await;
    let created = client.create(THINGS, thing("x")).await.unwrap();
    assert_eq!(
        created["metadata"]["labels"],
        json!({"uid": "false", "generation": "false", "creationTimestamp": "false"})
    );
    assert_eq!(created["metadata"]["generation"], 1);
    assert!(created["metadata"]["uid"].is_string());
}

#[tokio::test]
async fn a_policy_can_name_a_new_object_and_cannot_set_its_uid() {
    let expression = "[
        JSONPatch{op: 'add', path: '/metadata/uid', value: 'chosen'},
        JSONPatch{op: 'add', path: '/metadata/name', value: 'chosen'}]";
    let client = with("configmaps", operations(expression)).await;
    let unnamed = json!({"metadata": {"generateName": "x-"}});
    let created = client.create(MAPS, unnamed).await.unwrap();
    assert_eq!(created["metadata"]["name"], "chosen");
    assert_ne!(created["metadata"]["uid"], "chosen");
}

#[tokio::test]
async fn a_policy_with_reinvocation_runs_again_after_later_changes() {
    let count = "Object{metadata: Object.metadata{labels: {'seen': has(object.metadata.labels) \
                 && 'late' in object.metadata.labels ? 'late' : 'early'}}}";
    let late = "Object{metadata: Object.metadata{labels: {'late': 'yes'}}}";
    for (reinvocation, seen) in [("Never", "early"), ("IfNeeded", "late")] {
        let client = server().client();
        let mut first = policy("a", "configmaps", apply(count));
        first["spec"]["reinvocationPolicy"] = reinvocation.into();
        bind(&client, first).await;
        bind(&client, policy("b", "configmaps", apply(late))).await;
        let created = client.create(MAPS, map("x")).await.unwrap();
        assert_eq!(
            created["metadata"]["labels"],
            json!({"seen": seen, "late": "yes"})
        );
    }
}

#[tokio::test]
async fn a_policy_applies_until_its_binding_is_deleted() {
    let client = with("configmaps", apply("Object{data: {'added': 'yes'}}")).await;
    let created = client.create(MAPS, map("x")).await.unwrap();
    assert_eq!(created["data"]["added"], "yes");
    client
        .delete(&format!("{BINDINGS}/p"), &Delete::default())
        .await
        .unwrap();
    let created = client.create(MAPS, map("y")).await.unwrap();
    assert_eq!(created["data"], json!({"a": "1"}));
}

#[tokio::test]
async fn before_1_36_policies_are_stored_and_not_applied() {
    let old = Options {
        kube: "1.35".parse().unwrap(),
        ..options()
    };
    let client = Server::new(old).unwrap().client();
    bind(
        &client,
        policy("p", "configmaps", apply("Object{data: {'b': 'c'}}")),
    )
    .await;
    let created = client.create(MAPS, map("x")).await.unwrap();
    assert_eq!(created["data"], json!({"a": "1"}));
}

#[tokio::test]
async fn binding_parameters_requires_permission_to_read_them() {
    let server = server();
    let client = server.client();
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let grants = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let rules = json!([{"verbs": ["*"], "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["*"]}]);
    let role = json!({"metadata": {"name": "policies"}, "rules": rules});
    client.create(roles, role).await.unwrap();
    let grant = json!({
        "metadata": {"name": "policies"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "policies"},
        "subjects": [{"kind": "User", "name": "bob"}],
    });
    client.create(grants, grant).await.unwrap();
    let bob = server.client_as(User::new("bob", &["dev"]));
    let mut named = policy("p", "configmaps", apply("Object{}"));
    named["spec"]["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let (code, message) = rejection(&bob, POLICIES, named.clone()).await;
    assert_eq!(code, 422);
    assert_eq!(
        message,
        "MutatingAdmissionPolicy.admissionregistration.k8s.io \"p\" is invalid: spec.paramKind: \
         Forbidden: user &{bob  [dev] map[]} must have \"get\" permission on all objects of the \
         referenced paramKind (kind=ConfigMap, apiVersion=v1)"
    );
    client.create(POLICIES, named).await.unwrap();
    let binding = json!({"metadata": {"name": "p"}, "spec": {"policyName": "p",
        "paramRef": {"name": "x", "namespace": "default", "parameterNotFoundAction": "Deny"}}});
    let (_, message) = rejection(&bob, BINDINGS, binding).await;
    assert_eq!(
        message,
        "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io \"p\" is invalid: \
         spec.paramRef: Forbidden: user &{bob  [dev] map[]} does not have \"get\" permission on \
         the object referenced by paramRef"
    );
}

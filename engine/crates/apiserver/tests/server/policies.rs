//! Schema validation and admission policies respond as kube-apiserver does.

use std::sync::{Arc, Mutex};

use kubemu_apiserver::{Audit, Options, Patch, Reason, Server, User};
use serde_json::{Value, json};

use crate::fixture::{
    DEFINITIONS, MAPS, THINGS, at, definition, map, options, request, send, server, thing,
};

pub(crate) const POLICIES: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
pub(crate) const BINDINGS: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

pub(crate) fn policy(expression: &str) -> Value {
    json!({
        "metadata": {"name": "blue-only"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["configmaps"],
            }]},
            "validations": [{"expression": expression, "message": "the sky is blue"}],
        },
    })
}

pub(crate) fn binding(action: &str) -> Value {
    json!({
        "metadata": {"name": "everywhere"},
        "spec": {"policyName": "blue-only", "validationActions": [action]},
    })
}

const BLUE: &str = "!has(object.data.sky) || object.data.sky == 'blue'";

fn sky(name: &str, color: &str) -> Value {
    let mut map = map(name);
    map["data"]["sky"] = color.into();
    map
}

async fn guarded(action: &str) -> Server {
    let server = server();
    let client = server.client();
    client.create(POLICIES, policy(BLUE)).await.unwrap();
    client.create(BINDINGS, binding(action)).await.unwrap();
    server
}

#[tokio::test]
async fn a_bound_policy_rejects_violations() {
    let client = guarded("Deny").await.client();
    let refused = client.create(MAPS, sky("x", "green")).await.unwrap_err();
    assert_eq!((refused.code, refused.reason), (422, Reason::Invalid));
    assert_eq!(
        refused.message,
        "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'blue-only' with binding \
         'everywhere' denied request: the sky is blue"
    );
    client.create(MAPS, sky("x", "blue")).await.unwrap();
    let paint = Patch::Merge(json!({"data": {"sky": "grey"}}));
    assert_eq!(client.patch(&at("x"), paint).await.unwrap_err().code, 422);
}

#[tokio::test]
async fn a_policy_with_the_warn_action_admits_with_a_warning() {
    let server = guarded("Warn").await;
    let response = send(&server, request("POST", MAPS, &sky("x", "green"))).await;
    assert_eq!(response.status(), 201);
    assert_eq!(
        response.headers()["warning"],
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'blue-only' with binding \
         'everywhere': the sky is blue\""
    );
}

#[tokio::test]
async fn a_policy_without_a_binding_has_no_effect() {
    let client = server().client();
    client.create(POLICIES, policy(BLUE)).await.unwrap();
    client.create(MAPS, sky("x", "green")).await.unwrap();
}

#[tokio::test]
async fn a_policy_that_does_not_compile_is_rejected() {
    let client = server().client();
    let refused = client
        .create(POLICIES, policy("object."))
        .await
        .unwrap_err();
    assert_eq!(refused.code, 422);
    let start = "ValidatingAdmissionPolicy.admissionregistration.k8s.io \"blue-only\" is \
                 invalid: spec.validations[0].expression: Invalid value: \"object.\": \
                 compilation failed:";
    assert!(refused.message.starts_with(start), "{}", refused.message);
}

#[tokio::test]
async fn a_stored_policy_has_an_observed_generation() {
    let server = guarded("Deny").await;
    server.clock().wait_until_idle().await;
    let stored = server
        .client()
        .get(&format!("{POLICIES}/blue-only"))
        .await
        .unwrap();
    assert_eq!(stored["status"]["observedGeneration"], 1);
}

#[tokio::test]
async fn a_disabled_plugin_has_no_effect() {
    let disable_plugins = vec!["ValidatingAdmissionPolicy".to_owned()];
    let server = Server::new(Options {
        disable_plugins,
        ..options()
    })
    .unwrap();
    let client = server.client();
    client.create(POLICIES, policy(BLUE)).await.unwrap();
    client.create(BINDINGS, binding("Deny")).await.unwrap();
    client.create(MAPS, sky("x", "green")).await.unwrap();
}

#[tokio::test]
async fn a_custom_object_is_validated_against_its_schema() {
    let client = server().client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    let created = client.create(THINGS, thing("x")).await.unwrap();
    assert_eq!(created["spec"]["size"], 3);
    let mut small = thing("y");
    small["spec"]["size"] = 0.into();
    let refused = client.create(THINGS, small).await.unwrap_err();
    assert_eq!((refused.code, refused.reason), (422, Reason::Invalid));
    assert_eq!(
        refused.message,
        "Thing.example.com \"y\" is invalid: spec.size: Invalid value: 0: spec.size in body \
         should be greater than or equal to 1"
    );
    let details = refused.details.unwrap();
    assert_eq!(
        (details.kind.as_str(), details.group.as_str()),
        ("Thing", "example.com")
    );
    assert_eq!(details.causes[0].field, "spec.size");
    assert_eq!(details.causes[0].reason, "FieldValueInvalid");
}

#[tokio::test]
async fn a_definition_with_an_invalid_schema_is_rejected() {
    let client = server().client();
    let mut broken = definition();
    broken["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "nonsense"});
    assert_eq!(
        client.create(DEFINITIONS, broken).await.unwrap_err().code,
        422
    );
}

#[tokio::test]
async fn every_request_is_audited() {
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let sink = recorded.clone();
    let audit = Audit::new(move |event| {
        let line = format!(
            "{} {} {} {}",
            event.user, event.verb, event.resource, event.code
        );
        sink.lock().unwrap().push((line, event.is_write()));
    });
    let server = Server::new(Options {
        audit: Some(audit),
        ..options()
    })
    .unwrap();
    let jane = server.client_as(User::new("jane", &["system:masters"]));
    jane.create(MAPS, map("x")).await.unwrap();
    jane.get(&at("x")).await.unwrap();
    jane.get(&at("y")).await.unwrap_err();
    let expected = [
        ("jane create configmaps 201".to_owned(), true),
        ("jane get configmaps 200".to_owned(), false),
        ("jane get configmaps 404".to_owned(), false),
    ];
    assert_eq!(*recorded.lock().unwrap(), expected);
}

/// A server with a policy whose expression uses the authorizer, and a role for jane.
async fn with_authorizer_policy(expression: &str) -> Server {
    let server = server();
    let client = server.client();
    client.create(POLICIES, policy(expression)).await.unwrap();
    client.create(BINDINGS, binding("Deny")).await.unwrap();
    let role = json!({
        "metadata": {"name": "writer"},
        "rules": [{"verbs": ["create", "update"], "apiGroups": [""],
            "resources": ["configmaps"]}],
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    client.create(roles, role).await.unwrap();
    let bound = json!({
        "metadata": {"name": "writer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "writer"},
        "subjects": [{"kind": "User", "name": "jane"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    client.create(bindings, bound).await.unwrap();
    server
}

#[tokio::test]
async fn the_authorizer_of_a_policy_evaluates_roles() {
    let admits = async |expression: &str, user: User| {
        let client = with_authorizer_policy(expression).await.client_as(user);
        client.create(MAPS, map("x")).await.is_ok()
    };
    let jane = || User::new("jane", &[]);
    let update = "authorizer.requestResource.check('update').allowed()";
    assert!(admits(update, jane()).await);
    let delete = "authorizer.requestResource.check('delete').allowed()";
    assert!(!admits(delete, jane()).await);
    assert!(admits(delete, User::admin()).await);
    let secrets = "authorizer.group('').resource('secrets').namespace('default')\
                   .check('get').allowed()";
    assert!(!admits(secrets, jane()).await);
    let account = "authorizer.serviceAccount('default', 'default')\
                   .path('/openid/v1/jwks').check('get').allowed()";
    assert!(admits(account, jane()).await);
    let why = "authorizer.requestResource.check('update').reason() == 'RBAC: allowed by \
               ClusterRoleBinding \"writer\" of ClusterRole \"writer\" to User \"jane\"'";
    assert!(admits(why, jane()).await);
}

#[tokio::test]
async fn the_status_of_a_policy_has_type_errors_for_matched_built_in_kinds() {
    let server = server();
    let client = server.client();
    let mut misfit = policy("object.spec.nope == 1 && params.data.limit == 2");
    let rules = &mut misfit["spec"]["matchConstraints"]["resourceRules"][0];
    rules["resources"] = json!(["pods"]);
    misfit["spec"]["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    let fit = json!({"expression":
        "object.spec.containers.all(it, it.image.startsWith('a')) && \
         object.metadata.labels['a'] == 'b' && int(object.spec.priority) > 1 && \
         object.spec.containers[0].ports[0].containerPort < 80 && \
         object.status.startTime < timestamp('2030-01-01T00:00:00Z')"});
    let validations = misfit["spec"]["validations"].as_array_mut().unwrap();
    validations.push(fit);
    client.create(POLICIES, misfit).await.unwrap();
    server.clock().wait_until_idle().await;
    let stored = client.get(&format!("{POLICIES}/blue-only")).await.unwrap();
    let warnings = &stored["status"]["typeChecking"]["expressionWarnings"];
    assert_eq!(warnings.as_array().unwrap().len(), 1, "{warnings}");
    let warning = warnings[0]["warning"].as_str().unwrap();
    let start = "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'nope'";
    assert!(warning.starts_with(start), "{warning}");
    let params = "found no matching overload for '_==_' applied to '(string, int)'";
    assert!(warning.contains(params), "{warning}");
}

#[tokio::test]
async fn the_status_of_a_policy_has_type_errors_for_matched_definitions() {
    let server = server();
    let client = server.client();
    client.create(DEFINITIONS, definition()).await.unwrap();
    server.clock().wait_until_idle().await;
    let mut misfit = policy("object.spec.shape == 'round'");
    let rules = &mut misfit["spec"]["matchConstraints"]["resourceRules"][0];
    rules["apiGroups"] = json!(["example.com"]);
    rules["resources"] = json!(["things"]);
    client.create(POLICIES, misfit).await.unwrap();
    server.clock().wait_until_idle().await;
    let path = format!("{POLICIES}/blue-only");
    let stored = client.get(&path).await.unwrap();
    let warnings = &stored["status"]["typeChecking"]["expressionWarnings"];
    assert_eq!(warnings[0]["fieldRef"], "spec.validations[0].expression");
    let warning = warnings[0]["warning"].as_str().unwrap();
    let start =
        "example.com/v1, Kind=Thing: ERROR: <input>:1:12: undefined field 'shape'";
    assert!(warning.starts_with(start), "{warning}");
    let fit = json!([{"op": "replace", "path": "/spec/validations/0/expression",
        "value": "object.spec.size > 1"}]);
    client.patch(&path, Patch::Json(fit)).await.unwrap();
    server.clock().wait_until_idle().await;
    let stored = client.get(&path).await.unwrap();
    assert_eq!(stored["status"], json!({"observedGeneration": 2}));
}

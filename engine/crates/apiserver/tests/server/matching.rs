//! The requests that policies match, and the values that expressions read.

use kubemu_apiserver::{Client, Delete, Patch};
use serde_json::{Value, json};

use crate::fixture::{
    DEFINITIONS, PODS, THINGS, definition, pod, send_json, server, thing,
};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const NAMESPACES: &str = "/api/v1/namespaces";

/// Binds a policy that rejects all matching requests, with the message expression `message`.
async fn guard(client: &Client, constraints: Value, message: &str) {
    let policy = json!({
        "metadata": {"name": "guard"},
        "spec": {
            "matchConstraints": constraints,
            "validations": [{"expression": "false", "messageExpression": message}],
        },
    });
    let policies = format!("{ADMISSION}/validatingadmissionpolicies");
    client.create(&policies, policy).await.unwrap();
    let binding = json!({"metadata": {"name": "guard"},
        "spec": {"policyName": "guard", "validationActions": ["Deny"]}});
    let bindings = format!("{ADMISSION}/validatingadmissionpolicybindings");
    client.create(&bindings, binding).await.unwrap();
}

fn rule(group: &str, resource: &str) -> Value {
    json!({"resourceRules": [{"apiGroups": [group], "apiVersions": ["*"],
        "operations": ["*"], "resources": [resource]}]})
}

#[tokio::test]
async fn policies_match_webhook_configurations_and_not_policies() {
    let client = server().client();
    guard(&client, rule("admissionregistration.k8s.io", "*"), "'no'").await;
    let webhooks = format!("{ADMISSION}/validatingwebhookconfigurations");
    let hook = json!({"metadata": {"name": "w"}, "webhooks": []});
    let refused = client.create(&webhooks, hook).await.unwrap_err();
    assert_eq!(refused.code, 422);
    let binding = format!("{ADMISSION}/validatingadmissionpolicybindings/guard");
    client.delete(&binding, &Delete::default()).await.unwrap();
}

#[tokio::test]
async fn a_namespace_selector_matches_the_namespace_itself() {
    let server = server();
    let client = server.client();
    for (name, stage) in [("prod", "prod"), ("test", "test")] {
        let created = json!({"metadata": {"name": name, "labels": {"stage": stage}}});
        client.create(NAMESPACES, created).await.unwrap();
    }
    let constraints = json!({
        "namespaceSelector": {"matchLabels": {"stage": "prod"}},
        "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
            "operations": ["DELETE", "UPDATE"],
            "resources": ["namespaces", "namespaces/status", "namespaces/finalize"]}],
    });
    guard(&client, constraints, "'no'").await;
    let how = Delete::default();
    let prod = format!("{NAMESPACES}/prod");
    assert_eq!(client.delete(&prod, &how).await.unwrap_err().code, 422);
    // A write to a subresource of the namespace cannot change its labels.
    let unlabelled = || Patch::Merge(json!({"metadata": {"labels": {"stage": null}}}));
    let status = format!("{prod}/status");
    let refused = client.patch(&status, unlabelled()).await.unwrap_err();
    assert_eq!(refused.code, 422);
    let finalize = format!("{prod}/finalize");
    let body = json!({"metadata": {"name": "prod"}, "spec": {"finalizers": []}});
    assert_eq!(send_json(&server, "PUT", &finalize, body).await.0, 422);
    client.patch(&prod, unlabelled()).await.unwrap();
    client
        .delete(&format!("{NAMESPACES}/test"), &how)
        .await
        .unwrap();
}

/// The message of the policy.
fn policy_message(answer: &(u16, Value)) -> &str {
    let message = answer.1["message"].as_str().unwrap_or_default();
    message
        .rsplit("denied request: ")
        .next()
        .unwrap_or_default()
}

const KIND: &str = "request.kind.group + '/' + request.kind.version + ' ' + \
                    request.kind.kind + ' through ' + request.resource.resource + '/' + \
                    request.subResource";

#[tokio::test]
async fn the_request_has_the_kind_that_a_subresource_takes() {
    let bodies = [
        (
            "pods/eviction",
            format!("{PODS}/a/eviction"),
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}),
            "policy/v1 Eviction through pods/eviction",
        ),
        (
            "pods/binding",
            format!("{PODS}/a/binding"),
            json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}),
            "/v1 Binding through pods/binding",
        ),
        (
            "serviceaccounts/token",
            "/api/v1/namespaces/default/serviceaccounts/default/token".to_owned(),
            json!({"spec": {}}),
            "authentication.k8s.io/v1 TokenRequest through serviceaccounts/token",
        ),
    ];
    for (resource, path, body, expected) in bodies {
        let server = server();
        let client = server.client();
        client.create(PODS, pod("a", "", "web")).await.unwrap();
        server.clock().wait_until_idle().await;
        guard(&client, rule("", resource), KIND).await;
        let answer = send_json(&server, "POST", &path, body).await;
        assert_eq!(
            (answer.0, policy_message(&answer)),
            (422, expected),
            "{}",
            answer.1
        );
    }
}

#[tokio::test]
async fn the_object_of_a_scale_request_is_the_scale() {
    let server = server();
    let client = server.client();
    let mut scaled = definition();
    let version = &mut scaled["spec"]["versions"][0];
    version["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"});
    let schema = &mut version["schema"]["openAPIV3Schema"]["properties"];
    schema["status"]["properties"]["size"] = json!({"type": "integer"});
    client.create(DEFINITIONS, scaled).await.unwrap();
    server.clock().wait_until_idle().await;
    client.create(THINGS, thing("t")).await.unwrap();
    let what = format!(
        "{KIND} + ' from ' + string(oldObject.spec.replicas) + ' to ' + \
         string(object.spec.replicas)"
    );
    guard(&client, rule("example.com", "things/scale"), &what).await;
    let path = format!("{THINGS}/t/scale");
    let (_, mut scale) = send_json(&server, "GET", &path, Value::Null).await;
    scale["spec"]["replicas"] = 5.into();
    let answer = send_json(&server, "PUT", &path, scale).await;
    let expected = "autoscaling/v1 Scale through things/scale from 3 to 5";
    assert_eq!(policy_message(&answer), expected, "{}", answer.1);
    let grown = Patch::Merge(json!({"spec": {"size": 5}}));
    client.patch(&format!("{THINGS}/t"), grown).await.unwrap();
}

#[tokio::test]
async fn delete_options_of_body_and_query_are_available() {
    let rows = [
        (
            "",
            json!({"dryRun": ["All"], "gracePeriodSeconds": 5}),
            "true 5",
        ),
        ("?dryRun=All&gracePeriodSeconds=5", Value::Null, "true 5"),
        ("", json!({"gracePeriodSeconds": 7}), "false 7"),
    ];
    let what =
        "string(request.dryRun) + ' ' + string(request.options.gracePeriodSeconds)";
    for (query, body, expected) in rows {
        let server = server();
        let client = server.client();
        client.create(PODS, pod("a", "", "web")).await.unwrap();
        guard(&client, rule("", "pods"), what).await;
        let answer =
            send_json(&server, "DELETE", &format!("{PODS}/a{query}"), body).await;
        assert_eq!(
            (answer.0, policy_message(&answer)),
            (422, expected),
            "{}",
            answer.1
        );
    }
}

//! An object is shown in each of its versions, and kept in one.

use fivespot_apiserver::{Client, Delete, Patch, Selector, Server};
use serde_json::{Value, json};

use crate::fixture::{DEFINITIONS, definition, map, next, read, request, send, server};
use crate::policies::{BINDINGS, POLICIES, binding, policy};

const V1: &str = "/apis/example.com/v1/namespaces/default/things";
const V2: &str = "/apis/example.com/v2/namespaces/default/things";

/// Things whose spec has the field `a` in `v1`, which is kept, and `b` in `v2`.
fn two_versions() -> Value {
    let version = |name: &str, field: &str| {
        json!({
            "name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {field: {"type": "string"}}},
            }}},
        })
    };
    let mut definition = definition();
    definition["spec"]["versions"] = json!([version("v1", "a"), version("v2", "b")]);
    definition
}

fn thing(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("example.com/{version}"), "kind": "Thing",
        "metadata": {"name": "x"}, "spec": spec})
}

async fn things(definition: Value) -> (Server, Client) {
    let server = server();
    let client = server.client();
    client.create(DEFINITIONS, definition).await.unwrap();
    server.clock().quiet().await;
    client
        .create(V1, thing("v1", json!({"a": "x"})))
        .await
        .unwrap();
    (server, client)
}

#[tokio::test]
async fn what_another_version_does_not_have_is_not_shown_in_it() {
    let (_server, client) = things(two_versions()).await;
    let one = client.get(&format!("{V2}/x")).await.unwrap();
    assert_eq!(
        (&one["apiVersion"], &one["spec"]),
        (&json!("example.com/v2"), &json!({}))
    );
    let all = client.list(V2, &Selector::default()).await.unwrap();
    assert_eq!(all.items[0]["spec"], json!({}));
    let mut watch = client.watch(V2, &Selector::default(), "").unwrap();
    assert_eq!(next(&mut watch).await.object["spec"], json!({}));
    let patch = Patch::Merge(json!({"spec": {"a": "y"}}));
    client.patch(&format!("{V1}/x"), patch).await.unwrap();
    assert_eq!(next(&mut watch).await.object["spec"], json!({}));
    let kept = client.get(&format!("{V1}/x")).await.unwrap();
    assert_eq!(kept["spec"], json!({"a": "y"}));
}

#[tokio::test]
async fn what_the_kept_version_does_not_have_is_lost() {
    let (_server, client) = things(two_versions()).await;
    let patch = Patch::Merge(json!({"spec": {"b": "y"}}));
    let patched = client.patch(&format!("{V2}/x"), patch).await.unwrap();
    assert_eq!(patched["spec"], json!({}));
    let kept = client.get(&format!("{V1}/x")).await.unwrap();
    assert_eq!(
        kept["spec"],
        json!({}),
        "what v2 does not show is not written back"
    );
    client
        .delete(&format!("{V2}/x"), &Delete::default())
        .await
        .unwrap();
    client
        .create(V2, thing("v2", json!({"b": "y"})))
        .await
        .unwrap();
    let kept = client.get(&format!("{V1}/x")).await.unwrap();
    assert_eq!(kept["spec"], json!({}));
}

#[tokio::test]
async fn a_policy_for_another_version_sees_what_that_has() {
    let (_server, client) = things(two_versions()).await;
    let mut other =
        policy("object.apiVersion == 'example.com/v2' && !has(object.spec.a)");
    let rule = &mut other["spec"]["matchConstraints"]["resourceRules"][0];
    rule["apiGroups"] = json!(["example.com"]);
    rule["apiVersions"] = json!(["v2"]);
    rule["resources"] = json!(["things"]);
    client.create(POLICIES, other).await.unwrap();
    client.create(BINDINGS, binding("Deny")).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"a": "z"}}));
    client.patch(&format!("{V1}/x"), patch).await.unwrap();
}

#[tokio::test]
async fn a_policy_on_events_of_the_newer_group_sees_their_newer_fields() {
    let client = server().client();
    let mut other = policy(
        "object.apiVersion == 'events.k8s.io/v1' && object.regarding.name == 'm' && \
         object.note == 'hello'",
    );
    let rule = &mut other["spec"]["matchConstraints"]["resourceRules"][0];
    rule["apiGroups"] = json!(["events.k8s.io"]);
    rule["resources"] = json!(["events"]);
    client.create(POLICIES, other).await.unwrap();
    client.create(BINDINGS, binding("Deny")).await.unwrap();
    let event = json!({"metadata": {"name": "e"}, "message": "hello", "type": "Normal",
        "involvedObject": {"kind": "ConfigMap", "name": "m", "namespace": "default"}});
    client
        .create("/api/v1/namespaces/default/events", event)
        .await
        .unwrap();
}

fn by_webhook(client_config: Value) -> Value {
    let mut definition = two_versions();
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": client_config}});
    definition
}

#[tokio::test]
async fn a_conversion_that_no_webhook_does_is_an_error_and_not_a_guess() {
    let service = json!({"service": {"name": "hooks", "namespace": "tools"}});
    let (_server, client) = things(by_webhook(service)).await;
    let kept = client.get(&format!("{V1}/x")).await.unwrap();
    assert_eq!(
        kept["spec"],
        json!({"a": "x"}),
        "the kept version needs no conversion"
    );
    let start = "conversion webhook for example.com/v1, Kind=Thing failed: ";
    let refused = client.get(&format!("{V2}/x")).await.unwrap_err();
    assert_eq!(refused.code, 500);
    assert!(refused.message.starts_with(start), "{}", refused.message);
    let refused = client.list(V2, &Selector::default()).await.unwrap_err();
    assert!(refused.message.starts_with(start), "{}", refused.message);
    let patch = Patch::Merge(json!({"spec": {"b": "y"}}));
    let refused = client.patch(&format!("{V2}/x"), patch).await.unwrap_err();
    assert!(refused.message.starts_with(start), "{}", refused.message);
    let mut other = thing("v2", json!({"b": "y"}));
    other["metadata"]["name"] = "y".into();
    let refused = client.create(V2, other).await.unwrap_err();
    assert!(
        refused
            .message
            .starts_with("conversion webhook for example.com/v2, Kind=Thing"),
        "{}",
        refused.message
    );
    let mut watch = client.watch(V2, &Selector::default(), "").unwrap();
    let told = futures::StreamExt::next(&mut watch)
        .await
        .unwrap()
        .unwrap_err();
    assert!(told.message.starts_with(start), "{}", told.message);
}

#[tokio::test]
async fn a_webhook_configuration_is_taken_with_the_warning_that_it_is_not_called() {
    let server = server();
    for (kind, plural) in [
        (
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
        ),
        (
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
        ),
    ] {
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "hooks"},
            "webhooks": [{"name": "a.example.com", "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": "https://127.0.0.1:1/"}}],
        });
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
        let response = send(&server, request("POST", &path, &configuration)).await;
        let warning = response.headers().get("warning").cloned();
        assert_eq!(read(response).await.0, 201);
        let warning = warning.unwrap();
        let expected = format!(
            "299 - \"{kind} \\\"hooks\\\" is stored and its webhooks are not called: \
             requests are admitted as if there were none\""
        );
        assert_eq!(warning.to_str().unwrap(), expected);
    }
    server
        .client()
        .create(crate::fixture::MAPS, map("x"))
        .await
        .unwrap();
}

//! Objects are returned in every served version, and stored in one.

use std::time::Duration;

use futures::StreamExt as _;
use kubemu_apiserver::{Client, Delete, Patch, Selector, Server, Watch};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::fixture::{
    DEFINITIONS, MAPS, definition, map, next, read, request, send, server,
};
use crate::policies::{BINDINGS, POLICIES, binding, policy};
use crate::webhook_server::{WebhookServer, authority};

const V1: &str = "/apis/example.com/v1/namespaces/default/things";
const V2: &str = "/apis/example.com/v2/namespaces/default/things";

/// A definition whose spec has the field `a` in `v1`, the storage version, and `b` in `v2`.
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
    server.clock().wait_until_idle().await;
    client
        .create(V1, thing("v1", json!({"a": "x"})))
        .await
        .unwrap();
    (server, client)
}

#[tokio::test]
async fn fields_that_a_version_does_not_have_are_pruned_from_responses() {
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
    let retained = client.get(&format!("{V1}/x")).await.unwrap();
    assert_eq!(retained["spec"], json!({"a": "y"}));
}

#[tokio::test]
async fn fields_that_the_storage_version_does_not_have_are_pruned() {
    let (_server, client) = things(two_versions()).await;
    let patch = Patch::Merge(json!({"spec": {"b": "y"}}));
    let patched = client.patch(&format!("{V2}/x"), patch).await.unwrap();
    assert_eq!(patched["spec"], json!({}));
    let retained = client.get(&format!("{V1}/x")).await.unwrap();
    assert_eq!(
        retained["spec"],
        json!({}),
        "fields that v2 prunes are not stored"
    );
    client
        .delete(&format!("{V2}/x"), &Delete::default())
        .await
        .unwrap();
    client
        .create(V2, thing("v2", json!({"b": "y"})))
        .await
        .unwrap();
    let retained = client.get(&format!("{V1}/x")).await.unwrap();
    assert_eq!(retained["spec"], json!({}));
}

#[tokio::test]
async fn a_policy_for_another_version_matches_the_converted_object() {
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
async fn a_policy_on_events_k8s_io_has_the_fields_of_that_group() {
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

/// The warnings for a client that sends an object of one version to the path of another.
async fn warned_of(server: &Server, version: &str) -> Vec<String> {
    let object = thing(version, json!({"a": "x", "b": "y"}));
    let response = send(server, request("POST", V2, &object)).await;
    let warnings = response.headers().get_all("warning").into_iter();
    let warnings = warnings.map(|it| it.to_str().unwrap().to_owned()).collect();
    let (code, body) = read(response).await;
    assert_eq!(code, 400);
    let mismatch = "does not match the expected API version";
    assert!(body.contains(mismatch), "{body}");
    warnings
}

#[tokio::test]
async fn unknown_fields_are_reported_for_the_version_of_the_object() {
    let (server, _client) = things(two_versions()).await;
    let known = warned_of(&server, "v1").await;
    assert_eq!(known, ["299 - \"unknown field \\\"spec.b\\\"\""]);
    let unknown = warned_of(&server, "v9").await;
    assert_eq!(unknown, ["299 - \"unknown field \\\"spec\\\"\""]);
}

fn by_webhook(client_config: Value) -> Value {
    let mut definition = two_versions();
    definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": client_config}});
    definition
}

#[tokio::test]
async fn an_unavailable_conversion_webhook_is_an_error() {
    let service = json!({"service": {"name": "hooks", "namespace": "tools"}});
    let (_server, client) = things(by_webhook(service)).await;
    let retained = client.get(&format!("{V1}/x")).await.unwrap();
    assert_eq!(
        retained["spec"],
        json!({"a": "x"}),
        "the storage version needs no conversion"
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
    let answer = futures::StreamExt::next(&mut watch)
        .await
        .unwrap()
        .unwrap_err();
    assert!(answer.message.starts_with(start), "{}", answer.message);
}

/// A webhook that converts each object to the desired version with `convert`. Its certificate is
/// its own authority.
async fn converter(convert: fn(&Value, &str) -> Value) -> WebhookServer {
    WebhookServer::start_with(authority(), move |review| {
        let request = &review["request"];
        let version = request["desiredAPIVersion"].as_str().unwrap();
        let objects = request["objects"].as_array().unwrap().iter();
        let converted: Vec<Value> = objects.map(|it| convert(it, version)).collect();
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "response": {"uid": request["uid"], "result": {"status": "Success"},
                "convertedObjects": converted}})
    })
    .await
}

/// Renames the field of one version to that of the other.
fn renamed(object: &Value, version: &str) -> Value {
    let mut object = object.clone();
    let (from, to) = if version.ends_with("v2") {
        ("a", "b")
    } else {
        ("b", "a")
    };
    object["apiVersion"] = version.into();
    if let Some(value) = object["spec"].as_object_mut().unwrap().shift_remove(from) {
        object["spec"][to] = value;
    }
    object
}

#[tokio::test]
async fn a_webhook_converts_reads_writes_and_watch_events() {
    let hook = converter(renamed).await;
    let (_server, client) = things(by_webhook(hook.by_url("/convert"))).await;
    let mut second = thing("v1", json!({"a": "z"}));
    second["metadata"]["name"] = "y".into();
    client.create(V1, second).await.unwrap();
    let one = client.get(&format!("{V2}/x")).await.unwrap();
    assert_eq!(
        (&one["apiVersion"], &one["spec"]),
        (&json!("example.com/v2"), &json!({"b": "x"}))
    );
    let before = hook.reviews.lock().unwrap().len();
    let all = client.list(V2, &Selector::default()).await.unwrap();
    let specs: Vec<&Value> = all.items.iter().map(|it| &it["spec"]).collect();
    assert_eq!(specs, [&json!({"b": "x"}), &json!({"b": "z"})]);
    assert_eq!(
        hook.reviews.lock().unwrap().len(),
        before + 1,
        "all in one review"
    );
    let mut watch = client
        .watch(V2, &Selector::fields("metadata.name=x"), "")
        .unwrap();
    assert_eq!(next(&mut watch).await.object["spec"], json!({"b": "x"}));
    let patch = Patch::Merge(json!({"spec": {"b": "w"}}));
    let patched = client.patch(&format!("{V2}/x"), patch).await.unwrap();
    assert_eq!(patched["spec"], json!({"b": "w"}));
    assert_eq!(next(&mut watch).await.object["spec"], json!({"b": "w"}));
    let retained = client.get(&format!("{V1}/x")).await.unwrap();
    assert_eq!(retained["spec"], json!({"a": "w"}));
    assert_eq!(
        retained["metadata"]["resourceVersion"],
        patched["metadata"]["resourceVersion"]
    );
    let mut third = thing("v2", json!({"b": "v"}));
    third["metadata"]["name"] = "third".into();
    let created = client.create(V2, third).await.unwrap();
    assert_eq!(created["spec"], json!({"b": "v"}));
    let retained = client.get(&format!("{V1}/third")).await.unwrap();
    assert_eq!(
        (&retained["spec"], &retained["metadata"]["uid"]),
        (&json!({"a": "v"}), &created["metadata"]["uid"])
    );
    client
        .delete(&format!("{V2}/third"), &Delete::default())
        .await
        .unwrap();
    client
        .delete_collection(V2, &Selector::default())
        .await
        .unwrap();
    let none = client.list(V1, &Selector::default()).await.unwrap();
    assert_eq!(none.items.len(), 0);
}

#[tokio::test]
async fn a_policy_for_another_version_matches_the_object_of_the_webhook() {
    let hook = converter(renamed).await;
    let (_server, client) = things(by_webhook(hook.by_url("/convert"))).await;
    let mut other = policy("object.spec.b != 'red'");
    let rule = &mut other["spec"]["matchConstraints"]["resourceRules"][0];
    rule["apiGroups"] = json!(["example.com"]);
    rule["apiVersions"] = json!(["v2"]);
    rule["resources"] = json!(["things"]);
    client.create(POLICIES, other).await.unwrap();
    client.create(BINDINGS, binding("Deny")).await.unwrap();
    let paint = |color: &str| Patch::Merge(json!({"spec": {"a": color}}));
    client
        .patch(&format!("{V1}/x"), paint("blue"))
        .await
        .unwrap();
    let refused = client
        .patch(&format!("{V1}/x"), paint("red"))
        .await
        .unwrap_err();
    assert!(
        refused.message.ends_with("the sky is blue"),
        "{}",
        refused.message
    );
}

/// Binds a policy that compares `data.a` of config maps with `b` of the parameters, which are
/// things of version `v2`.
async fn compare_with_things(client: &Client, reference: Value) {
    let mut compared = policy("object.data.a == params.spec.b");
    compared["spec"]["paramKind"] =
        json!({"apiVersion": "example.com/v2", "kind": "Thing"});
    client.create(POLICIES, compared).await.unwrap();
    let mut bound = binding("Deny");
    bound["spec"]["paramRef"] = reference;
    client.create(BINDINGS, bound).await.unwrap();
}

#[tokio::test]
async fn a_policy_reads_its_parameters_in_the_version_of_its_param_kind() {
    for selected in [json!({"name": "x"}), json!({"selector": {}})] {
        let hook = converter(renamed).await;
        let (_server, client) = things(by_webhook(hook.by_url("/convert"))).await;
        let mut reference = selected;
        reference["parameterNotFoundAction"] = "Deny".into();
        compare_with_things(&client, reference).await;
        let refused = client.create(MAPS, map("other")).await.unwrap_err();
        assert!(refused.message.ends_with("the sky is blue"), "{refused}");
        let mut same = map("same");
        same["data"]["a"] = "x".into();
        client.create(MAPS, same).await.unwrap();
    }
}

#[tokio::test]
async fn parameters_that_cannot_be_converted_are_an_error_of_the_policy() {
    let service = json!({"service": {"name": "hooks", "namespace": "tools"}});
    let (_server, client) = things(by_webhook(service)).await;
    let reference = json!({"name": "x", "parameterNotFoundAction": "Allow"});
    compare_with_things(&client, reference).await;
    let refused = client.create(MAPS, map("m")).await.unwrap_err();
    let why = "failed to configure binding: paramKind kind \
               `&ParamKind{APIVersion:example.com/v2,Kind:Thing,}` not yet synced to use for \
               admission";
    assert!(refused.message.ends_with(why), "{refused}");
}

#[tokio::test]
async fn a_webhook_is_resolved_by_an_external_name_service() {
    let hook = converter(renamed).await;
    let service = json!({"service": {"name": "hooks", "namespace": "tools",
        "port": hook.address.port(), "path": "/convert"}, "caBundle": hook.bundle});
    let (_server, client) = things(by_webhook(service)).await;
    let refused = client.get(&format!("{V2}/x")).await.unwrap_err();
    assert_eq!(
        refused.message,
        "conversion webhook for example.com/v1, Kind=Thing failed: service \"hooks\" not found"
    );
    let tools = json!({"metadata": {"name": "tools"}});
    client.create("/api/v1/namespaces", tools).await.unwrap();
    let named = json!({"metadata": {"name": "hooks"},
        "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}});
    client
        .create("/api/v1/namespaces/tools/services", named)
        .await
        .unwrap();
    let one = client.get(&format!("{V2}/x")).await.unwrap();
    assert_eq!(one["spec"], json!({"b": "x"}));
}

#[tokio::test]
async fn a_conversion_webhook_must_not_change_the_name() {
    let hook = converter(|object, version| {
        let mut other = renamed(object, version);
        other["metadata"]["name"] = "other".into();
        other
    })
    .await;
    let (_server, client) = things(by_webhook(hook.by_url("/convert"))).await;
    let refused = client.get(&format!("{V2}/x")).await.unwrap_err();
    assert!(
        refused
            .message
            .contains("metadata.name changed from \"x\" to \"other\""),
        "{}",
        refused.message
    );
}

/// Whether a watch ends before its next event, which must come soon.
async fn ends(watch: &mut Watch) -> bool {
    let next = timeout(Duration::from_secs(10), watch.next());
    next.await.is_ok_and(|it| it.is_none())
}

#[tokio::test]
async fn a_watch_ends_when_the_spec_of_its_definition_changes() {
    let hook = converter(renamed).await;
    let changes = [
        json!([{"op": "add", "value": {"type": "string"}, "path": "/spec/versions/1/schema\
            /openAPIV3Schema/properties/spec/properties/a"}]),
        json!([{"op": "add", "path": "/spec/conversion",
            "value": by_webhook(hook.by_url("/convert"))["spec"]["conversion"]}]),
        json!([{"op": "replace", "path": "/spec/versions/1/served", "value": false}]),
    ];
    let expected = [json!({"a": "y"}), json!({"b": "y"}), Value::Null];
    for (change, expected) in changes.into_iter().zip(expected) {
        let (_server, client) = things(two_versions()).await;
        let mut watch = client.watch(V2, &Selector::default(), "").unwrap();
        let first = next(&mut watch).await.object;
        assert_eq!(first["spec"], json!({}));
        let path = format!("{DEFINITIONS}/things.example.com");
        let changed = Patch::Json(change.clone());
        client.patch(&path, changed).await.unwrap();
        let patch = Patch::Merge(json!({"spec": {"a": "y"}}));
        client.patch(&format!("{V1}/x"), patch).await.unwrap();
        assert!(ends(&mut watch).await, "{change}");
        let version = first["metadata"]["resourceVersion"].as_str().unwrap();
        match client.watch(V2, &Selector::default(), version) {
            Ok(mut resumed) => {
                assert_eq!(next(&mut resumed).await.object["spec"], expected);
            }
            Err(refused) => assert_eq!((refused.code, expected), (404, Value::Null)),
        }
    }
}

#[tokio::test]
async fn a_watch_goes_on_when_the_definition_changes_only_beside_its_spec() {
    let (_server, client) = things(two_versions()).await;
    let mut watch = client.watch(V2, &Selector::default(), "").unwrap();
    next(&mut watch).await;
    let path = format!("{DEFINITIONS}/things.example.com");
    let labelled = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    client.patch(&path, labelled).await.unwrap();
    let patch = Patch::Merge(json!({"spec": {"a": "y"}}));
    client.patch(&format!("{V1}/x"), patch).await.unwrap();
    assert_eq!(next(&mut watch).await.kind.as_str(), "MODIFIED");
}

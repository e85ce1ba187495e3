//! Tests of every built-in kind.

mod sample;

use bytes::Bytes;
use futures::StreamExt as _;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kubemu_clock::Clock;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::BuiltinKind;
use super::builtin::resources;
use crate::resource::{Resource, Verb};
use crate::{Options, Selector, Server, protobuf, review};
use sample::{Sample, sample};

fn server() -> Server {
    let start = "2026-03-06T21:30:00Z".parse().unwrap();
    Server::new(Options::new(Clock::stopped_at(start))).unwrap()
}

/// The collection path of a resource.
fn collection(resource: &Resource) -> String {
    let root = match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    if resource.namespaced {
        format!("{root}/namespaces/default/{}", resource.plural)
    } else {
        format!("{root}/{}", resource.plural)
    }
}

/// Posts a body; returns the status code and the JSON of the response.
async fn post(server: &Server, path: &str, media: &str, body: Vec<u8>) -> (u16, Value) {
    let request = Request::builder()
        .method("POST")
        .uri(path)
        .header("content-type", media)
        .header("accept", "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let response = server.in_process().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap())
}

async fn get(server: &Server, path: &str, accept: &str) -> Value {
    let request = Request::builder()
        .uri(path)
        .header("accept", accept)
        .body(Full::new(Bytes::new()))
        .unwrap();
    let response = server.in_process().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&bytes).unwrap()
}

/// Every kind with its resource and its sample; a kind without one fails the test.
fn all() -> Vec<(Resource, Sample)> {
    // What is computed is not written, and a binding needs a pod.
    let is_created = |it: &Resource| {
        let kind = it.builtin.as_ref().unwrap();
        kind.computed().is_none() && !review::is_binding(it)
    };
    let created = resources().into_iter().filter(is_created);
    let with_sample = created.map(|resource| {
        let found = sample(&resource);
        let found = found.unwrap_or_else(|| panic!("no sample of {}", resource.kind));
        (resource, found)
    });
    with_sample.collect()
}

fn stored() -> impl Iterator<Item = (Resource, Sample)> {
    all().into_iter().filter(|(it, _)| !review::is_review(it))
}

/// The object without fields that differ between two objects.
fn content(object: &Value) -> Value {
    let mut object = object.clone();
    let fields = object.as_object_mut().unwrap();
    fields.shift_remove("metadata");
    // The status of a definition has its accepted names.
    fields.shift_remove("status");
    object
}

#[tokio::test]
async fn every_kind_is_created_and_defaulted_the_same_from_json_and_protobuf() {
    for (resource, sample) in all() {
        let kind = &resource.kind;
        let path = collection(&resource);
        // A separate server each, so that both objects can have the same name.
        let json = sample.object.to_string().into_bytes();
        let (code, first) = post(&server(), &path, "application/json", json).await;
        assert_eq!(code, 201, "{kind}: {first}");
        for (pointer, expected) in &sample.defaults {
            let found = first.pointer(pointer);
            assert_eq!(found, Some(expected), "{kind}: {pointer} of {first}");
        }
        let body = protobuf::encode(&sample.object);
        let body = body.unwrap_or_else(|| panic!("{kind} is not in the protobuf table"));
        let (code, second) = post(&server(), &path, protobuf::MEDIA, body).await;
        assert_eq!(code, 201, "{kind}: {second}");
        assert_eq!(content(&second), content(&first), "{kind}");
    }
}

#[tokio::test]
async fn every_stored_kind_rejects_invalid_objects() {
    let server = server();
    for (resource, sample) in stored() {
        let kind = &resource.kind;
        let path = collection(&resource);
        let nameless = (json!({"metadata": {"name": "a/b"}}), "metadata.name");
        for (change, field) in sample.mistakes.iter().chain([&nameless]) {
            let mut wrong = sample.object.clone();
            json_patch::merge(&mut wrong, change);
            let body = wrong.to_string().into_bytes();
            let (code, refused) = post(&server, &path, "application/json", body).await;
            assert_eq!(code, 422, "{kind} with {change}: {refused}");
            let causes = refused["details"]["causes"].as_array().unwrap();
            let named = causes.iter().any(|it| it["field"] == *field);
            assert!(named, "{kind} with {change}: no {field} in {refused}");
        }
    }
}

#[tokio::test]
async fn every_stored_kind_can_be_listed_as_a_table_and_watched() {
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (resource, sample) in stored() {
        let kind = &resource.kind;
        let (server, path) = (server(), collection(&resource));
        let client = server.client();
        let mut watch = client.watch(&path, &Selector::default(), "").unwrap();
        client.create(&path, sample.object.clone()).await.unwrap();
        let name = &sample.object["metadata"]["name"];
        let mut seen = false;
        while !seen {
            let event = watch.next().await.unwrap().unwrap();
            seen = event.object["metadata"]["name"] == *name;
            assert_eq!(event.object["kind"], *kind);
        }
        let shown = get(&server, &path, table).await;
        let columns = shown["columnDefinitions"].as_array().unwrap();
        let rows = shown["rows"].as_array().unwrap();
        let named: Vec<_> = columns.iter().map(|it| &it["name"]).collect();
        let at = named.iter().position(|it| **it == "Name");
        let at = at.unwrap_or_else(|| panic!("{kind} has no column Name: {named:?}"));
        let own = rows.iter().find(|it| it["cells"][at] == *name);
        let own = own.unwrap_or_else(|| panic!("{kind} is not in {rows:?}"));
        let cells = own["cells"].as_array().unwrap();
        assert_eq!(
            cells.len(),
            columns.len(),
            "{kind}: {named:?} and {cells:?}"
        );
        // A null cell would be evaluated from a JSON path, which built-in kinds do not have.
        assert!(
            !cells.contains(&Value::Null),
            "{kind}: {named:?} and {cells:?}"
        );
    }
}

#[tokio::test]
async fn every_kind_is_in_discovery_and_in_openapi() {
    let server = server();
    for resource in resources() {
        let (group, version, kind) = (&resource.group, &resource.version, &resource.kind);
        let root = match group.as_str() {
            "" => format!("api/{version}"),
            _ => format!("apis/{group}/{version}"),
        };
        let listed = get(&server, &format!("/{root}"), "application/json").await;
        let mut listed = listed["resources"].as_array().unwrap().iter();
        assert!(listed.any(|it| it["kind"] == *kind), "{kind}");
        let document = get(&server, &format!("/openapi/v3/{root}"), "*/*").await;
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let expected = json!([{"group": group, "version": version, "kind": kind}]);
        let described = schemas
            .values()
            .find(|it| it["x-kubernetes-group-version-kind"] == expected);
        let described = described.unwrap_or_else(|| panic!("no schema of {kind}"));
        assert!(described["properties"].is_object(), "{kind}: {described}");
    }
}

#[tokio::test]
async fn every_field_selector_of_every_kind_is_supported() {
    let server = server();
    let client = server.client();
    for resource in resources() {
        if !resource.allows(Verb::List) {
            continue;
        }
        let path = collection(&resource);
        let by = |field: &str| Selector {
            fields: format!("{field}=x"),
            ..Selector::default()
        };
        let kind: &dyn BuiltinKind = &**resource.builtin.as_ref().unwrap();
        let own = kind.field_selectors().iter().map(|it| it.name);
        for field in own.chain(["metadata.name"]) {
            let found = client.list(&path, &by(field)).await;
            assert!(found.is_ok(), "{} by {field}: {found:?}", resource.kind);
        }
        let refused = client.list(&path, &by("spec.nonsense")).await.unwrap_err();
        assert_eq!(refused.code, 400, "{}", resource.kind);
    }
}

#[test]
fn both_event_versions_share_one_storage() {
    let all = resources();
    let events: Vec<_> = all.iter().filter(|it| it.kind == "Event").collect();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0].storage, events[1].storage);
    assert_eq!(events[0].stored_as, events[1].stored_as);
}

#[test]
fn an_absent_field_is_selected_by_its_default() {
    let registry = crate::Registry::builtin();
    for (plural, text) in [
        ("nodes", "spec.unschedulable=false"),
        ("pods", "spec.hostNetwork=false"),
        ("pods", "spec.nodeName="),
    ] {
        let resource = registry.find("", "v1", plural).unwrap();
        let selector = crate::selector::Fields::parse(text, resource).unwrap();
        assert!(selector.matches(&json!({"spec": {}})), "{plural} by {text}");
    }
}

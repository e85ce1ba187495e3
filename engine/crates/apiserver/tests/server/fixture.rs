//! A server with a stopped clock, and the objects of the tests.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use kubemu_apiserver::{Body, Client, Options, Server, Watch, WatchEvent};
use kubemu_clock::Clock;
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const DEFINITIONS: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(crate) fn options() -> Options {
    let start = "2026-03-06T21:30:00Z".parse().unwrap();
    Options::new(Clock::stopped_at(start))
}

pub(crate) fn server() -> Server {
    Server::new(options()).unwrap()
}

pub(crate) fn client() -> Client {
    server().client()
}

pub(crate) fn map(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"a": "1"},
    })
}

/// The path of a config map.
pub(crate) fn at(name: &str) -> String {
    format!("{MAPS}/{name}")
}

/// A pod on a node.
pub(crate) fn pod(name: &str, node: &str, app: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
    })
}

/// Creates a pod and sets its status to running and ready.
pub(crate) async fn create_running_pod(client: &Client, pod: Value) {
    let created = client.create(PODS, pod).await.unwrap();
    let mut next = Value::clone(&created);
    next["status"] = json!({
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    });
    let path = format!("{PODS}/{}", created["metadata"]["name"].as_str().unwrap());
    client.update_status(&path, next).await.unwrap();
}

/// A definition of `things.example.com` with a number field that has a minimum and a default.
pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Thing", "plural": "things", "shortNames": ["th"]},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "properties": {
                                "size": {"type": "integer", "minimum": 1, "default": 3},
                                "color": {"type": "string"},
                            },
                        },
                        "status": {
                            "type": "object",
                            "properties": {"phase": {"type": "string"}},
                        },
                    },
                }},
            }],
        },
    })
}

pub(crate) const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

pub(crate) fn thing(name: &str) -> Value {
    json!({
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": name},
        "spec": {},
    })
}

/// Sends a request in process, as over a connection.
pub(crate) async fn send(
    server: &Server,
    request: Request<Full<Bytes>>,
) -> Response<Body> {
    server.in_process().oneshot(request).await.unwrap()
}

/// A request with a JSON body.
pub(crate) fn request(method: &str, path: &str, body: &Value) -> Request<Full<Bytes>> {
    let bytes = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Full::new(bytes.into()))
        .unwrap()
}

/// The status code and body of a response.
pub(crate) async fn read(response: Response<Body>) -> (u16, String) {
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, String::from_utf8(bytes.to_vec()).unwrap())
}

/// The status code and JSON of the response to a request.
pub(crate) async fn send_json(
    server: &Server,
    method: &str,
    path: &str,
    body: Value,
) -> (u16, Value) {
    json_response(server, request(method, path, &body)).await
}

/// As [`send_json`], for a patch of the media type `application/` and `form`.
pub(crate) async fn patch(
    server: &Server,
    form: &str,
    path: &str,
    body: Value,
) -> (u16, Value) {
    let mut patch = request("PATCH", path, &body);
    let media = format!("application/{form}").parse().unwrap();
    patch.headers_mut().insert("content-type", media);
    json_response(server, patch).await
}

async fn json_response(server: &Server, request: Request<Full<Bytes>>) -> (u16, Value) {
    let (code, text) = read(send(server, request).await).await;
    let json = serde_json::from_str(&text);
    (code, json.unwrap_or(Value::String(text)))
}

/// The next event of a watch, which must have one.
pub(crate) async fn next(watch: &mut Watch) -> WatchEvent {
    watch.next().await.unwrap().unwrap()
}

/// Kind of event and name of object.
pub(crate) fn summary(event: &WatchEvent) -> String {
    format!("{} {}", event.kind.as_str(), name_of(&event.object))
}

pub(crate) fn name_of(object: &Arc<Value>) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

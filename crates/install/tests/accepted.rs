//! What is shipped is taken by an API server as it is.

#![expect(clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use fivespot_apiserver::{Options, Server};
use fivespot_clock::Clock;
use serde_json::Value;

fn documents() -> Vec<Value> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let read = |file: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(tree.join(file)).expect("it is shipped");
        serde_saphyr::from_multiple(&text).expect("YAML")
    };
    [read("install.yaml"), read("webhook/webhook.yaml")].concat()
}

/// Where objects of a kind are made.
fn collection(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let kind = text("/kind").expect("a kind");
    let plural = match kind {
        "NetworkPolicy" => "networkpolicies".to_owned(),
        "ValidatingAdmissionPolicy" => "validatingadmissionpolicies".to_owned(),
        other => format!("{}s", other.to_lowercase()),
    };
    let version = text("/apiVersion").expect("a version");
    let root = if version.contains('/') {
        "/apis"
    } else {
        "/api"
    };
    match text("/metadata/namespace") {
        Some(namespace) => format!("{root}/{version}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{version}/{plural}"),
    }
}

/// Whether everything in `asked` is in `stored` as well.
fn is_kept(asked: &Value, stored: &Value) -> bool {
    match (asked, stored) {
        (Value::Object(asked), Value::Object(stored)) => asked
            .iter()
            .all(|(key, value)| stored.get(key).is_some_and(|it| is_kept(value, it))),
        (Value::Array(asked), Value::Array(stored)) => {
            asked.len() == stored.len()
                && asked
                    .iter()
                    .zip(stored)
                    .all(|(one, other)| is_kept(one, other))
        }
        (asked, stored) => asked == stored,
    }
}

#[tokio::test]
async fn the_embedded_server_takes_every_document_and_keeps_all_of_it() {
    let now = "2026-03-06T21:30:00Z".parse().unwrap();
    let server = Server::new(Options::new(Clock::stopped_at(now))).unwrap();
    let client = server.client();
    let documents = documents();
    assert!(documents.len() > 15, "{}", documents.len());
    for document in documents {
        let name = format!("{} {}", document["kind"], document["metadata"]["name"]);
        let made = client
            .create(&collection(&document), document.clone())
            .await;
        let stored = made.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert!(is_kept(&document, &stored), "{name}: {stored:#}");
    }
}

//! An API server accepts the shipped manifests unchanged.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod limit;
mod quota;

use std::path::Path;

use fivespot_install::controller::{POLICIES_SINCE, Settings};
use fivespot_install::file;
use kubemu_apiserver::{KubeVersion, Options, Server};
use kubemu_clock::Clock;
use serde_json::Value;

fn documents() -> Vec<Value> {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let read = |file: &str| -> Vec<Value> {
        let text = std::fs::read_to_string(tree.join(file)).expect("it is shipped");
        serde_saphyr::from_multiple(&text).expect("YAML")
    };
    [read("install.yaml"), read("webhook/webhook.yaml")].concat()
}

/// The path of the collection in which an object is created.
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

/// Whether everything in `sent` is in `stored` as well.
fn is_stored(sent: &Value, stored: &Value) -> bool {
    match (sent, stored) {
        (Value::Object(sent), Value::Object(stored)) => sent
            .iter()
            .all(|(key, value)| stored.get(key).is_some_and(|it| is_stored(value, it))),
        (Value::Array(sent), Value::Array(stored)) => {
            sent.len() == stored.len()
                && sent
                    .iter()
                    .zip(stored)
                    .all(|(one, other)| is_stored(one, other))
        }
        (sent, stored) => sent == stored,
    }
}

/// A server of that version.
fn server(version: KubeVersion) -> Server {
    let now = "2026-03-06T21:30:00Z".parse().unwrap();
    Server::new(Options {
        kube: version,
        ..Options::new(Clock::stopped_at(now))
    })
    .unwrap()
}

/// Creates `documents` in order, and compares the stored objects with them.
async fn create_all(server: &Server, documents: Vec<Value>) {
    let client = server.client();
    for document in documents {
        let name = format!("{} {}", document["kind"], document["metadata"]["name"]);
        let created = client
            .create(&collection(&document), document.clone())
            .await;
        let stored = created.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert!(is_stored(&document, &stored), "{name}: {stored:#}");
    }
}

#[tokio::test]
async fn the_embedded_server_stores_every_document_unchanged() {
    let documents = documents();
    assert!(documents.len() > 15, "{}", documents.len());
    create_all(&server(KubeVersion::default()), documents).await;
}

#[tokio::test]
async fn a_server_without_policies_accepts_the_manifests_for_it() {
    for minor in 26..POLICIES_SINCE {
        let files = file::manifests(&Settings {
            kube_minor: minor,
            ..Settings::default()
        });
        let mut all = Vec::new();
        for file in files.expect("rendered") {
            // Files for other tools, not for the API server of this cluster.
            let folders = ["kustomize/", "gitops/", "monitoring/"];
            let is_of_tool = folders.iter().any(|it| file.path.starts_with(it));
            if is_of_tool || file.path.ends_with("Kustomization") {
                continue;
            }
            let documents: Vec<Value> =
                serde_saphyr::from_multiple(&file.text).expect("YAML");
            for document in &documents {
                let kind = document["kind"].as_str().expect("a kind");
                let is_policy = kind.starts_with("ValidatingAdmissionPolicy");
                assert!(!is_policy, "1.{minor}: {kind} in {}", file.path);
            }
            if ["install.yaml", "webhook/webhook.yaml"].contains(&file.path.as_str()) {
                all.extend(documents);
            }
        }
        assert!(all.len() > 15, "1.{minor}: {}", all.len());
        let version = format!("1.{minor}").parse().expect("a version");
        create_all(&server(version), all).await;
    }
}

#[tokio::test]
async fn a_server_without_policies_rejects_the_crd_for_newer_servers() {
    let version = "1.28".parse().expect("a version");
    let is_definition = |it: &Value| it["kind"] == "CustomResourceDefinition";
    let definition = documents().into_iter().find(is_definition);
    let definition = definition.expect("it is shipped");
    let client = server(version).client();
    let created = client.create(&collection(&definition), definition).await;
    assert_eq!(created.map_err(|error| error.code).err(), Some(422));
}

/// The documents of a shipped example.
fn example(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let text = std::fs::read_to_string(path.join(file)).expect("it is shipped");
    serde_saphyr::from_multiple(&text).expect("YAML")
}

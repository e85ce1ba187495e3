//! Mutations of MutatingAdmissionPolicies have the same results as with Kubernetes' own libraries.
//!
//! `cargo judge mutations` generates the data.

use std::sync::{Arc, Mutex};

use kubemu_apiserver::{Attributes, Cluster, Options, Plugin, Server, Status};
use serde_json::{Value, json};

use crate::fixture::{options, send_json};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";

/// Records the object after the preceding plugins.
#[derive(Debug, Default)]
struct ObjectRecorder(Mutex<Option<Value>>);

impl Plugin for ObjectRecorder {
    fn name(&self) -> &'static str {
        "ObjectRecorder"
    }

    fn description(&self) -> &'static str {
        "Keeps the object as the plugins before it have left it."
    }

    fn admit(
        &self,
        _cluster: &mut Cluster,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        if attributes.is_dry_run() {
            self.record(object.cloned());
        }
        Ok(())
    }
}

impl ObjectRecorder {
    fn record(&self, object: Option<Value>) {
        *self.0.lock().unwrap() = object;
    }
}

/// The path of the collection of an object.
fn collection(object: &Value) -> String {
    let version = object["apiVersion"].as_str().unwrap();
    let root = if version.contains('/') { "apis" } else { "api" };
    let plural = object["kind"].as_str().unwrap().to_lowercase();
    format!("/{root}/{version}/namespaces/default/{plural}s?dryRun=All")
}

/// A policy with the mutation of a case, for all resources of the test.
fn policy(case: &Value) -> Value {
    let mut mutation = json!({"patchType": case["patchType"]});
    let field = match case["patchType"].as_str() {
        Some("JSONPatch") => "jsonPatch",
        _ => "applyConfiguration",
    };
    mutation[field] = json!({"expression": case["expression"]});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"],
                "resources": ["configmaps", "deployments", "services"],
            }]},
            "mutations": [mutation],
        },
    })
}

/// The server's result for a case, in the format of the recorded results.
async fn mutate(server: &Server, recorder: &ObjectRecorder, case: &Value) -> Value {
    let (code, refused) = send_json(server, "POST", POLICIES, policy(case)).await;
    if code != 201 {
        return json!({"uncompiled": refused["message"]});
    }
    recorder.record(None);
    let object = &case["object"];
    let (_, refused) =
        send_json(server, "POST", &collection(object), object.clone()).await;
    send_json(server, "DELETE", &format!("{POLICIES}/p"), Value::Null).await;
    let seen = recorder.0.lock().unwrap().take();
    seen.map_or_else(
        || json!({"error": refused["message"]}),
        |object| json!({"object": object}),
    )
}

/// The parts of an object that mutations change; the server sets others.
fn parts(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({
        "labels": metadata["labels"], "annotations": metadata["annotations"],
        "finalizers": metadata["finalizers"], "name": metadata["name"],
        "data": object["data"], "immutable": object["immutable"], "spec": object["spec"],
    })
}

/// The difference between the results; `None` if they are equal.
fn difference(kubernetes: &Value, ours: &Value) -> Option<String> {
    for verdict in ["uncompiled", "error", "object"] {
        if kubernetes[verdict].is_null() != ours[verdict].is_null() {
            return Some("verdict".to_owned());
        }
    }
    if parts(&kubernetes["object"]) != parts(&ours["object"]) {
        return Some("object".to_owned());
    }
    let value = ours["error"].as_str().unwrap_or_default();
    // Kubernetes appends the expected type to this message, sometimes with the internals of a Go
    // value.
    let converting = "failed to convert patch object to typed object: ";
    // Go's protobuf errors contain one of two kinds of spaces, depending on the build.
    let expected = kubernetes["error"].as_str().unwrap_or_default();
    let expected = expected.replace('\u{a0}', " ");
    if value.contains("expected a value that JSON has") && expected.contains(converting) {
        return None;
    }
    let prefix = "policy 'p' with binding 'p' denied request: ";
    let value = value.strip_prefix(prefix).unwrap_or(value);
    (expected != value).then(|| "text".to_owned())
}

#[tokio::test]
async fn every_mutation_has_the_result_of_kubernetes() {
    let recorder = Arc::new(ObjectRecorder::default());
    let server = Server::new(Options {
        plugins: vec![recorder.clone()],
        ..options()
    })
    .unwrap();
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "p"},
        "spec": {"policyName": "p"},
    });
    send_json(&server, "POST", BINDINGS, binding).await;
    let mut found = Vec::new();
    let mut count = 0;
    for line in include_str!("mutations.jsonl").lines() {
        let recorded: Value = serde_json::from_str(line).unwrap();
        let (case, kubernetes) = (&recorded["case"], &recorded["kubernetes"]);
        let ours = mutate(&server, &recorder, case).await;
        if let Some(what) = difference(kubernetes, &ours) {
            let expression = &case["expression"];
            found.push(format!(
                "{what} of {expression} for {}\n  kubernetes  {kubernetes}\n  ours        {ours}",
                case["object"]
            ));
        }
        count += 1;
    }
    assert!(count > 500, "{count}");
    assert!(
        found.is_empty(),
        "{}\n{} differ",
        found.join("\n"),
        found.len()
    );
}

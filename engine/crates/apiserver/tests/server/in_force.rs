//! Policies and definitions apply from the write that stores them until they are deleted.

use kubemu_apiserver::{Delete, KubeVersion, Options, Patch, Server};
use serde_json::json;

use crate::fixture::{DEFINITIONS, MAPS, THINGS, at, definition, map, server, thing};
use crate::persistence::{TestDirectory, stop};
use crate::policies::{BINDINGS, POLICIES, binding, policy};

/// An expression that Kubernetes 1.36 compiles and 1.30 does not.
const NEWER: &str = "[3, 1].sort() == [1, 3]";

fn at_version(directory: &TestDirectory, version: &str) -> Options {
    let kube: KubeVersion = version.parse().unwrap();
    Options {
        kube,
        ..directory.options()
    }
}

#[tokio::test]
async fn a_stored_policy_that_does_not_compile_fails_on_evaluation() {
    let directory = TestDirectory::new();
    let first = Server::new(at_version(&directory, "1.36")).unwrap();
    let client = first.client();
    client.create(POLICIES, policy(NEWER)).await.unwrap();
    client.create(BINDINGS, binding("Deny")).await.unwrap();
    client.create(MAPS, map("before")).await.unwrap();
    stop(first, client).await;

    let second = Server::new(at_version(&directory, "1.30")).unwrap();
    let refused = second
        .client()
        .create(MAPS, map("after"))
        .await
        .unwrap_err();
    assert_eq!(refused.code, 422);
    let start = "configmaps \"after\" is forbidden: ValidatingAdmissionPolicy 'blue-only' \
                 with binding 'everywhere' denied request: compilation error: ";
    assert!(refused.message.starts_with(start), "{}", refused.message);
}

#[tokio::test]
async fn a_stored_definition_that_does_not_compile_prevents_the_start() {
    let directory = TestDirectory::new();
    let first = Server::new(at_version(&directory, "1.36")).unwrap();
    let client = first.client();
    let mut newer = definition();
    let schema = &mut newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-validations"] =
        json!([{"rule": NEWER, "message": "sorted"}]);
    client.create(DEFINITIONS, newer).await.unwrap();
    first.clock().wait_until_idle().await;
    client.create(THINGS, thing("x")).await.unwrap();
    stop(first, client).await;

    let second = Server::new(at_version(&directory, "1.30"));
    let Err(refused) = second else {
        let unchecked = json!({"apiVersion": "example.com/v1", "kind": "Thing",
            "metadata": {"name": "y"}, "spec": {"size": 0, "shape": "round"}});
        let client = second.unwrap().client();
        let stored = client.create(THINGS, unchecked).await;
        panic!("the server started, and a wrong object gave {stored:?}");
    };
    let answer = refused.to_string();
    let start = "stored CustomResourceDefinition \"things.example.com\" is not valid \
                 for Kubernetes 1.30: spec.validation.openAPIV3Schema.properties[spec].\
                 x-kubernetes-validations[0].rule: Invalid value: ";
    assert!(answer.starts_with(start), "{answer}");
    let third = Server::new(at_version(&directory, "1.36")).unwrap();
    let wrong = json!({"apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "y"}, "spec": {"size": 0}});
    let refused = third.client().create(THINGS, wrong).await.unwrap_err();
    assert_eq!(refused.code, 422);
}

#[tokio::test]
async fn a_policy_with_a_pending_finalizer_still_applies() {
    let client = server().client();
    let mut held = policy("false");
    held["metadata"]["finalizers"] = json!(["example.com/wait"]);
    client.create(POLICIES, held).await.unwrap();
    client.create(BINDINGS, binding("Deny")).await.unwrap();
    let path = format!("{POLICIES}/blue-only");
    client.delete(&path, &Delete::default()).await.unwrap();
    let refused = client.create(MAPS, map("x")).await;
    assert_eq!(refused.unwrap_err().code, 422);
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    client.patch(&path, free).await.unwrap();
    client.create(MAPS, map("x")).await.unwrap();
}

#[tokio::test]
async fn a_binding_with_a_pending_finalizer_still_applies() {
    let client = server().client();
    client.create(POLICIES, policy("false")).await.unwrap();
    let mut held = binding("Deny");
    held["metadata"]["finalizers"] = json!(["example.com/wait"]);
    client.create(BINDINGS, held).await.unwrap();
    let path = format!("{BINDINGS}/everywhere");
    client.delete(&path, &Delete::default()).await.unwrap();
    let refused = client.create(MAPS, map("x")).await;
    assert_eq!(refused.unwrap_err().code, 422);
}

#[tokio::test]
async fn a_policy_denies_if_its_parameter_kind_is_not_served() {
    let client = server().client();
    let mut lost = policy("params == null");
    lost["spec"]["paramKind"] = json!({"apiVersion": "example.com/v1", "kind": "Limit"});
    client.create(POLICIES, lost).await.unwrap();
    client.create(BINDINGS, binding("Deny")).await.unwrap();
    let why = "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'blue-only' denied \
               request: failed to configure policy: failed to find resource referenced by \
               paramKind: 'example.com/v1, Kind=Limit'";
    let refused = client.create(MAPS, map("x")).await.unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (422, why));
    let mut bound = binding("Deny");
    bound["spec"]["paramRef"] = json!({"name": "a", "parameterNotFoundAction": "Allow"});
    bound["metadata"]["name"] = "another".into();
    client.create(BINDINGS, bound).await.unwrap();
    let refused = client.create(MAPS, map("x")).await.unwrap_err();
    assert_eq!(refused.message, why);
    let ignore = Patch::Merge(json!({"spec": {"failurePolicy": "Ignore"}}));
    let path = format!("{POLICIES}/blue-only");
    client.patch(&path, ignore).await.unwrap();
    client.create(MAPS, map("x")).await.unwrap();
    client.get(&at("x")).await.unwrap();
}

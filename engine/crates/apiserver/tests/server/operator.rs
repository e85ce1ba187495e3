//! A third-party operator with kube-rs' `Controller` runs against the server in its own process:
//! without a cluster, socket or credentials.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::runtime::controller::Action;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{Controller, watcher};
use kube::{Client, Resource as _, ResourceExt as _};
use serde_json::json;

use crate::fixture::server;

/// `greetings.example.com`, for which the operator creates config maps.
fn greetings() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Greeting"))
}

fn definition() -> CustomResourceDefinition {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["to"], "properties": {
            "to": {"type": "string", "maxLength": 20}}},
        "status": {"type": "object", "properties": {"said": {"type": "boolean"}}}}});
    serde_json::from_value(json!({
        "metadata": {"name": "greetings.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Greeting", "plural": "greetings"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}],
        },
    }))
    .unwrap()
}

/// Writes the text of a greeting into a config map with the greeting as its owner.
async fn reconcile(
    greeting: Arc<DynamicObject>,
    client: Arc<Client>,
) -> Result<Action, kube::Error> {
    let namespace = greeting.namespace().unwrap_or_default();
    let (name, to) = (greeting.name_any(), &greeting.data["spec"]["to"]);
    let owner = greeting.controller_owner_ref(&greetings());
    let text = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "data": {"text": format!("Hello, {}!", to.as_str().unwrap_or_default())},
    });
    let ours = PatchParams::apply("greeter").force();
    let maps: Api<ConfigMap> = Api::namespaced(Client::clone(&client), &namespace);
    maps.patch(&name, &ours, &Patch::Apply(&text)).await?;
    let all: Api<DynamicObject> =
        Api::namespaced_with(Client::clone(&client), &namespace, &greetings());
    let status = json!({"status": {"said": true}});
    all.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status))
        .await?;
    Ok(Action::await_change())
}

#[tokio::test]
async fn a_kube_rs_operator_runs_in_process() {
    let server = server();
    let client = Client::new(server.in_process(), "default");
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PostParams::default();
    definitions.create(&params, &definition()).await.unwrap();
    let established = conditions::is_crd_established();
    await_condition(definitions, "greetings.example.com", established)
        .await
        .unwrap();

    let all: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "default", &greetings());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let config = watcher::Config::default();
    let operator = Controller::new_with(all.clone(), config.clone(), greetings())
        .owns(maps.clone(), config)
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(1)),
            Arc::new(client),
        )
        .for_each(|_| async {});
    let operator = tokio::spawn(operator);

    let mut greeting = DynamicObject::new("world", &greetings());
    greeting.data = json!({"spec": {"to": "world"}});
    all.create(&PostParams::default(), &greeting).await.unwrap();
    let value = |it: Option<&DynamicObject>| {
        it.is_some_and(|it| it.data["status"]["said"] == true)
    };
    await_condition(all.clone(), "world", value).await.unwrap();
    let text = maps.get("world").await.unwrap().data.unwrap();
    assert_eq!(text["text"], "Hello, world!");

    // A deleted config map is recreated, and is deleted with its owner.
    let first = maps.get("world").await.unwrap().uid();
    maps.delete("world", &DeleteParams::default())
        .await
        .unwrap();
    let again = |it: Option<&ConfigMap>| it.is_some_and(|it| it.uid() != first);
    await_condition(maps.clone(), "world", again).await.unwrap();
    let uid = maps.get("world").await.unwrap().uid().unwrap();
    all.delete("world", &DeleteParams::default()).await.unwrap();
    await_condition(maps, "world", conditions::is_deleted(&uid))
        .await
        .unwrap();
    operator.abort();
}

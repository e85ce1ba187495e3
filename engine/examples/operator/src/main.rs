//! A controller of kube-rs with an admission plugin, against an API server in the same process: no
//! cluster, socket or credentials.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::controller::Action;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{Controller, watcher};
use kube::{Client, Resource as _, ResourceExt as _};
use kubemu::{apply, document};
use kubemu_apiserver::{
    Attributes, Clock, Cluster, GroupResource, Operation, Options, Plugin, Server, Status,
};
use serde_json::{Value, json};

/// A namespace has one greeting at a time.
#[derive(Debug)]
struct OneGreeting;

impl Plugin for OneGreeting {
    fn name(&self) -> &str {
        "OneGreeting"
    }

    fn validate(
        &self,
        cluster: &Cluster,
        attributes: &Attributes<'_>,
        _object: Option<&Value>,
    ) -> Result<(), Status> {
        let is_create = attributes.operation() == Operation::Create;
        if !is_create || !attributes.is_about("example.com", "greetings") {
            return Ok(());
        }
        let greetings = GroupResource::new("example.com", "greetings");
        let there = cluster.objects(&greetings, Some(attributes.namespace()));
        if there.is_empty() {
            return Ok(());
        }
        Err(attributes.forbidden("the namespace has a greeting"))
    }
}

fn greetings() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Greeting"))
}

fn greeting(name: &str, to: &str) -> DynamicObject {
    let mut greeting = DynamicObject::new(name, &greetings());
    greeting.data = json!({"spec": {"to": to}});
    greeting
}

/// Writes the text of a greeting into a config map that the greeting owns.
async fn reconcile(
    greeting: Arc<DynamicObject>,
    client: Arc<Client>,
) -> Result<Action, kube::Error> {
    let namespace = greeting.namespace().unwrap_or_default();
    let to = greeting.data["spec"]["to"].as_str().unwrap_or_default();
    let map = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": greeting.name_any(),
            "ownerReferences": [greeting.controller_owner_ref(&greetings())],
        },
        "data": {"text": format!("Hello, {to}!")},
    });
    let maps: Api<ConfigMap> = Api::namespaced(Client::clone(&client), &namespace);
    let ours = PatchParams::apply("greeter").force();
    maps.patch(&greeting.name_any(), &ours, &Patch::Apply(&map))
        .await?;
    Ok(Action::await_change())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::new(Options {
        plugins: vec![Arc::new(OneGreeting)],
        ..Options::new(Clock::system())
    })?;
    let client = Client::new(server.in_process(), "default");
    for object in document::parse("definition.yaml", include_str!("definition.yaml"))? {
        apply::apply(&client, &object, "greeter").await?;
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let is_established = conditions::is_crd_established();
    await_condition(definitions, "greetings.example.com", is_established).await?;

    let all: Api<DynamicObject> =
        Api::default_namespaced_with(client.clone(), &greetings());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let config = watcher::Config::default();
    let operator = Controller::new_with(all.clone(), config.clone(), greetings())
        .owns(maps.clone(), config)
        .run(
            reconcile,
            |_, _, _| Action::requeue(Duration::from_secs(1)),
            Arc::new(client),
        )
        .for_each(|_| async {});
    tokio::spawn(operator);

    for (name, to) in [("a", "nobody"), ("b", "world"), ("c", "moon")] {
        match all
            .create(&PostParams::default(), &greeting(name, to))
            .await
        {
            Ok(_) => println!("{name}: created"),
            Err(kube::Error::Api(status)) => println!("{name}: {}", status.message),
            Err(error) => return Err(error.into()),
        }
    }
    let map = await_condition(maps, "b", |map: Option<&ConfigMap>| map.is_some()).await?;
    let text = map.and_then(|map| map.data).unwrap_or_default();
    println!("the controller wrote {text:?}");
    Ok(())
}

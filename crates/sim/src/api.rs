//! The simulator's client of the API server.

use std::pin::Pin;
use std::sync::Arc;

use futures::{Stream, StreamExt, stream};
use kubemu_apiserver::{Client, Delete, Patch, Selector, Status};
use serde_json::Value;

use crate::object::{list, text};
use crate::write::{PODS, Resource, Write};

/// The changes of the objects of one resource. A deleted object has its last state.
pub(crate) type Changes = Pin<Box<dyn Stream<Item = (Resource, Arc<Value>)> + Send>>;

#[derive(Clone, Debug)]
pub(crate) struct Api {
    client: Client,
}

impl Api {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// One object; `None` also when its resource is not served.
    pub(crate) async fn get(
        &self,
        resource: Resource,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Value>> {
        self.client
            .get(&resource.object(namespace, name))
            .await
            .ok()
    }

    pub(crate) async fn list(
        &self,
        resource: Resource,
        namespace: &str,
    ) -> Vec<Arc<Value>> {
        self.select(&resource.collection(namespace), &Selector::default())
            .await
    }

    pub(crate) async fn pods_on(&self, node: &str) -> Vec<Arc<Value>> {
        let selector = Selector::fields(format!("spec.nodeName={node}"));
        self.select(&PODS.collection(""), &selector).await
    }

    async fn select(&self, path: &str, selector: &Selector) -> Vec<Arc<Value>> {
        self.client
            .list(path, selector)
            .await
            .map(|list| list.items)
            .unwrap_or_default()
    }

    /// Watches a resource, starting with the existing objects. A watch that ends, as every
    /// watch does eventually, is started again. If it cannot be started, the stream ends.
    pub(crate) fn changes(&self, resource: Resource) -> Changes {
        let client = self.client.clone();
        let watches = stream::repeat_with(move || {
            client
                .watch(&resource.collection(""), &Selector::default(), "")
                .ok()
        });
        let events = watches
            .take_while(|watch| std::future::ready(watch.is_some()))
            .filter_map(std::future::ready)
            .flatten()
            .filter_map(move |event| {
                std::future::ready(event.ok().map(|event| (resource, event.object)))
            });
        Box::pin(events)
    }

    pub(crate) async fn write(&self, write: &Write) -> Result<(), Status> {
        match write {
            Write::Create { collection, object } => {
                self.client.create(collection, object.clone()).await?;
            }
            Write::Patch { path, body } => {
                self.client.patch(path, Patch::Merge(body.clone())).await?;
            }
            Write::Delete {
                path,
                uid,
                grace_seconds,
            } => {
                let how = Delete {
                    uid: Some(uid.clone()),
                    grace_seconds: *grace_seconds,
                    ..Delete::default()
                };
                self.client.delete(path, &how).await?;
            }
            Write::Evict { namespace, pod } => self.client.evict(namespace, pod).await?,
        }
        Ok(())
    }

    /// Creates a CustomResourceDefinition if it does not exist, and waits until its resource is
    /// served.
    pub(crate) async fn define(&self, definition: Value) -> Result<(), Status> {
        let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let name = text(&definition, "/metadata/name")
            .unwrap_or_default()
            .to_owned();
        let selector = Selector::fields(format!("metadata.name={name}"));
        match self.client.create(collection, definition).await {
            Err(status) if status.code != 409 => return Err(status),
            _ => {}
        }
        let mut watch = self.client.watch(collection, &selector, "")?;
        while let Some(event) = watch.next().await {
            if is_established(&event?.object) {
                break;
            }
        }
        Ok(())
    }
}

fn is_established(definition: &Value) -> bool {
    list(definition, "/status/conditions")
        .iter()
        .any(|condition| {
            text(condition, "/type") == Some("Established")
                && text(condition, "/status") == Some("True")
        })
}

//! Requests for the objects of one kind.

use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::{Client, Resource as _};
use serde_json::Value;

use crate::requests::{Requests, Response};

/// The result of a request, or the reason of its failure.
pub(super) type RequestResult<T> = Result<T, String>;

/// The objects of one kind, in a namespace if the kind is namespaced.
#[derive(Clone)]
pub(super) struct Collection {
    requests: Requests,
    path: String,
}

impl Collection {
    pub(super) fn new(
        client: &Client,
        namespace: Option<&str>,
        resource: &ApiResource,
    ) -> Self {
        Self {
            requests: Requests(client.clone()),
            path: DynamicObject::url_path(resource, namespace),
        }
    }

    /// The objects of a built-in kind.
    pub(super) fn of<K>(client: &Client, namespace: Option<&str>) -> Self
    where
        K: kube::Resource<DynamicType = ()>,
    {
        Self::new(client, namespace, &ApiResource::erase::<K>(&()))
    }

    /// Gets the object of that name. `None` if it does not exist.
    pub(super) async fn get(&self, name: &str) -> RequestResult<Option<Value>> {
        match self.requests.get(&self.path_of(name)).await {
            Response::NotFound => Ok(None),
            response => response.found().map(Some),
        }
    }

    /// Lists the objects with this label.
    pub(super) async fn list(&self, label: &str) -> RequestResult<Vec<Value>> {
        self.requests.list_where(&self.path, label).await
    }

    /// Creates an object. An existing object is not an error.
    pub(super) async fn post(&self, object: &Value) -> RequestResult<()> {
        self.requests
            .post(&self.path, object)
            .await
            .found()
            .map(drop)
    }

    /// Sends a merge patch to an object.
    pub(super) async fn merge(&self, name: &str, change: &Value) -> RequestResult<()> {
        let path = self.path_of(name);
        self.requests.merge(&path, change).await.found().map(drop)
    }

    /// Deletes an object. A missing object is not an error.
    pub(super) async fn delete(&self, name: &str) -> RequestResult<()> {
        let path = self.path_of(name);
        self.requests.delete(&path, "Background").await.done()
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }
}

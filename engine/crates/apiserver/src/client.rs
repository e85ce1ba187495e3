//! An in-process client of JSON values.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http::Method;
use serde_json::{Value, json};

use crate::api_response::{ApiResponse, Content};
use crate::broadcaster::EventKind;
use crate::call::{Call, Payload};
use crate::query::Query;
use crate::server::Server;
use crate::status::Status;
use crate::user::User;
use crate::watch;

/// A client of one user that calls the server directly, without HTTP.
///
/// Paths are those of the REST API, such as `/apis/apps/v1/namespaces/default/things/x`; with
/// the suffix `/status` they refer to the status subresource. A virtual clock waits for events
/// that have been delivered, as it does for [`Body`](crate::Body).
#[derive(Clone, Debug)]
pub struct Client {
    server: Server,
    user: User,
}

/// Label and field selectors; an empty text selects all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// A label selector, such as `app=web,tier!=back`.
    pub labels: String,
    /// A field selector, such as `spec.nodeName=n1`.
    pub fields: String,
}

impl Selector {
    /// A selector of labels only.
    pub fn labels(text: impl Into<String>) -> Self {
        Self {
            labels: text.into(),
            ..Self::default()
        }
    }

    /// A selector of fields only.
    pub fn fields(text: impl Into<String>) -> Self {
        Self {
            fields: text.into(),
            ..Self::default()
        }
    }
}

/// A list as of one resourceVersion.
#[derive(Clone, Debug, Default)]
pub struct Items {
    /// The resourceVersion to watch from.
    pub version: String,
    /// Sorted by namespace and name.
    pub items: Vec<Arc<Value>>,
}

/// A patch in one of four formats.
#[derive(Clone, Debug)]
pub enum Patch {
    /// JSON patch (RFC 6902).
    Json(Value),
    /// JSON merge patch (RFC 7386).
    Merge(Value),
    /// Strategic merge patch, for built-in kinds.
    Strategic(Value),
    /// Server-side apply.
    Apply {
        /// The configuration.
        body: Value,
        /// The field manager.
        manager: String,
        /// Whether fields of other managers are taken over.
        force: bool,
    },
}

/// Delete options; the default sets none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delete {
    /// Precondition: the uid of the object.
    pub uid: Option<String>,
    /// Precondition: the resourceVersion of the object.
    pub version: Option<String>,
    /// The propagation policy for dependents: `Background`, `Foreground` or `Orphan`.
    pub propagation: Option<String>,
    /// The grace period of a pod.
    pub grace_seconds: Option<i64>,
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    /// The type of the event.
    pub kind: EventKind,
    /// The object of the event.
    pub object: Arc<Value>,
}

impl Client {
    pub(crate) fn new(server: Server, user: User) -> Self {
        Self { server, user }
    }

    fn call(&self, method: Method, path: &str, query: Query) -> Call {
        Call {
            method,
            path: path.to_owned(),
            query,
            accept: String::new(),
            content_type: "application/json".to_owned(),
            agent: self.user.name.clone(),
            user: self.user.clone(),
            impersonator: None,
            body: Payload::Bytes(Bytes::new()),
            holds_clock: true,
        }
    }

    async fn send(&self, call: &Call) -> Result<Arc<Value>, Status> {
        let _busy = self.server.clock().busy();
        let response = self.server.handle(call).await?;
        match response.content {
            Content::Object(_, object) => Ok(object),
            Content::Plain(value) if response.code < 400 => Ok(Arc::new(value)),
            Content::List(list) => Ok(Arc::new(json!({"items": list.items.len()}))),
            Content::Document { body, .. } if response.code < 400 => {
                Ok(Arc::new(serde_json::from_slice(&body).unwrap_or_default()))
            }
            Content::Plain(_) | Content::Document { .. } => {
                Err(Status::no_such_resource())
            }
            Content::Watch(_) => Err(Status::bad_request("a watch returns no object")),
        }
    }

    async fn write(&self, mut call: Call, body: Value) -> Result<Arc<Value>, Status> {
        call.body = Payload::Json(body);
        self.send(&call).await
    }

    /// Returns one object.
    ///
    /// # Errors
    /// The error `Status` of the server, here as in every method.
    pub async fn get(&self, path: &str) -> Result<Arc<Value>, Status> {
        self.send(&self.call(Method::GET, path, Query::default()))
            .await
    }

    /// Lists the objects of a collection.
    pub async fn list(&self, path: &str, selector: &Selector) -> Result<Items, Status> {
        let _busy = self.server.clock().busy();
        let call = self.call(Method::GET, path, query_of(selector));
        match self.server.handle(&call).await? {
            ApiResponse {
                content: Content::List(list),
                ..
            } => Ok(Items {
                version: list.version.to_string(),
                items: list.items,
            }),
            _ => Err(Status::no_such_resource()),
        }
    }

    /// Creates an object in the collection at `path`.
    pub async fn create(&self, path: &str, object: Value) -> Result<Arc<Value>, Status> {
        self.write(self.call(Method::POST, path, Query::default()), object)
            .await
    }

    /// Replaces the object at `path`; its `resourceVersion`, if any, is a precondition.
    pub async fn update(&self, path: &str, object: Value) -> Result<Arc<Value>, Status> {
        self.write(self.call(Method::PUT, path, Query::default()), object)
            .await
    }

    /// Replaces the status of the object at `path`.
    pub async fn update_status(
        &self,
        path: &str,
        object: Value,
    ) -> Result<Arc<Value>, Status> {
        self.update(&format!("{path}/status"), object).await
    }

    /// Patches the object at `path`.
    pub async fn patch(&self, path: &str, patch: Patch) -> Result<Arc<Value>, Status> {
        let mut call = self.call(Method::PATCH, path, Query::default());
        let (kind, body) = match patch {
            Patch::Json(body) => ("application/json-patch+json", body),
            Patch::Merge(body) => ("application/merge-patch+json", body),
            Patch::Strategic(body) => ("application/strategic-merge-patch+json", body),
            Patch::Apply {
                body,
                manager,
                force,
            } => {
                call.query.field_manager = manager;
                call.query.force = force;
                ("application/apply-patch+yaml", body)
            }
        };
        kind.clone_into(&mut call.content_type);
        self.write(call, body).await
    }

    /// Deletes the object at `path`. Returns the object if its deletion waits for finalizers
    /// or a grace period, and a pod also if it is removed immediately; otherwise a `Status`.
    pub async fn delete(&self, path: &str, how: &Delete) -> Result<Arc<Value>, Status> {
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        if how.uid.is_some() || how.version.is_some() {
            let conditions = meta_conditions(how);
            options["preconditions"] = conditions;
        }
        if let Some(propagation) = &how.propagation {
            options["propagationPolicy"] = propagation.as_str().into();
        }
        if let Some(seconds) = how.grace_seconds {
            options["gracePeriodSeconds"] = seconds.into();
        }
        self.write(self.call(Method::DELETE, path, Query::default()), options)
            .await
    }

    /// Deletes the selected objects of a collection.
    pub async fn delete_collection(
        &self,
        path: &str,
        selector: &Selector,
    ) -> Result<(), Status> {
        let _busy = self.server.clock().busy();
        let call = self.call(Method::DELETE, path, query_of(selector));
        self.server.handle(&call).await?;
        Ok(())
    }

    /// Evicts a pod.
    pub async fn evict(&self, namespace: &str, pod: &str) -> Result<(), Status> {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/eviction");
        let body = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        });
        self.write(self.call(Method::POST, &path, Query::default()), body)
            .await?;
        Ok(())
    }

    /// Watches a collection from `version`, the resourceVersion of a list; an empty version
    /// starts with an event for each existing object.
    pub fn watch(
        &self,
        path: &str,
        selector: &Selector,
        version: &str,
    ) -> Result<Watch, Status> {
        let _busy = self.server.clock().busy();
        let mut query = query_of(selector);
        query.watch = true;
        version.clone_into(&mut query.version);
        match self
            .server
            .perform(&self.call(Method::GET, path, query))?
            .content
        {
            Content::Watch(watch) => Ok(Watch(*watch)),
            _ => Err(Status::no_such_resource()),
        }
    }
}

fn query_of(selector: &Selector) -> Query {
    Query {
        label_selector: selector.labels.clone(),
        field_selector: selector.fields.clone(),
        ..Query::default()
    }
}

fn meta_conditions(how: &Delete) -> Value {
    let mut conditions = json!({});
    if let Some(uid) = &how.uid {
        conditions["uid"] = uid.as_str().into();
    }
    if let Some(version) = &how.version {
        conditions["resourceVersion"] = version.as_str().into();
    }
    conditions
}

/// A stream of watch events. Ends when the resource is not served any longer, or after an
/// error.
///
/// A virtual clock is stopped from the write that caused an event until the stream is polled
/// again after that event.
#[derive(Debug)]
pub struct Watch(watch::Watch);

impl Stream for Watch {
    type Item = Result<WatchEvent, Status>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Self::Item>> {
        self.0.poll_event(cx).map(|event| {
            let event = event?;
            if let watch::Event::Error(status) = event {
                return Some(Err(status));
            }
            let object = event.object()?.clone();
            let kind = match &event {
                watch::Event::Changed(it) => it.kind,
                watch::Event::Converted(kind, _) => *kind,
                watch::Event::Bookmark(_) => EventKind::Bookmark,
                watch::Event::Initial(_) | watch::Event::Error(_) => EventKind::Added,
            };
            Some(Ok(WatchEvent { kind, object }))
        })
    }
}

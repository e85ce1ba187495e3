//! A client within the process of JSON values.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http::Method;
use serde_json::{Value, json};

use crate::answer::{Answer, Content};
use crate::broadcaster::EventKind;
use crate::call::{Call, Payload};
use crate::query::Query;
use crate::server::Server;
use crate::status::Status;
use crate::user::User;
use crate::watch;

/// A client for one user, without a wire between.
///
/// Paths are those of the REST interface, such as
/// `/apis/apps/v1/namespaces/default/things/x`; with `/status` behind them they are about
/// the status alone. A virtual clock waits for events that have been delivered, as it does
/// for [`Body`](crate::Body).
#[derive(Clone, Debug)]
pub struct Client {
    server: Server,
    user: User,
}

/// Which objects are wanted; empty texts want all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// A label selector, such as `app=web,tier!=back`.
    pub labels: String,
    /// A field selector, such as `spec.nodeName=n1`.
    pub fields: String,
}

impl Selector {
    /// By labels alone.
    pub fn labels(text: impl Into<String>) -> Self {
        Self {
            labels: text.into(),
            ..Self::default()
        }
    }

    /// By fields alone.
    pub fn fields(text: impl Into<String>) -> Self {
        Self {
            fields: text.into(),
            ..Self::default()
        }
    }
}

/// A list as of one version.
#[derive(Clone, Debug, Default)]
pub struct Items {
    /// To watch from.
    pub version: String,
    /// In the order of namespace and name.
    pub items: Vec<Arc<Value>>,
}

/// A change in one of four forms.
#[derive(Clone, Debug)]
pub enum Patch {
    /// RFC 6902.
    Json(Value),
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes' own, for built-in kinds.
    Strategic(Value),
    /// Server-side apply.
    Apply {
        /// The configuration.
        body: Value,
        /// Whose it is.
        manager: String,
        /// Whether fields of other managers are taken over.
        force: bool,
    },
}

/// How an object is to be deleted; the default asks for nothing in particular.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delete {
    /// Only the object with this uid.
    pub uid: Option<String>,
    /// Only the object at this version.
    pub version: Option<String>,
    /// What is to become of dependents: `Background`, `Foreground` or `Orphan`.
    pub propagation: Option<String>,
    /// How long a pod has to stop.
    pub grace_seconds: Option<i64>,
}

/// One event of a watch.
#[derive(Clone, Debug)]
pub struct WatchEvent {
    /// What happened.
    pub kind: EventKind,
    /// The object it happened to.
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
        let answer = self.server.answer(call).await?;
        match answer.content {
            Content::Object(_, object) => Ok(object),
            Content::Plain(value) if answer.code < 400 => Ok(Arc::new(value)),
            Content::List(list) => Ok(Arc::new(json!({"items": list.items.len()}))),
            Content::Document { body, .. } if answer.code < 400 => {
                Ok(Arc::new(serde_json::from_slice(&body).unwrap_or_default()))
            }
            Content::Plain(_) | Content::Document { .. } => {
                Err(Status::no_such_resource())
            }
            Content::Watch(_) => Err(Status::bad_request("a watch is not one object")),
        }
    }

    async fn write(&self, mut call: Call, body: Value) -> Result<Arc<Value>, Status> {
        call.body = Payload::Json(body);
        self.send(&call).await
    }

    /// One object.
    ///
    /// # Errors
    /// The server's refusal, here as in every method.
    pub async fn get(&self, path: &str) -> Result<Arc<Value>, Status> {
        self.send(&self.call(Method::GET, path, Query::default()))
            .await
    }

    /// The objects of a collection.
    pub async fn list(&self, path: &str, selector: &Selector) -> Result<Items, Status> {
        let _busy = self.server.clock().busy();
        let call = self.call(Method::GET, path, query_of(selector));
        match self.server.answer(&call).await? {
            Answer {
                content: Content::List(list),
                ..
            } => Ok(Items {
                version: list.version.to_string(),
                items: list.items,
            }),
            _ => Err(Status::no_such_resource()),
        }
    }

    /// Makes an object in the collection at `path`.
    pub async fn create(&self, path: &str, object: Value) -> Result<Arc<Value>, Status> {
        self.write(self.call(Method::POST, path, Query::default()), object)
            .await
    }

    /// Replaces the object at `path`; its `resourceVersion`, if any, is a condition.
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

    /// Changes the object at `path`.
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

    /// Deletes the object at `path`. Returns the object while it waits for something, and a
    /// pod also where it goes at once; else a `Status`.
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

    /// Deletes the objects of a collection that are selected.
    pub async fn delete_collection(
        &self,
        path: &str,
        selector: &Selector,
    ) -> Result<(), Status> {
        let _busy = self.server.clock().busy();
        let call = self.call(Method::DELETE, path, query_of(selector));
        self.server.answer(&call).await?;
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

    /// Follows a collection from `version` on, as a list gave it; an empty version begins
    /// with all that is there.
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

/// Events as they happen. Ends when what is watched is no longer served, or after an error.
///
/// A virtual clock stands still from the write that caused an event until the stream is
/// polled again after that event.
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
                watch::Event::Seen(seen) => seen.kind,
                watch::Event::Shown(kind, _) => *kind,
                watch::Event::Bookmark(_) => EventKind::Bookmark,
                watch::Event::Initial(_) | watch::Event::Error(_) => EventKind::Added,
            };
            Some(Ok(WatchEvent { kind, object }))
        })
    }
}

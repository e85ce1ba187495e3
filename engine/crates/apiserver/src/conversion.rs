//! Conversion between the stored version of objects and the requested one.

pub(crate) mod webhook;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use indexmap::IndexSet;
use jiff::Timestamp;
use kubemu_admission::crd::Crd;
use serde_json::Value;

use crate::empty;
use crate::meta;
use crate::openapi::shape::Shape;
use crate::random::Random;
use crate::resource::{Resource, version_of};
use crate::status::{Reason, Status};
use crate::store::Object;
use crate::webhook_client::Endpoint;
use webhook::Webhook;

/// How many admission webhooks are called at the same time for one request. The deletion of a
/// collection calls them for all of its objects, each over a connection of its own.
const MAX_CONCURRENT_CALLS: usize = 16;

/// An object that a webhook must convert. Requests are performed under a lock, which is not held
/// while a webhook is called. A request that lacks a response is therefore abandoned before it has
/// written anything, the webhook is called, and the request is performed again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConversionCall {
    pub(crate) webhook: Webhook,
    pub(crate) object: Arc<Value>,
    pub(crate) api_version: String,
}

/// The webhooks' responses or errors.
pub(crate) type ConversionResults = HashMap<ConversionCall, Result<Value, String>>;

/// A call of an admission webhook, which is made as described for [`ConversionCall`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReviewCall {
    pub(crate) endpoint: Endpoint,
    pub(crate) body: Arc<Value>,
    pub(crate) timeout: Duration,
    /// How long to wait before a webhook that could not be reached is called again; zero for no
    /// retry.
    pub(crate) backoff: Duration,
}

impl ReviewCall {
    /// Calls the webhook, up to five times if there is a backoff. Each wait is 1.5 times the
    /// previous one (`DefaultRetryBackoffWithInitialDelay` in k8s.io/apiserver).
    async fn send(&self) -> Result<Value, String> {
        let mut backoff = self.backoff;
        let mut response = self.endpoint.post(&self.body, self.timeout).await;
        for _ in 1..5 {
            if response.is_ok() || backoff.is_zero() {
                break;
            }
            tokio::time::sleep(backoff).await;
            backoff = backoff * 3 / 2;
            response = self.endpoint.post(&self.body, self.timeout).await;
        }
        response
    }
}

/// The webhook responses that a request has so far, and the calls that it still needs.
#[derive(Debug, Default)]
pub(crate) struct WebhookCalls {
    conversions: ConversionResults,
    pending_conversions: Vec<ConversionCall>,
    reviews: HashMap<ReviewCall, Result<Value, String>>,
    pending_reviews: Vec<ReviewCall>,
    /// When the request was performed for the first time.
    pub(crate) started_at: Option<Timestamp>,
    /// The random numbers of each attempt: those of the first one, from the last write on.
    pub(crate) random: Option<Random>,
    /// The tokens that previous attempts have signed, by their claims: each signature of the same
    /// claims is different.
    pub(crate) tokens: HashMap<Value, String>,
    /// Whether the request is performed again.
    pub(crate) is_retry: bool,
}

impl WebhookCalls {
    /// Whether no call is pending.
    pub(crate) fn is_complete(&self) -> bool {
        self.pending_conversions.is_empty() && self.pending_reviews.is_empty()
    }

    /// The response of an admission webhook; `None` until it has been called.
    pub(crate) fn review(&mut self, call: ReviewCall) -> Option<Result<Value, String>> {
        let response = self.reviews.get(&call).cloned();
        if response.is_none() {
            self.pending_reviews.push(call);
        }
        response
    }

    /// Makes all pending calls.
    pub(crate) async fn call_webhooks(&mut self) {
        let pending = std::mem::take(&mut self.pending_conversions);
        call_webhooks(pending, &mut self.conversions).await;
        let calls = std::mem::take(&mut self.pending_reviews);
        let calls = calls.into_iter().map(|call| async move {
            let response = call.send().await;
            (call, response)
        });
        // The calls for one object are concurrent, as in Kubernetes.
        let calls = futures::stream::iter(calls).buffer_unordered(MAX_CONCURRENT_CALLS);
        let responses: Vec<_> = calls.collect().await;
        self.reviews.extend(responses);
        self.is_retry = true;
    }
}

/// The [`WebhookCalls`] that all conversions of one request share.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedWebhookCalls(Arc<Mutex<WebhookCalls>>);

impl SharedWebhookCalls {
    pub(crate) fn lock(&self) -> MutexGuard<'_, WebhookCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts objects of one resource between its versions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversion {
    /// The definition of a custom resource.
    pub(crate) definition: Option<Arc<Crd>>,
    /// The conversion webhook, or why it cannot be called; `None` if the server converts.
    pub(crate) webhook: Option<Result<Webhook, String>>,
    /// The version of the store in which the definition was written.
    pub(crate) defined: u64,
    pub(crate) calls: SharedWebhookCalls,
}

impl Conversion {
    /// A stored object in the version of `resource`.
    ///
    /// # Errors
    /// 500 if a webhook has not converted it.
    pub(crate) fn in_version_of(
        &self,
        resource: &Resource,
        stored: &Object,
    ) -> Result<Object, Status> {
        let stored = &self.completed(stored);
        let api_version = stored["apiVersion"].as_str();
        if api_version.is_some_and(|it| resource.is_served_as(it)) {
            return Ok(stored.clone());
        }
        let object = Value::clone(stored);
        let converted = self.converted(resource, object, &resource.api_version())?;
        Ok(Arc::new(converted))
    }

    /// A stored object with the defaults, and without the unknown fields, of a definition that has
    /// changed since the object was written.
    fn completed(&self, stored: &Object) -> Object {
        let is_older = written(stored).is_some_and(|it| it < self.defined);
        let definition = self.definition.as_ref().filter(|_| is_older);
        let api_version = stored["apiVersion"].as_str().unwrap_or_default();
        let version = definition.and_then(|it| it.version(version_of(api_version)));
        let Some(version) = version else {
            return stored.clone();
        };
        let mut object = Value::clone(stored);
        version.decode(&mut object);
        if object == **stored {
            return stored.clone();
        }
        Arc::new(object)
    }

    /// An object in the version of `resource`, converted to the stored version.
    ///
    /// # Errors
    /// 500 if a webhook has not converted it.
    pub(crate) fn to_stored(
        &self,
        resource: &Resource,
        object: Value,
    ) -> Result<Value, Status> {
        self.converted(resource, object, &resource.stored_as)
    }

    /// An object of `resource` in version `api_version`. Fields that the schema of that version
    /// does not have are pruned, as in Kubernetes with every strategy (`schemaCoercingConverter` in
    /// k8s.io/apiextensions-apiserver).
    ///
    /// # Errors
    /// 500 if a webhook has not converted it.
    pub(crate) fn converted(
        &self,
        resource: &Resource,
        mut object: Value,
        api_version: &str,
    ) -> Result<Value, Status> {
        if object["apiVersion"] == api_version {
            return Ok(object);
        }
        let kind = resource.builtin.as_ref();
        if let Some(mut other) = kind.and_then(|it| it.convert(&object, api_version)) {
            let (group, version) =
                api_version.rsplit_once('/').unwrap_or(("", api_version));
            let shape = Shape::of_kind(group, version, &resource.kind);
            empty::normalize(shape, &mut other);
            return Ok(other);
        }
        if let Some(call) = self.webhook_call(resource, &object, api_version) {
            let from = object["apiVersion"].as_str().unwrap_or_default().to_owned();
            let result = call.and_then(|it| self.result_of(it));
            let converted =
                result.map_err(|why| conversion_error(resource, &from, &why))?;
            return Ok(self.finish(converted, api_version));
        }
        let is_other = object["apiVersion"].as_str().map(version_of)
            != Some(version_of(api_version));
        if is_other {
            return Ok(self.finish(object, api_version));
        }
        // The same version of a group under its alias.
        meta::fields(&mut object).insert("apiVersion".to_owned(), api_version.into());
        Ok(object)
    }

    /// The webhook call that converts an object; `None` if the server converts it.
    pub(crate) fn webhook_call(
        &self,
        resource: &Resource,
        object: &Value,
        api_version: &str,
    ) -> Option<Result<ConversionCall, String>> {
        let from = object["apiVersion"].as_str().unwrap_or_default();
        let (from, to) = (version_of(from), version_of(api_version));
        let webhook = self.webhook.as_ref().filter(|_| from != to)?;
        // A webhook uses a group's own name, not its alias.
        let group = &resource.storage.group;
        let mut object = object.clone();
        object["apiVersion"] = format!("{group}/{from}").into();
        Some(webhook.clone().map(|webhook| ConversionCall {
            webhook,
            object: Arc::new(object),
            api_version: format!("{group}/{to}"),
        }))
    }

    fn result_of(&self, call: ConversionCall) -> Result<Value, String> {
        let mut calls = self.calls.lock();
        if let Some(result) = calls.conversions.get(&call) {
            return result.clone();
        }
        calls.pending_conversions.push(call);
        Err("the webhook has not been called yet".to_owned())
    }

    /// Sets `apiVersion` of a converted object and prunes fields that this version does not have.
    pub(crate) fn finish(&self, mut object: Value, api_version: &str) -> Value {
        meta::fields(&mut object).insert("apiVersion".to_owned(), api_version.into());
        let definition = self.definition.as_ref();
        let version = definition.and_then(|it| it.version(version_of(api_version)));
        if let Some(version) = version {
            version.schema().prune(&mut object);
        }
        object
    }
}

/// The version of the store in which an object was written.
pub(crate) fn written(object: &Value) -> Option<u64> {
    meta::version(object).parse().ok()
}

/// The error 500, with Kubernetes' message, for an object that a webhook has not converted.
pub(crate) fn conversion_error(
    resource: &Resource,
    api_version: &str,
    why: &str,
) -> Status {
    let message = format!(
        "conversion webhook for {}/{}, Kind={} failed: {why}",
        resource.storage.group,
        version_of(api_version),
        resource.kind
    );
    Status::new(500, Reason::Unknown, message)
}

/// Calls the webhooks one after the other for the objects without a response.
pub(crate) async fn call_webhooks(
    pending: Vec<ConversionCall>,
    results: &mut ConversionResults,
) {
    let mut batches: HashMap<(Webhook, String), IndexSet<ConversionCall>> =
        HashMap::new();
    for call in pending {
        if !results.contains_key(&call) {
            let key = (call.webhook.clone(), call.api_version.clone());
            batches.entry(key).or_default().insert(call);
        }
    }
    for ((webhook, api_version), batch) in batches {
        let objects: Vec<Arc<Value>> = batch.iter().map(|it| it.object.clone()).collect();
        match webhook.convert(&objects, &api_version).await {
            Ok(converted) => {
                let both = batch.into_iter().zip(converted.into_iter().map(Ok));
                results.extend(both);
            }
            Err(why) => {
                results.extend(batch.into_iter().map(|it| (it, Err(why.clone()))));
            }
        }
    }
}

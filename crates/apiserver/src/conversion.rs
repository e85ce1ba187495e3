//! Conversion between the stored version of objects and the requested one.

pub(crate) mod webhook;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fivespot_admission::crd::Crd;
use jiff::Timestamp;
use serde_json::Value;

use crate::empty;
use crate::meta;
use crate::openapi::shape::Shape;
use crate::resource::{Resource, version_of};
use crate::state::State;
use crate::status::{Reason, Status};
use crate::store::Object;
use crate::webhook_client::Endpoint;
use webhook::Webhook;

/// An object that a webhook must convert. Requests are performed under a lock, which is not held
/// while a webhook is called. A request that lacks a response is therefore abandoned before it has
/// written anything, the webhook is called, and the request is performed again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) webhook: Webhook,
    pub(crate) object: Arc<Value>,
    pub(crate) api_version: String,
}

/// The webhooks' responses or errors.
pub(crate) type Answers = HashMap<Question, Result<Value, String>>;

/// A call of an admission webhook, which is made as described for [`Question`].
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
    async fn answer(&self) -> Result<Value, String> {
        let mut backoff = self.backoff;
        let mut answer = self.endpoint.post(&self.body, self.timeout).await;
        for _ in 1..5 {
            if answer.is_ok() || backoff.is_zero() {
                break;
            }
            tokio::time::sleep(backoff).await;
            backoff = backoff * 3 / 2;
            answer = self.endpoint.post(&self.body, self.timeout).await;
        }
        answer
    }
}

/// The webhook responses that a request has so far, and the calls that it still needs.
#[derive(Debug, Default)]
pub(crate) struct WebhookCalls {
    answers: Answers,
    open: Vec<Question>,
    reviews: HashMap<ReviewCall, Result<Value, String>>,
    open_reviews: Vec<ReviewCall>,
    /// When the request was performed for the first time.
    pub(crate) began: Option<Timestamp>,
    /// Whether the request is performed again.
    pub(crate) is_retry: bool,
}

impl WebhookCalls {
    /// Whether no call is pending.
    pub(crate) fn is_settled(&self) -> bool {
        self.open.is_empty() && self.open_reviews.is_empty()
    }

    /// The response of an admission webhook; `None` until it has been called.
    pub(crate) fn review(&mut self, call: ReviewCall) -> Option<Result<Value, String>> {
        let answer = self.reviews.get(&call).cloned();
        if answer.is_none() {
            self.open_reviews.push(call);
        }
        answer
    }

    /// Makes all pending calls.
    pub(crate) async fn ask(&mut self) {
        ask(std::mem::take(&mut self.open), &mut self.answers).await;
        let calls = std::mem::take(&mut self.open_reviews);
        let calls = calls.into_iter().map(async |call| {
            let answer = call.answer().await;
            (call, answer)
        });
        // The calls are concurrent, as in Kubernetes.
        let answered = futures::future::join_all(calls).await;
        self.reviews.extend(answered);
        self.is_retry = true;
    }
}

/// The [`WebhookCalls`] that all conversions of one request share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<WebhookCalls>>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, WebhookCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts objects of one resource between its versions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversion {
    /// The definition of a custom resource.
    definition: Option<Arc<Crd>>,
    /// The conversion webhook, or why it cannot be called; `None` if the server converts.
    webhook: Option<Result<Webhook, String>>,
    calls: Shared,
}

impl Conversion {
    /// The conversion of `resource` by its current definition.
    pub(crate) fn of(state: &State, resource: &Resource) -> Self {
        if !resource.custom {
            return Self::default();
        }
        let webhook = state.webhooks.get(&resource.storage);
        Self {
            definition: state.definitions.get(&resource.storage).cloned(),
            webhook: webhook.map(|it| Webhook::of(state, it)),
            calls: state.webhook_calls.clone(),
        }
    }

    /// A stored object in the version of `resource`.
    ///
    /// # Errors
    /// 500 if a webhook has not converted it.
    pub(crate) fn shown(
        &self,
        resource: &Resource,
        stored: &Object,
    ) -> Result<Object, Status> {
        let said = stored["apiVersion"].as_str();
        if said.is_some_and(|it| resource.is_served_as(it)) {
            return Ok(stored.clone());
        }
        let object = Value::clone(stored);
        let shown = self.converted(resource, object, &resource.api_version())?;
        Ok(Arc::new(shown))
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
        if let Some(question) = self.question(resource, &object, api_version) {
            let from = object["apiVersion"].as_str().unwrap_or_default().to_owned();
            let answer = question.and_then(|it| self.answer(it));
            let answer = answer.map_err(|why| failed(resource, &from, &why))?;
            return Ok(self.finished(answer, api_version));
        }
        let is_other = object["apiVersion"].as_str().map(version_of)
            != Some(version_of(api_version));
        if is_other {
            return Ok(self.finished(object, api_version));
        }
        // The same version of a group under its alias.
        meta::fields(&mut object).insert("apiVersion".to_owned(), api_version.into());
        Ok(object)
    }

    /// The webhook call that converts an object; `None` if the server converts it.
    pub(crate) fn question(
        &self,
        resource: &Resource,
        object: &Value,
        api_version: &str,
    ) -> Option<Result<Question, String>> {
        let from = object["apiVersion"].as_str().unwrap_or_default();
        let (from, to) = (version_of(from), version_of(api_version));
        let webhook = self.webhook.as_ref().filter(|_| from != to)?;
        // A webhook uses a group's own name, not its alias.
        let group = &resource.storage.group;
        let mut object = object.clone();
        object["apiVersion"] = format!("{group}/{from}").into();
        Some(webhook.clone().map(|webhook| Question {
            webhook,
            object: Arc::new(object),
            api_version: format!("{group}/{to}"),
        }))
    }

    fn answer(&self, question: Question) -> Result<Value, String> {
        let mut calls = self.calls.lock();
        if let Some(answer) = calls.answers.get(&question) {
            return answer.clone();
        }
        calls.open.push(question);
        Err("the webhook has not been called yet".to_owned())
    }

    /// Sets `apiVersion` of a converted object and prunes fields that this version does not have.
    pub(crate) fn finished(&self, mut object: Value, api_version: &str) -> Value {
        meta::fields(&mut object).insert("apiVersion".to_owned(), api_version.into());
        let definition = self.definition.as_ref();
        let version = definition.and_then(|it| it.version(version_of(api_version)));
        if let Some(version) = version {
            version.schema().prune(&mut object);
        }
        object
    }
}

/// The error 500, with Kubernetes' message, for an object that a webhook has not converted.
pub(crate) fn failed(resource: &Resource, api_version: &str, why: &str) -> Status {
    let message = format!(
        "conversion webhook for {}/{}, Kind={} failed: {why}",
        resource.storage.group,
        version_of(api_version),
        resource.kind
    );
    Status::new(500, Reason::Unknown, message)
}

/// Stops before a write while a call of the request is pending.
///
/// # Errors
/// 500, which no client receives: the request is performed again.
pub(crate) fn all_answered(state: &State) -> Result<(), Status> {
    if state.webhook_calls.lock().is_settled() {
        return Ok(());
    }
    Err(Status::internal("a webhook has not been called yet"))
}

/// Calls the webhooks one after the other for the objects without a response.
pub(crate) async fn ask(open: Vec<Question>, answers: &mut Answers) {
    let mut batches: HashMap<(Webhook, String), Vec<Question>> = HashMap::new();
    for question in open {
        if !answers.contains_key(&question) {
            let key = (question.webhook.clone(), question.api_version.clone());
            let batch = batches.entry(key).or_default();
            if !batch.contains(&question) {
                batch.push(question);
            }
        }
    }
    for ((webhook, api_version), batch) in batches {
        let objects: Vec<Arc<Value>> = batch.iter().map(|it| it.object.clone()).collect();
        match webhook.convert(&objects, &api_version).await {
            Ok(converted) => {
                let both = batch.into_iter().zip(converted.into_iter().map(Ok));
                answers.extend(both);
            }
            Err(why) => {
                answers.extend(batch.into_iter().map(|it| (it, Err(why.clone()))));
            }
        }
    }
}

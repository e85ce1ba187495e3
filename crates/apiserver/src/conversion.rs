//! From the version in which objects are stored to the one that is asked for, and back.

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

/// An object that a webhook has to convert. Requests are performed in one go under a lock, and
/// webhooks are far away: a request that lacks an answer is given up before it has written
/// anything, the webhook is called, and the request is performed anew.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) webhook: Webhook,
    pub(crate) object: Arc<Value>,
    pub(crate) api_version: String,
}

/// What webhooks have answered, or why they have not.
pub(crate) type Answers = HashMap<Question, Result<Value, String>>;

/// A call of an admission webhook, for which the same holds as for a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReviewCall {
    pub(crate) endpoint: Endpoint,
    pub(crate) body: Arc<Value>,
    pub(crate) timeout: Duration,
    /// How long to wait before one that could not be reached is called once more; zero for not
    /// at all.
    pub(crate) backoff: Duration,
}

impl ReviewCall {
    /// Calls the webhook, up to five times where it is called again at all, each time after half
    /// as long again (`DefaultRetryBackoffWithInitialDelay` in k8s.io/apiserver).
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

/// The answers that a request has so far, and the questions that came up in it.
#[derive(Debug, Default)]
pub(crate) struct WebhookCalls {
    answers: Answers,
    open: Vec<Question>,
    reviews: HashMap<ReviewCall, Result<Value, String>>,
    open_reviews: Vec<ReviewCall>,
    /// When the request was performed for the first time.
    pub(crate) began: Option<Timestamp>,
    /// Whether it is performed anew.
    pub(crate) is_retry: bool,
}

impl WebhookCalls {
    /// Whether no question is open.
    pub(crate) fn is_settled(&self) -> bool {
        self.open.is_empty() && self.open_reviews.is_empty()
    }

    /// The answer of an admission webhook; none until it has been asked.
    pub(crate) fn review(&mut self, call: ReviewCall) -> Option<Result<Value, String>> {
        let answer = self.reviews.get(&call).cloned();
        if answer.is_none() {
            self.open_reviews.push(call);
        }
        answer
    }

    /// Asks every webhook those questions that are open.
    pub(crate) async fn ask(&mut self) {
        ask(std::mem::take(&mut self.open), &mut self.answers).await;
        let calls = std::mem::take(&mut self.open_reviews);
        let calls = calls.into_iter().map(async |call| {
            let answer = call.answer().await;
            (call, answer)
        });
        // They are asked at once, as in Kubernetes.
        let answered = futures::future::join_all(calls).await;
        self.reviews.extend(answered);
        self.is_retry = true;
    }
}

/// [`WebhookCalls`] for all who convert in one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<WebhookCalls>>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, WebhookCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the objects of one resource become those of another of its versions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversion {
    /// Of a custom resource its definition.
    definition: Option<Arc<Crd>>,
    /// Who converts where that is not the server itself, or why nobody can.
    webhook: Option<Result<Webhook, String>>,
    calls: Shared,
}

impl Conversion {
    /// The conversion of `resource` as it is defined now.
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

    /// An object that is stored, as `resource` shows it.
    ///
    /// # Errors
    /// 500 where a webhook has not converted it.
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

    /// An object, as `resource` shows it, in the version that is stored.
    ///
    /// # Errors
    /// 500 where a webhook has not converted it.
    pub(crate) fn to_stored(
        &self,
        resource: &Resource,
        object: Value,
    ) -> Result<Value, Status> {
        self.converted(resource, object, &resource.stored_as)
    }

    /// An object of `resource` as one of `api_version`. What the schema of that version does not
    /// have is pruned, as in Kubernetes whatever the strategy (`schemaCoercingConverter` in
    /// k8s.io/apiextensions-apiserver).
    ///
    /// # Errors
    /// 500 where a webhook has not converted it.
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
        // The same version of a group under its other name.
        meta::fields(&mut object).insert("apiVersion".to_owned(), api_version.into());
        Ok(object)
    }

    /// What a webhook has to be asked to convert an object; none where the server does it.
    pub(crate) fn question(
        &self,
        resource: &Resource,
        object: &Value,
        api_version: &str,
    ) -> Option<Result<Question, String>> {
        let from = object["apiVersion"].as_str().unwrap_or_default();
        let (from, to) = (version_of(from), version_of(api_version));
        let webhook = self.webhook.as_ref().filter(|_| from != to)?;
        // A webhook knows a group by its own name alone.
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
        Err("it has not been asked yet".to_owned())
    }

    /// An object that is one of `api_version` but for its name and what that does not have.
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

/// 500, in the words of Kubernetes, of an object that a webhook has not converted.
pub(crate) fn failed(resource: &Resource, api_version: &str, why: &str) -> Status {
    let message = format!(
        "conversion webhook for {}/{}, Kind={} failed: {why}",
        resource.storage.group,
        version_of(api_version),
        resource.kind
    );
    Status::new(500, Reason::Unknown, message)
}

/// Refuses to go on to a write while a question is open, whoever has asked it.
///
/// # Errors
/// 500, which nobody sees: the request is performed anew.
pub(crate) fn all_answered(state: &State) -> Result<(), Status> {
    if state.webhook_calls.lock().is_settled() {
        return Ok(());
    }
    Err(Status::internal("a webhook has not been asked yet"))
}

/// Asks every webhook, one after the other, those questions that it was not asked.
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

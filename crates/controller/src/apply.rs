//! Sends the planner's actions.

mod host;
mod large_object;
mod route;

use std::sync::Arc;

use fivespot_api::ScheduleOverride;
use fivespot_plan::{Action, Call, Cause, Plan, Request, Side, Step, Target};
use futures::StreamExt as _;
use futures::stream;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::context::Context;
use crate::failure;
use crate::interrupt::superseded;
use crate::listener::StepTaken;
use crate::observe::live_reads::LiveReads;
use crate::observe::{Reading, Snapshot};
use crate::provider_specs;
use crate::telemetry::metrics::Metrics;
use fivespot_runtime::Key;
use fivespot_runtime::cache::{Expectation, Version};
use fivespot_runtime::http::error::{retry_after, status};
use fivespot_runtime::http::{Address, ApiClient, Deletion, PatchFormat};
use fivespot_runtime::lease::Fenced;
pub(crate) use host::give_back;
use large_object::LargeObject;
use route::{Route, is_scheduled_machine, route};

/// How long to wait for the response when a schedule is disabled or a ScheduleOverride is created.
const SWITCH_OFF_TIMEOUT: SignedDuration = SignedDuration::from_secs(2);

/// The outcome of sending a list of actions.
pub(crate) enum ApplyOutcome {
    /// All actions were sent, and none was rejected except evictions.
    All {
        /// The ScheduledMachine's resourceVersion afterwards, if an action has changed it.
        version: Option<String>,
    },
    /// The cluster's state has changed; the plan is out of date.
    Conflict,
    /// This replica may not act on the ScheduledMachine any more.
    Fenced,
    /// A step failed; those after it were not sent.
    Failed(FailedStep),
}

/// A failed step of a plan.
pub(crate) struct FailedStep {
    /// The step.
    pub(crate) step: Step,
    /// The kind of failure.
    pub(crate) cause: Cause,
    /// The message of the server, or of the client.
    pub(crate) message: String,
    /// When the server asks for the next attempt.
    pub(crate) retry_after: Option<SignedDuration>,
}

/// The maximum number of concurrent requests of one batch.
const MAX_CONCURRENT: usize = 16;

/// Sends the actions of `plan` in order and stops at the first that fails. Consecutive actions on
/// one pod each are sent concurrently.
///
/// Every action may be repeated: the preconditions that the server checks make that harmless.
///
/// # Guarantees
/// An empty list of actions never fails. A conflict is never retried here: the next plan is made
/// from newer objects. Requests to a workload cluster are dropped at the plan's deadline, and when
/// another reason to terminate the machine arises. Their outcome is then unknown.
pub(crate) async fn apply(
    context: &Arc<Context>,
    key: &Key,
    reading: Reading<'_>,
    plan: &Plan,
) -> ApplyOutcome {
    let Reading { snapshot, reads } = reading;
    let sender = Sender {
        context,
        key,
        snapshot,
        reads,
    };
    let mut version = None;
    let mut remaining = plan.actions.as_slice();
    while let Some(first) = remaining.first() {
        let pods = remaining.iter().take_while(|action| is_of_a_pod(action));
        let (batch, rest) = remaining.split_at(pods.count().max(1));
        let sent = sender.send_all(batch);
        let result = match first.request.side {
            Side::Management => sent.await,
            Side::Workload => tokio::select! {
                biased;
                result = sent => result,
                () = sender.stop_waiting(plan) => Err(ApplyOutcome::Conflict),
            },
        };
        match result {
            Ok(changed) => version = changed.or(version),
            Err(applied) => return applied,
        }
        remaining = rest;
    }
    ApplyOutcome::All { version }
}

fn is_of_a_pod(action: &Action) -> bool {
    matches!(action.step, Step::EvictPod | Step::DeletePod)
}

/// Sends the actions of one attempt on one ScheduledMachine.
struct Sender<'a> {
    context: &'a Arc<Context>,
    key: &'a Key,
    snapshot: &'a Snapshot,
    reads: &'a LiveReads,
}

impl Sender<'_> {
    /// Ready when requests to the workload cluster must not be waited for any longer.
    async fn stop_waiting(&self, plan: &Plan) {
        let end = async {
            match plan.until {
                Some(until) => self.context.clock.sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = end => tracing::info!("the deadline ends the requests in progress"),
            () = superseded(self.context, self.key) => {}
        }
    }

    /// Sends a batch. Returns the ScheduledMachine's resourceVersion if an action has changed it.
    async fn send_all(&self, batch: &[Action]) -> Result<Option<String>, ApplyOutcome> {
        let requests: Vec<_> = batch.iter().map(|action| self.send_one(action)).collect();
        let mut results = stream::iter(requests).buffer_unordered(MAX_CONCURRENT);
        let mut version = None;
        while let Some((action, sent)) = results.next().await {
            version = self.handle_result(action, sent)?.or(version);
        }
        Ok(version)
    }

    async fn send_one<'b>(&self, action: &'b Action) -> (&'b Action, SendResult) {
        let sent = send(self.context, self.key, action, self.reads);
        let sent = with_timeout(self.context, action, sent);
        (action, self.context.fence.write(self.key, sent).await)
    }

    /// Records the result of a request. Returns the ScheduledMachine's resourceVersion if the
    /// request has changed it.
    fn handle_result(
        &self,
        action: &Action,
        sent: SendResult,
    ) -> Result<Option<String>, ApplyOutcome> {
        let Self { context, key, .. } = *self;
        let Ok(sent) = sent else {
            cancel_start(context, key, action);
            return Err(ApplyOutcome::Fenced);
        };
        let error = match sent {
            Ok(response) => {
                tracing::info!(step = ?action.step, "step done");
                self.notify_listener(action, None);
                let done = std::slice::from_ref(action);
                context.state(key, |state| {
                    state.memory.succeeded(done);
                    state.memory.repeated(done, self.snapshot.now);
                });
                measure(&context.metrics, action, drain_of(action, self.snapshot));
                let is_ours = is_scheduled_machine(&action.request.target);
                let version = text(&response["metadata"]["resourceVersion"]);
                return Ok(version.filter(|_| is_ours));
            }
            Err(error) => error,
        };
        let mut message = failure::message_from(action.request.side, &error);
        let is_unserved = is_unserved(action, &error);
        if is_unserved {
            message = format!(
                "the workload cluster does not serve the Eviction API: {message}"
            );
        }
        self.notify_listener(action, Some(message.clone()));
        if let Call::Evict { uid } | Call::DeletePod { uid, .. } = &action.request.call
            && (is_unserved || is_about_the_pod(&error))
        {
            tracing::info!(pod = action.request.target.object.name, "eviction refused");
            context.metrics.count_eviction(false);
            let now = context.queue.now();
            context.state(key, |state| state.memory.refused(uid, &message, now));
            return Ok(None);
        }
        cancel_start(context, key, action);
        Err(failure_outcome(context, action, &error))
    }

    fn notify_listener(&self, action: &Action, refusal: Option<String>) {
        let object = &action.request.target.object;
        self.context.options.listener.step(&StepTaken {
            at: self.snapshot.now,
            key: self.key.clone(),
            step: action.step,
            object: format!("{}/{}", object.kind, object.name),
            refusal,
        });
    }
}

/// The result of a request, or that it must not be sent.
type SendResult = Result<kube::Result<Value>, Fenced>;

/// Creates the override of a reclaim, or returns the one that an earlier attempt has created. It is
/// named after the Machine. If an override has the name that does not stop this machine for as
/// long, the server chooses another one: nobody can defeat a reclaim by taking the name before.
async fn create_override(
    api: &ApiClient,
    at: &Address<'_>,
    object: &Value,
    now: Timestamp,
) -> kube::Result<Value> {
    let collection = Address { name: "", ..*at };
    match api.create(&collection, object).await {
        Err(error) if failure::code(&error) == Some(409) => {}
        created => return created,
    }
    if let Some(found) = api.get(at).await?
        && let Ok(existing) = ScheduleOverride::deserialize(&found)
        && let Ok(asked) = ScheduleOverride::deserialize(object)
        && existing.replaces_stop(&asked, now)
    {
        return Ok(found);
    }
    let mut other = object.clone();
    if let Some(Value::Object(metadata)) = other.get_mut("metadata") {
        metadata.remove("name");
        metadata.insert("generateName".to_owned(), json!(format!("{}-", at.name)));
    }
    api.create(&collection, &other).await
}

/// Releases the slot in the start rate limit of a machine whose first object was not created,
/// whatever the reason.
fn cancel_start(context: &Context, key: &Key, action: &Action) {
    if action.step == Step::CreateBootstrap {
        context.cancel_start(key);
    }
}

/// The response to a request. Requests that no other step depends on time out early: a webhook
/// that does not respond must not delay the return of a reclaimed host. They are retried.
async fn with_timeout(
    context: &Context,
    action: &Action,
    sent: impl Future<Output = kube::Result<Value>>,
) -> kube::Result<Value> {
    if !matches!(action.step, Step::DisableSchedule | Step::CreateOverride) {
        return sent.await;
    }
    tokio::select! {
        biased;
        response = sent => response,
        () = context.clock.sleep(SWITCH_OFF_TIMEOUT) => {
            let message = format!("no response within {SWITCH_OFF_TIMEOUT:#}");
            Err(kube::Error::Service(message.into()))
        }
    }
}

/// Whether the drain that ends with the deletion of a Machine was in time. `None` if there was
/// none.
fn drain_of(action: &Action, snapshot: &Snapshot) -> Option<bool> {
    if action.step != Step::DeleteMachine {
        return None;
    }
    let status = snapshot.object.status.as_ref()?;
    let shutdown = status.shutdown.as_ref()?;
    // A kill switch and a reclaim do not drain: their deadline is their start.
    let is_drain = shutdown.deadline > shutdown.started_at;
    is_drain.then_some(snapshot.now < shutdown.deadline)
}

fn measure(metrics: &Metrics, action: &Action, drain: Option<bool>) {
    if action.step == Step::EvictPod {
        metrics.count_eviction(true);
    }
    if let Some(is_in_time) = drain {
        metrics.count_drain(is_in_time);
    }
}

/// Whether an eviction was rejected because of this pod only, so that other evictions may
/// continue: by a disruption budget (429), by two of them (500), by a policy or a webhook, or
/// because its namespace is terminating: other pods on the Node are in other namespaces.
fn is_about_the_pod(error: &kube::Error) -> bool {
    match failure::cause(error) {
        Cause::Rejected | Cause::NamespaceTerminating => true,
        Cause::Unavailable => !matches!(failure::code(error), None | Some(401 | 409)),
        Cause::Forbidden | Cause::NotServed => false,
    }
}

/// Whether the workload cluster does not serve the Eviction API: if the pod is missing, the
/// response names it. The next attempt is as far away as after a budget's refusal, and the
/// deadline ends the drain.
fn is_unserved(action: &Action, error: &kube::Error) -> bool {
    let details = status(error).and_then(|status| status.details.as_ref());
    matches!(action.request.call, Call::Evict { .. })
        && failure::code(error) == Some(404)
        && details.is_none_or(|details| details.name.is_empty())
}

fn failure_outcome(
    context: &Context,
    action: &Action,
    error: &kube::Error,
) -> ApplyOutcome {
    let is_create = matches!(action.request.call, Call::Create(_));
    match failure::code(error) {
        Some(409) => return ApplyOutcome::Conflict,
        Some(404) if !is_create => return ApplyOutcome::Conflict,
        Some(404) => {
            let group = &action.request.target.object.group;
            context.discovery.forget(group);
        }
        _ => {}
    }
    let message = failure::message_from(action.request.side, error);
    context.metrics.count_error(failure::ErrorType::of(error));
    context
        .outage
        .warn(format_args!("step {:?} failed", action.step), &message);
    ApplyOutcome::Failed(FailedStep {
        step: action.step,
        cause: failure::cause(error),
        message,
        retry_after: retry_after(error),
    })
}

async fn send(
    context: &Arc<Context>,
    key: &Key,
    action: &Action,
    reads: &LiveReads,
) -> kube::Result<Value> {
    let Action { request, step } = action;
    let Route {
        api,
        resource,
        cache,
        projection,
    } = route(context, key, request).await?;
    let target = &request.target;
    let namespace = target.namespace.as_deref();
    let at = Address {
        resource: &resource,
        namespace,
        name: &target.object.name,
        projection: Some(&projection),
    };
    let response = match &request.call {
        Call::Create(object) if *step == Step::ClaimHost => {
            host::claim(context, key, &at, object).await?
        }
        Call::Create(object) if *step == Step::CreateOverride => {
            create_override(&api, &at, object, context.queue.now()).await?
        }
        Call::Create(object) => {
            let collection = Address { name: "", ..at };
            let left_out = || object.get("spec").is_none();
            match provider_specs::field(*step).filter(|_| left_out()) {
                Some(field) => {
                    let (api, at) = (&api, &collection);
                    let large = LargeObject {
                        api,
                        at,
                        object,
                        field,
                    };
                    large.create(context, key).await?
                }
                None => api.create(&collection, object).await?,
            }
        }
        Call::Patch(patch) => api.patch(&at, None, PatchFormat::Merge, patch).await?,
        Call::Delete { uid } => api.delete(&at, Deletion::of(uid)).await?,
        // The effect of an eviction shows in the pod later; the eviction is repeated only after a
        // live read.
        Call::Evict { uid } => {
            reads.invalidate_pods();
            return api.evict(&at, uid).await;
        }
        Call::DeletePod { uid, grace } => {
            reads.invalidate_pods();
            let deletion = Deletion {
                grace: Some(*grace),
                ..Deletion::of(uid)
            };
            return api.delete(&at, deletion).await;
        }
    };
    let written = Written {
        request,
        cache,
        response: &response,
    };
    written.record(context, key, reads)?;
    Ok(response)
}

/// A write that the server has accepted.
struct Written<'a> {
    request: &'a Request,
    /// The cache that will show it.
    cache: String,
    response: &'a Value,
}

impl Written<'_> {
    /// Records the write for this reconcile and later ones.
    ///
    /// # Errors
    /// The response exceeds the limits for a workload cluster. The object is then read again.
    fn record(self, context: &Context, key: &Key, reads: &LiveReads) -> kube::Result<()> {
        let (request, response) = (self.request, self.response);
        let Target { namespace, object } = &request.target;
        let namespace = namespace.as_deref();
        // The server may have chosen the name.
        let written = response["metadata"]["name"].as_str();
        let name = written.unwrap_or(&object.name);
        let object = Key::new(namespace.unwrap_or_default(), name);
        let share = match request.side {
            Side::Management => Ok(None),
            Side::Workload => context.reserve(key, response),
        };
        let is_stored = matches!(request.call, Call::Create(_) | Call::Patch(_));
        let is_kept = is_stored && share.is_ok();
        reads.record_write(&self.cache, &object, is_kept.then_some(response));
        reads.hold(share?);
        // A list that begins from here on shows the write; one that began before the response may
        // not.
        let lists_begun = lists_begun(context, &self.cache, namespace);
        let expectation = expectation(&request.call, response, lists_begun);
        context.state(key, |state| {
            state.expectations.expect(self.cache, object, expectation);
        });
        Ok(())
    }
}

fn lists_begun(context: &Context, cache: &str, namespace: Option<&str>) -> u64 {
    let informer = context.cache(cache);
    informer.map_or(0, |informer| {
        informer.store.lists_begun(namespace.unwrap_or_default())
    })
}

/// The state after the write, according to the response.
fn expectation(call: &Call, response: &Value, lists_begun: u64) -> Expectation {
    let meta = &response["metadata"];
    let version = text(&meta["resourceVersion"]).map(Version::new);
    let uid = text(&meta["uid"]).unwrap_or_default();
    match call {
        Call::Delete { uid } => {
            // The response is the object itself while finalizers keep it.
            let is_kept = meta["finalizers"]
                .as_array()
                .is_some_and(|all| !all.is_empty());
            Expectation {
                uid: uid.clone(),
                version: version.filter(|_| is_kept),
                lists_begun,
            }
        }
        Call::Create(_)
        | Call::Patch(_)
        | Call::DeletePod { .. }
        | Call::Evict { .. } => {
            // Removing the last finalizer of an object that is being deleted deletes it.
            let is_removed = text(&meta["deletionTimestamp"]).is_some()
                && meta["finalizers"].as_array().is_none_or(Vec::is_empty);
            Expectation {
                uid,
                version: version.filter(|_| !is_removed),
                lists_begun,
            }
        }
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests;

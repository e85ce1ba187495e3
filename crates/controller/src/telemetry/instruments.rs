//! Reads the metrics and the health of a running controller.

use std::sync::{Arc, OnceLock, Weak};

use fivespot_api::Phase;
use fivespot_api::condition::Reason;
use fivespot_plan::Unknown;
use kubemu_https::{Detail, ProbeResponse};
use serde_json::json;

use crate::Controllers;
use crate::context::Context;
use crate::failure;
use crate::observe::projection::{CachedKind, KindInformer};
use crate::telemetry::health::{Check, Health};
use crate::telemetry::metrics::Metrics;
use fivespot_runtime::cache::Health as CacheHealth;
use fivespot_runtime::lease::Role;
use fivespot_runtime::queue::WorkQueue;

/// A handle on the metrics and the health of a controller. Clones share one controller: the first
/// that was [run](crate::run) with it.
#[derive(Clone, Debug, Default)]
pub struct Instruments(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    metrics: Arc<Metrics>,
    context: OnceLock<Weak<Context>>,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            metrics: Arc::new(Metrics::new()),
            context: OnceLock::new(),
        }
    }
}

impl Instruments {
    pub(crate) fn counters(&self) -> &Arc<Metrics> {
        &self.0.metrics
    }

    pub(crate) fn attach(&self, context: &Arc<Context>) {
        let options = &context.options;
        let of_machines = Some(options.identity.as_str());
        let of_machines = of_machines.filter(|_| options.controllers.machines);
        self.0.metrics.set_info(of_machines);
        // Already set if the same options are run twice.
        let _ = self.0.context.set(Arc::downgrade(context));
    }

    fn context(&self) -> Option<Arc<Context>> {
        self.0.context.get().and_then(Weak::upgrade)
    }

    /// The metrics, in the OpenMetrics text format.
    pub fn metrics(&self) -> String {
        measure(&self.0.metrics, self.context().as_deref());
        self.0.metrics.text()
    }

    /// Whether the controller is ready to act, or to take over.
    pub fn readiness(&self) -> Health {
        match self.context() {
            Some(context) => readiness(&context),
            None => Health {
                checks: vec![Check::new(
                    "running",
                    Some("the controller has not started or has stopped".to_owned()),
                )],
            },
        }
    }

    /// Answers a GET of `path` on the metrics port.
    pub fn on_metrics_port(&self, path: &str) -> ProbeResponse {
        match path {
            "/metrics" => ProbeResponse::metrics(self.metrics()),
            _ => ProbeResponse::not_found(),
        }
    }

    /// Answers a GET of `path` on the health port.
    ///
    /// `/healthz`, `/health` and `/livez` report that the process responds. `/readyz` and `/ready`
    /// report whether it is ready, `/health/status` both, as JSON.
    pub fn on_health_port(&self, path: &str, detail: Detail) -> ProbeResponse {
        match path {
            "/healthz" | "/health" | "/livez" => ProbeResponse::text(200, "ok\n"),
            "/readyz" | "/ready" => {
                let health = self.readiness();
                match (health.is_well(), detail) {
                    (true, Detail::Brief) => ProbeResponse::text(200, "ok\n"),
                    (true, Detail::Verbose) => {
                        ProbeResponse::text(200, format!("{health}ready\n"))
                    }
                    (false, Detail::Brief) => ProbeResponse::text(503, "not ready\n"),
                    (false, Detail::Verbose) => {
                        ProbeResponse::text(503, format!("{health}not ready\n"))
                    }
                }
            }
            "/health/status" => {
                let health = self.readiness();
                let is_connected = health
                    .checks
                    .iter()
                    .all(|check| check.name != API || check.problem.is_none());
                let body = json!({
                    "healthy": true,
                    "ready": health.is_well(),
                    "k8s_connected": is_connected,
                });
                ProbeResponse {
                    code: 200,
                    content: "application/json",
                    body: format!("{body}\n"),
                }
            }
            _ => ProbeResponse::not_found(),
        }
    }
}

const LAPSED: &str = "the Lease could not be renewed in time";

/// The name of the check whether the API server responds.
const API: &str = "api-server";

fn readiness(context: &Context) -> Health {
    let mut checks = Vec::new();
    let mut unreachable = None;
    for informer in context.caches() {
        // An unreachable workload cluster is a condition of its machines.
        if informer.projection.is_of_workload() {
            continue;
        }
        let (check, silence) = cache(context, &informer);
        checks.push(check);
        unreachable = silence.or(unreachable);
    }
    let outdated = context.own_crd.problem();
    let outdated = outdated.map(|problem| {
        format!("{}: {problem}", Reason::CustomResourceDefinitionOutdated)
    });
    checks.push(Check::new("crd", outdated));
    checks.push(lease(context));
    checks.push(Check::new(API, unreachable));
    Health { checks }
}

/// The check of a cache, and why the server counts as unreachable.
fn cache(context: &Context, informer: &KindInformer) -> (Check, Option<String>) {
    let check = |problem| Check::new(format!("cache {}", informer.name), problem);
    let why = match (context.cache_health(informer), informer.failure()) {
        (CacheHealth::Loading, _) => {
            return (check(Some("has not been listed yet".to_owned())), None);
        }
        (CacheHealth::Synced, None) => return (check(None), None),
        (CacheHealth::Failing(why), _) | (CacheHealth::Synced, Some(why)) => why,
    };
    let is_own = informer.name == context.scheduled_machines.name;
    match (failure::of_watch(&why), &informer.projection) {
        (Unknown::NotRequested, _) => (check(None), None),
        // A kind that is not served or not permitted is a condition of the objects that name it; so
        // is one whose webhook does not convert its versions.
        (Unknown::NotServed { message } | Unknown::Forbidden { message }, _) => {
            (check(is_own.then_some(message)), None)
        }
        (
            Unknown::Failed { message },
            CachedKind::Provider
            | CachedKind::ProvidedSchedule(_)
            | CachedKind::CapacityTarget,
        ) if why.code.is_some() => (check(None).note(message), None),
        (Unknown::Failed { message }, CachedKind::Cluster | CachedKind::Machine)
            if why.code.is_some() =>
        {
            (check(Some(message)), None)
        }
        (Unknown::Failed { message }, _) => (check(Some(message.clone())), Some(message)),
    }
}

fn lease(context: &Context) -> Check {
    let check = |problem: Option<&str>| Check::new("lease", problem.map(str::to_owned));
    let is_acting = context.fence.is_in_force();
    match context.role() {
        Role::Alone => check(None).note("there is no other replica"),
        Role::Barred(holder) => Check::new(
            "lease",
            Some(format!(
                "{holder} holds the Lease: stop it, or start this replica with \
                 --enable-leader-election"
            )),
        ),
        Role::Lapsed => check(Some(LAPSED)),
        // A term ends without an event.
        Role::Leading if !is_acting => check(Some(LAPSED)),
        Role::Sharing { held, .. } if held > 0 && !is_acting => check(Some(LAPSED)),
        Role::Following(holder) if holder.is_empty() => check(None).note("no leader"),
        Role::Following(holder) => check(None).note(format!("{holder} is the leader")),
        Role::Leading => check(None).note("leading"),
        Role::Sharing { held, count } => {
            check(None).note(format!("holds {held} of {count} shards"))
        }
        Role::OtherShards { own, other } => Check::new(
            "lease",
            Some(format!(
                "other replicas use {other} shards, and this one {own}: start all of them with the \
                 same --instance-count"
            )),
        ),
        Role::Undecided => check(Some("the leader is not known yet")),
    }
}

/// Sets the gauges, and counts the time that machines have been in their phases. Nothing is shown of
/// a controller that has ended.
fn measure(metrics: &Metrics, context: Option<&Context>) {
    for gauge in [
        &metrics.active,
        &metrics.oldest_pending,
        &metrics.queue,
        &metrics.is_leader,
        &metrics.capacity_is_leader,
        &metrics.shards,
        &metrics.orphans,
    ] {
        gauge.set(0);
    }
    // A reason that no ScheduledMachine has any more is not shown with its last value.
    metrics.unready.clear();
    let Some(context) = context else { return };
    let phase = |phase: Phase| ("phase", phase.as_str().to_owned());
    for any in Phase::ALL {
        metrics.by_phase.get_or_create(&[phase(any)]).set(0);
    }
    let now = context.clock.now();
    let elapsed = metrics.since_last(now).as_secs_f64();
    for (key, reported) in context.reported() {
        if !context.is_own(&key) {
            continue;
        }
        metrics
            .by_phase
            .get_or_create(&[phase(reported.phase)])
            .inc();
        let namespace = ("namespace", key.namespace.clone());
        let labels = [namespace, phase(reported.phase)];
        metrics
            .machine_seconds
            .get_or_create(&labels)
            .inc_by(elapsed);
        metrics
            .active
            .inc_by(i64::from(reported.phase == Phase::Active));
        let Some(unready) = reported.unready else {
            continue;
        };
        if reported.phase == Phase::Pending {
            let waited = now.duration_since(unready.since).as_secs();
            let longest = metrics.oldest_pending.get().max(waited);
            metrics.oldest_pending.set(longest);
        }
        let labels = [("reason", unready.reason.into())];
        metrics.unready.get_or_create(&labels).inc();
    }
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let others = context.other_kinds().map(|of| &of.queue);
    let queues = others.into_iter().chain([&context.queue]);
    let due: usize = queues.map(WorkQueue::due).sum();
    metrics.queue.set(number(due));
    let is_acting = context.fence.is_in_force();
    let Controllers { machines, capacity } = context.options.controllers;
    metrics.is_leader.set(i64::from(machines && is_acting));
    let acts_on_capacities = i64::from(capacity && is_acting);
    metrics.capacity_is_leader.set(acts_on_capacities);
    if let Role::Sharing { held, .. } = context.role() {
        metrics.shards.set(held.into());
    }
    metrics.orphans.set(number(context.orphans()));
}

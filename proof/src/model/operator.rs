//! The operator around the shipped planner: observe, plan, send one write at a time.

use std::sync::Arc;

use fivespot_api::{ScheduledMachine, ScheduledMachineStatus, name};
use fivespot_capi::{Cluster, Contract, Machine, Provider, Reference};
use fivespot_plan::{
    Access, Action, Call, Cause, Fact, Failure, Freshness, Locations, Lookup, Memory,
    Node, Observed, Plan, Precondition, Specs, Step, Workload, plan,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::environment::{EARLIER, Environment, NAME, UID};
use super::interner::Id;
use super::invariant::Invariant;
use super::schedule_at::{Override, ScheduleAt};
use super::server::Response;
use super::state::{CACHED, Kind, Pod, State, WorkloadReachability, instant};

/// The input of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlanInput {
    sm: Id,
    /// Those of the management cluster.
    objects: [Option<Id>; CACHED],
    node: Option<Id>,
    pod: Pod,
    reachability: WorkloadReachability,
    overriding: Option<Override>,
    memory: Id,
    now: u8,
    freshness: Freshness,
}

/// The result of the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlanOutcome {
    pub(crate) memory: Id,
    pub(crate) next: Next,
    /// When it requeues.
    pub(crate) requeue_at: Option<Timestamp>,
    /// Whether a permanent failure of an independent step would delay the machine's lifecycle.
    is_delayed: bool,
}

/// What a plan requires next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing.
    Rest,
    /// The same question with facts that are read live.
    Confirm,
    /// These writes.
    Send(Id),
}

/// Writes in flight, in order.
#[derive(Clone, Debug)]
pub(crate) struct PendingWrites {
    /// The ScheduledMachine that the plan was made from.
    pub(crate) from: Id,
    /// The instant at which it was planned.
    pub(crate) planned: u8,
    /// The override as it was observed.
    pub(crate) overriding: Option<Override>,
    /// Whether the observed Node had pods, or the workload cluster did not respond.
    pub(crate) has_to_wait: bool,
    /// Whether there was a shutdown record for the Machine that existed.
    pub(crate) has_shutdown_record: bool,
    /// Whether the Cluster existed, was not being deleted and was ready for machines.
    pub(crate) had_cluster: bool,
    /// Whether the Cluster or the Machine was paused.
    pub(crate) was_paused: bool,
    /// Whether Cluster API reported the Node as that of another Machine.
    pub(crate) was_others: bool,
    /// Whether our Machine had the uid of an earlier ScheduledMachine.
    pub(crate) was_moved: bool,
    /// Whether the Node had a reclaim request that no Machine has recorded.
    pub(crate) had_request: bool,
    /// What must hold before the first is sent.
    pub(crate) precondition: Option<Precondition>,
    /// What remains to be sent.
    pub(crate) actions: Vec<Action>,
    /// What has been sent.
    pub(crate) sent: Vec<Action>,
    pub(crate) status: Option<ScheduledMachineStatus>,
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RequestOutcome {
    /// The request and its response arrive.
    Answered,
    /// The server responds with 500 and does nothing.
    Refused,
    /// The server executes the request, and the response is lost.
    Lost,
}

impl PendingWrites {
    /// The schedule as it was observed for this plan.
    pub(crate) fn at<'a>(&self, sm: &'a ScheduledMachine) -> ScheduleAt<'a> {
        ScheduleAt {
            sm,
            overriding: self.overriding,
            now: instant(self.planned),
        }
    }
}

impl Environment {
    /// One reconcile of the operator up to its first write. It uses caches if they contain all
    /// that the operator wrote; what the planner wants confirmed is read live.
    pub(crate) fn run_operator(&self, state: &mut State) -> Option<Timestamp> {
        if state.pending.is_some() {
            return None;
        }
        let live = PlanInput {
            sm: state.sm?,
            objects: state.managed(),
            node: state.at(Kind::Node),
            pod: state.pod,
            reachability: state.reachability,
            overriding: state.overriding,
            memory: state.memory,
            now: state.now,
            freshness: Freshness::Live,
        };
        let mut outcome = None;
        if !state.is_cache_behind {
            let cached = PlanInput {
                sm: state.cached_sm?,
                objects: state.cached,
                overriding: state.cached_override,
                freshness: Freshness::Cached,
                ..live
            };
            let planned = self.plan_once(cached);
            outcome = self
                .confirmed(live.sm, planned.next)
                .map(|next| PlanOutcome { next, ..planned });
        }
        let outcome = outcome.unwrap_or_else(|| self.plan_once(live));
        state.memory = outcome.memory;
        if outcome.is_delayed {
            state.broken = Some(Invariant::Undelayed);
        }
        if let Next::Send(pending) = outcome.next {
            state.pending = Some(pending);
            let pending = self.pending_writes.of(pending);
            // Our finalizer is guarded by the resourceVersion that the plan was made from.
            let mut steps = pending.actions.iter().map(|action| action.step);
            let is_guarded = steps.all(|step| step == Step::AddFinalizer);
            if !is_guarded && Some(pending.from) != state.sm {
                state.broken = Some(Invariant::Confirmed);
            }
        }
        outcome.requeue_at
    }

    /// What a plan made from caches requires next, with its precondition checked against the
    /// stored ScheduledMachine; `None` if all facts must be read live.
    fn confirmed(&self, stored: Id, next: Next) -> Option<Next> {
        let Next::Send(pending) = next else {
            return Some(next).filter(|next| *next != Next::Confirm);
        };
        let pending = self.pending_writes.of(pending);
        let Some(precondition) = &pending.precondition else {
            return Some(next);
        };
        precondition.holds(&self.machines.of(stored)).then(|| {
            Next::Send(self.pending_writes.intern_shown(PendingWrites {
                from: stored,
                precondition: None,
                ..(*pending).clone()
            }))
        })
    }

    /// Sends the next write; the outcome is in the state.
    pub(crate) fn send(&self, state: &mut State, outcome: RequestOutcome) {
        let Some(id) = state.pending.take() else {
            return;
        };
        let mut pending = (*self.pending_writes.of(id)).clone();
        if pending.actions.is_empty() {
            self.send_status(state, &pending, outcome);
            return;
        }
        let action = pending.actions.remove(0);
        let response = (outcome != RequestOutcome::Refused)
            .then(|| self.serve(state, &action, &pending));
        if response.is_some() {
            state.is_cache_behind = true;
        }
        if outcome != RequestOutcome::Answered {
            self.update_memory(state, |memory, now| {
                fail(memory, action.step, now);
            });
            return;
        }
        match response {
            Some(Response::TooMany) => self.update_memory(state, |memory, now| {
                if let Call::Evict { uid } = &action.request.call {
                    memory.refused(uid, "it would violate the budget", now);
                }
            }),
            Some(Response::Done) => {}
            Some(Response::Conflict | Response::NotFound) | None => return,
        }
        pending.sent.push(action);
        if pending.actions.is_empty() {
            self.update_memory(state, |memory, _| memory.succeeded(&pending.sent));
        }
        if !pending.actions.is_empty() || pending.status.is_some() {
            state.pending = Some(self.pending_writes.intern_shown(pending));
        }
    }

    /// The operator crashes and loses its memory.
    pub(crate) fn crash(&self, state: &mut State) {
        state.pending = None;
        state.memory = self.memories.intern_shown(Memory::default());
    }

    fn send_status(
        &self,
        state: &mut State,
        pending: &PendingWrites,
        outcome: RequestOutcome,
    ) {
        let (Some(status), true) = (&pending.status, outcome != RequestOutcome::Refused)
        else {
            return;
        };
        // Finalizers are written alone, so that the resourceVersion is still the one that the
        // plan was made from.
        if state.sm == Some(pending.from) {
            self.serve_status(state, status, pending);
            state.is_cache_behind = true;
        }
    }

    fn update_memory(
        &self,
        state: &mut State,
        change: impl FnOnce(&mut Memory, Timestamp),
    ) {
        let mut memory = (*self.memories.of(state.memory)).clone();
        change(&mut memory, instant(state.now));
        state.memory = self.memories.intern_shown(memory);
    }

    /// Returns the planner's answer, computed once for each question.
    fn plan_once(&self, input: PlanInput) -> PlanOutcome {
        let compute = || self.compute_plan(input);
        self.plan_outcomes.of(input, compute)
    }

    fn compute_plan(&self, input: PlanInput) -> PlanOutcome {
        let sm = self.machines.of(input.sm);
        let observed = self.observed(input, &sm);
        let mut memory = (*self.memories.of(input.memory)).clone();
        let has_to_wait = match &observed.workload.access {
            Access::Connected => {
                let machine = observed.machine.known().and_then(Option::as_ref);
                let node = observed.workload.node.known().and_then(Option::as_ref);
                let is_its = machine.zip(node).is_some_and(|(machine, node)| {
                    let of = node.machine.machine.as_ref();
                    machine.provider_id == node.provider_id
                        && of.is_none_or(|of| *of == machine.meta.name)
                });
                is_its
                    && input.pod != Pod::None
                    && observed.workload.pods.known().is_some()
            }
            access => matches!(access, Access::Unreachable { .. }),
        };
        let machine = observed.machine.known().and_then(Option::as_ref);
        let shutdown = sm
            .status
            .as_ref()
            .and_then(|status| status.shutdown.as_ref());
        let has_shutdown_record = shutdown
            .zip(machine)
            .is_some_and(|(of, machine)| of.machine_uid == machine.meta.uid);
        let node = observed.workload.node.known().and_then(Option::as_ref);
        let is_reclaimed = machine.is_some_and(|machine| {
            let annotations = &machine.meta.annotations;
            annotations.contains_key(name::RECLAIM_ANNOTATION)
        });
        let had_request =
            !is_reclaimed && node.is_some_and(|node| node.has_reclaim_annotations);
        let is_paused = machine.is_some_and(|machine| machine.meta.is_paused());
        let cluster = observed.cluster.known().cloned().flatten();
        let now = instant(input.now);
        memory.observe(sm.metadata.generation, &observed, now);
        let is_delayed = is_delayed(&sm, &observed, &memory, now);
        let Plan {
            actions,
            status,
            requeue_at,
            confirm,
            precondition,
            ..
        } = plan(&sm, &observed, &memory, now);
        let next = if confirm {
            Next::Confirm
        } else if actions.is_empty() && status.is_none() {
            Next::Rest
        } else {
            Next::Send(self.pending_writes.intern_shown(PendingWrites {
                from: input.sm,
                planned: input.now,
                overriding: input.overriding,
                has_to_wait,
                has_shutdown_record,
                had_cluster: cluster.as_ref().is_some_and(|found| {
                    !found.meta.is_deleting && found.is_control_plane_initialized
                }),
                was_others: node.is_some_and(|node| {
                    node.machine.machine.as_ref().is_some_and(|of| of != NAME)
                }),
                was_moved: machine.is_some_and(|machine| {
                    machine.meta.is_owned_by(UID)
                        && name::owner_uid(&machine.meta.labels) == Some(EARLIER)
                }),
                was_paused: is_paused || cluster.is_some_and(|found| found.is_paused),
                had_request,
                precondition,
                actions,
                sent: Vec::new(),
                status,
            }))
        };
        PlanOutcome {
            memory: self.memories.intern_shown(memory),
            next,
            requeue_at,
            is_delayed,
        }
    }

    fn observed(&self, input: PlanInput, sm: &ScheduledMachine) -> Observed {
        let object =
            |kind: Kind| input.objects[kind as usize].map(|id| self.objects.of(id));
        let machine = object(Kind::Machine).and_then(|found| Machine::read(&found).ok());
        let locations = Locations::of(sm, machine.as_ref());
        Observed {
            freshness: input.freshness,
            specs: Specs::Included,
            schedule: Override::inputs(input.overriding),
            contract: Fact::Known(Contract::V1Beta2),
            cluster: Fact::Known(
                object(Kind::Cluster).and_then(|found| Cluster::read(&found).ok()),
            ),
            bootstrap: lookups(&locations.bootstrap, object),
            infrastructure: lookups(&locations.infrastructure, object),
            workload: self.workload(input, &locations),
            machine: Fact::Known(machine),
            reclaim_override: sm.spec.reclaim.as_ref().map(|_| RECLAIM_OVERRIDE),
            ..Observed::default()
        }
    }

    fn workload(&self, input: PlanInput, locations: &Locations) -> Workload {
        if locations.node.is_none() {
            return Workload::default();
        }
        let barred = match input.reachability {
            WorkloadReachability::Answers => None,
            WorkloadReachability::Silent => Some(Access::Unreachable {
                message: "timed out".to_owned(),
            }),
            WorkloadReachability::Refused => Some(Access::KubeconfigRefused {
                message: "it runs a command".to_owned(),
            }),
        };
        if let Some(access) = barred {
            return Workload {
                access,
                ..Workload::default()
            };
        }
        let node = input.node.and_then(|id| {
            let node = (*self.objects.of(id)).clone();
            let node: k8s_openapi::api::core::v1::Node =
                serde_json::from_value(node).ok()?;
            Some(Node::from(&node))
        });
        let pods = match &node {
            Some(node) if locations.wants_pods => {
                Fact::Known(super::server::pods(input.pod, &node.uid))
            }
            _ => Fact::default(),
        };
        Workload {
            access: Access::Connected,
            node: Fact::Known(node),
            conflicting_machine: None,
            pods,
            agent_config: Fact::Known(None),
        }
    }
}

/// What is known of objects of providers, each of which is observed.
pub(super) fn lookups(
    locations: &[Reference],
    object: impl Fn(Kind) -> Option<Arc<Value>>,
) -> Vec<Lookup> {
    let found = |place: &Reference| {
        let kind = Kind::parse(&place.kind)?;
        Provider::read(&*object(kind)?).ok()
    };
    let of = |place: &Reference| Lookup {
        reference: place.clone(),
        found: Fact::Known(found(place)),
    };
    locations.iter().map(of).collect()
}

/// The steps that are independent of the machine's lifecycle.
const INDEPENDENT_STEPS: [Step; 6] = [
    Step::TaintNode,
    Step::LabelNode,
    Step::CreateAgentConfig,
    Step::UpdateAgentConfig,
    Step::DeleteAgentConfig,
    Step::ClearRequest,
];

/// For how long a reclaim stops a machine that may return before.
const RECLAIM_OVERRIDE: SignedDuration = SignedDuration::from_hours(4);

/// How often a permanently failing step has failed when its backoff has stopped growing.
const SATURATED: u32 = 9;

/// Records that a step got no response.
fn fail(memory: &mut Memory, step: Step, now: Timestamp) {
    let attempts = memory.attempts(step) + 1;
    memory.failed(Failure {
        step,
        cause: Cause::Unavailable,
        message: "no answer".to_owned(),
        attempts,
        retry_at: after(now, i64::from(attempts.min(300))),
    });
}

/// Whether the machine's lifecycle is delayed while each independent step has been failing for
/// long: a step that is otherwise due, the next retry of one that fails for the first time, or
/// what is reported.
fn is_delayed(
    sm: &ScheduledMachine,
    observed: &Observed,
    memory: &Memory,
    now: Timestamp,
) -> bool {
    let usual = plan(sm, observed, memory, now);
    let due = usual.steps();
    if due.contains(&Step::RelabelMachine) {
        // It precedes all other steps until it has failed once.
        let then = plan(
            sm,
            observed,
            &with_failures(memory, &[Step::RelabelMachine], now),
            now,
        );
        return is_reported_otherwise(sm, &usual, &then);
    }
    let is_of_lifecycle = |step: &Step| !INDEPENDENT_STEPS.contains(step);
    let due: Vec<Step> = due.into_iter().filter(is_of_lifecycle).collect();
    if due.is_empty() {
        return false;
    }
    let with_failures = with_failures(memory, &INDEPENDENT_STEPS, now);
    let then = plan(sm, observed, &with_failures, now);
    if is_reported_otherwise(sm, &usual, &then) {
        return true;
    }
    let then = then.steps();
    let retry_at = |memory: &Memory, step| {
        let mut memory = memory.clone();
        fail(&mut memory, step, now);
        memory.failure(step).map(|failure| failure.retry_at)
    };
    due.iter().any(|step| {
        !then.contains(step) || retry_at(memory, *step) != retry_at(&with_failures, *step)
    })
}

/// The memory in which each of these steps has been failing for long.
fn with_failures(memory: &Memory, steps: &[Step], now: Timestamp) -> Memory {
    let mut with_failures = memory.clone();
    for step in steps {
        for _ in 0..SATURATED {
            fail(&mut with_failures, *step, now);
        }
    }
    with_failures
}

/// Whether two plans report different phases of the machine.
fn is_reported_otherwise(sm: &ScheduledMachine, one: &Plan, other: &Plan) -> bool {
    let phase = |plan: &Plan| {
        let status = plan.status.as_ref().or(sm.status.as_ref());
        status.and_then(|status| status.phase)
    };
    let is_final = |plan: &Plan| !plan.confirm && plan.precondition.is_none();
    is_final(one) && is_final(other) && phase(one) != phase(other)
}

fn after(now: Timestamp, seconds: i64) -> Timestamp {
    now.checked_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX)
}

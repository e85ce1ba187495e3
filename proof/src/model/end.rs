//! The desired state in which the model settles.

use fivespot_api::{Phase, ScheduledMachine, ShutdownReason, name, rules};
use fivespot_capi::key;
use fivespot_plan as planner;
use jiff::SignedDuration;
use serde_json::json;
use strum::VariantArray as _;

use super::Step;
use super::cluster_api::{PROVIDER_ID, has_controller, parts};
use super::environment::{
    Environment, FOREIGN, OUR_TAINT, TEMPLATE, THEIRS, UID, is_deleting, is_our_node,
    is_ours,
};
use super::following::{BOUND, Following, end, settles};
use super::operator::RequestOutcome;
use super::schedule_at::ScheduleAt;
use super::server::{
    MAX_SHUTDOWN_TIMEOUT, is_audited, is_replacement_requested, minutes, shortest,
};
use super::state::{
    FaultBudget, INSTANTS, Kind, Pod, SETTLED, State, WorkloadReachability, instant,
};

impl Environment {
    /// Whether the model settles in the desired state from `state`.
    pub(crate) fn reaches_desired_state(&self, state: &State) -> bool {
        let first = without_faults(state);
        settles(&self.settled, first, |state| self.following(state))
    }

    fn following(&self, state: &State) -> Following<State> {
        match self.next_in_place(state) {
            Some(next) => Following::State(next),
            None if self.is_wrong(state) => Following::Wrong,
            None if usize::from(state.now) + 1 < INSTANTS.len() => {
                let mut later = state.clone();
                later.now += 1;
                Following::State(later)
            }
            None => Following::End,
        }
    }

    /// Whether a state in which nothing changes before the next instant is not as it should be.
    fn is_wrong(&self, state: &State) -> bool {
        !self.is_awake(state)
            || self.is_overdue(state)
            || self.is_not_begun(state)
            || SETTLED.contains(&state.now) && !self.is_as_wanted(state)
    }

    /// The state that an undisturbed day reaches at this instant.
    pub(crate) fn undisturbed(&self, now: u8, mut state: State) -> State {
        state.is_guarded = false;
        // A planner that never settles is detected from whatever state it has reached.
        for _ in 0..BOUND {
            match self.next_in_place(&state) {
                Some(next) => state = next,
                None if state.now < now => state.now += 1,
                None => break,
            }
        }
        state.is_guarded = true;
        state
    }

    /// The objects in the final state, for the report.
    pub(crate) fn describe_end(&self, state: &State) -> Vec<String> {
        let state = end(without_faults(state), |state| self.following(state));
        let objects = Kind::VARIANTS
            .iter()
            .filter_map(|kind| self.get(&state, *kind))
            .map(|object| object.to_string());
        let sm = state.sm.map(|id| self.machines.of(id));
        let sm = sm.and_then(|sm| serde_json::to_string(&*sm).ok());
        objects
            .chain(sm)
            .chain([INSTANTS[usize::from(state.now)].to_owned()])
            .collect()
    }

    /// The next step while no time passes; `None` when nothing changes.
    fn next_in_place(&self, state: &State) -> Option<State> {
        let mut next = state.clone();
        if next.pending.is_some() {
            self.apply_cached(&mut next, Step::Send(RequestOutcome::Answered), |next| {
                self.send(next, RequestOutcome::Answered);
                true
            });
            next.broken = None;
            return Some(next);
        }
        if !next.is_caught_up() || next.is_cache_behind {
            next.catch_up();
            return Some(next);
        }
        self.run_operator(&mut next);
        if next != *state {
            return Some(next);
        }
        let has_moved = Environment::end_pod(&mut next)
            || self.apply_cached(&mut next, Step::Reconcile, |next| self.reconcile(next));
        has_moved.then_some(next)
    }

    /// Whether the operator requeues in time for what it does at the next instant of a settled
    /// environment, and not before it can have anything to do.
    fn is_awake(&self, state: &State) -> bool {
        let mut next = state.clone();
        let requeue_at = self.run_operator(&mut next);
        let is_restless = requeue_at.is_some_and(|due| due <= instant(state.now));
        next.now += 1;
        let due = instant(next.now);
        self.run_operator(&mut next);
        let is_missed = next.pending.is_some()
            && requeue_at.is_none_or(|requeue_at| requeue_at > due);
        !is_restless && !is_missed
    }

    /// Whether a machine that must be shut down still exists in a settled state, although its
    /// deadline has passed.
    fn is_overdue(&self, state: &State) -> bool {
        let machine = self.get(state, Kind::Machine).unwrap_or_default();
        let Some(sm) = state.sm.map(|id| self.machines.of(id)) else {
            return false;
        };
        let has_joined = !machine["status"]["nodeRef"].is_null();
        let deadline = self.shutdown_record(state).and_then(|of| {
            // Cluster API may adopt its objects, an unreachable cluster may respond again, and
            // pods may terminate.
            let is_empty = state.reachability == WorkloadReachability::Answers
                && state.pod == Pod::None;
            let at_once = if has_joined && is_empty {
                SignedDuration::ZERO
            } else {
                SignedDuration::from_secs(60)
            };
            match of.reason {
                ShutdownReason::KillSwitch if sm.spec.kill_switch => {
                    of.started_at.checked_add(at_once).ok()
                }
                ShutdownReason::Reclaim => of.started_at.checked_add(at_once).ok(),
                ShutdownReason::ScheduleEnded if !at(&sm, state).is_needed() => {
                    let asked = of.started_at.checked_add(shortest(&sm)).ok()?;
                    Some(of.deadline.min(asked))
                }
                // All other shutdowns may be cancelled.
                ShutdownReason::KillSwitch
                | ShutdownReason::ScheduleEnded
                | ShutdownReason::Deleted
                | ShutdownReason::Remediation => None,
            }
        });
        // A failed step is retried a moment later.
        !is_audited(&sm)
            && !self.is_held_back(state)
            && !is_deleting(&machine)
            && !self.is_all_paused(&sm, state)
            && deadline.is_some_and(|due| due <= instant(state.now))
    }

    /// Whether nothing has begun in a settled state: no object exists of a machine that is
    /// needed, or a machine that is no longer needed is not being shut down.
    fn is_not_begun(&self, state: &State) -> bool {
        let Some(sm) = state.sm.map(|id| self.machines.of(id)) else {
            return false;
        };
        let at = at(&sm, state);
        let is_decided_otherwise = at.is_held()
            || is_audited(&sm)
            || !sm.spec.schedule.enabled
            || sm.spec.schedule.schedule().is_err()
            || sm.spec.kill_switch
            || sm.metadata.deletion_timestamp.is_some();
        if is_decided_otherwise
            || self.is_all_paused(&sm, state)
            || self.has_failed(state)
        {
            return false;
        }
        let is_ours = |kind| self.get(state, kind).is_some_and(|found| is_ours(&found));
        if at.is_needed() {
            return !Kind::CREATED.into_iter().any(is_ours) && !self.is_hindered(state);
        }
        let machine = self.get(state, Kind::Machine).unwrap_or_default();
        is_ours(Kind::Machine)
            && !is_deleting(&machine)
            && self.shutdown_record(state).is_none()
    }

    /// Whether any step has failed and is retried a moment later.
    fn has_failed(&self, state: &State) -> bool {
        let memory = self.memories.of(state.memory);
        let made = [
            planner::Step::CreateBootstrap,
            planner::Step::CreateInfrastructure,
            planner::Step::CreateMachine,
            planner::Step::RelabelMachine,
            planner::Step::DisableSchedule,
            planner::Step::RecordDisabled,
            planner::Step::ClearRequest,
        ];
        self.is_held_back(state)
            || made.into_iter().any(|step| memory.failure(step).is_some())
    }

    /// Whether a step has failed that later steps wait for.
    fn is_held_back(&self, state: &State) -> bool {
        let memory = self.memories.of(state.memory);
        let held = [
            planner::Step::AddFinalizer,
            planner::Step::UpdateMachine,
            planner::Step::ExcludeDrain,
            planner::Step::CordonNode,
            planner::Step::RecordReclaim,
            planner::Step::EvictPod,
            planner::Step::DeletePod,
            planner::Step::DeleteMachine,
        ];
        held.into_iter().any(|step| memory.failure(step).is_some())
    }

    /// Whether all writes are paused.
    fn is_all_paused(&self, sm: &ScheduledMachine, state: &State) -> bool {
        let annotations = sm.metadata.annotations.as_ref();
        self.is_paused(state)
            || annotations.is_some_and(|all| all.contains_key(key::PAUSED))
    }

    /// Whether a settled state is in the desired state.
    fn is_as_wanted(&self, state: &State) -> bool {
        let ours = Kind::CREATED
            .into_iter()
            .filter(|kind| self.get(state, *kind).is_some_and(|found| is_ours(&found)))
            .count();
        let Some(sm) = state.sm.map(|id| self.machines.of(id)) else {
            return ours == 0;
        };
        let is_held = sm
            .metadata
            .finalizers
            .iter()
            .flatten()
            .any(|held| held == name::FINALIZER);
        let is_paused = self.is_all_paused(&sm, state);
        let is_deleted = sm.metadata.deletion_timestamp.is_some();
        if !is_deleted && !self.is_reported(&sm, state) {
            return false;
        }
        if is_audited(&sm) {
            return is_paused || ours > 0 || !is_held;
        }
        let phase = sm.status.as_ref().and_then(|status| status.phase);
        // A recorded shutdown continues, whatever the schedule becomes.
        let machine = self.get(state, Kind::Machine).unwrap_or_default();
        let is_leaving = self.shutdown_record(state).is_some() && !is_deleting(&machine);
        let has_time = self
            .shutdown_record(state)
            .is_some_and(|of| instant(state.now) < of.deadline);
        if is_paused || at(&sm, state).is_held() {
            true
        } else if has_time && !sm.spec.kill_switch {
            phase == Some(Phase::ShuttingDown)
        } else if self.is_stuck(state) {
            true
        } else if is_deleted {
            ours == 0 && !is_held
        } else if sm.spec.kill_switch {
            ours == 0 && phase == Some(Phase::Terminated)
        } else if !sm.spec.schedule.enabled {
            phase == Some(Phase::Disabled) && !is_leaving
        } else if sm.spec.schedule.schedule().is_err() {
            phase == Some(Phase::Error) && !is_leaving
        } else if !at(&sm, state).is_needed() {
            ours == 0 && phase == Some(Phase::Inactive)
        } else if self.is_hindered(state) {
            phase.is_some_and(|phase| phase != Phase::Inactive)
        } else {
            let has_to_leave = sm
                .status
                .as_ref()
                .is_some_and(|status| status.shutdown.is_some());
            // A Node that cannot be read is not reported as ready.
            let is_unseen = phase == Some(Phase::Pending)
                && state.reachability != WorkloadReachability::Answers;
            ours == 3
                && state.at(Kind::Node).is_some()
                && (phase == Some(Phase::Active) || is_unseen)
                && !has_to_leave
                && self.is_in_order(&sm, state)
        }
    }

    /// Whether our Machine is being deleted and hangs, because Cluster API could not adopt its
    /// host.
    fn is_stuck(&self, state: &State) -> bool {
        let machine = self.get(state, Kind::Machine).filter(is_ours);
        let is_going = machine.as_ref().is_some_and(is_deleting);
        let [_, host] = parts(&machine.unwrap_or_default());
        let host = host.and_then(|kind| self.get(state, kind));
        state.refuses_adoption
            && is_going
            && host.is_some_and(|host| is_deleting(&host) && !has_controller(&host))
    }

    /// Whether the status is about the current spec, and refers to no object that is gone.
    fn is_reported(&self, sm: &ScheduledMachine, state: &State) -> bool {
        let Some(status) = &sm.status else {
            return false;
        };
        let is_gone = matches!(status.phase, Some(Phase::Inactive | Phase::Terminated))
            && !self.is_all_paused(sm, state);
        // The Node of a reclaimed host stays recorded until it can be read.
        let is_cleared = status.machine_ref.is_none()
            && (status.node_ref.is_none()
                || state.reachability != WorkloadReachability::Answers);
        let machine = self.get(state, Kind::Machine).unwrap_or_default();
        let (bootstrap, infrastructure) =
            (&sm.spec.bootstrap_spec, &sm.spec.infrastructure_spec);
        let has_changed = parts(&machine)
            .into_iter()
            .zip([bootstrap, infrastructure])
            .any(|(kind, wanted)| {
                let made = kind.and_then(|kind| self.get(state, kind));
                made.is_some_and(|made| {
                    let made_of = made["spec"].get("address");
                    made["kind"] != wanted.kind.as_str()
                        || made_of != wanted.spec.get("address")
                })
            });
        let is_pending = status.conditions.iter().any(|condition| {
            condition.type_ == "Ready" && condition.reason == "PendingChanges"
        });
        let is_in_service = status.conditions.iter().any(|condition| {
            condition.type_ == "Ready" && condition.reason == "MachineRunning"
        });
        status.observed_generation == sm.metadata.generation
            && (!is_gone || is_cleared)
            && !(is_in_service && has_changed || is_pending && !has_changed)
    }

    /// Whether a machine in service has all it should, and no trace of a shutdown.
    fn is_in_order(&self, sm: &ScheduledMachine, state: &State) -> bool {
        let machine = self.get(state, Kind::Machine).unwrap_or_default();
        let node = self.get(state, Kind::Node).unwrap_or_default();
        let is_excluded =
            !machine["metadata"]["annotations"][key::EXCLUDE_NODE_DRAINING].is_null();
        let is_cordoned = node["spec"]["unschedulable"] == true
            && node["metadata"]["annotations"][FOREIGN].is_null();
        let value = sm.spec.node_taints.first().map(|taint| &taint.value);
        let is_tainted = node["spec"]["taints"].as_array().is_some_and(|all| {
            all.iter().any(|taint| {
                let there = taint["value"].as_str().unwrap_or_default();
                let is_as_asked = value.is_some_and(|value| value == there);
                taint["key"] == OUR_TAINT && (is_as_asked || there == THEIRS)
            })
        });
        let drain = &machine["spec"]["deletion"]["nodeDrainTimeoutSeconds"];
        let asked = minutes(&sm.spec.node_drain_timeout).min(MAX_SHUTDOWN_TIMEOUT);
        let is_in_time = *drain == asked.as_secs();
        let is_asked_for = !node["metadata"]["annotations"]
            [name::RECLAIM_REQUESTED_ANNOTATION]
            .is_null();
        let is_reachable = state.reachability == WorkloadReachability::Answers;
        let uid = &machine["metadata"]["labels"][name::SCHEDULED_MACHINE_UID_LABEL];
        let is_served = !machine["metadata"]["labels"][TEMPLATE].is_null();
        *uid == UID
            && is_served
            && !is_replacement_requested(&machine)
            && !is_excluded
            && is_in_time
            && (!is_reachable || !is_cordoned && is_tainted && !is_asked_for)
    }

    /// Whether another owner or a fault prevents a machine that is wanted.
    fn is_hindered(&self, state: &State) -> bool {
        let is_foreign = Kind::CREATED
            .into_iter()
            .any(|kind| self.get(state, kind).is_some_and(|found| !is_ours(&found)));
        let has_machine = state.at(Kind::Machine).is_some();
        let has_its_node = self
            .get(state, Kind::Node)
            .is_some_and(|node| is_our_node(&node, &json!(PROVIDER_ID)));
        let has_lost_its_node = has_machine && !has_its_node;
        let is_refused = state
            .sm
            .is_some_and(|id| !rules::check(&self.machines.of(id)).is_empty());
        let machine = self.get(state, Kind::Machine).unwrap_or_default();
        let is_unadopted =
            state.refuses_adoption && machine["status"]["nodeRef"].is_null();
        !self.is_cluster_ready(state)
            || is_foreign
            || has_lost_its_node
            || is_refused
            || is_unadopted
    }
}

/// The same state without further faults. A disruption budget that allows no eviction and an
/// unreachable workload cluster are not faults: they end nothing and block nothing forever.
fn without_faults(state: &State) -> State {
    State {
        budget: FaultBudget::default(),
        broken: None,
        ..state.clone()
    }
}

/// The stored schedule, at the instant of a state.
fn at<'a>(sm: &'a ScheduledMachine, state: &State) -> ScheduleAt<'a> {
    ScheduleAt {
        sm,
        overriding: state.overriding,
        now: instant(state.now),
    }
}

//! The API server: guarded writes, and the laws that each write is checked against.

use fivespot_api::{
    Enforcement, Phase, ScheduledMachine, ScheduledMachineStatus, Shutdown,
    ShutdownReason, name, rules,
};
use fivespot_capi::key;
use fivespot_plan::{self as planner, Action, Call, Side, Step};
use jiff::{SignedDuration, Timestamp};
use json_patch::merge;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::cluster_api::{PROVIDER_ID, has_controller, parts};
use super::environment::{
    Environment, FOREIGN, NAME, OUR_TAINT, TEMPLATE, THEIRS, UID, is_deleting,
    is_named_ours, is_our_node, is_ours, kind_of,
};
use super::invariant::Invariant;
use super::operator::PendingWrites;
use super::schedule_at::{Mode, Override, ScheduleAt};
use super::state::{Kind, Pod, State, instant};

/// The uid of the Node's only pod.
pub(crate) fn pod_uid(node: &str) -> String {
    format!("pod-of-{node}")
}

/// Whether what is decided about the machine is only reported.
pub(crate) fn is_audited(sm: &ScheduledMachine) -> bool {
    sm.spec.enforcement == Enforcement::Audit
}

/// The response of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    Done,
    NotFound,
    Conflict,
    TooMany,
}

/// The pods on the Node, as a list returns them.
pub(crate) fn pods(pod: Pod, node: &str) -> Vec<planner::Pod> {
    let is_there = pod != Pod::None;
    is_there
        .then(|| planner::Pod {
            namespace: "default".to_owned(),
            name: "web".to_owned(),
            uid: pod_uid(node),
            is_of_daemon_set: false,
            is_mirror: false,
            is_finished: false,
            is_deleting: pod == Pod::Leaving,
        })
        .into_iter()
        .collect()
}

impl Environment {
    /// Handles one write of the operator, which is the first of `pending`.
    pub(crate) fn serve(
        &self,
        state: &mut State,
        action: &Action,
        pending: &PendingWrites,
    ) -> Response {
        if let Some(invariant) = self.violated_invariant(state, action, pending) {
            state.broken = Some(invariant);
        }
        let target = &action.request.target.object;
        match (&action.request.call, kind_of(action)) {
            (Call::Patch(patch), None) if target.kind == name::KIND => {
                self.patch_sm(state, patch)
            }
            (Call::Evict { uid }, _) if self.has_pod(state, uid) => evict(state),
            (Call::DeletePod { uid, .. }, _) if self.has_pod(state, uid) => {
                state.pod = Pod::Leaving;
                Response::Done
            }
            (Call::Create(object), None) if target.kind == name::OVERRIDE_KIND => {
                stop(state, object, pending)
            }
            (Call::Delete { uid }, None) if target.kind == name::OVERRIDE_KIND => {
                match state.overriding {
                    None => Response::NotFound,
                    Some(found) if found.uid() != *uid => Response::Conflict,
                    Some(_) => {
                        state.overriding = None;
                        Response::Done
                    }
                }
            }
            (Call::Create(object), Some(kind)) => {
                if state.at(kind).is_some() {
                    return Response::Conflict;
                }
                self.create(state, kind, object.clone());
                Response::Done
            }
            (Call::Patch(patch), Some(kind)) => self.patch(state, kind, patch),
            (Call::Delete { uid }, Some(kind)) => match self.get(state, kind) {
                None => Response::NotFound,
                Some(found) if found["metadata"]["uid"] != uid.as_str() => {
                    Response::Conflict
                }
                Some(_) => {
                    self.delete(state, kind);
                    Response::Done
                }
            },
            _ => Response::NotFound,
        }
    }

    /// Handles a write of the status, whose guard has held.
    pub(crate) fn serve_status(
        &self,
        state: &mut State,
        status: &ScheduledMachineStatus,
        pending: &PendingWrites,
    ) {
        let sm = state.sm.map(|id| self.machines.of(id));
        let before = sm.as_ref().and_then(|sm| sm.status.as_ref());
        if before.is_some_and(|before| reverts(before, status)) {
            state.broken = Some(Invariant::S16);
        }
        let stored = before.and_then(|before| before.shutdown.as_ref());
        let is_new = stored.is_none();
        if sm.as_ref().is_some_and(|sm| is_audited(sm))
            && status.shutdown.as_ref() != stored
        {
            state.broken = Some(Invariant::Audited);
        }
        if let (Some(sm), Some(shutdown), true) = (&sm, &status.shutdown, is_new) {
            state.broken = records_wrongly(pending.at(sm), shutdown).or(state.broken);
        }
        if let Some(sm) = &sm {
            let broken = self.reports_wrongly(state, pending.at(sm), status);
            state.broken = broken.or(state.broken);
        }
        let known = |status: &ScheduledMachineStatus| {
            status.node_ref.as_ref().and_then(|node| node.uid.clone())
        };
        let is_cleared = pending
            .sent
            .iter()
            .any(|action| action.step == Step::ClearRequest);
        let is_new = known(status).is_some() && before.and_then(known) != known(status);
        if is_new && pending.had_request && !is_cleared {
            state.broken = Some(Invariant::Joined);
        }
        let is_replaced =
            stored.is_some_and(|of| of.reason == ShutdownReason::Remediation);
        if is_replaced
            && status.shutdown.is_none()
            && self.shutdown_record(state).is_some()
        {
            state.broken = Some(Invariant::Condemned);
        }
        if self.reports_untruth(state, before, status) {
            state.broken = Some(Invariant::Reported);
        }
        if before.is_some_and(|before| is_rewritten(before, status))
            && self.is_any_left(state)
        {
            state.broken = Some(Invariant::Rewritten);
        }
        let kept = as_stored(status);
        if kept.as_ref() == before {
            state.broken = Some(Invariant::Idempotent);
        }
        self.change_sm(state, |sm| sm.status = kept);
    }

    /// The law about overrides and their effects that a status violates.
    fn reports_wrongly(
        &self,
        state: &State,
        at: ScheduleAt<'_>,
        status: &ScheduledMachineStatus,
    ) -> Option<Invariant> {
        let machine = self.get(state, Kind::Machine);
        let is_there = machine.is_some_and(|of| is_ours(&of) && !is_deleting(&of));
        let is_cancelled =
            self.shutdown_record(state).is_some() && status.shutdown.is_none();
        if at.is_held() && is_cancelled && is_there {
            return Some(Invariant::Held);
        }
        if status.in_force.is_some() && at.mode().is_none() {
            return Some(Invariant::Expired);
        }
        let activation = status.next_activation.filter(|_| !at.is_held())?;
        let is_due = |now| ScheduleAt { now, ..at }.is_needed();
        let before = activation.checked_sub(SignedDuration::from_secs(1)).ok()?;
        (!is_due(activation) || is_due(before)).then_some(Invariant::Announced)
    }

    /// Whether a wrong phase is reported. A phase that is repeated from a cache is as old as the
    /// cache: the objects that this or an earlier process created since then correct it.
    fn reports_untruth(
        &self,
        state: &State,
        before: Option<&ScheduledMachineStatus>,
        status: &ScheduledMachineStatus,
    ) -> bool {
        let is_repeated = before.is_some_and(|before| before.phase == status.phase);
        let is_left = self.is_any_left(state);
        let is_called_ready = status
            .conditions
            .iter()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True");
        match status.phase {
            Some(Phase::Inactive | Phase::Terminated) => is_left && !is_repeated,
            Some(Phase::Active | Phase::Disabled) => false,
            _ => is_called_ready,
        }
    }

    /// Whether one of the three objects exists.
    fn is_any_left(&self, state: &State) -> bool {
        Kind::CREATED
            .into_iter()
            .any(|kind| self.get(state, kind).is_some_and(|object| is_ours(&object)))
    }

    fn patch_sm(&self, state: &mut State, patch: &Value) -> Response {
        let Some(id) = state.sm else {
            return Response::NotFound;
        };
        if !is_guarded(patch) {
            state.broken = Some(Invariant::Guarded);
        }
        if patch["metadata"]["resourceVersion"] != json!(id.version()) {
            return Response::Conflict;
        }
        let before = self.machines.of(id);
        let Ok(mut object) = serde_json::to_value(&*before) else {
            return Response::NotFound;
        };
        merge(&mut object, patch);
        let Ok(mut after) = serde_json::from_value::<ScheduledMachine>(object) else {
            return Response::NotFound;
        };
        let keeps = |sm: &ScheduledMachine| {
            let mut all = sm.metadata.finalizers.iter().flatten();
            all.any(|kept| kept == FOREIGN)
        };
        if !keeps(&after) {
            state.broken = Some(Invariant::S9);
        }
        if after == *before {
            state.broken = Some(Invariant::Idempotent);
        }
        if after.spec != before.spec {
            after.metadata.generation = before.metadata.generation.map(|last| last + 1);
        }
        state.sm = Some(self.machines.intern(after));
        Response::Done
    }

    fn patch(&self, state: &mut State, kind: Kind, patch: &Value) -> Response {
        let Some(mut object) = self.get(state, kind) else {
            return Response::NotFound;
        };
        if !is_guarded(patch) {
            state.broken = Some(Invariant::Guarded);
        }
        let guards = &patch["metadata"];
        for guard in ["uid", "resourceVersion"] {
            if guards[guard] != object["metadata"][guard] {
                return Response::Conflict;
            }
        }
        let before = object.clone();
        merge(&mut object, patch);
        let foreign = |object: &Value| object["metadata"]["annotations"][FOREIGN].clone();
        if foreign(&object) != foreign(&before) {
            state.broken = Some(Invariant::S9);
        }
        if kind == Kind::Node
            && (seizes_taints(&before, &object)
                || self.taints_unnamed(state, (&before, &object)))
        {
            state.broken = Some(Invariant::S7);
        }
        if object == before {
            state.broken = Some(Invariant::Idempotent);
        }
        state.put(kind, Some(self.objects.intern(object)));
        Response::Done
    }

    /// Whether our taint is added to a Node before the status lists it.
    fn taints_unnamed(&self, state: &State, (before, after): (&Value, &Value)) -> bool {
        let is_labelled = |node: &Value| {
            let taints = node["spec"]["taints"].as_array();
            taints.is_some_and(|all| all.iter().any(|taint| taint["key"] == OUR_TAINT))
        };
        let Some(sm) = state.sm.map(|id| self.machines.of(id)) else {
            return false;
        };
        let status = sm.status.as_ref();
        let is_named = status.is_some_and(|status| {
            let mut named = status.applied_node_taints.iter();
            named.any(|taint| taint.key == OUR_TAINT)
        });
        !is_labelled(before) && is_labelled(after) && !is_named
    }

    /// The law that this write violates.
    fn violated_invariant(
        &self,
        state: &State,
        action: &Action,
        pending: &PendingWrites,
    ) -> Option<Invariant> {
        let target = &action.request.target.object;
        let found = kind_of(action).and_then(|kind| self.get(state, kind));
        let from = self.machines.of(pending.from);
        let annotations = from.metadata.annotations.as_ref();
        if pending.was_paused
            || annotations.is_some_and(|all| all.contains_key(key::PAUSED))
        {
            return Some(Invariant::Paused);
        }
        if is_audited(&from) && action.step != Step::RemoveFinalizer {
            return Some(Invariant::Audited);
        }
        // A Machine that is being deleted or has failed a health check is removed, and its
        // objects after it, even if a machine is wanted.
        let is_going = self.get(state, Kind::Machine).is_none_or(|machine| {
            is_deleting(&machine) || is_replacement_requested(&machine)
        });
        if action.step.is_destructive() && !is_going && is_driven_out(pending.at(&from)) {
            return Some(Invariant::Reopened);
        }
        if self.touches_held(state, (action, &from), pending) {
            return Some(Invariant::Held);
        }
        let is_node_side = action.request.side == Side::Workload;
        if is_of_another_machine(action, found.as_ref())
            || pending.was_others && is_node_side
        {
            return Some(Invariant::S4);
        }
        let memory = self.memories.of(state.memory);
        if pending.was_moved
            && action.step != Step::RelabelMachine
            && memory.failure(Step::RelabelMachine).is_none()
        {
            return Some(Invariant::Moved);
        }
        match (&action.request.call, action.step) {
            (Call::Create(_), Step::CreateOverride) => None,
            (Call::Delete { uid }, Step::EndOverride) => {
                let stop = pending.overriding;
                let stop = stop.filter(|of| of.reclaimed.is_some() && of.uid() == *uid);
                let is_right =
                    stop.is_some_and(|stop| returns_rightly(&from, stop, pending));
                (!is_right).then_some(Invariant::Freed)
            }
            (Call::Create(object), step) => {
                if target.name != NAME || object["metadata"]["name"] != NAME {
                    return Some(Invariant::S2);
                }
                if !is_marked(object) {
                    return Some(Invariant::Marked);
                }
                if !is_on_record(&from, object)
                    || !self.is_any_left(state) && !is_recorded_hash(&from, object)
                {
                    return Some(Invariant::Recorded);
                }
                if kind_of(action).is_some_and(|kind| self.is_doubled(state, kind)) {
                    return Some(Invariant::S2);
                }
                if !rules::check(&from).is_empty() {
                    return Some(Invariant::Admitted);
                }
                self.creates_wrongly(state, (step, object), pending)
            }
            (Call::Delete { uid }, _) => {
                self.deletes_wrongly(state, action, pending, (uid, found.as_ref()))
            }
            (Call::DeletePod { grace, .. }, _) => {
                let is_reclaim = self
                    .shutdown_record(state)
                    .is_none_or(|shutdown| shutdown.reason == ShutdownReason::Reclaim);
                (!is_reclaim || *grace == 0).then_some(Invariant::S6)
            }
            (Call::Evict { uid }, _) if !self.has_pod(state, uid) => None,
            (Call::Patch(patch), Step::CordonNode)
                if found.as_ref().is_none_or(|node| {
                    node["metadata"]["uid"] != patch["metadata"]["uid"]
                }) =>
            {
                None
            }
            (Call::Evict { .. }, _) | (_, Step::CordonNode) => {
                self.drains_wrongly(state, pending)
            }
            (_, Step::UncordonNode) => {
                // Another Node with that name is guarded by its uid.
                let is_it = |node: &&Value| match &action.request.call {
                    Call::Patch(patch) => {
                        node["metadata"]["uid"] == patch["metadata"]["uid"]
                    }
                    _ => true,
                };
                let marker = found.as_ref().filter(is_it).map(|node| {
                    node["metadata"]["annotations"][name::CORDONED_ANNOTATION].clone()
                });
                marker
                    .is_some_and(|marker| marker != UID)
                    .then_some(Invariant::S5)
            }
            (Call::Patch(patch), Step::ExcludeDrain) => {
                let is_its = found.is_some_and(|machine| {
                    machine["metadata"]["uid"] == patch["metadata"]["uid"]
                });
                (is_its && self.shutdown_record(state).is_none())
                    .then_some(Invariant::ShutdownRecord)
            }
            (Call::Patch(_), Step::RecordReclaim) => {
                let status = from.status.as_ref();
                let known =
                    status.and_then(|status| status.node_ref.as_ref()?.uid.as_ref());
                known.is_none().then_some(Invariant::Joined)
            }
            (_, Step::RecordDisabled) => {
                let mut sent = pending.sent.iter().map(|sent| sent.step);
                let is_off = !from.spec.schedule.enabled
                    || state.overriding.is_some_and(|of| of.reclaimed.is_some())
                    || sent.any(|step| {
                        matches!(step, Step::DisableSchedule | Step::CreateOverride)
                    });
                (!is_off).then_some(Invariant::Returned)
            }
            (_, Step::RemoveFinalizer) => {
                self.is_any_left(state).then_some(Invariant::S8)
            }
            _ => None,
        }
    }

    /// Whether an object under a hold is created, deleted or drained, without a shutdown record
    /// and without a reclaim. The end of our finalizer in audit mode is none of these: then there
    /// is no object.
    fn touches_held(
        &self,
        state: &State,
        (action, from): (&Action, &ScheduledMachine),
        pending: &PendingWrites,
    ) -> bool {
        let machine = self.get(state, Kind::Machine).unwrap_or_default();
        let reclaim = &machine["metadata"]["annotations"][name::RECLAIM_ANNOTATION];
        let is_touched = action.step.is_destructive()
            || matches!(action.request.call, Call::Create(_) | Call::Delete { .. })
            || action.step == Step::CordonNode;
        let is_end_of_audited = is_audited(from) && action.step == Step::RemoveFinalizer;
        is_touched
            && !is_end_of_audited
            && reclaim.is_null()
            && !pending.has_shutdown_record
            && pending.at(from).is_held()
    }

    /// Creations: only wanted objects, or the Machine with which unfinished objects are removed.
    fn creates_wrongly(
        &self,
        state: &State,
        (step, object): (Step, &Value),
        pending: &PendingWrites,
    ) -> Option<Invariant> {
        let from = self.machines.of(pending.from);
        let is_completion = step == Step::CreateMachine
            && Kind::INFRASTRUCTURES
                .into_iter()
                .any(|kind| self.get(state, kind).is_some_and(|found| is_ours(&found)));
        if from.spec.kill_switch && !is_completion {
            return Some(Invariant::S11);
        }
        // Checked against the facts at planning time; later changes are handled by the next
        // reconcile.
        let is_wanted = pending.at(&from).is_needed()
            && from.spec.schedule.enabled
            && from.metadata.deletion_timestamp.is_none();
        let is_to_serve = is_wanted && !from.spec.kill_switch;
        if !is_to_serve && !object["metadata"]["labels"][TEMPLATE].is_null() {
            return Some(Invariant::Admitted);
        }
        let is_hopeless = !pending.had_cluster && !is_completion;
        (is_hopeless || !is_wanted && !is_completion).then_some(Invariant::Idle)
    }

    fn deletes_wrongly(
        &self,
        state: &State,
        action: &Action,
        pending: &PendingWrites,
        (uid, found): (&str, Option<&Value>),
    ) -> Option<Invariant> {
        let found = found?;
        if uid.is_empty() {
            return Some(Invariant::S1);
        }
        if found["metadata"]["uid"] != uid {
            return None;
        }
        let machine = self.get(state, Kind::Machine);
        let our_machine = machine.filter(is_ours);
        let is_controlled = our_machine.as_ref().is_some_and(|machine| {
            let owners = found["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|all| {
                all.iter()
                    .any(|owner| owner["uid"] == machine["metadata"]["uid"])
            })
        });
        let is_deletable = is_ours(found) || is_named_ours(found) && is_controlled;
        if !is_deletable {
            return Some(Invariant::S1);
        }
        if action.step != Step::DeleteMachine {
            // Objects that Cluster API has not adopted in time are deleted by the operator once
            // the Machine is being deleted.
            let is_left = !has_controller(found) && !self.is_adoptable(state, pending);
            let needs_it = our_machine.is_some_and(|of| !(is_left && is_deleting(&of)));
            return needs_it.then_some(Invariant::S8);
        }
        if self.is_adoptable(state, pending) && self.is_unadopted(state, found) {
            return Some(Invariant::Adopted);
        }
        let Some(shutdown) = self.shutdown_record(state) else {
            return Some(Invariant::ShutdownRecord);
        };
        let is_at_once = matches!(
            shutdown.reason,
            ShutdownReason::KillSwitch | ShutdownReason::Reclaim
        );
        let sm = self.machines.of(state.sm?);
        // Once for each shutdown: a user who enables the schedule again does so on purpose.
        let is_switched_off = !found["metadata"]["annotations"]
            [name::RECLAIM_DISABLED_ANNOTATION]
            .is_null();
        let memory = self.memories.of(state.memory);
        let has_failed = [Step::DisableSchedule, Step::RecordDisabled]
            .into_iter()
            .any(|step| memory.failure(step).is_some());
        if shutdown.reason == ShutdownReason::Reclaim
            && !is_switched_off
            && !has_failed
            && sm.metadata.deletion_timestamp.is_none()
        {
            return Some(Invariant::Returned);
        }
        let asked = shutdown.started_at.checked_add(shortest(&sm)).ok()?;
        let deadline = shutdown.deadline.min(asked);
        let has_joined = !found["status"]["nodeRef"].is_null()
            && self
                .get(state, Kind::Node)
                .is_some_and(|node| is_our_node(&node, &found["spec"]["providerID"]));
        let is_early = instant(state.now) < deadline && !is_at_once;
        // Without the annotation Cluster API drains, which is equivalent; but if pods were
        // observed, the operator must have tried to drain.
        let is_undrained = state.pod != Pod::None
            && !found["metadata"]["annotations"][key::EXCLUDE_NODE_DRAINING].is_null();
        (is_early && has_joined && (is_undrained || pending.has_to_wait))
            .then_some(Invariant::S10)
    }

    /// Whether Cluster API still had time, at planning time, to adopt the objects that are
    /// deleted.
    fn is_adoptable(&self, state: &State, pending: &PendingWrites) -> bool {
        let until = self.shutdown_record(state).and_then(|of| {
            let minute = SignedDuration::from_secs(60);
            let given = match of.reason {
                ShutdownReason::KillSwitch | ShutdownReason::Reclaim => minute,
                ShutdownReason::ScheduleEnded
                | ShutdownReason::Deleted
                | ShutdownReason::Remediation => {
                    let asked = shortest(&self.machines.of(pending.from));
                    let given = of.deadline.duration_since(of.started_at);
                    asked.min(given).max(minute)
                }
            };
            of.started_at.checked_add(given).ok()
        });
        until.is_some_and(|until| instant(pending.planned) < until) && pending.had_cluster
    }

    /// Whether no Machine controls the host of this one, which never served.
    fn is_unadopted(&self, state: &State, machine: &Value) -> bool {
        let [_, infrastructure] = parts(machine);
        let host = infrastructure.and_then(|kind| self.get(state, kind));
        machine["status"]["nodeRef"].is_null()
            && host.is_some_and(|host| {
                is_ours(&host) && !is_deleting(&host) && !has_controller(&host)
            })
    }

    /// Whether an object of another provider already exists in the same role.
    fn is_doubled(&self, state: &State, kind: Kind) -> bool {
        let other = match kind {
            Kind::Bootstrap => Kind::OtherBootstrap,
            Kind::OtherBootstrap => Kind::Bootstrap,
            Kind::Infrastructure => Kind::OtherInfrastructure,
            Kind::OtherInfrastructure => Kind::Infrastructure,
            Kind::Machine | Kind::Cluster | Kind::Node => return false,
        };
        self.get(state, other).is_some_and(|found| is_ours(&found))
    }

    /// Whether the Node's pod has this uid.
    fn has_pod(&self, state: &State, uid: &str) -> bool {
        let node = self.get(state, Kind::Node).unwrap_or_default();
        pod_uid(node["metadata"]["uid"].as_str().unwrap_or_default()) == uid
    }

    fn drains_wrongly(
        &self,
        state: &State,
        pending: &PendingWrites,
    ) -> Option<Invariant> {
        let machine = self.get(state, Kind::Machine)?;
        let node = self.get(state, Kind::Node)?;
        let is_its = machine["status"]["nodeRef"]["name"] == node["metadata"]["name"]
            && machine["spec"]["providerID"] == node["spec"]["providerID"];
        // The Machine may have been restored since, which its Node does not show.
        let has_shutdown_record =
            pending.has_shutdown_record || self.shutdown_record(state).is_some();
        (!is_its || !has_shutdown_record).then_some(Invariant::S4)
    }

    /// The shutdown record on the server, if it is for the existing Machine.
    pub(crate) fn shutdown_record(&self, state: &State) -> Option<Shutdown> {
        let machine = self.get(state, Kind::Machine)?;
        let sm = self.machines.of(state.sm?);
        let shutdown = sm.status.as_ref()?.shutdown.clone()?;
        (machine["metadata"]["uid"] == shutdown.machine_uid.as_str()).then_some(shutdown)
    }
}

/// Whether the location of an object that is created is recorded; that of a Machine is always the
/// same.
fn is_on_record(from: &ScheduledMachine, object: &Value) -> bool {
    let status = from.status.as_ref();
    let places = [
        status.and_then(|status| status.bootstrap_ref.as_ref()),
        status.and_then(|status| status.infrastructure_ref.as_ref()),
    ];
    object["kind"] == Kind::Machine.api_kind()
        || places.into_iter().flatten().any(|place| {
            object["kind"] == place.kind.as_str()
                && object["apiVersion"] == place.api_version.as_str()
                && object["metadata"]["name"] == place.name.as_str()
        })
}

/// Whether an object is created from the recorded spec.
fn is_recorded_hash(from: &ScheduledMachine, object: &Value) -> bool {
    let hash = from
        .status
        .as_ref()
        .and_then(|status| status.spec_hash.as_deref());
    let made_from = &object["metadata"]["annotations"][name::SPEC_HASH_ANNOTATION];
    hash.is_some() && made_from.as_str() == hash
}

/// Whether a status drops what an earlier one recorded of a machine, except for uids.
fn is_rewritten(before: &ScheduledMachineStatus, after: &ScheduledMachineStatus) -> bool {
    let places = |status: &ScheduledMachineStatus| {
        [&status.bootstrap_ref, &status.infrastructure_ref].map(|place| {
            let place = place.as_ref()?;
            Some((
                place.api_version.clone(),
                place.kind.clone(),
                place.name.clone(),
            ))
        })
    };
    before.spec_hash.is_some()
        && (places(before) != places(after) || before.spec_hash != after.spec_hash)
}

/// Whether a patch contains the uid and the resourceVersion that it was made from.
fn is_guarded(patch: &Value) -> bool {
    let guards = &patch["metadata"];
    !guards["uid"].is_null() && !guards["resourceVersion"].is_null()
}

/// Whether an object that is created can be identified as ours, is garbage-collected with its
/// ScheduledMachine, and has the controller that Cluster API expects.
fn is_marked(object: &Value) -> bool {
    let meta = &object["metadata"];
    let owners = meta["ownerReferences"].as_array();
    let is_machine = object["kind"] == Kind::Machine.api_kind();
    let is_owned = owners.is_some_and(|all| {
        let mut ours = all.iter().filter(|owner| owner["uid"] == UID);
        ours.any(|owner| (owner["controller"] == true) == is_machine)
    });
    let uid = &meta["labels"][name::SCHEDULED_MACHINE_UID_LABEL];
    is_named_ours(object) && *uid == UID && is_owned
}

/// Whether a patch of a Node would change one that is not our Machine's.
fn is_of_another_machine(action: &Action, found: Option<&Value>) -> bool {
    let Call::Patch(patch) = &action.request.call else {
        return false;
    };
    kind_of(action) == Some(Kind::Node)
        && found.is_some_and(|node| {
            node["metadata"]["uid"] == patch["metadata"]["uid"]
                && node["spec"]["providerID"] != PROVIDER_ID
        })
}

/// The law that a new shutdown record violates.
fn records_wrongly(at: ScheduleAt<'_>, shutdown: &Shutdown) -> Option<Invariant> {
    let (sm, planned) = (at.sm, at.now);
    let is_of_schedule = shutdown.reason == ShutdownReason::ScheduleEnded;
    let is_of_need = is_of_schedule || shutdown.reason == ShutdownReason::Remediation;
    let is_off = !sm.spec.schedule.enabled || sm.spec.schedule.schedule().is_err();
    let made = sm
        .status
        .as_ref()
        .and_then(|status| status.last_scheduled_time);
    let patience =
        made.and_then(|made| made.checked_add(SignedDuration::from_mins(10)).ok());
    match shutdown.reason {
        _ if shutdown.deadline.duration_since(shutdown.started_at)
            > MAX_SHUTDOWN_TIMEOUT =>
        {
            Some(Invariant::Bounded)
        }
        _ if shutdown.started_at != planned => Some(Invariant::ShutdownRecord),
        ShutdownReason::ScheduleEnded if is_off => Some(Invariant::Untouched),
        _ if is_of_need && at.is_held() => Some(Invariant::Held),
        ShutdownReason::ScheduleEnded if at.is_needed() => Some(Invariant::EarlyEnd),
        ShutdownReason::ScheduleEnded if is_late(at, shutdown) => {
            Some(Invariant::WindowEnd)
        }
        ShutdownReason::Remediation
            if patience.is_some_and(|until| shutdown.started_at < until) =>
        {
            Some(Invariant::Patience)
        }
        _ => None,
    }
}

/// Whether a shutdown with the end policy CompleteByWindowEnd has a later deadline, or does not
/// record the end of the window.
fn is_late(at: ScheduleAt<'_>, shutdown: &Shutdown) -> bool {
    let end = at.window_end().filter(|_| at.completes_by_window_end());
    end.is_some_and(|end| shutdown.window_end != Some(end) || shutdown.deadline > end)
}

/// Whether a health check requests the replacement of this Machine.
pub(super) fn is_replacement_requested(machine: &Value) -> bool {
    let conditions = machine["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter()
            .any(|condition| condition["type"] == key::OWNER_REMEDIATED)
    })
}

/// Whether a machine was wanted when it was planned to remove it, only because its window had
/// ended before.
fn is_driven_out(at: ScheduleAt<'_>) -> bool {
    let sm = at.sm;
    let is_wanted = sm.spec.schedule.enabled
        && at.is_needed()
        && !at.is_held()
        && !sm.spec.kill_switch
        && sm.metadata.deletion_timestamp.is_none();
    let shutdown = sm
        .status
        .as_ref()
        .and_then(|status| status.shutdown.as_ref());
    // With CompleteByWindowEnd the machine is removed by the end of the open window, whatever its
    // shutdown timeout.
    let is_for_later = |of: &Shutdown| {
        let end = at.window_end();
        of.window_end
            .is_none_or(|recorded| end.is_none_or(|end| end > recorded))
    };
    is_wanted
        && shutdown.is_some_and(|of| {
            of.reason == ShutdownReason::ScheduleEnded && is_for_later(of)
        })
}

/// Whether a write to a Node changes a foreign taint, or ours without a record of it.
fn seizes_taints(before: &Value, after: &Value) -> bool {
    let taints = |node: &Value| node["spec"]["taints"].as_array().cloned();
    let (then, now) = (
        taints(before).unwrap_or_default(),
        taints(after).unwrap_or_default(),
    );
    let record = |node: &Value| {
        let text = &node["metadata"]["annotations"][name::APPLIED_TAINTS_ANNOTATION];
        text.as_str().unwrap_or_default().to_owned()
    };
    let is_lost = then
        .iter()
        .any(|taint| taint["value"] == THEIRS && !now.contains(taint));
    let is_unrecorded = now.iter().any(|taint| {
        taint["key"] == OUR_TAINT
            && taint["value"] != THEIRS
            && !record(after).contains(OUR_TAINT)
    });
    let is_adopted = then.iter().any(|taint| taint["key"] == OUR_TAINT)
        && !record(before).contains(OUR_TAINT)
        && record(after).contains(OUR_TAINT);
    is_lost || is_unrecorded || is_adopted
}

/// Creates the override of a reclaim, in place of one of a user: the model has one at most. One that
/// exists is what the operator asks for.
fn stop(state: &mut State, object: &Value, pending: &PendingWrites) -> Response {
    if state.overriding.is_some_and(|of| of.reclaimed.is_some()) {
        return Response::Done;
    }
    let end: Option<Timestamp> = object["spec"]["endTime"]
        .as_str()
        .and_then(|text| text.parse().ok());
    let end = (0..u8::MAX).find(|number| end.is_some_and(|end| instant(*number) >= end));
    state.overriding = Some(Override {
        mode: Mode::Stop,
        end: end.unwrap_or(u8::MAX),
        reclaimed: Some(pending.planned),
    });
    Response::Done
}

/// Whether the machine that this override of a reclaim stops may return: the host has been free since
/// then for ten minutes and says so now, the return is recorded, it is the only one, and nothing
/// else keeps the machine away.
fn returns_rightly(
    from: &ScheduledMachine,
    stop: Override,
    pending: &PendingWrites,
) -> bool {
    let now = instant(pending.planned);
    let annotations = from.metadata.annotations.as_ref();
    let report = annotations.and_then(|all| all.get(name::HOST_FREE_ANNOTATION));
    let report = report.and_then(|text| text.split_once(' '));
    let times: Option<(Timestamp, Timestamp)> =
        report.and_then(|(since, last)| Some((since.parse().ok()?, last.parse().ok()?)));
    let after = SignedDuration::from_mins(10);
    let is_free = times.is_some_and(|(since, last)| {
        let begun = stop.reclaimed.map_or(now, instant);
        last == now && last.duration_since(since.max(begun)) >= after
    });
    let returns = from
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.returns);
    let is_recorded = matches!(returns, [only] if only.override_uid == stop.uid());
    is_free
        && is_recorded
        && !from.spec.kill_switch
        && from.metadata.deletion_timestamp.is_none()
}

fn evict(state: &mut State) -> Response {
    match state.pod {
        Pod::None => Response::NotFound,
        Pod::Running | Pod::Leaving if state.is_guarded => Response::TooMany,
        Pod::Running | Pod::Leaving => {
            state.pod = Pod::Leaving;
            Response::Done
        }
    }
}

/// Whether a status reverts to an older generation, or changes times without a change.
fn reverts(before: &ScheduledMachineStatus, after: &ScheduledMachineStatus) -> bool {
    let is_older = before.observed_generation > after.observed_generation;
    is_older
        || after.conditions.iter().any(|new| {
            let earlier = before.conditions.iter().find(|old| old.type_ == new.type_);
            earlier.is_some_and(|old| {
                let (then, now) = (&old.last_transition_time, &new.last_transition_time);
                now < then || old.status == new.status && now != then
            })
        })
}

/// The longest shutdown timeout that is allowed.
pub(super) const MAX_SHUTDOWN_TIMEOUT: SignedDuration = SignedDuration::from_hours(24);

/// The shutdown timeout of a machine.
pub(super) fn shortest(sm: &ScheduledMachine) -> SignedDuration {
    let spec = &sm.spec;
    minutes(&spec.node_drain_timeout)
        .min(minutes(&spec.graceful_shutdown_timeout))
        .min(MAX_SHUTDOWN_TIMEOUT)
}

/// Whole minutes, the format of all durations in the model.
pub(crate) fn minutes(text: &str) -> SignedDuration {
    let count = text.strip_suffix('m').and_then(|count| count.parse().ok());
    SignedDuration::from_mins(count.unwrap_or(0))
}

/// A status as it is stored. Serialised as it is sent, so that fields that are not stored are dropped. No
/// decision reads when a condition changed, so that states need not differ in it.
pub(super) fn as_stored(
    status: &ScheduledMachineStatus,
) -> Option<ScheduledMachineStatus> {
    let kept = serde_json::to_value(status).and_then(serde_json::from_value);
    let mut kept: Option<ScheduledMachineStatus> = kept.ok();
    for condition in kept.iter_mut().flat_map(|status| &mut status.conditions) {
        condition.last_transition_time = Time(instant(0));
    }
    kept
}

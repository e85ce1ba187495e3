//! The API server, Cluster API and the users, with the laws that each write is checked against.

use fivespot_api::host_claim::HostClaim;
use fivespot_api::{ScheduledMachine, ScheduledMachineStatus, name};
use fivespot_plan::{Action, Call, Step};
use json_patch::merge;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::super::server::{Response, as_stored};
use super::{Class, Edit, Environment, HOSTS, Id, Kind, Law, Lease, State};

/// A finalizer that a provider and Cluster API put on their objects.
const HELD: &str = "example.com/provider";

impl Environment {
    /// Handles one write of an operator for a machine.
    pub(super) fn serve(&self, state: &mut State, at: u8, action: &Action) -> Response {
        let target = &action.request.target.object;
        match (&action.request.call, Kind::parse(&target.kind)) {
            (Call::Create(lease), None) if action.step == Step::ClaimHost => {
                self.claim(state, at, lease)
            }
            (Call::Delete { uid }, None) if action.step == Step::ReleaseHost => {
                self.release(state, &target.name, uid)
            }
            (Call::Patch(patch), None) if target.kind == name::KIND => {
                self.patch_sm(state, at, patch)
            }
            (Call::Create(object), Some(kind)) => self.create(state, at, kind, object),
            (Call::Patch(patch), Some(kind)) => self.patch(state, at, kind, patch),
            (Call::Delete { uid }, Some(kind)) => self.delete(state, at, kind, uid),
            _ => Response::NotFound,
        }
    }

    /// Creates the Lease of a host, as the operator does: one whose holder is gone with its Machine is
    /// replaced.
    fn claim(&self, state: &mut State, at: u8, lease: &Value) -> Response {
        let Some(host) = HostClaim::read(lease).and_then(|of| number(&of.host)) else {
            return Response::NotFound;
        };
        if let Some(found) = state.leases[host] {
            if found.holder == at {
                return Response::Done;
            }
            if !self.is_gone(state, found.holder) {
                return Response::Conflict;
            }
            self.check_release(state, found.holder, host);
        }
        create_lease(state, at, host);
        Response::Done
    }

    fn release(&self, state: &mut State, lease: &str, uid: &str) -> Response {
        let host = name::claimed_host(lease).and_then(|(_, host)| number(host));
        let Some((host, found)) = host.and_then(|host| Some((host, state.leases[host]?)))
        else {
            return Response::NotFound;
        };
        if lease_uid(host, found) != uid {
            return Response::Conflict;
        }
        self.check_release(state, found.holder, host);
        state.leases[host] = None;
        Response::Done
    }

    fn check_release(&self, state: &mut State, holder: u8, host: usize) {
        if self.made_on(state, holder).contains(&host) {
            state.broken = Some(Law::GivenBack);
        }
    }

    /// Whether neither a ScheduledMachine nor its Machine exists.
    pub(super) fn is_gone(&self, state: &State, at: u8) -> bool {
        state.machines[usize::from(at)].sm.is_none()
            && self.get(state, at, Kind::Machine).is_none()
    }

    /// The hosts of the objects of a machine, each once.
    fn made_on(&self, state: &State, at: u8) -> Vec<usize> {
        let objects = state.machines[usize::from(at)]
            .objects
            .into_iter()
            .flatten();
        let mut hosts: Vec<usize> = objects
            .filter_map(|id| {
                let object = self.objects.of(id);
                number(object["metadata"]["annotations"][name::HOST_ANNOTATION].as_str()?)
            })
            .collect();
        hosts.dedup();
        hosts
    }

    /// Whether two machines have objects on one host, or one has on two.
    pub(super) fn is_doubled(&self, state: &State) -> bool {
        let mut used = [false; HOSTS.len()];
        (0..).zip(&state.machines).any(|(at, _)| {
            let hosts = self.made_on(state, at);
            hosts.len() > 1
                || hosts
                    .into_iter()
                    .any(|host| std::mem::replace(&mut used[host], true))
        })
    }

    fn create(&self, state: &mut State, at: u8, kind: Kind, object: &Value) -> Response {
        if state.machines[usize::from(at)].objects[kind as usize].is_some() {
            return Response::Conflict;
        }
        if !self.is_recorded(state, at, object) {
            state.broken = Some(Law::Recorded);
        }
        let machine = &mut state.machines[usize::from(at)];
        machine.created = machine.created.saturating_add(1);
        let mut object = object.clone();
        object["metadata"]["uid"] = json!(format!("{kind:?}-{at}-{}", machine.created));
        if kind != Kind::Bootstrap {
            object["metadata"]["finalizers"] = json!([HELD]);
        }
        machine.objects[kind as usize] = Some(self.objects.intern(object));
        Response::Done
    }

    /// Whether an object is created on the recorded host of its machine, which has the Lease of it, and
    /// an infrastructure object at its address.
    fn is_recorded(&self, state: &State, at: u8, object: &Value) -> bool {
        let sm = state.machines[usize::from(at)].sm;
        let status = sm.and_then(|id| self.machines.of(id).status.clone());
        let Some(host) = status.and_then(|status| status.host) else {
            return false;
        };
        let lease = number(&host).and_then(|host| state.leases[host]);
        let address = &object["spec"]["address"];
        object["metadata"]["annotations"][name::HOST_ANNOTATION] == host.as_str()
            && lease.is_some_and(|lease| lease.holder == at)
            && (address.is_null() || *address == format!("{host}.example"))
    }

    fn patch(&self, state: &mut State, at: u8, kind: Kind, patch: &Value) -> Response {
        let Some(mut object) = self.get(state, at, kind) else {
            return Response::NotFound;
        };
        for guard in ["uid", "resourceVersion"] {
            if patch["metadata"][guard] != object["metadata"][guard] {
                return Response::Conflict;
            }
        }
        merge(&mut object, patch);
        state.machines[usize::from(at)].objects[kind as usize] =
            Some(self.objects.intern(object));
        Response::Done
    }

    fn delete(&self, state: &mut State, at: u8, kind: Kind, uid: &str) -> Response {
        let Some(mut object) = self.get(state, at, kind) else {
            return Response::NotFound;
        };
        if object["metadata"]["uid"] != uid {
            return Response::Conflict;
        }
        let is_going = |object: Value| !object["metadata"]["deletionTimestamp"].is_null();
        let machine = self.get(state, at, Kind::Machine);
        let is_served = machine.is_some_and(|of| !is_going(of));
        if is_served && self.is_wanted(state, at) {
            state.broken = Some(Law::Kept);
        }
        let id = object["metadata"]["finalizers"].is_array().then(|| {
            object["metadata"]["deletionTimestamp"] = json!("2026-03-06T00:00:00Z");
            self.objects.intern(object)
        });
        state.machines[usize::from(at)].objects[kind as usize] = id;
        Response::Done
    }

    /// Whether nothing but its class speaks against a machine.
    pub(super) fn is_wanted(&self, state: &State, at: u8) -> bool {
        let Some(id) = state.machines[usize::from(at)].sm else {
            return false;
        };
        let sm = self.machines.of(id);
        let machine = self.get(state, at, Kind::Machine).unwrap_or_default();
        let is_reclaimed =
            !machine["metadata"]["annotations"][name::RECLAIM_ANNOTATION].is_null();
        let schedule = sm.spec.schedule.schedule();
        let is_open = schedule.is_ok_and(|of| of.at(state.now()).is_open());
        is_open
            && !is_reclaimed
            && !sm.spec.kill_switch
            && sm.spec.schedule.enabled
            && sm.metadata.deletion_timestamp.is_none()
    }

    fn patch_sm(&self, state: &mut State, at: u8, patch: &Value) -> Response {
        let Some(id) = state.machines[usize::from(at)].sm else {
            return Response::NotFound;
        };
        if patch["metadata"]["resourceVersion"] != json!(id.version()) {
            return Response::Conflict;
        }
        let Ok(mut object) = serde_json::to_value(&*self.machines.of(id)) else {
            return Response::NotFound;
        };
        merge(&mut object, patch);
        let Ok(after) = serde_json::from_value::<ScheduledMachine>(object) else {
            return Response::NotFound;
        };
        self.store(state, at, after);
        Response::Done
    }

    /// Writes the status of a machine if it is still the one that the plan was made from.
    pub(super) fn serve_status(&self, state: &mut State, at: u8, plan: Id) {
        let from = self.pending_writes.of(plan);
        let stored = state.machines[usize::from(at)].sm;
        let (Some(status), true) = (&from.status, stored == Some(from.from)) else {
            return;
        };
        let sm = self.machines.of(from.from);
        let before = sm.status.as_ref().and_then(|of| of.host.as_deref());
        let is_forgotten = before.is_some() && before != status.host.as_deref();
        if is_forgotten && from.had_objects && !self.made_on(state, at).is_empty() {
            state.broken = Some(Law::GivenBack);
        }
        state.machines[usize::from(at)].sm = Some(self.reported(plan, &sm, status));
    }

    /// The ScheduledMachine with the status of a plan, computed once.
    fn reported(
        &self,
        plan: Id,
        sm: &ScheduledMachine,
        status: &ScheduledMachineStatus,
    ) -> Id {
        self.reported.of(plan, || {
            self.machines.intern(ScheduledMachine {
                status: as_stored(status),
                ..sm.clone()
            })
        })
    }

    /// Stores a ScheduledMachine, which goes once it is deleted and has no finalizer.
    fn store(&self, state: &mut State, at: u8, mut sm: ScheduledMachine) {
        let machine = &mut state.machines[usize::from(at)];
        let before = machine.sm.map(|id| self.machines.of(id));
        if before.is_some_and(|before| before.spec != sm.spec) {
            sm.metadata.generation = sm.metadata.generation.map(|last| last + 1);
        }
        let is_over = sm.metadata.deletion_timestamp.is_some()
            && sm.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
        machine.sm = (!is_over).then(|| self.machines.intern(sm));
        if is_over {
            // The operator keeps nothing about an object that is gone.
            machine.pending = None;
            machine.offered = None;
            machine.is_cache_behind = false;
        }
    }

    /// Cluster API and the provider take their next step; returns whether there was one.
    pub(super) fn reconcile(&self, state: &mut State, at: u8) -> bool {
        let is_going =
            |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
        let Some(machine) = self.get(state, at, Kind::Machine) else {
            let infrastructure = self.get(state, at, Kind::Infrastructure);
            let is_left = infrastructure.is_some_and(|of| is_going(&of));
            if is_left {
                remove(state, at, Kind::Infrastructure);
            }
            return is_left;
        };
        let parts = [Kind::Infrastructure, Kind::Bootstrap];
        if is_going(&machine) {
            let is_there = |kind: &Kind| self.get(state, at, *kind).is_some();
            let next = parts.into_iter().find(is_there);
            remove(state, at, next.unwrap_or(Kind::Machine));
            return true;
        }
        let mut has_adopted = false;
        for kind in parts {
            let Some(mut object) = self.get(state, at, kind) else {
                continue;
            };
            let owner = json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
                "name": machine["metadata"]["name"], "uid": machine["metadata"]["uid"],
                "controller": true,
            });
            let owners = object["metadata"]["ownerReferences"].as_array_mut();
            if let Some(owners) = owners.filter(|owners| !owners.contains(&owner)) {
                owners.push(owner);
                let id = self.objects.intern(object);
                state.machines[usize::from(at)].objects[kind as usize] = Some(id);
                has_adopted = true;
            }
        }
        has_adopted
    }

    /// Returns whether the edit is possible.
    pub(super) fn edit(&self, state: &mut State, edit: Edit) -> bool {
        let at = match edit {
            Edit::RemoveHost | Edit::DeleteClass => {
                let class = if edit == Edit::RemoveHost {
                    Class::Reduced
                } else {
                    Class::Deleted
                };
                let is_new = state.class == Class::Whole;
                state.class = if is_new { class } else { state.class };
                return is_new;
            }
            Edit::Kill(at) | Edit::Delete(at) => at,
        };
        let Some(id) = state.machines[usize::from(at)].sm else {
            return false;
        };
        let mut sm = (*self.machines.of(id)).clone();
        if matches!(edit, Edit::Kill(_)) {
            sm.spec.kill_switch = true;
        } else if sm.metadata.deletion_timestamp.is_none() {
            sm.metadata.deletion_timestamp = Some(Time(state.now()));
        } else {
            return false;
        }
        self.store(state, at, sm);
        true
    }

    /// Records on the Machine that its host is reclaimed, as a reconcile does that has seen the request
    /// on its Node. Returns whether there is one.
    pub(super) fn reclaim(&self, state: &mut State, at: u8) -> bool {
        let Some(mut machine) = self.get(state, at, Kind::Machine) else {
            return false;
        };
        let annotations = &mut machine["metadata"]["annotations"];
        let is_new = annotations[name::RECLAIM_ANNOTATION].is_null();
        annotations[name::RECLAIM_ANNOTATION] = json!("the owner is back");
        let id = self.objects.intern(machine);
        state.machines[usize::from(at)].objects[Kind::Machine as usize] = Some(id);
        is_new
    }
}

/// The number of a host.
pub(super) fn number(host: &str) -> Option<usize> {
    HOSTS.iter().position(|of| *of == host)
}

/// The uid of the Lease of a host.
pub(super) fn lease_uid(host: usize, lease: Lease) -> String {
    format!("lease-{host}-{}", lease.uid)
}

fn create_lease(state: &mut State, at: u8, host: usize) {
    let count = &mut state.lease_counts[host];
    *count = count.saturating_add(1);
    state.leases[host] = Some(Lease {
        holder: at,
        uid: *count,
    });
}

/// A Lease that a former replica asked for: it does not look whether the holder is gone.
pub(super) fn claim_late(state: &mut State, at: u8, lease: &Value) {
    let host = HostClaim::read(lease).and_then(|of| number(&of.host));
    if let Some(host) = host.filter(|host| state.leases[*host].is_none()) {
        create_lease(state, at, host);
    }
}

fn remove(state: &mut State, at: u8, kind: Kind) {
    state.machines[usize::from(at)].objects[kind as usize] = None;
}

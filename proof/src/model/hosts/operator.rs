//! The operator around the shipped planner: observe, offer a host, plan, send one write at a time.

use fivespot_api::ScheduledMachineStatus;
use fivespot_api::host_claim::{Holder, HostClaim};
use fivespot_capi::{Cluster, Contract, Machine};
use fivespot_plan::{
    Action, Call, Fact, Freshness, Hosts as ObservedHosts, Locations, Memory, Observed,
    Precondition, Step, StoredClaim, plan,
};

use super::super::environment::cluster;
use super::super::interner::Id;
use super::super::operator::lookups;
use super::super::server::Response;
use super::server::{claim_late, lease_uid, number};
use super::{
    CLASS, CREATED, Class, Environment, HOSTS, Kind, Law, Lease, NAMES, Pending, State,
    instant,
};

/// What is known of the Lease of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Seen {
    NotRead,
    Read(Option<Lease>),
}

/// The input of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PlanInput {
    at: u8,
    sm: Id,
    objects: [Option<Id>; CREATED],
    class: Class,
    leases: [Seen; HOSTS.len()],
    offer: Option<u8>,
    now: u8,
    freshness: Freshness,
}

/// The result of the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlanOutcome {
    next: Next,
    /// Whether the machine waits for a host, before it was offered one.
    seeks_host: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Rest,
    /// The same question with facts that are read live.
    Confirm,
    Send(Id),
}

/// Writes in flight, in order.
#[derive(Clone, Debug)]
pub(super) struct PendingWrites {
    /// The ScheduledMachine that the plan was made from.
    pub(super) from: Id,
    /// Whether one of the three objects existed.
    pub(super) had_objects: bool,
    /// Whether a Lease of the machine was read.
    had_claim: bool,
    precondition: Option<Precondition>,
    actions: Vec<Action>,
    pub(super) status: Option<ScheduledMachineStatus>,
}

impl PendingWrites {
    /// The host that it claims.
    pub(super) fn claims(&self) -> Option<u8> {
        let mut actions = self.actions.iter();
        let claim = actions.find(|action| action.step == Step::ClaimHost)?;
        let Call::Create(lease) = &claim.request.call else {
            return None;
        };
        let host = number(&HostClaim::read(lease)?.host)?;
        u8::try_from(host).ok()
    }
}

impl Environment {
    /// The hosts that the caches do not show as taken: no Lease is that of a ScheduledMachine that
    /// exists, and no other one has it in its status.
    pub(super) fn free_hosts(
        &self,
        state: &State,
        at: u8,
    ) -> impl Iterator<Item = u8> + use<> {
        let pool = self.class(state).and_then(|class| class.pool.clone());
        let is_free = |host: &usize| {
            let is_held = state.cached_leases[*host].is_some_and(|lease| {
                state.machines[usize::from(lease.holder)].sm.is_some()
            });
            let others = (0..).zip(&state.machines).filter(|(of, _)| *of != at);
            let mut recorded = others.filter_map(|(_, machine)| {
                self.machines.of(machine.sm?).status.as_ref()?.host.clone()
            });
            pool.as_ref().is_some_and(|pool| pool.has(HOSTS[*host]))
                && !is_held
                && !recorded.any(|of| of == HOSTS[*host])
        };
        let free: Vec<u8> = (0..HOSTS.len())
            .filter(is_free)
            .filter_map(|host| u8::try_from(host).ok())
            .collect();
        free.into_iter()
    }

    /// One reconcile up to its first write. Returns whether the offer was needed.
    pub(super) fn pass(&self, state: &mut State, at: u8, offer: Option<u8>) -> bool {
        let machine = &state.machines[usize::from(at)];
        let Some(sm) = machine.sm.filter(|_| machine.pending.is_none()) else {
            return false;
        };
        let input = |freshness| PlanInput {
            at,
            sm,
            objects: machine.objects,
            class: state.class,
            leases: self.seen(state, at, freshness),
            offer,
            now: state.now,
            freshness,
        };
        let mut outcome = None;
        if !machine.is_cache_behind {
            let planned = self.plan_once(input(Freshness::Cached));
            outcome = self
                .confirmed(state, at, planned.next)
                .map(|next| PlanOutcome { next, ..planned });
        }
        let outcome = outcome.unwrap_or_else(|| self.plan_once(input(Freshness::Live)));
        if offer.is_some() && !outcome.seeks_host {
            return false;
        }
        let machine = &mut state.machines[usize::from(at)];
        let claimed = machine.offered.filter(|_| machine.is_cache_behind);
        machine.offered = offer.or(claimed);
        if let Next::Send(plan) = outcome.next {
            machine.pending = Some(Pending { plan, sent: 0 });
        }
        true
    }

    /// What a plan made from caches requires next, once its precondition and the class are read live;
    /// `None` if all facts must be.
    fn confirmed(&self, state: &State, at: u8, next: Next) -> Option<Next> {
        let Next::Send(pending) = next else {
            return Some(next).filter(|next| *next != Next::Confirm);
        };
        let pending = self.pending_writes.of(pending);
        let Some(precondition) = &pending.precondition else {
            return Some(next);
        };
        let is_usable = precondition.host().is_none_or(|host| {
            let lease = number(host).and_then(|host| state.leases[host]);
            let pool = self.class(state).and_then(|class| class.pool.as_ref());
            lease.is_some_and(|lease| lease.holder == at)
                && pool.is_some_and(|pool| pool.has(host))
        });
        let holds = precondition.holds(&self.machines.of(pending.from)) && is_usable;
        holds.then_some(next)
    }

    /// The Leases that the operator reads for a machine: those that its cache shows as its own, that of
    /// the host that it was offered, and that of the recorded one.
    fn seen(&self, state: &State, at: u8, freshness: Freshness) -> [Seen; HOSTS.len()] {
        let machine = &state.machines[usize::from(at)];
        let sm = machine.sm.map(|id| self.machines.of(id));
        let recorded = sm.and_then(|sm| sm.status.as_ref()?.host.clone());
        let leases = match freshness {
            Freshness::Live => &state.leases,
            Freshness::Cached => &state.cached_leases,
        };
        let mut seen = [Seen::NotRead; HOSTS.len()];
        for (host, seen) in seen.iter_mut().enumerate() {
            let shown = state.cached_leases[host];
            let is_own = shown.is_some_and(|lease| lease.holder == at);
            let is_offered = machine.offered.map(usize::from) == Some(host);
            if is_own || is_offered || recorded.as_deref() == Some(HOSTS[host]) {
                *seen = Seen::Read(leases[host]);
            }
        }
        seen
    }

    /// Sends the next write for a machine. What a former replica has sent arrives before that or never.
    pub(super) fn send(&self, state: &mut State, at: u8) {
        let machine = &mut state.machines[usize::from(at)];
        let Some(Pending { plan, sent }) = machine.pending.take() else {
            return;
        };
        state.late = state.late.filter(|late| late.machine != at);
        let pending = self.pending_writes.of(plan);
        let Some(action) = pending.actions.get(usize::from(sent)) else {
            self.serve_status(state, at, plan);
            return;
        };
        let response = self.serve(state, at, action);
        let machine = &mut state.machines[usize::from(at)];
        if machine.sm.is_none() {
            let mut leases = state.leases.iter().flatten();
            if pending.had_claim && leases.any(|lease| lease.holder == at) {
                state.broken = Some(Law::GivenBack);
            }
            return;
        }
        if matches!(action.step, Step::ClaimHost | Step::ReleaseHost) {
            machine.is_cache_behind = true;
            machine.offered = pending.claims().or(machine.offered);
        }
        if response != Response::Done {
            // All is read live after that.
            machine.is_cache_behind = true;
            return;
        }
        let sent = sent + 1;
        if usize::from(sent) < pending.actions.len() || pending.status.is_some() {
            machine.pending = Some(Pending { plan, sent });
        }
    }

    /// The write of the former replica reaches the server.
    pub(super) fn arrive(&self, state: &mut State) {
        let Some(late) = state.late.take() else {
            return;
        };
        let Pending { plan, sent } = late.pending;
        let pending = self.pending_writes.of(plan);
        match pending.actions.get(usize::from(sent)) {
            Some(action) if action.step == Step::ClaimHost => {
                if let Call::Create(lease) = &action.request.call {
                    claim_late(state, late.machine, lease);
                }
            }
            Some(action) => {
                self.serve(state, late.machine, action);
            }
            None => self.serve_status(state, late.machine, plan),
        }
    }

    /// Returns the planner's answer, computed once for each question.
    fn plan_once(&self, input: PlanInput) -> PlanOutcome {
        let compute = || self.compute_plan(input);
        self.plan_outcomes.of(input, compute)
    }

    fn compute_plan(&self, input: PlanInput) -> PlanOutcome {
        let sm = self.resolved(input.sm, input.class);
        let observed = self.observed(input, &sm);
        let now = instant(input.now);
        let is_own = |seen: &Seen| matches!(seen, Seen::Read(Some(lease)) if lease.holder == input.at);
        let mut memory = Memory::default();
        memory.observe(sm.metadata.generation, &observed, now);
        let mut planned = plan(&sm, &observed, &memory, now);
        let seeks_host = planned.seeks_host;
        if let (true, Some(offer)) = (seeks_host, input.offer) {
            memory.offer_host(Some(HOSTS[usize::from(offer)].to_owned()));
            planned = plan(&sm, &observed, &memory, now);
        }
        let next = if planned.confirm {
            Next::Confirm
        } else if planned.actions.is_empty() && planned.status.is_none() {
            Next::Rest
        } else {
            Next::Send(self.pending_writes.intern_shown(PendingWrites {
                from: input.sm,
                had_objects: input.objects.iter().any(Option::is_some),
                had_claim: input.leases.iter().any(is_own),
                precondition: planned.precondition,
                actions: planned.actions,
                status: planned.status,
            }))
        };
        PlanOutcome { next, seeks_host }
    }

    fn observed(
        &self,
        input: PlanInput,
        sm: &fivespot_api::ScheduledMachine,
    ) -> Observed {
        let object =
            |kind: Kind| input.objects[kind as usize].map(|id| self.objects.of(id));
        let machine = object(Kind::Machine).and_then(|found| Machine::read(&found).ok());
        let locations = Locations::of(sm, machine.as_ref());
        Observed {
            freshness: input.freshness,
            contract: Fact::Known(Contract::V1Beta2),
            cluster: Fact::Known(Cluster::read(&cluster()).ok()),
            bootstrap: lookups(&locations.bootstrap, object),
            infrastructure: lookups(&locations.infrastructure, object),
            machine: Fact::Known(machine),
            hosts: hosts(input, sm),
            ..Observed::default()
        }
    }
}

/// The Leases that are about a machine.
fn hosts(input: PlanInput, sm: &fivespot_api::ScheduledMachine) -> ObservedHosts {
    let recorded = sm.status.as_ref().and_then(|status| status.host.as_deref());
    let mut hosts = ObservedHosts {
        namespace: "5spot-system".to_owned(),
        ..ObservedHosts::default()
    };
    for (host, seen) in input.leases.into_iter().enumerate() {
        let Seen::Read(Some(lease)) = seen else {
            continue;
        };
        let name = NAMES[usize::from(lease.holder)].to_owned();
        if lease.holder == input.at {
            hosts.claims.push(StoredClaim {
                claim: HostClaim {
                    class: CLASS.to_owned(),
                    host: HOSTS[host].to_owned(),
                    holder: Holder {
                        namespace: "default".to_owned(),
                        name,
                        uid: format!("sm-{}", lease.holder),
                    },
                },
                uid: lease_uid(host, lease),
            });
        } else if recorded == Some(HOSTS[host]) {
            hosts.holder = Some(format!("default/{name}"));
        }
    }
    hosts
}

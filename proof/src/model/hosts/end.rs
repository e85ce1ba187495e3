//! Liveness: from any state, without further faults, with every component acting and turns in the order
//! of priority, the model settles in the desired state.

use super::super::following::{BOUND, Following, end, settles};
use super::super::state::FaultBudget;
use super::{Class, Environment, HOSTS, INSTANTS, Kind, Pending, SETTLED, State};

impl Environment {
    /// Whether the model settles in the desired state from `state`.
    pub(super) fn reaches_desired_state(&self, state: &State) -> bool {
        let first = without_faults(state);
        settles(&self.settled, first, |state| self.following(state))
    }

    fn following(&self, state: &State) -> Following<State> {
        match self.next_in_place(state) {
            Some(next) if self.is_out_of_turn(state, &next) => Following::Wrong,
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

    /// The state in which nothing happens any more before the next instant.
    pub(super) fn rested(&self, mut state: State) -> State {
        for _ in 0..BOUND {
            match self.next_in_place(&state) {
                Some(next) => state = next,
                None => break,
            }
        }
        state
    }

    /// What is at the end that a state leads to, for the report.
    pub(crate) fn describe_end(&self, state: &State) -> Vec<String> {
        let state = end(without_faults(state), |state| self.following(state));
        let machines = state.machines.iter().flat_map(|machine| {
            let sm = machine.sm.map(|id| self.machines.of(id));
            let sm = sm.and_then(|sm| serde_json::to_string(&*sm).ok());
            let objects = machine.objects.into_iter().flatten();
            let objects = objects.map(|id| self.objects.of(id).to_string());
            sm.into_iter().chain(objects).collect::<Vec<_>>()
        });
        let leases = format!("{:?} {:?}", state.leases, state.class);
        let end = INSTANTS[usize::from(state.now)].to_owned();
        machines.chain([leases, end]).collect()
    }

    /// The next step while no time passes; `None` when nothing changes.
    fn next_in_place(&self, state: &State) -> Option<State> {
        let mut next = state.clone();
        if next.late.is_some() {
            self.arrive(&mut next);
            return Some(next);
        }
        let numbers = || (0..).zip(&state.machines).map(|(at, _)| at);
        let sending = |at: &u8| state.machines[usize::from(*at)].pending.is_some();
        if let Some(at) = numbers().find(sending) {
            self.send(&mut next, at);
            return Some(next);
        }
        let is_behind = next.machines.iter().any(|machine| machine.is_cache_behind);
        if next.cached_leases != next.leases || is_behind {
            next.see_leases();
            return Some(next);
        }
        for at in numbers() {
            let offers = self.free_hosts(state, at).take(1).map(Some);
            for offer in offers.chain([None]) {
                let mut next = state.clone();
                if self.pass(&mut next, at, offer) && next != *state {
                    return Some(next);
                }
            }
        }
        numbers().find_map(|at| {
            let mut next = state.clone();
            self.reconcile(&mut next, at).then_some(next)
        })
    }

    /// Whether a machine is about to claim a host for which another one of a higher priority waits.
    fn is_out_of_turn(&self, state: &State, next: &State) -> bool {
        let mut claims = (0..).zip(&next.machines).filter(|(at, machine)| {
            let before = state.machines[usize::from(*at)].pending;
            let is_new = |of: &Pending| before.is_none_or(|it| it.plan != of.plan);
            let pending = machine.pending.filter(is_new);
            pending.is_some_and(|of| self.pending_writes.of(of.plan).claims().is_some())
        });
        claims.any(|(at, machine)| {
            let is_first_claim = machine.sm.is_some_and(|id| self.host_of(id).is_none());
            is_first_claim && (0..at).any(|ahead| self.is_waiting(next, ahead))
        })
    }

    fn host_of(&self, sm: super::Id) -> Option<String> {
        self.machines.of(sm).status.as_ref()?.host.clone()
    }

    /// Whether a machine is wanted and has neither a host nor a claim, nor an object that leaves.
    fn is_waiting(&self, state: &State, at: u8) -> bool {
        let machine = &state.machines[usize::from(at)];
        let is_free = machine.sm.is_some_and(|id| self.host_of(id).is_none());
        let mut leases = state.leases.iter().flatten();
        self.is_wanted(state, at)
            && state.class != Class::Deleted
            && is_free
            && machine.pending.is_none()
            && machine.objects.iter().all(Option::is_none)
            && !leases.any(|lease| lease.holder == at)
    }

    /// Whether a state in which nothing changes before the next instant is not as it should be.
    fn is_wrong(&self, state: &State) -> bool {
        let is_settled = SETTLED.contains(&state.now);
        let mut numbers = (0..).zip(&state.machines).map(|(at, _)| at);
        is_settled && numbers.any(|at| self.is_machine_wrong(state, at))
            || self.is_left_free(state)
    }

    /// Whether a machine is not as its user wants it, or claims differ from what it uses.
    fn is_machine_wrong(&self, state: &State, at: u8) -> bool {
        let machine = &state.machines[usize::from(at)];
        let held = (0..HOSTS.len())
            .filter(|host| state.leases[*host].is_some_and(|lease| lease.holder == at));
        let is_made = machine.objects[Kind::Machine as usize].is_some();
        let held: Vec<&str> = held.map(|host| HOSTS[host]).collect();
        // A claim that arrived too late is replaced by the next one.
        let held = if machine.sm.is_none() && !is_made {
            Vec::new()
        } else {
            held
        };
        let recorded = machine.sm.and_then(|id| self.host_of(id));
        let is_left = machine.objects.iter().any(Option::is_some);
        if held != recorded.as_deref().into_iter().collect::<Vec<_>>() {
            return true;
        }
        if self.is_wanted(state, at) {
            // What is left of one that was not completed when the class was deleted stays.
            return state.class != Class::Deleted && is_left != is_made
                || recorded.is_some() != is_left;
        }
        let deleted = machine
            .sm
            .is_some_and(|id| self.machines.of(id).metadata.deletion_timestamp.is_some());
        // A disabled schedule keeps what exists.
        is_left || recorded.is_some() || deleted
    }

    /// Whether a host of the class is free in a settled state although a machine waits for one.
    fn is_left_free(&self, state: &State) -> bool {
        let pool = self.class(state).and_then(|class| class.pool.as_ref());
        let is_free = |host: usize| {
            let lease = state.leases[host];
            lease.is_none_or(|lease| self.is_gone(state, lease.holder))
                && pool.is_some_and(|pool| pool.has(HOSTS[host]))
        };
        let mut numbers = (0..).zip(&state.machines).map(|(at, _)| at);
        (0..HOSTS.len()).any(is_free) && numbers.any(|at| self.is_waiting(state, at))
    }
}

fn without_faults(state: &State) -> State {
    State {
        budget: FaultBudget::default(),
        broken: None,
        ..state.clone()
    }
}

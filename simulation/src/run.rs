//! Runs a scenario: the shipped operator against the embedded server and a simulated Cluster API.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fivespot_testkit::{
    Cluster, ConnectionSwitch, Coordination, CrashSwitch, CrashableOperator, Lease,
    LeaseTiming,
};
use jiff::{SignedDuration, Timestamp};

use crate::end::{last_call_complaint, violation};
use crate::fault::Kind;
use crate::fleet::{CHECKED_AFTER, FleetAction, FleetSnapshot};
use crate::interceptor::{Cell, Connection, Interceptor};
use crate::owner::{self, Sight};
use crate::scenario::{Disruption, Scenario, calendar};
use crate::snapshot::{MachinePaths, MachineSnapshot};
use crate::user_action::{UserAction, undo_user_actions};

/// How long after the last fault, edit and edge every object must be as its user wants: longer than
/// any retry, drain and the pause between two replacements.
const SETTLE_TIME: SignedDuration = SignedDuration::from_mins(45);

/// An edge that is checked with a wrong clock or a suspended host is at least this far ahead. It is
/// also by how much the clock is set forward, and how long the host is suspended.
const LEAD: SignedDuration = SignedDuration::from_mins(20);

/// How long before an edge a machine must still be idle.
const BEFORE: SignedDuration = SignedDuration::from_secs(1);

/// The timeout on tokio's own clock, which advances only when no task can run.
const STUCK: Duration = Duration::from_hours(24);

/// The invariant about the end of a scenario.
const END_STATE: &str = "L1-L8 every state leads to the desired end state in time";

/// The result of a scenario.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// A hash of all events, in order.
    pub(crate) hash: u64,
    pub(crate) trace: Vec<String>,
    /// The invariants that were broken, and how.
    pub(crate) broken: Vec<(&'static str, String)>,
    pub(crate) checks: u64,
    pub(crate) seconds: u64,
    pub(crate) writes: usize,
    pub(crate) injected: BTreeMap<Kind, u64>,
    pub(crate) user_actions: BTreeMap<String, u64>,
    pub(crate) cells: BTreeSet<Cell>,
}

/// Runs a scenario to its end on this thread.
pub(crate) fn run(scenario: &Scenario) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(run_scenario(scenario)),
        Err(error) => Outcome {
            broken: vec![("a scenario can be run", error.to_string())],
            ..Outcome::default()
        },
    }
}

async fn run_scenario(scenario: &Scenario) -> Outcome {
    let cluster = Cluster::seeded(scenario.begins, scenario.seed).await;
    cluster.add_cluster().await;
    let paths = scenario.machines.iter().map(|machine| MachinePaths {
        name: machine.name.clone(),
        owned: cluster.owned_paths(&machine.name),
        cluster: cluster.cluster_path(),
    });
    let paths: Vec<MachinePaths> = paths.collect();
    let faults = scenario
        .disruptions
        .iter()
        .filter_map(|disruption| match disruption {
            Disruption::Fault(fault) => Some(*fault),
            _ => None,
        });
    let client = cluster.server().client();
    let lease = (scenario.operators > 1).then(|| LEASE.to_owned());
    let interceptor = Interceptor::new(client, paths.clone(), faults.collect(), lease);
    let interceptor = if scenario.is_undisturbed() {
        interceptor.undisturbed()
    } else {
        interceptor
    };
    let interceptor = if scenario.fleet.is_some() {
        interceptor.of_fleet(cluster.owned_paths(""))
    } else {
        interceptor
    };
    let interceptor = Arc::new(interceptor);
    let mut run = Run {
        cluster,
        replicas: (0..scenario.operators)
            .map(|number| Replica {
                name: format!("operator-{number}"),
                operator: None,
                absent_until: scenario.begins,
                switch: ConnectionSwitch::default(),
            })
            .collect(),
        interceptor,
        seed: scenario.seed,
        user_actions: BTreeMap::new(),
    };
    let all = async {
        run.run_disruptions(scenario).await;
        run.check_end_state(scenario, &paths).await;
        run.check_fleet(scenario).await;
    };
    let is_over = tokio::time::timeout(STUCK, all).await.is_ok();
    if !is_over {
        let how = format!("at {}", run.cluster.clock().now());
        run.interceptor
            .report_violation("no task waits forever", how);
    }
    run.outcome(scenario)
}

/// The path of the Lease for leader election.
const LEASE: &str =
    "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases/5spot-leader";

/// The settings of the Lease of an operator. Its times are longer than the defaults, so that not
/// most requests are renewals.
fn lease() -> Option<Lease> {
    let minutes = SignedDuration::from_mins;
    let timing = LeaseTiming::new(minutes(10), minutes(8), minutes(2)).ok()?;
    Some(Lease {
        namespace: "5spot-system".to_owned(),
        name: "5spot-leader".to_owned(),
        timing,
    })
}

/// A step of a scenario at an instant. Faults are not steps.
#[derive(Clone, Copy, Debug)]
enum Step {
    UserAction(usize, UserAction),
    Fleet(FleetAction),
    /// The agent on the host of this machine sees this.
    Owner(usize, Sight),
    /// The host's clock is wrong by this many seconds from now on.
    Clock(i64),
    /// The operators' host is suspended (`true`) or resumed (`false`).
    Suspend(bool),
    /// The operator with this number is cut off (`true`) or connected again (`false`).
    CutOff(usize, bool),
}

/// The steps of a scenario, in order.
fn steps(scenario: &Scenario) -> Vec<(Timestamp, Step)> {
    let after = |at: Timestamp, minutes: u8| {
        (at + SignedDuration::from_mins(i64::from(minutes))).min(scenario.calm)
    };
    let mut all = Vec::new();
    for disruption in &scenario.disruptions {
        match *disruption {
            Disruption::Fault(_) | Disruption::Visit(..) => {}
            Disruption::UserAction(at, machine_index, user_action) => {
                all.push((at, Step::UserAction(machine_index, user_action)));
            }
            Disruption::Fleet(at, action) => all.push((at, Step::Fleet(action))),
            Disruption::Clock(at, ahead, minutes) => {
                all.push((at, Step::Clock(ahead)));
                all.push((after(at, minutes), Step::Clock(0)));
            }
            Disruption::Suspend(at, minutes) => {
                all.push((at, Step::Suspend(true)));
                all.push((after(at, minutes), Step::Suspend(false)));
            }
            Disruption::CutOff(at, operator_index, minutes) => {
                all.push((at, Step::CutOff(operator_index, true)));
                all.push((after(at, minutes), Step::CutOff(operator_index, false)));
            }
        }
    }
    for index in 0..scenario.machines.len() {
        let visits = scenario.disruptions.iter().filter_map(|of| match *of {
            Disruption::Visit(at, of, minutes) if of == index => {
                Some((at, after(at, minutes)))
            }
            _ => None,
        });
        let sights = owner::sights(visits.collect()).into_iter();
        let until_calm = sights.filter(|(at, _)| *at < scenario.calm);
        all.extend(until_calm.map(|(at, sight)| (at, Step::Owner(index, sight))));
    }
    all.sort_by_key(|(at, _)| *at);
    all
}

/// A replica, which an operator runs as unless it is down.
struct Replica {
    name: String,
    operator: Option<CrashableOperator>,
    /// Until when no operator is started after a crash.
    absent_until: Timestamp,
    switch: ConnectionSwitch,
}

impl Replica {
    fn crash_switch(&self) -> Option<&CrashSwitch> {
        self.operator.as_ref().map(CrashableOperator::crash_switch)
    }
}

/// Completes when the operator of this replica has ended.
async fn wait_for_crash(replica: Option<&Replica>) {
    match replica.and_then(Replica::crash_switch) {
        Some(crash_switch) => crash_switch.crashed().await,
        None => std::future::pending().await,
    }
}

struct Run {
    cluster: Cluster,
    interceptor: Arc<Interceptor>,
    replicas: Vec<Replica>,
    seed: u64,
    user_actions: BTreeMap<String, u64>,
}

impl Run {
    /// Runs the scenario until the last fault and user action.
    async fn run_disruptions(&mut self, scenario: &Scenario) {
        self.cluster.apply(&calendar(scenario.begins)).await;
        self.interceptor.note_inputs(scenario.begins).await;
        for machine in &scenario.machines {
            self.cluster.apply(&machine.object).await;
        }
        let fleet = scenario.fleet.iter();
        for object in fleet.flat_map(|of| of.classes.iter().chain(&of.machines)) {
            self.cluster.apply(object).await;
        }
        for (at, step) in steps(scenario) {
            self.advance_until(at).await;
            self.interceptor.note(format!("{at} {step:?}"));
            match step {
                Step::UserAction(machine_index, user_action) => {
                    if let Some(machine) = scenario.machines.get(machine_index) {
                        self.count(&format!("{user_action:?}"));
                        self.interceptor.state().accounts_differ |=
                            user_action.changes_calendar() || self.hides_nodes();
                        user_action.perform(&self.cluster, &machine.name, at).await;
                        self.interceptor.note_inputs(at).await;
                        self.interceptor.count(at).await;
                    }
                }
                Step::Fleet(action) => {
                    if let Some(fleet) = &scenario.fleet {
                        self.count(&format!("Fleet{}", action.name()));
                        action.perform(&self.cluster, fleet, at).await;
                    }
                }
                Step::Owner(machine_index, sight) => {
                    if let Some(machine) = scenario.machines.get(machine_index) {
                        let name = &machine.name;
                        owner::report(&self.cluster, name, sight, at).await;
                        self.interceptor.see(name, sight, at).await;
                    }
                }
                Step::Clock(seconds) => {
                    match seconds {
                        0 => {}
                        1.. => self.count("ClockSetForward"),
                        _ => self.count("ClockSetBack"),
                    }
                    let ahead = self.interceptor.host.offset();
                    if ahead.is_positive() {
                        self.interceptor.state().doubtful_until = at + ahead;
                    }
                    self.interceptor
                        .host
                        .set(SignedDuration::from_secs(seconds));
                }
                Step::Suspend(is_suspended) => {
                    if is_suspended {
                        self.count("Suspended");
                    }
                    self.suspend(is_suspended);
                }
                Step::CutOff(operator_index, is_cut_off) => {
                    if is_cut_off {
                        self.count("CutOff");
                    }
                    match self.replicas.get(operator_index) {
                        Some(replica) if is_cut_off => {
                            replica.switch.disconnect();
                        }
                        Some(replica) => replica.switch.connect(),
                        None => {}
                    }
                }
            }
        }
        self.advance_until(scenario.calm).await;
        self.interceptor.state().is_calm = true;
        // A crash does not extend beyond the last fault: operators are restarted.
        self.interceptor.state().downtime = 0;
        for replica in &mut self.replicas {
            replica.absent_until = scenario.calm;
        }
        for machine in &scenario.machines {
            undo_user_actions(&self.cluster, &machine.name).await;
        }
    }

    /// Whether nobody sees what becomes of a Node: the operator has no kubeconfig, and Cluster API
    /// reports nothing while the Cluster is paused.
    fn hides_nodes(&self) -> bool {
        let blinds = [UserAction::LoseKubeconfig, UserAction::PauseCluster];
        let is_done =
            |of: &UserAction| self.user_actions.contains_key(&format!("{of:?}"));
        blinds.iter().all(is_done)
    }

    /// Suspends the operators' host, or resumes it.
    fn suspend(&self, is_suspended: bool) {
        let now = self.cluster.clock().now();
        self.interceptor.state().accounts_differ = true;
        if is_suspended {
            self.interceptor.host.suspend(now);
        } else {
            self.interceptor.host.resume(now);
        }
        for replica in &self.replicas {
            if is_suspended {
                replica.switch.disconnect();
            } else {
                replica.switch.connect();
            }
        }
    }

    /// Checks the operator at the next edge of the first machine. The clock of the operators' host
    /// is set forward past the edge, the host is suspended over the edge, or neither. The operator
    /// must have acted half a minute after its clock shows the edge or the host is resumed.
    async fn check_next_edge(&mut self, scenario: &Scenario, paths: &[MachinePaths]) {
        let now = self.cluster.clock().now();
        let Some(paths) = paths.first() else {
            return;
        };
        let snapshot = MachineSnapshot::of(&self.cluster.server().client(), paths).await;
        let edge = snapshot.next_edge(now + LEAD);
        let soon = now + SignedDuration::from_hours(72);
        let Some(edge) = edge.filter(|edge| *edge < soon) else {
            return;
        };
        let seconds = SignedDuration::from_secs;
        let what = match scenario.seed % 3 {
            0 => {
                self.advance_until(edge).await;
                "time reaches it"
            }
            1 => {
                self.advance_until(edge - LEAD / 2).await;
                self.interceptor.state().accounts_differ = true;
                self.interceptor.host.set(LEAD);
                "the clock is set forward past it"
            }
            _ => {
                self.advance_until(edge - LEAD / 2).await;
                self.suspend(true);
                self.advance_until(edge + LEAD / 2).await;
                self.suspend(false);
                "the host is suspended across it"
            }
        };
        // With several operators, one must acquire the Lease again first.
        let late = match (scenario.seed % 3, scenario.operators) {
            (0, _) => seconds(1),
            (2, 2..) => seconds(180),
            _ => seconds(31),
        };
        let begun = self.cluster.clock().now();
        self.advance_until(begun + late).await;
        let snapshot = MachineSnapshot::of(&self.cluster.server().client(), paths).await;
        let shown = begun + self.interceptor.host.offset();
        let in_schedule = snapshot.owner["status"]["inSchedule"].as_bool();
        let serves = snapshot.phase() == "Active"
            && snapshot.is_needed(shown)
            && !snapshot.is_held(shown);
        let is_noticed = in_schedule == Some(snapshot.is_in_force(shown))
            && !snapshot.is_overdue(shown)
            && !(serves && last_call_complaint(&snapshot, shown).is_some());
        self.interceptor.state().checks += 1;
        if !is_noticed && !snapshot.is_paused() && !snapshot.is_deleting() {
            let how = format!("{} at {edge}: {what}", paths.name);
            self.interceptor
                .report_violation("L9 an edge is met at most half a minute late", how);
        }
    }

    fn count(&mut self, user_action: &str) {
        *self.user_actions.entry(user_action.to_owned()).or_default() += 1;
    }

    /// Checks that every machine is as its user wants, twice: some time after the last of its
    /// edges, and after the next edge. In between, no write is allowed.
    async fn check_end_state(&mut self, scenario: &Scenario, paths: &[MachinePaths]) {
        let mut checkpoints: Vec<(Timestamp, usize, bool)> = Vec::new();
        let begin = scenario.calm + SETTLE_TIME;
        self.advance_until(begin).await;
        for at in 0..scenario.machines.len() {
            let Some(paths) = paths.get(at) else {
                continue;
            };
            let snapshot =
                MachineSnapshot::of(&self.cluster.server().client(), paths).await;
            let first = settled_after(&snapshot, begin);
            checkpoints.push((first, at, false));
            if let Some(edge) = snapshot.next_edge(first) {
                // Edges that are far ahead, such as of a schedule for February 30, are not waited
                // for.
                let is_soon = edge < begin + SignedDuration::from_hours(72);
                if is_soon {
                    let idle = edge - BEFORE;
                    // What is said about the return of a reclaimed host changes at other instants.
                    let schedule = snapshot.schedule();
                    let in_force = schedule.as_ref().and_then(|of| of.in_force(first));
                    let is_idle = in_force.and_then(owner::reclaimed_at).is_none();
                    let is_idle = is_idle && idle > first;
                    checkpoints.extend(is_idle.then_some((idle, at, true)));
                    checkpoints.push((
                        settled_after(&snapshot, edge + SETTLE_TIME),
                        at,
                        false,
                    ));
                }
            }
        }
        checkpoints.sort_unstable();
        let mut writes = BTreeMap::new();
        for (when, at, is_idle) in checkpoints {
            let Some(paths) = paths.get(at) else {
                continue;
            };
            self.advance_until(when).await;
            let name = &paths.name;
            let served = self.interceptor.state().served.get(name).copied();
            if is_idle {
                if writes.get(name) != Some(&served) {
                    let how = format!("{name} before {when}");
                    self.interceptor.report_violation(
                        "S13 an object in its desired state is not written",
                        how,
                    );
                }
                continue;
            }
            let snapshot =
                MachineSnapshot::of(&self.cluster.server().client(), paths).await;
            if let Some(how) = violation(&snapshot, when) {
                let how = format!("{name} at {when}: {how}");
                self.interceptor.report_violation(END_STATE, how);
            }
            self.interceptor.state().checks += 1;
            writes.insert(name.clone(), served);
        }
        // Before the clock may be set: by its own clock, the operator removes a machine later.
        self.interceptor.check_departures();
        self.check_next_edge(scenario, paths).await;
    }

    /// Compares a fleet at rest with what is wanted.
    async fn check_fleet(&mut self, scenario: &Scenario) {
        for later in CHECKED_AFTER.iter().filter(|_| scenario.fleet.is_some()) {
            let now = scenario.calm + *later;
            self.advance_until(now).await;
            let collections = self.interceptor.collections.clone();
            let client = self.cluster.server().client();
            let Some(collections) = collections else {
                return;
            };
            let snapshot = FleetSnapshot::of(&client, &collections).await;
            self.interceptor.state().checks += 1;
            for (invariant, how) in snapshot.complaints(now) {
                let how = format!("{now} {how}");
                self.interceptor.report_violation(invariant, how);
            }
        }
    }

    /// Advances the clock. An operator that crashes on the way is replaced.
    async fn advance_until(&mut self, to: Timestamp) {
        let clock = self.cluster.clock().clone();
        loop {
            for number in 0..self.replicas.len() {
                self.replace_if_ended(number);
            }
            let vacant = self
                .replicas
                .iter()
                .filter(|replica| replica.operator.is_none());
            let due = self.interceptor.due();
            let limit = vacant
                .map(|replica| replica.absent_until)
                .chain(due)
                .fold(to, Timestamp::min);
            let has_moved = tokio::select! {
                biased;
                () = wait_for_crash(self.replicas.first()) => true,
                () = wait_for_crash(self.replicas.get(1)) => true,
                moved = clock.advance_to_next(limit) => moved.is_some(),
            };
            if has_moved {
                continue;
            }
            clock.advance_to(limit).await;
            if due == Some(limit) {
                self.interceptor.count_departures(limit).await;
            }
            let mut crash_switches =
                self.replicas.iter().filter_map(Replica::crash_switch);
            if limit >= to && !crash_switches.any(CrashSwitch::is_crashed) {
                return;
            }
        }
    }

    /// Removes an operator that has ended, and starts another when its downtime is over.
    fn replace_if_ended(&mut self, number: usize) {
        let now = self.cluster.clock().now();
        let is_one_of_several = self.replicas.len() > 1;
        let Some(replica) = self.replicas.get_mut(number) else {
            return;
        };
        if let Some(operator) = &replica.operator {
            if operator.has_ended() {
                let how = format!("at {now}");
                self.interceptor
                    .report_violation("the operator exits only when it is stopped", how);
            } else if !operator.crash_switch().is_crashed() {
                return;
            }
            let minutes = std::mem::take(&mut self.interceptor.state().downtime);
            replica.absent_until = now + SignedDuration::from_mins(i64::from(minutes));
        }
        if now < replica.absent_until {
            replica.operator = None;
            return;
        }
        self.interceptor
            .note(format!("{now} {} starts", replica.name));
        let (seed, name) = (self.seed, replica.name.clone());
        let host = self.interceptor.host.clone();
        let connection = Connection {
            interceptor: self.interceptor.clone(),
            name: name.clone(),
            switch: replica.switch.clone(),
        };
        let lease = lease().filter(|_| is_one_of_several);
        // The new operator starts before the old one is dropped, so that time does not pass in
        // between.
        let operator = self
            .cluster
            .operator_behind(Arc::new(connection), |options| {
                options.seed = seed;
                options.identity = name;
                options.clock = options.clock.of_host(host);
                if let Some(lease) = lease {
                    options.coordination = Coordination::Leader(lease);
                }
            });
        replica.operator = Some(operator);
    }

    fn outcome(self, scenario: &Scenario) -> Outcome {
        let now = self.cluster.clock().now();
        let hash = self.interceptor.hash();
        let mut state = self.interceptor.state();
        let mut user_actions = self.user_actions;
        let returns = state.hosts.values().map(|host| host.returns() as u64);
        *user_actions.entry("HostReturned".to_owned()).or_default() +=
            returns.sum::<u64>();
        Outcome {
            hash,
            trace: std::mem::take(&mut state.trace),
            broken: std::mem::take(&mut state.broken),
            checks: state.checks,
            seconds: u64::try_from(now.duration_since(scenario.begins).as_secs())
                .unwrap_or(0),
            writes: state.served.values().sum(),
            injected: std::mem::take(&mut state.injected),
            user_actions,
            cells: std::mem::take(&mut state.cells),
        }
    }
}

/// The first instant from `now` on that is at least `SETTLE_TIME` after the last edge.
fn settled_after(snapshot: &MachineSnapshot, now: Timestamp) -> Timestamp {
    let mut rest = now;
    let mut edge = snapshot.next_edge(now - SETTLE_TIME);
    while let Some(at) = edge.filter(|at| *at <= rest) {
        rest = at + SETTLE_TIME;
        edge = snapshot.next_edge(at);
    }
    rest
}

/// The numbers of a minimal set of disruptions with which a scenario breaks the same invariant.
/// Disruptions are left out in chunks, halves first and single ones last.
pub(crate) fn shrink(scenario: &Scenario, invariant: &str) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..scenario.disruptions.len()).collect();
    let breaks = |kept: &[usize]| {
        let outcome = run(&scenario.only(kept));
        outcome
            .broken
            .iter()
            .any(|(broken, _)| *broken == invariant)
    };
    let mut size = kept.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        while at < kept.len() {
            let mut fewer = kept.clone();
            fewer.drain(at..(at + size).min(kept.len()));
            if breaks(&fewer) {
                kept = fewer;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_runs_with_any_hash_keys() {
        for seed in [3, 11] {
            // Every thread has its own random hash keys.
            let outcome = || {
                let one = std::thread::spawn(move || run(&Scenario::of(seed)));
                one.join().unwrap()
            };
            let (first, second) = (outcome(), outcome());
            assert_eq!(first.trace, second.trace);
            assert_eq!(first.hash, second.hash);
        }
    }

    #[test]
    fn a_scenario_without_troubles_is_checked_and_breaks_no_law() {
        let outcome = run(&Scenario::of(1).only(&[]));
        assert_eq!(outcome.broken, []);
        assert!(outcome.checks > 100, "{}", outcome.checks);
    }
}

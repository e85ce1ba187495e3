//! A proxy between the operators and the server: injects faults, checks writes, and records events.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::hash::{DefaultHasher, Hasher as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::name;
use fivespot_testkit::{
    ConnectionSwitch, Delivery, Host, ProxiedRequest, Proxy, RequestOutcome, WatchStart,
};
use jiff::{SignedDuration, Timestamp};
use kubemu_apiserver::Client;
use serde_json::Value;

use crate::account::Account;
use crate::departure::Departures;
use crate::effective_schedule::Inputs;
use crate::fault::{Fault, Kind, Target};
use crate::fleet::{self, Begun, FleetSnapshot};
use crate::invariant::{Case, INVARIANTS, KnownState, is_satisfied};
use crate::owner::{Host as OwnedHost, Sight, reclaimed_at};
use crate::snapshot::{MachinePaths, MachineSnapshot, instant};

/// The number of requests at one instant that is reported as a hot loop.
const MAX_REQUESTS_AT_ONE_INSTANT: usize = 3_000;

/// The same in a fleet, of which many machines start at one instant.
const MAX_REQUESTS_OF_FLEET: usize = 30_000;

/// How many times a slow request yields to other tasks before it is sent.
const YIELDS: usize = 60;

/// How stale a cache may be if watch events may be delayed.
const LONG_STALENESS: SignedDuration = SignedDuration::from_mins(130);

/// How stale a cache may be otherwise.
const SHORT_STALENESS: SignedDuration = SignedDuration::from_secs(1);

const LEFT_LATE: &str =
    "a machine that is there after the end of its window has left late";

/// How long an override is kept after its end.
const OVERRIDE_RETENTION: SignedDuration = SignedDuration::from_hours(1);

/// The shared state of the connections between operators and server.
pub(crate) struct Interceptor {
    client: Client,
    paths: Vec<MachinePaths>,
    faults: Vec<Fault>,
    /// The path of the Lease for leader election. `None` for a single operator.
    lease: Option<String>,
    /// Whether no fault is injected and the clock of the operators is right.
    is_undisturbed: bool,
    /// How long caches of overrides and calendars may be stale after a change.
    staleness: SignedDuration,
    /// In the scenario of a fleet: the paths of the kinds that are created for machines.
    pub(crate) collections: Option<[String; 3]>,
    /// The host of the operators.
    pub(crate) host: Host,
    state: Mutex<State>,
}

/// The connection of one operator.
pub(crate) struct Connection {
    pub(crate) interceptor: Arc<Interceptor>,
    /// Its identity in the Lease.
    pub(crate) name: String,
    /// Disconnected while the operator cannot reach the server.
    pub(crate) switch: ConnectionSwitch,
}

/// A phase, the request that was sent in it, and the fault that it got, if any.
pub(crate) type Cell = (String, String, Option<Kind>);

#[derive(Debug, Default)]
pub(crate) struct State {
    writes: usize,
    reads: usize,
    events: usize,
    pub(crate) is_calm: bool,
    /// Until this instant, an operator may use an instant that is ahead: the one that its clock
    /// showed before it was corrected.
    pub(crate) doubtful_until: Timestamp,
    /// The instant of the last request, and the number of requests at it.
    burst: (Option<Timestamp>, usize),
    /// Watches that were ended, and the fault that determines how they are opened again.
    ended: BTreeMap<String, Kind>,
    /// The oldest resourceVersion that each watch was requested from.
    oldest: BTreeMap<String, String>,
    before: BTreeMap<String, (MachineSnapshot, Option<String>)>,
    /// The delays of slow responses to requests in flight.
    delays: BTreeMap<String, SignedDuration>,
    /// By machine, the state of its objects when slow responses were created. Operators may act on
    /// it.
    known: BTreeMap<String, Vec<KnownState>>,
    /// Overrides and calendars with the instants since which they are stored, in order.
    inputs: Vec<(Timestamp, Inputs)>,
    /// The usage of each machine.
    accounts: BTreeMap<String, Account>,
    /// Whether the operator's accounts may differ from now on: its host was suspended or its clock
    /// set, or nobody sees its Nodes, or a calendar was edited or deleted. The operator evaluates the
    /// time since its last status with the calendars as they are.
    pub(crate) accounts_differ: bool,
    departures: BTreeMap<String, Departures>,
    /// The host of each machine and its owner.
    pub(crate) hosts: BTreeMap<String, OwnedHost>,
    begun: Begun,
    /// The machines whose schedule could not be disabled at the first attempt.
    failed_disables: BTreeSet<String>,
    /// How many minutes a crashed operator stays down.
    pub(crate) downtime: u8,
    pub(crate) broken: Vec<(&'static str, String)>,
    pub(crate) checks: u64,
    pub(crate) injected: BTreeMap<Kind, u64>,
    pub(crate) cells: BTreeSet<Cell>,
    /// The number of served writes, by machine.
    pub(crate) served: BTreeMap<String, usize>,
    pub(crate) trace: Vec<String>,
    hasher: Hash,
}

#[derive(Debug)]
struct Hash(DefaultHasher);

impl Default for Hash {
    fn default() -> Self {
        // A `DefaultHasher` has fixed keys, unlike the hasher of a `HashMap`.
        Self(DefaultHasher::new())
    }
}

impl Interceptor {
    pub(crate) fn new(
        client: Client,
        paths: Vec<MachinePaths>,
        faults: Vec<Fault>,
        lease: Option<String>,
    ) -> Self {
        Self {
            client,
            paths,
            faults,
            lease,
            is_undisturbed: false,
            staleness: LONG_STALENESS,
            collections: None,
            host: Host::default(),
            state: Mutex::default(),
        }
    }

    /// The same without faults and with the right clock.
    pub(crate) fn undisturbed(self) -> Self {
        Self {
            is_undisturbed: true,
            staleness: SHORT_STALENESS,
            ..self
        }
    }

    /// The same for a fleet. `owned` are the paths of the objects of a machine without a name.
    pub(crate) fn of_fleet(self, owned: [String; 3]) -> Self {
        let collections = owned.map(|path| path.trim_end_matches('/').to_owned());
        Self {
            collections: Some(collections),
            ..self
        }
    }

    /// The holder of the Lease. `None` if there is a single operator.
    async fn leader(&self) -> Option<String> {
        let lease = self.client.get(self.lease.as_ref()?).await;
        let holder = lease.ok().map(|lease| {
            let holder = lease["spec"]["holderIdentity"].as_str();
            holder.unwrap_or_default().to_owned()
        });
        Some(holder.unwrap_or_default())
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hash of all recorded lines.
    pub(crate) fn hash(&self) -> u64 {
        self.state().hasher.0.finish()
    }

    pub(crate) fn note(&self, line: String) {
        let mut state = self.state();
        state.hasher.0.write(line.as_bytes());
        state.trace.push(line);
    }

    pub(crate) fn report_violation(&self, invariant: &'static str, how: String) {
        self.state().broken.push((invariant, how));
    }

    /// Records the current overrides and calendars.
    pub(crate) async fn note_inputs(&self, now: Timestamp) {
        let inputs = Inputs::of(&self.client).await;
        let mut state = self.state();
        if state.inputs.last().is_none_or(|(_, last)| *last != inputs) {
            state.inputs.push((now, inputs));
        }
    }

    /// Counts the usage of every machine up to now, before a user action changes the objects.
    pub(crate) async fn count(&self, now: Timestamp) {
        for paths in &self.paths {
            let snapshot = MachineSnapshot::of(&self.client, paths).await;
            let mut state = self.state();
            let account = state.accounts.entry(paths.name.clone()).or_default();
            account.count(&snapshot, now);
        }
        self.count_departures(now).await;
    }

    /// Notes which machines are there now.
    pub(crate) async fn count_departures(&self, now: Timestamp) {
        for paths in self.paths.iter().filter(|_| self.is_undisturbed) {
            let snapshot = MachineSnapshot::of(&self.client, paths).await;
            let mut state = self.state();
            let of = state.departures.entry(paths.name.clone()).or_default();
            of.count(&snapshot, now);
        }
    }

    /// When the machines must be counted, if nothing happens before.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        let state = self.state();
        state.departures.values().filter_map(Departures::due).min()
    }

    /// Compares the Warnings `LeftLate` with the departures of the machines.
    pub(crate) fn check_departures(&self) {
        let mut state = self.state();
        let differences: Vec<String> = state
            .departures
            .iter()
            .filter_map(|(name, of)| Some(format!("{name}: {}", of.difference()?)))
            .collect();
        for how in differences {
            state.broken.push((LEFT_LATE, how));
        }
    }

    /// Notes what the agent on the host of a machine sees. A machine that has not returned although
    /// nothing disturbs its operator is reported.
    pub(crate) async fn see(&self, name: &str, sight: Sight, now: Timestamp) {
        let paths = self.paths.iter().find(|paths| paths.name == name);
        let Some(paths) = paths else { return };
        let snapshot = MachineSnapshot::of(&self.client, paths).await;
        let mut state = self.state();
        let host = state.hosts.entry(name.to_owned()).or_default();
        host.see(sight, now);
        let is_overdue = host.is_overdue(&snapshot, now);
        state.checks += 1;
        if is_overdue && self.is_undisturbed {
            let how = format!("{name} at {now}");
            state
                .broken
                .push(("L10 a machine returns once its host is free", how));
        }
    }

    fn note_event(&self, request: &ProxiedRequest) {
        let event: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let name = event["regarding"]["name"].as_str().unwrap_or_default();
        if event["reason"] == "LeftLate"
            && let Some(of) = self.state().departures.get_mut(name)
        {
            of.report(event["note"].as_str().unwrap_or_default());
        }
    }

    /// Counts usage up to a write of the operator, and compares the operator's account with it.
    fn compare_account(
        &self,
        request: &ProxiedRequest,
        (name, after): (&str, &MachineSnapshot),
    ) {
        let now = request.event.at;
        let is_status = request.event.resource == "scheduledmachines"
            && request.event.subresource == "status";
        let mut state = self.state();
        if self.is_undisturbed {
            let of = state.departures.entry(name.to_owned()).or_default();
            of.count(after, now);
        }
        let account = state.accounts.entry(name.to_owned()).or_default();
        if !is_status {
            account.count(after, now);
            return;
        }
        let difference = account.compare(after, now);
        state.checks += 1;
        let is_judged = self.is_undisturbed && !state.accounts_differ;
        if let Some(how) = difference.filter(|_| is_judged) {
            let how = format!("{now} {name} {how}");
            state
                .broken
                .push(("the recorded usage is exact to the second", how));
        }
    }

    /// Overrides and calendars that a cache may still hold although they have changed.
    fn earlier_inputs(&self, now: Timestamp) -> Vec<Inputs> {
        let state = self.state();
        let since = now - self.staleness;
        let ended = state.inputs.windows(2);
        ended
            .filter(|pair| pair[1].0 >= since)
            .map(|pair| pair[0].1.clone())
            .collect()
    }

    /// Checks a write of an override by an operator, and counts usage up to it.
    async fn check_override(&self, request: &ProxiedRequest, code: u16) {
        if code >= 300 {
            return;
        }
        if request.event.verb == "delete" {
            self.check_override_deletion(request).await;
        }
        self.note_inputs(request.event.at).await;
        self.count(request.event.at).await;
    }

    /// Checks the deletion of an override: at least an hour after its end, or because the host of
    /// its reclaim is free, and by its uid.
    async fn check_override_deletion(&self, request: &ProxiedRequest) {
        let event = &request.event;
        let found = {
            let state = self.state();
            let inputs = state.inputs.last().map(|(_, inputs)| inputs);
            let mut all = inputs.iter().flat_map(|inputs| &inputs.overrides);
            all.find(|of| of["metadata"]["name"] == event.name.as_str())
                .cloned()
        };
        let found = found.unwrap_or_default();
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let end = instant(&found["spec"]["endTime"]);
        let shown = event.at + self.host.offset();
        let is_in_doubt = event.at < self.state().doubtful_until;
        let is_over =
            is_in_doubt || end.is_some_and(|end| end + OVERRIDE_RETENTION <= shown);
        let has_keep_annotation =
            found["metadata"]["annotations"][name::KEEP_ANNOTATION] == "true";
        let guards = &body["preconditions"];
        let is_same = guards["uid"] == found["metadata"]["uid"];
        self.state().checks += 1;
        // A return deletes it by its uid alone.
        let may_return = !is_over || guards["resourceVersion"].is_null();
        if may_return && is_same && reclaimed_at(&found).is_some() {
            self.check_return(&found, event.at).await;
            return;
        }
        let is_guarded = is_same && guards["resourceVersion"].is_string();
        if !is_over || has_keep_annotation || !is_guarded {
            let how = format!("{} {}", event.at, event.path);
            let invariant =
                "an override is deleted an hour after its end, unless it is kept";
            self.report_violation(invariant, how);
        }
    }

    /// Checks that the host of a machine is free whose override of a reclaim ends early.
    async fn check_return(&self, ended: &Value, now: Timestamp) {
        let name = ended["spec"]["targetRef"]["name"].as_str();
        let name = name.unwrap_or_default();
        let machine = self.client.get(&fivespot_testkit::machine_path(name)).await;
        let machine = machine.map(|found| Value::clone(&found));
        let machine = machine.unwrap_or_default();
        let mut state = self.state();
        let host = state.hosts.entry(name.to_owned()).or_default();
        if let Some(law) = host.end(&machine, now, self.is_undisturbed) {
            state.broken.push((law, format!("{name} at {now}")));
        }
    }

    /// The machine that a request concerns.
    fn paths_of(&self, request: &ProxiedRequest) -> Option<&MachinePaths> {
        let body: Value;
        let mut name = request.event.name.as_str();
        if name.is_empty() {
            body = serde_json::from_slice(&request.body).unwrap_or_default();
            name = body["metadata"]["name"].as_str().unwrap_or_default();
            return self.paths.iter().find(|paths| paths.name == name);
        }
        self.paths.iter().find(|paths| {
            let rest = name.strip_prefix(&paths.name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    }

    async fn phase_of(&self, request: &ProxiedRequest) -> String {
        let Some(paths) = self.paths_of(request) else {
            return "any".to_owned();
        };
        let path = fivespot_testkit::machine_path(&paths.name);
        let owner = self.client.get(&path).await;
        let phase = owner.ok().and_then(|owner| {
            let phase = owner["status"]["phase"].as_str();
            phase.map(str::to_owned)
        });
        phase.unwrap_or_else(|| "none".to_owned())
    }

    /// The fault of the next request of this kind, if any.
    fn fault_of(&self, request: &ProxiedRequest) -> Option<Fault> {
        let mut state = self.state();
        let is_counted = is_of_machines(request);
        let is_write = request.event.is_write();
        let number = if is_write { state.writes } else { state.reads };
        if is_counted {
            *(if is_write {
                &mut state.writes
            } else {
                &mut state.reads
            }) += 1;
        }
        if state.is_calm || !is_counted {
            return None;
        }
        let hits = |fault: &&Fault| {
            let first = match fault.target {
                Target::Write(first) if is_write => first,
                Target::Read(first) if !is_write => first,
                _ => return false,
            };
            (first..first + fault.times).contains(&number)
        };
        // Time does not advance while a list fills a cache, because its readers wait for it.
        let is_possible =
            |fault: &Fault| fault.delay().is_zero() || request.event.verb != "list";
        self.faults.iter().find(hits).copied().filter(is_possible)
    }

    /// Whether there are too many requests at one instant. Reported once.
    fn is_hot_loop(&self, request: &ProxiedRequest) -> bool {
        let mut state = self.state();
        if state.burst.0 != Some(request.event.at) {
            state.burst = (Some(request.event.at), 0);
        }
        state.burst.1 += 1;
        let most = if self.collections.is_some() {
            MAX_REQUESTS_OF_FLEET
        } else {
            MAX_REQUESTS_AT_ONE_INSTANT
        };
        if state.burst.1 == most {
            let how = format!("{most} requests at {}", request.event.at);
            state.broken.push(("S13 no hot loop", how));
        }
        state.burst.1 >= most
    }

    async fn decide_outcome(
        &self,
        request: &ProxiedRequest,
        key: &str,
    ) -> RequestOutcome {
        self.discard_known_state(request);
        if self.is_hot_loop(request) {
            return RequestOutcome::CrashBefore;
        }
        let fault = self.fault_of(request);
        let what = what(request);
        if request.event.is_write() && is_of_machines(request) {
            let phase = self.phase_of(request).await;
            let kind = fault.map(|fault| fault.kind);
            self.state().cells.insert((phase, what.clone(), kind));
        }
        if let Some(fault) = fault {
            let name = fault.kind.name();
            self.note(format!(
                "{} {name}: {what} {}",
                request.event.at, request.event.name
            ));
            let mut state = self.state();
            *state.injected.entry(fault.kind).or_default() += 1;
            state.failed_disables.extend(switched_off(request));
            state.downtime = if fault.minutes > 60 { fault.minutes } else { 0 };
            if !fault.delay().is_zero() {
                state.delays.insert(key.to_owned(), fault.delay());
            }
        }
        let outcome = fault
            .and_then(|fault| fault.kind.outcome())
            .unwrap_or(RequestOutcome::Pass);
        if fault.is_some_and(|fault| fault.kind == Kind::SlowResponse) {
            for _ in 0..YIELDS {
                tokio::task::yield_now().await;
            }
        }
        let is_checked = request.event.is_write() && is_of_machines(request);
        if let Some(paths) = self.paths_of(request).filter(|_| is_checked) {
            let snapshot = MachineSnapshot::of(&self.client, paths).await;
            let leader = self.leader().await;
            let before = (snapshot, leader);
            self.state()
                .before
                .insert(write_key(request, paths), before);
        }
        outcome
    }

    /// The operator observes a machine starting with a get of the ScheduledMachine. What earlier
    /// responses contained is then obsolete, unless the response has not arrived yet.
    fn discard_known_state(&self, request: &ProxiedRequest) {
        let event = &request.event;
        if event.verb == "get" && event.resource == "scheduledmachines" {
            let mut state = self.state();
            if let Some(known) = state.known.get_mut(&event.name) {
                known.retain(|known| known.arrives > event.at);
            }
        }
    }

    /// Records the objects as they are when a slow response is created.
    async fn record_known_state(&self, request: &ProxiedRequest, delay: SignedDuration) {
        let about = self.paths_of(request);
        for paths in &self.paths {
            if about.is_some_and(|about| about.name != paths.name) {
                continue;
            }
            let at = request.event.at;
            let known = KnownState {
                at,
                shown: at + self.host.offset(),
                arrives: at + delay,
                snapshot: MachineSnapshot::of(&self.client, paths).await,
            };
            let mut state = self.state();
            let all = state.known.entry(paths.name.clone()).or_default();
            all.push(known);
        }
    }

    async fn check_request(
        &self,
        request: &ProxiedRequest,
        code: u16,
        (by, key): (&str, &str),
    ) {
        self.check_write(request, code, by).await;
        let delay = self.state().delays.get(key).copied();
        if let Some(delay) = delay {
            self.record_known_state(request, delay).await;
        }
    }

    async fn check_write(&self, request: &ProxiedRequest, code: u16, by: &str) {
        let mut hasher = DefaultHasher::new();
        hasher.write(&request.body);
        let (event, body) = (&request.event, hasher.finish());
        self.note(format!(
            "{} {} {} {body:016x} {code}",
            event.at, event.verb, event.path
        ));
        if event.resource == "events" && code < 300 {
            self.note_event(request);
        }
        if !event.is_write() || !is_of_machines(request) {
            return;
        }
        if event.resource == "scheduleoverrides" {
            self.check_override(request, code).await;
            return;
        }
        if code < 300 {
            self.check_hosts(request).await;
        }
        let Some(paths) = self.paths_of(request) else {
            return;
        };
        let earlier = self.earlier_inputs(event.at);
        let after = MachineSnapshot::of(&self.client, paths).await;
        if code < 300 {
            self.compare_account(request, (&paths.name, &after));
        }
        let mut state = self.state();
        *state.served.entry(paths.name.clone()).or_default() += 1;
        let Some((before, leader)) = state.before.remove(&write_key(request, paths))
        else {
            return;
        };
        let case = Case {
            now: event.at,
            shown: event.at + self.host.offset(),
            is_in_doubt: event.at < state.doubtful_until,
            by,
            leader: leader.as_deref(),
            request,
            body: serde_json::from_slice(&request.body).unwrap_or_default(),
            code,
            before: &before,
            after: &after,
            has_failed_disable: state.failed_disables.contains(&paths.name),
        };
        let known = state.known.get(&paths.name).cloned().unwrap_or_default();
        for invariant in INVARIANTS {
            let Some(is_satisfied) = is_satisfied(invariant, &case, (&known, &earlier))
            else {
                continue;
            };
            state.checks += 1;
            if !is_satisfied {
                let how = format!("{} {} {}", event.at, what(request), event.path);
                state.broken.push((invariant.0, how));
            }
        }
    }
}

impl Interceptor {
    /// Checks what a write does to the hosts of a fleet.
    async fn check_hosts(&self, request: &ProxiedRequest) {
        let is_about_hosts = matches!(request.event.verb.as_str(), "create" | "delete");
        let Some(collections) = self.collections.as_ref().filter(|_| is_about_hosts)
        else {
            return;
        };
        let snapshot = FleetSnapshot::of(&self.client, collections).await;
        let broken = snapshot.violation(request, self.is_undisturbed);
        let event = &request.event;
        let mut state = self.state();
        state.checks += 1;
        *state.served.entry("hosts".to_owned()).or_default() += 1;
        let beginning = snapshot.beginning(request);
        let beginning = beginning.filter(|_| self.is_undisturbed);
        let is_too_many = beginning.is_some_and(|of| state.begun.exceeds(of, event.at));
        if let Some(invariant) = broken.or(is_too_many.then_some(fleet::RATE)) {
            let how = format!("{} {} {}", event.at, what(request), event.name);
            state.broken.push((invariant, how));
        }
    }
}

/// Identifies a request for a machine. Several may be in flight.
fn write_key(request: &ProxiedRequest, paths: &MachinePaths) -> String {
    format!("{} {}", paths.name, request.event.path)
}

/// The verb and the resource of a request, without names.
fn what(request: &ProxiedRequest) -> String {
    let event = &request.event;
    match event.subresource.as_str() {
        "" => format!("{} {}", event.verb, event.resource),
        part => format!("{} {}/{part}", event.verb, event.resource),
    }
}

/// The machine that a request disables or stops.
fn switched_off(request: &ProxiedRequest) -> Option<String> {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let spec = &body["spec"];
    match what(request).as_str() {
        "patch scheduledmachines" if spec["schedule"]["enabled"] == false => {
            Some(request.event.name.clone())
        }
        "create scheduleoverrides" => {
            spec["targetRef"]["name"].as_str().map(str::to_owned)
        }
        _ => None,
    }
}

/// Whether a request concerns the objects of machines or their hosts, not Events or other Leases.
fn is_of_machines(request: &ProxiedRequest) -> bool {
    !["events", "leases"].contains(&request.event.resource.as_str())
        || fleet::is_about_claims(request)
}

impl Connection {
    /// Identifies a watch of this operator, also after it is opened again.
    fn key(&self, request: &ProxiedRequest) -> String {
        let selects = request
            .query
            .split('&')
            .find(|word| word.contains("Selector="));
        let (path, selects) = (&request.event.path, selects.unwrap_or_default());
        format!("{} {path}?{selects}", self.name)
    }

    /// Identifies a request of this operator that is in flight.
    fn request_key(&self, request: &ProxiedRequest) -> String {
        let event = &request.event;
        format!(
            "{} {} {}?{}",
            self.name, event.verb, event.path, request.query
        )
    }
}

impl Proxy for Connection {
    fn request<'a>(
        &'a self,
        request: &'a ProxiedRequest,
    ) -> Pin<Box<dyn Future<Output = RequestOutcome> + Send + 'a>> {
        if self.switch.is_disconnected() {
            return self.switch.request(request);
        }
        Box::pin(async move {
            let key = self.request_key(request);
            self.interceptor.decide_outcome(request, &key).await
        })
    }

    fn served<'a>(
        &'a self,
        request: &'a ProxiedRequest,
        code: u16,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            let key = self.request_key(request);
            self.interceptor
                .check_request(request, code, (&self.name, &key))
                .await;
        })
    }

    fn delay(&self, request: &ProxiedRequest) -> SignedDuration {
        let delay = self
            .interceptor
            .state()
            .delays
            .remove(&self.request_key(request));
        delay.unwrap_or_default()
    }

    fn arrives(&self, _: &ProxiedRequest) -> bool {
        !self.switch.is_disconnected()
    }

    fn watch_start(&self, request: &ProxiedRequest) -> WatchStart {
        if self.switch.is_disconnected() {
            return self.switch.watch_start(request);
        }
        let mut state = self.interceptor.state();
        let version = request
            .query
            .split('&')
            .find_map(|word| word.strip_prefix("resourceVersion="));
        let key = self.key(request);
        if let Some(version) = version {
            let oldest = state.oldest.entry(key.clone());
            oldest.or_insert_with(|| version.to_owned());
        }
        let kind = state.ended.remove(&key).filter(|_| !state.is_calm);
        let old = state.oldest.get(&key).cloned();
        let watch_start = kind.and_then(|kind| kind.watch_start(old.as_deref()));
        watch_start.unwrap_or(WatchStart::Pass)
    }

    fn event(&self, request: &ProxiedRequest, line: &[u8]) -> Delivery {
        if self.switch.is_disconnected() {
            return self.switch.event(request, line);
        }
        let mut state = self.interceptor.state();
        let number = state.events;
        if !is_of_machines(request) {
            return Delivery::Pass;
        }
        state.events += 1;
        if state.is_calm {
            return Delivery::Pass;
        }
        let hits = |fault: &&Fault| match fault.target {
            Target::Event(first) => (first..first + fault.times).contains(&number),
            _ => false,
        };
        let Some(fault) = self.interceptor.faults.iter().find(hits) else {
            return Delivery::Pass;
        };
        let delivery = fault.kind.delivery(fault.minutes);
        *state.injected.entry(fault.kind).or_default() += 1;
        let cell = ("any".to_owned(), what(request), Some(fault.kind));
        state.cells.insert(cell);
        if fault.kind.watch_start(Some("0")).is_some() {
            state.ended.insert(self.key(request), fault.kind);
        }
        drop(state);
        self.interceptor.note(format!(
            "{} event {number}: {}",
            fault.kind.name(),
            self.key(request)
        ));
        delivery.unwrap_or(Delivery::Pass)
    }
}

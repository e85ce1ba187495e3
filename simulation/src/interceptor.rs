//! A proxy between the operators and the server: injects faults, checks writes, and records events.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::hash::{DefaultHasher, Hasher as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fivespot_api::name;
use fivespot_apiserver::Client;
use fivespot_testkit::{Asked, Delivery, Fate, Gate, Host, Opening, Proxy};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::account::Account;
use crate::fault::{Fault, Kind, Target};
use crate::law::{Case, Known, LAWS, is_kept};
use crate::seen::{Places, Seen, instant};
use crate::wanted::Inputs;

/// The number of requests at one instant that is reported as a hot loop.
const HOT: usize = 3_000;

/// How many times a slow request yields to other tasks before it is sent.
const TURNS: usize = 60;

/// How stale a cache may be if watch events may be delayed.
const STALE: SignedDuration = SignedDuration::from_mins(130);

/// How stale a cache may be otherwise.
const FRESH: SignedDuration = SignedDuration::from_secs(1);

/// How long an override is kept after its end.
const KEPT: SignedDuration = SignedDuration::from_hours(1);

/// The shared state of the connections between operators and server.
pub(crate) struct Interceptor {
    client: Client,
    places: Vec<Places>,
    faults: Vec<Fault>,
    /// The path of the Lease for leader election. `None` for a single operator.
    lease: Option<String>,
    /// Whether no fault is injected and the clock of the operators is right.
    is_undisturbed: bool,
    /// How long caches of overrides and calendars may be stale after a change.
    staleness: SignedDuration,
    /// The host of the operators.
    pub(crate) host: Host,
    state: Mutex<State>,
}

/// The connection of one operator.
pub(crate) struct Connection {
    pub(crate) interceptor: Arc<Interceptor>,
    /// Its identity in the Lease.
    pub(crate) name: String,
    /// Shut while the operator cannot reach the server.
    pub(crate) gate: Gate,
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
    before: BTreeMap<String, (Seen, Option<String>)>,
    /// The delays of slow responses to requests in flight.
    delays: BTreeMap<String, SignedDuration>,
    /// By machine, the state of its objects when slow responses were created. Operators may act on
    /// it.
    known: BTreeMap<String, Vec<Known>>,
    /// Overrides and calendars with the instants since which they are stored, in order.
    inputs: Vec<(Timestamp, Inputs)>,
    /// The usage of each machine.
    accounts: BTreeMap<String, Account>,
    /// The machines whose schedule could not be disabled at the first attempt.
    kept_on: BTreeSet<String>,
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
        places: Vec<Places>,
        faults: Vec<Fault>,
        lease: Option<String>,
    ) -> Self {
        Self {
            client,
            places,
            faults,
            lease,
            is_undisturbed: false,
            staleness: STALE,
            host: Host::default(),
            state: Mutex::default(),
        }
    }

    /// The same without faults and with the right clock.
    pub(crate) fn undisturbed(self) -> Self {
        Self {
            is_undisturbed: true,
            staleness: FRESH,
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

    pub(crate) fn breaks(&self, law: &'static str, how: String) {
        self.state().broken.push((law, how));
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
        for places in &self.places {
            let seen = Seen::of(&self.client, places).await;
            let mut state = self.state();
            let account = state.accounts.entry(places.name.clone()).or_default();
            account.count(&seen, now);
        }
    }

    /// Counts usage up to a write of the operator, and compares the operator's account with it.
    fn compare_account(&self, asked: &Asked, (name, after): (&str, &Seen)) {
        let now = asked.event.at;
        let is_status = asked.event.resource == "scheduledmachines"
            && asked.event.subresource == "status";
        let mut state = self.state();
        let account = state.accounts.entry(name.to_owned()).or_default();
        if !is_status {
            account.count(after, now);
            return;
        }
        let difference = account.compare(after, now);
        state.checks += 1;
        if let Some(how) = difference.filter(|_| self.is_undisturbed) {
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

    /// Checks the deletion of an override: at least an hour after its end, and by its uid.
    async fn judge_override(&self, asked: &Asked, code: u16) {
        let event = &asked.event;
        if event.verb != "delete" || code >= 300 {
            return;
        }
        let found = {
            let state = self.state();
            let inputs = state.inputs.last().map(|(_, inputs)| inputs);
            let mut all = inputs.iter().flat_map(|inputs| &inputs.overrides);
            all.find(|of| of["metadata"]["name"] == event.name.as_str())
                .cloned()
        };
        let found = found.unwrap_or_default();
        let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
        let end = instant(&found["spec"]["endTime"]);
        let shown = event.at + self.host.offset();
        let is_in_doubt = event.at < self.state().doubtful_until;
        let is_over = is_in_doubt || end.is_some_and(|end| end + KEPT <= shown);
        let is_kept = found["metadata"]["annotations"][name::KEEP_ANNOTATION] == "true";
        let guards = &body["preconditions"];
        let is_guarded = guards["uid"] == found["metadata"]["uid"]
            && guards["resourceVersion"].is_string();
        self.state().checks += 1;
        if !is_over || is_kept || !is_guarded {
            let how = format!("{} {}", event.at, event.path);
            let law = "an override is deleted an hour after its end, unless it is kept";
            self.breaks(law, how);
        }
        self.note_inputs(event.at).await;
    }

    /// The machine that a request concerns.
    fn places_of(&self, asked: &Asked) -> Option<&Places> {
        let body: Value;
        let mut name = asked.event.name.as_str();
        if name.is_empty() {
            body = serde_json::from_slice(&asked.body).unwrap_or_default();
            name = body["metadata"]["name"].as_str().unwrap_or_default();
            return self.places.iter().find(|places| places.name == name);
        }
        self.places.iter().find(|places| {
            let rest = name.strip_prefix(&places.name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    }

    async fn phase_of(&self, asked: &Asked) -> String {
        let Some(places) = self.places_of(asked) else {
            return "any".to_owned();
        };
        let path = fivespot_testkit::machine_path(&places.name);
        let owner = self.client.get(&path).await;
        let phase = owner.ok().and_then(|owner| {
            let phase = owner["status"]["phase"].as_str();
            phase.map(str::to_owned)
        });
        phase.unwrap_or_else(|| "none".to_owned())
    }

    /// The fault of the next request of this kind, if any.
    fn fault_of(&self, asked: &Asked) -> Option<Fault> {
        let mut state = self.state();
        let is_counted = is_of_machines(asked);
        let is_write = asked.event.is_write();
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
            |fault: &Fault| fault.delay().is_zero() || asked.event.verb != "list";
        self.faults.iter().find(hits).copied().filter(is_possible)
    }

    /// Whether there are too many requests at one instant. Reported once.
    fn is_hot(&self, asked: &Asked) -> bool {
        let mut state = self.state();
        if state.burst.0 != Some(asked.event.at) {
            state.burst = (Some(asked.event.at), 0);
        }
        state.burst.1 += 1;
        if state.burst.1 == HOT {
            let how = format!("{HOT} requests at {}", asked.event.at);
            state.broken.push(("S13 no hot loop", how));
        }
        state.burst.1 >= HOT
    }

    async fn meet(&self, asked: &Asked, key: &str) -> Fate {
        self.forget(asked);
        if self.is_hot(asked) {
            return Fate::CrashBefore;
        }
        let fault = self.fault_of(asked);
        let what = what(asked);
        if asked.event.is_write() && is_of_machines(asked) {
            let phase = self.phase_of(asked).await;
            let kind = fault.map(|fault| fault.kind);
            self.state().cells.insert((phase, what.clone(), kind));
        }
        if let Some(fault) = fault {
            let name = fault.kind.name();
            self.note(format!(
                "{} {name}: {what} {}",
                asked.event.at, asked.event.name
            ));
            let mut state = self.state();
            *state.injected.entry(fault.kind).or_default() += 1;
            if what == "patch scheduledmachines" && switches_off(asked) {
                state.kept_on.insert(asked.event.name.clone());
            }
            state.downtime = if fault.minutes > 60 { fault.minutes } else { 0 };
            if !fault.delay().is_zero() {
                state.delays.insert(key.to_owned(), fault.delay());
            }
        }
        let fate = fault
            .and_then(|fault| fault.kind.fate())
            .unwrap_or(Fate::Pass);
        if fault.is_some_and(|fault| fault.kind == Kind::SlowResponse) {
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
        }
        let is_judged = asked.event.is_write() && is_of_machines(asked);
        if let Some(places) = self.places_of(asked).filter(|_| is_judged) {
            let seen = Seen::of(&self.client, places).await;
            let leader = self.leader().await;
            let before = (seen, leader);
            self.state().before.insert(place_of(asked, places), before);
        }
        fate
    }

    /// The operator observes a machine starting with a get of the ScheduledMachine. What earlier
    /// responses contained is then obsolete, unless the response has not arrived yet.
    fn forget(&self, asked: &Asked) {
        let event = &asked.event;
        if event.verb == "get" && event.resource == "scheduledmachines" {
            let mut state = self.state();
            if let Some(known) = state.known.get_mut(&event.name) {
                known.retain(|known| known.arrives > event.at);
            }
        }
    }

    /// Records the objects as they are when a slow response is created.
    async fn remember(&self, asked: &Asked, delay: SignedDuration) {
        let about = self.places_of(asked);
        for places in &self.places {
            if about.is_some_and(|about| about.name != places.name) {
                continue;
            }
            let at = asked.event.at;
            let known = Known {
                at,
                shown: at + self.host.offset(),
                arrives: at + delay,
                seen: Seen::of(&self.client, places).await,
            };
            let mut state = self.state();
            let all = state.known.entry(places.name.clone()).or_default();
            all.push(known);
        }
    }

    async fn judge(&self, asked: &Asked, code: u16, (by, key): (&str, &str)) {
        self.judge_write(asked, code, by).await;
        let delay = self.state().delays.get(key).copied();
        if let Some(delay) = delay {
            self.remember(asked, delay).await;
        }
    }

    async fn judge_write(&self, asked: &Asked, code: u16, by: &str) {
        let mut hasher = DefaultHasher::new();
        hasher.write(&asked.body);
        let (event, body) = (&asked.event, hasher.finish());
        self.note(format!(
            "{} {} {} {body:016x} {code}",
            event.at, event.verb, event.path
        ));
        if !event.is_write() || !is_of_machines(asked) {
            return;
        }
        if event.resource == "scheduleoverrides" {
            self.judge_override(asked, code).await;
            return;
        }
        let Some(places) = self.places_of(asked) else {
            return;
        };
        let earlier = self.earlier_inputs(event.at);
        let after = Seen::of(&self.client, places).await;
        if code < 300 {
            self.compare_account(asked, (&places.name, &after));
        }
        let mut state = self.state();
        *state.served.entry(places.name.clone()).or_default() += 1;
        let Some((before, leader)) = state.before.remove(&place_of(asked, places)) else {
            return;
        };
        let case = Case {
            now: event.at,
            shown: event.at + self.host.offset(),
            is_in_doubt: event.at < state.doubtful_until,
            by,
            leader: leader.as_deref(),
            asked,
            body: serde_json::from_slice(&asked.body).unwrap_or_default(),
            code,
            before: &before,
            after: &after,
            is_kept_on: state.kept_on.contains(&places.name),
        };
        let known = state.known.get(&places.name).cloned().unwrap_or_default();
        for law in LAWS {
            let Some(is_kept) = is_kept(law, &case, (&known, &earlier)) else {
                continue;
            };
            state.checks += 1;
            if !is_kept {
                let how = format!("{} {} {}", event.at, what(asked), event.path);
                state.broken.push((law.0, how));
            }
        }
    }
}

/// Identifies a request for a machine. Several may be in flight.
fn place_of(asked: &Asked, places: &Places) -> String {
    format!("{} {}", places.name, asked.event.path)
}

/// The verb and the resource of a request, without names.
fn what(asked: &Asked) -> String {
    let event = &asked.event;
    match event.subresource.as_str() {
        "" => format!("{} {}", event.verb, event.resource),
        part => format!("{} {}/{part}", event.verb, event.resource),
    }
}

/// Whether a patch disables a schedule.
fn switches_off(asked: &Asked) -> bool {
    let body: serde_json::Value = serde_json::from_slice(&asked.body).unwrap_or_default();
    body["spec"]["schedule"]["enabled"] == false
}

/// Whether a request concerns the objects of machines, not Events or Leases.
fn is_of_machines(asked: &Asked) -> bool {
    !["events", "leases"].contains(&asked.event.resource.as_str())
}

impl Connection {
    /// Identifies a watch of this operator, also after it is opened again.
    fn key(&self, asked: &Asked) -> String {
        let selects = asked
            .query
            .split('&')
            .find(|word| word.contains("Selector="));
        let (path, selects) = (&asked.event.path, selects.unwrap_or_default());
        format!("{} {path}?{selects}", self.name)
    }

    /// Identifies a request of this operator that is in flight.
    fn request_key(&self, asked: &Asked) -> String {
        let event = &asked.event;
        format!(
            "{} {} {}?{}",
            self.name, event.verb, event.path, asked.query
        )
    }
}

impl Proxy for Connection {
    fn request<'a>(
        &'a self,
        asked: &'a Asked,
    ) -> Pin<Box<dyn Future<Output = Fate> + Send + 'a>> {
        if self.gate.is_shut() {
            return self.gate.request(asked);
        }
        Box::pin(async move {
            let key = self.request_key(asked);
            self.interceptor.meet(asked, &key).await
        })
    }

    fn served<'a>(
        &'a self,
        asked: &'a Asked,
        code: u16,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            let key = self.request_key(asked);
            self.interceptor
                .judge(asked, code, (&self.name, &key))
                .await;
        })
    }

    fn delay(&self, asked: &Asked) -> SignedDuration {
        let delay = self
            .interceptor
            .state()
            .delays
            .remove(&self.request_key(asked));
        delay.unwrap_or_default()
    }

    fn arrives(&self, _: &Asked) -> bool {
        !self.gate.is_shut()
    }

    fn opening(&self, asked: &Asked) -> Opening {
        if self.gate.is_shut() {
            return self.gate.opening(asked);
        }
        let mut state = self.interceptor.state();
        let version = asked
            .query
            .split('&')
            .find_map(|word| word.strip_prefix("resourceVersion="));
        let key = self.key(asked);
        if let Some(version) = version {
            let oldest = state.oldest.entry(key.clone());
            oldest.or_insert_with(|| version.to_owned());
        }
        let kind = state.ended.remove(&key).filter(|_| !state.is_calm);
        let old = state.oldest.get(&key).cloned();
        let opening = kind.and_then(|kind| kind.opening(old.as_deref()));
        opening.unwrap_or(Opening::Pass)
    }

    fn event(&self, asked: &Asked, line: &[u8]) -> Delivery {
        if self.gate.is_shut() {
            return self.gate.event(asked, line);
        }
        let mut state = self.interceptor.state();
        let number = state.events;
        if !is_of_machines(asked) {
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
        let cell = ("any".to_owned(), what(asked), Some(fault.kind));
        state.cells.insert(cell);
        if fault.kind.opening(Some("0")).is_some() {
            state.ended.insert(self.key(asked), fault.kind);
        }
        drop(state);
        self.interceptor.note(format!(
            "{} event {number}: {}",
            fault.kind.name(),
            self.key(asked)
        ));
        delivery.unwrap_or(Delivery::Pass)
    }
}

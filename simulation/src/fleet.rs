//! A fleet: many machines of a few classes, more than the classes have hosts.
//!
//! The invariants are about hosts, and about how many machines of a class begin within a minute. Each is checked at the write that could break it, on the objects that
//! the server has then. What becomes of one machine with all that users and clocks do to it is checked in
//! the other scenarios.

use std::collections::BTreeMap;
use std::sync::Arc;

use fivespot_api::host_claim::HostClaim;
use fivespot_api::name;
use fivespot_testkit::{
    Cluster, ProxiedRequest, machine_path, node_path, scheduled_machine,
};
use jiff::{SignedDuration, Timestamp};
use kubemu_apiserver::{Client, Selector};
use serde_json::{Value, json};

use crate::effective_schedule::{EffectiveSchedule, Inputs};
use crate::random::Random;

/// How many classes and machines a fleet has.
const CLASSES: usize = 20;
const MACHINES: usize = 200;

/// The windows of the machines, which overlap. In UTC, on every day.
const HOURS: [&str; 5] = ["9-11", "10-13", "12-16", "15-18", "20-23"];

/// The hours of a day at which such windows open or close.
const EDGES: [i64; 9] = [9, 10, 12, 14, 15, 17, 19, 20, 24];

const CLASS_PATH: &str = "/apis/5spot.finos.org/v1alpha1/scheduledmachineclasses";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/5spot-system/leases";

/// The invariants.
const ONE_MACHINE: &str = "no two machines have one host";
const RECORDED: &str = "nothing is created before its host is claimed and recorded";
const GIVEN_BACK: &str = "a host is given back once its three objects are gone";
const PRIORITY: &str = "a host that becomes free goes to the highest priority";
pub(crate) const RATE: &str =
    "no more machines of a class begin within a minute than it says";
const AT_REST: &str =
    "every host is used that a machine waits for, and no other one is claimed";

/// The classes and machines of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    pub(crate) classes: Vec<Value>,
    pub(crate) machines: Vec<Value>,
}

/// An action of a user or of the owner of a host, on the machine or the class with that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FleetAction {
    Kill(usize),
    Revive(usize),
    Delete(usize),
    Reclaim(usize),
    Priority(usize, u8),
    RemoveHost(usize),
    AddHost(usize),
    DeleteClass(usize),
}

impl Fleet {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let classes = (0..CLASSES).map(|at| class(random, at)).collect();
        let machines = (0..MACHINES).map(|at| machine(random, at)).collect();
        Self { classes, machines }
    }

    /// The name of a machine, or of a class.
    fn name(of: &[Value], at: usize) -> &str {
        let found = of.get(at).map(|object| &object["metadata"]["name"]);
        found.and_then(Value::as_str).unwrap_or_default()
    }
}

impl FleetAction {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let machine = random.below(MACHINES);
        let class = random.below(CLASSES);
        match random.below(16) {
            0..=2 => Self::Kill(machine),
            3 => Self::Revive(machine),
            4..=6 => Self::Delete(machine),
            7..=8 => Self::Reclaim(machine),
            9..=10 => {
                Self::Priority(machine, u8::try_from(random.below(200)).unwrap_or(0))
            }
            11..=12 => Self::RemoveHost(class),
            13..=14 => Self::AddHost(class),
            _ => Self::DeleteClass(class),
        }
    }

    /// An instant of the day, most often soon after an edge.
    pub(crate) fn when(random: &mut Random, begins: Timestamp) -> Timestamp {
        let below = |random: &mut Random, bound: i64| {
            let drawn = random.below(usize::try_from(bound).unwrap_or(0));
            i64::try_from(drawn).unwrap_or(0)
        };
        let midnight = begins.as_second() - begins.as_second() % (24 * 3_600);
        let seconds = if random.chance(75) {
            let edge = random.pick(&EDGES).unwrap_or(9);
            midnight + edge * 3_600 + below(random, 600)
        } else {
            begins.as_second() + below(random, 24 * 3_600)
        };
        Timestamp::from_second(seconds).unwrap_or(begins)
    }

    /// What it does, without on whom.
    pub(crate) fn name(self) -> String {
        let text = format!("{self:?}");
        text.split('(').next().unwrap_or_default().to_owned()
    }

    /// Performs the action. An action that is not possible at that moment is skipped.
    pub(crate) async fn perform(self, cluster: &Cluster, fleet: &Fleet, now: Timestamp) {
        let machine = |at| machine_path(Fleet::name(&fleet.machines, at));
        let class = |at| format!("{CLASS_PATH}/{}", Fleet::name(&fleet.classes, at));
        let patch = async |path: String, patch: Value| {
            if cluster.get(&path).await.is_some() {
                let _ = cluster.try_patch(&path, &patch).await;
            }
        };
        match self {
            Self::Kill(at) => {
                patch(machine(at), json!({"spec": {"killSwitch": true}})).await;
            }
            Self::Revive(at) => {
                patch(machine(at), json!({"spec": {"killSwitch": false}})).await;
            }
            Self::Priority(at, priority) => {
                patch(machine(at), json!({"spec": {"priority": priority}})).await;
            }
            Self::Reclaim(at) => {
                let request = json!({"metadata": {"annotations": {
                    name::RECLAIM_REQUESTED_ANNOTATION: fivespot_api::reclaim::REQUESTED,
                    name::RECLAIM_REASON_ANNOTATION: "process-match: steam",
                    name::RECLAIM_REQUESTED_AT_ANNOTATION: now.to_string(),
                }}});
                let node = node_path(Fleet::name(&fleet.machines, at));
                patch(node, request).await;
            }
            Self::Delete(at) => delete(cluster, &machine(at)).await,
            Self::DeleteClass(at) => delete(cluster, &class(at)).await,
            Self::RemoveHost(at) => edit_hosts(cluster, &class(at), false).await,
            Self::AddHost(at) => edit_hosts(cluster, &class(at), true).await,
        }
    }
}

async fn delete(cluster: &Cluster, path: &str) {
    if cluster.get(path).await.is_some() {
        cluster.delete(path).await;
    }
}

/// Removes the first host of a class, but not its only one, or adds the first that it does not have.
async fn edit_hosts(cluster: &Cluster, path: &str, adds: bool) {
    let Some(class) = cluster.get(path).await else {
        return;
    };
    let mut hosts = class["spec"]["hosts"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let name = class["metadata"]["name"].as_str().unwrap_or_default();
    if adds {
        let is_new = |new: &Value| hosts.iter().all(|of| of["name"] != new["name"]);
        let new = (0..=hosts.len())
            .map(|number| host(name, number))
            .find(is_new);
        hosts.extend(new);
    } else if hosts.len() > 1 {
        hosts.remove(0);
    }
    let _ = cluster
        .try_patch(path, &json!({"spec": {"hosts": hosts}}))
        .await;
}

fn host(class: &str, number: usize) -> Value {
    let name = format!("{class}-{number}");
    json!({"name": name, "infrastructure": {"address": format!("{name}.example")}})
}

fn class(random: &mut Random, at: usize) -> Value {
    let name = format!("desks-{at}");
    let hosts: Vec<Value> = (0..2 + random.below(3))
        .map(|number| host(&name, number))
        .collect();
    let spec = &scheduled_machine("any")["spec"];
    let grace = random.pick(&["0s", "30s", "2m"]);
    let mut class = json!({
        "apiVersion": name::API_VERSION, "kind": name::CLASS_KIND,
        "metadata": {"name": name},
        "spec": {
            "clusterNames": [spec["clusterName"]],
            "bootstrapSpec": spec["bootstrapSpec"],
            "infrastructureSpec": spec["infrastructureSpec"],
            "gracefulShutdownTimeout": grace,
            "hosts": hosts,
        },
    });
    if at.is_multiple_of(2) {
        class["spec"]["startsPerMinute"] = json!(1 + random.below(2));
    }
    class
}

fn machine(random: &mut Random, at: usize) -> Value {
    let mut machine = scheduled_machine(&format!("machine-{at:03}"));
    machine["spec"] = json!({
        "schedule": {
            "daysOfWeek": ["mon-sun"], "hoursOfDay": [random.pick(&HOURS)],
            "timezone": "UTC",
        },
        "classRef": {"name": format!("desks-{}", at % CLASSES)},
        "priority": random.below(200),
    });
    machine
}

/// A machine that begins.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Beginning {
    class: String,
    /// How many of its class may begin within a minute.
    most: usize,
}

/// By class, the seconds at which machines have begun.
#[derive(Debug, Default)]
pub(crate) struct Begun(BTreeMap<String, Vec<i64>>);

impl Begun {
    /// Whether with this one more have begun within a minute than may.
    pub(crate) fn exceeds(&mut self, of: Beginning, at: Timestamp) -> bool {
        let begun = self.0.entry(of.class).or_default();
        begun.push(at.as_second());
        let last = begun.iter().rev().take(of.most.saturating_add(1));
        last.filter(|other| at.as_second() - **other < 60).count() > of.most
    }
}

/// The objects of a fleet on the server.
pub(crate) struct FleetSnapshot {
    machines: BTreeMap<String, Arc<Value>>,
    classes: BTreeMap<String, Arc<Value>>,
    /// By host.
    claims: BTreeMap<String, HostClaim>,
    /// The objects that were created for machines.
    owned: Vec<Arc<Value>>,
}

impl FleetSnapshot {
    /// `collections` are the paths of the kinds that are created for machines.
    pub(crate) async fn of(client: &Client, collections: &[String; 3]) -> Self {
        let list = async |path: &str| {
            let found = client.list(path, &Selector::default()).await;
            found.map(|found| found.items).unwrap_or_default()
        };
        let named = |all: Vec<Arc<Value>>| {
            let named = all.into_iter().filter_map(|object| {
                let name = object["metadata"]["name"].as_str()?.to_owned();
                Some((name, object))
            });
            named.collect()
        };
        let machines = machine_path("");
        let mut owned = Vec::new();
        for collection in collections {
            owned.extend(list(collection).await);
        }
        let leases = list(LEASES).await;
        let claims = leases.iter().filter_map(|lease| HostClaim::read(lease));
        Self {
            machines: named(list(machines.trim_end_matches('/')).await),
            classes: named(list(CLASS_PATH).await),
            claims: claims.map(|claim| (claim.host.clone(), claim)).collect(),
            owned,
        }
    }

    /// The invariant that a write breaks which the server has accepted. `self` is the state after it.
    pub(crate) fn violation(
        &self,
        request: &ProxiedRequest,
        is_undisturbed: bool,
    ) -> Option<&'static str> {
        let event = &request.event;
        match (event.verb.as_str(), event.resource.as_str()) {
            ("create", "machines" | "remotemachines" | "k0sworkerconfigs") => {
                let made = serde_json::from_slice(&request.body).unwrap_or_default();
                self.violation_of_creation(&made)
            }
            ("create", "leases") => {
                let lease: Value = serde_json::from_slice(&request.body).ok()?;
                let claim = HostClaim::read(&lease)?;
                let is_overtaking = is_undisturbed && self.overtakes(&claim, event.at);
                is_overtaking.then_some(PRIORITY)
            }
            ("delete", "leases") => {
                let (_, host) = name::claimed_host(&event.name)?;
                let mut owned = self.owned.iter();
                let is_used = owned.any(|object| host_of(object) == Some(host));
                is_used.then_some(GIVEN_BACK)
            }
            _ => None,
        }
    }

    fn violation_of_creation(&self, made: &Value) -> Option<&'static str> {
        let (host, maker) = (host_of(made)?, maker(made));
        let machine = self.machines.get(maker?)?;
        let mut owned = self.owned.iter();
        let is_others = |object: &Arc<Value>| {
            host_of(object) == Some(host) && self::maker(object) != maker
        };
        if owned.any(is_others) {
            return Some(ONE_MACHINE);
        }
        let claim = self.claims.get(host);
        let is_claimed =
            claim.is_some_and(|of| machine["metadata"]["uid"] == of.holder.uid.as_str());
        let is_recorded = machine["status"]["host"] == host;
        (!is_claimed || !is_recorded).then_some(RECORDED)
    }

    /// The machine for which a write has created the first object, if the class says how many may
    /// begin. `self` is the state after it.
    pub(crate) fn beginning(&self, request: &ProxiedRequest) -> Option<Beginning> {
        if request.event.verb != "create" {
            return None;
        }
        let made: Value = serde_json::from_slice(&request.body).ok()?;
        let maker = maker(&made).filter(|_| host_of(&made).is_some())?;
        let mut owned = self
            .owned
            .iter()
            .filter(|of| self::maker(of) == Some(maker));
        let is_first = owned.next().is_some() && owned.next().is_none();
        let class = &self.machines.get(maker)?["spec"]["classRef"]["name"];
        let class = class.as_str().filter(|_| is_first)?;
        let most = self.classes.get(class)?["spec"]["startsPerMinute"].as_u64()?;
        Some(Beginning {
            class: class.to_owned(),
            most: usize::try_from(most).unwrap_or(usize::MAX),
        })
    }

    /// Whether fewer hosts are left after a claim than machines of a higher priority wait for one.
    fn overtakes(&self, claim: &HostClaim, now: Timestamp) -> bool {
        let Some(own) = self.machines.get(&claim.holder.name) else {
            return false;
        };
        let is_ahead = |machine: &Arc<Value>| {
            machine["spec"]["classRef"]["name"] == claim.class.as_str()
                && machine["spec"]["priority"].as_u64() > own["spec"]["priority"].as_u64()
                && machine["metadata"]["generation"]
                    == machine["status"]["observedGeneration"]
                && reason(machine) == "NoHostFree"
                && is_needed(machine, now)
                && !self.has_claim(machine)
        };
        let ahead = self.machines.values().filter(|it| is_ahead(it)).count();
        self.free_hosts(&claim.class) < ahead
    }

    fn has_claim(&self, machine: &Value) -> bool {
        let mut claims = self.claims.values();
        claims.any(|of| machine["metadata"]["uid"] == of.holder.uid.as_str())
    }

    fn free_hosts(&self, class: &str) -> usize {
        let class = self.classes.get(class);
        let hosts = class.and_then(|class| class["spec"]["hosts"].as_array());
        let free = hosts.into_iter().flatten().filter(|host| {
            let name = host["name"].as_str().unwrap_or_default();
            !self.claims.contains_key(name)
        });
        free.count()
    }

    /// What is not as it should be in a fleet at rest: the invariant, and where.
    pub(crate) fn complaints(&self, now: Timestamp) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        for (host, claim) in &self.claims {
            let holder = self.machines.get(&claim.holder.name);
            let is_used = holder.is_some_and(|machine| {
                machine["status"]["host"] == host.as_str()
                    && machine["metadata"]["uid"] == claim.holder.uid.as_str()
            });
            if !is_used {
                let of = &claim.holder.name;
                found.push((AT_REST, format!("{host} is claimed by {of} and not used")));
            }
        }
        for (name, machine) in &self.machines {
            if let Some(how) = self.complaint(name, machine, now) {
                let (phase, reason) = (&machine["status"]["phase"], reason(machine));
                found.push((AT_REST, format!("{name}: {how}; it is {phase} {reason}")));
            }
        }
        found
    }

    fn complaint(
        &self,
        name: &str,
        machine: &Value,
        now: Timestamp,
    ) -> Option<&'static str> {
        let mut owned = self.owned.iter();
        let count = owned.by_ref().filter(|of| maker(of) == Some(name)).count();
        let has_host = machine["status"]["host"].is_string();
        if !is_needed(machine, now) {
            let is_gone = count == 0 && !has_host;
            let is_deleted = machine["metadata"]["deletionTimestamp"].is_string();
            return (!is_gone || is_deleted).then_some("it should be gone");
        }
        if machine["status"]["phase"] == "Active" && count == 3 && has_host {
            return None;
        }
        let class = machine["spec"]["classRef"]["name"]
            .as_str()
            .unwrap_or_default();
        let is_waiting = count == 0 && !has_host && self.free_hosts(class) == 0;
        (!is_waiting).then_some("it should be Active, or wait while no host is free")
    }
}

/// Whether a user wants a machine to run.
fn is_needed(machine: &Value, now: Timestamp) -> bool {
    let inputs = Inputs::default();
    let schedule = EffectiveSchedule::of(machine, &inputs);
    schedule.is_some_and(|of| of.is_needed(now))
        && machine["spec"]["killSwitch"] != true
        && machine["spec"]["schedule"]["enabled"] != false
        && machine["metadata"]["deletionTimestamp"].is_null()
}

fn reason(machine: &Value) -> &str {
    let conditions = machine["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let ready = conditions.find(|of| of["type"] == "Ready");
    ready
        .and_then(|of| of["reason"].as_str())
        .unwrap_or_default()
}

fn host_of(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][name::HOST_ANNOTATION].as_str()
}

/// The name of the ScheduledMachine that an object was created for.
fn maker(object: &Value) -> Option<&str> {
    object["metadata"]["labels"][name::SCHEDULED_MACHINE_LABEL].as_str()
}

/// How long after the last disruption the fleet is compared with what is wanted: in the night, and while
/// windows are open.
pub(crate) const CHECKED_AFTER: [SignedDuration; 4] = [
    SignedDuration::from_mins(45),
    SignedDuration::from_mins(7 * 60 + 45),
    SignedDuration::from_mins(9 * 60 + 45),
    SignedDuration::from_mins(13 * 60 + 45),
];

/// Whether a request is about the Lease of a host.
pub(crate) fn is_about_claims(request: &ProxiedRequest) -> bool {
    let event = &request.event;
    let is_named = || {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        HostClaim::read(&body).is_some()
    };
    event.resource == "leases"
        && (name::claimed_host(&event.name).is_some()
            || event.label_selector.contains(name::HOST_CLAIM_LABEL)
            || request.query.contains("host-claim")
            || is_named())
}

#[cfg(test)]
mod tests {
    use fivespot_api::host_claim::Holder;
    use kubemu_apiserver::AuditEvent;

    use super::*;

    /// In the window of the machines.
    const NOON: &str = "2026-03-06T12:00:00Z";

    fn request(verb: &str, resource: &str, name: &str, body: &Value) -> ProxiedRequest {
        let event = AuditEvent {
            at: NOON.parse().unwrap(),
            user: String::new(),
            impersonated: String::new(),
            verb: verb.to_owned(),
            path: String::new(),
            group: String::new(),
            resource: resource.to_owned(),
            subresource: String::new(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            label_selector: String::new(),
            code: 0,
            annotations: BTreeMap::new(),
        };
        ProxiedRequest {
            event,
            body: body.to_string().into(),
            query: String::new(),
        }
    }

    fn waiting(name: &str, priority: u8) -> Value {
        let mut machine = scheduled_machine(name);
        machine["metadata"]["uid"] = json!(name);
        machine["metadata"]["generation"] = json!(1);
        machine["spec"] = json!({
            "schedule": {
                "daysOfWeek": ["mon-sun"], "hoursOfDay": ["9-17"], "timezone": "UTC",
            },
            "classRef": {"name": "desks"}, "priority": priority,
        });
        machine["status"] = json!({
            "phase": "Pending", "observedGeneration": 1,
            "conditions": [{
                "type": "Ready", "status": "False", "reason": "NoHostFree",
                "message": "", "lastTransitionTime": NOON,
            }],
        });
        machine
    }

    fn claim(host: &str, machine: &str) -> HostClaim {
        HostClaim {
            class: "desks".to_owned(),
            host: host.to_owned(),
            holder: Holder {
                namespace: "default".to_owned(),
                name: machine.to_owned(),
                uid: machine.to_owned(),
            },
        }
    }

    /// Two machines, of which the one that is named `first` has the higher priority, and a host.
    fn fleet(claims: Vec<HostClaim>, owned: Vec<Value>) -> FleetSnapshot {
        let class = json!({"spec": {"hosts": [host("desk", 0)]}});
        let machines = [waiting("first", 90), waiting("second", 10)];
        FleetSnapshot {
            machines: machines
                .into_iter()
                .map(|of| {
                    (
                        of["metadata"]["name"].as_str().unwrap().to_owned(),
                        of.into(),
                    )
                })
                .collect(),
            classes: [("desks".to_owned(), Arc::new(class))].into(),
            claims: claims.into_iter().map(|of| (of.host.clone(), of)).collect(),
            owned: owned.into_iter().map(Arc::new).collect(),
        }
    }

    fn made_for(machine: &str) -> Value {
        json!({"metadata": {
            "labels": {name::SCHEDULED_MACHINE_LABEL: machine},
            "annotations": {name::HOST_ANNOTATION: "desk-0"},
        }})
    }

    #[test]
    fn a_second_machine_on_a_host_and_one_without_a_record_are_found() {
        let made = request("create", "machines", "", &made_for("first"));
        let claims = vec![claim("desk-0", "first")];
        let doubled = fleet(claims.clone(), vec![made_for("first"), made_for("second")]);
        assert_eq!(doubled.violation(&made, false), Some(ONE_MACHINE));
        let mut fleet = fleet(claims, vec![made_for("first")]);
        assert_eq!(fleet.violation(&made, false), Some(RECORDED));
        let mut recorded = waiting("first", 90);
        recorded["status"]["host"] = json!("desk-0");
        fleet.machines.insert("first".to_owned(), recorded.into());
        assert_eq!(fleet.violation(&made, false), None);
        fleet.claims = [("desk-0".to_owned(), claim("desk-0", "second"))].into();
        assert_eq!(fleet.violation(&made, false), Some(RECORDED));
    }

    #[test]
    fn a_machine_begins_with_its_first_object() {
        let made = request("create", "machines", "", &made_for("first"));
        let mut first = fleet(Vec::new(), vec![made_for("first"), made_for("second")]);
        assert_eq!(first.beginning(&made), None, "its class has no rate");
        let class = json!({"spec": {"startsPerMinute": 2}});
        first.classes.insert("desks".to_owned(), class.into());
        let expected = Beginning {
            class: "desks".to_owned(),
            most: 2,
        };
        assert_eq!(first.beginning(&made), Some(expected));
        first.owned.push(made_for("first").into());
        assert_eq!(first.beginning(&made), None);
    }

    #[test]
    fn one_that_begins_too_soon_after_as_many_as_may_is_found() {
        let mut begun = Begun::default();
        let noon: Timestamp = NOON.parse().unwrap();
        let mut exceeds = |seconds| {
            let of = Beginning {
                class: "desks".to_owned(),
                most: 2,
            };
            begun.exceeds(of, noon + SignedDuration::from_secs(seconds))
        };
        let found = [0, 1, 59, 119, 120].map(&mut exceeds);
        assert_eq!(found, [false, false, true, false, false]);
    }

    #[test]
    fn a_host_that_is_given_back_early_is_found() {
        let lease = name::host_claim("desks", "desk-0");
        let released = request("delete", "leases", &lease, &Value::Null);
        let used = fleet(Vec::new(), vec![made_for("first")]);
        assert_eq!(used.violation(&released, false), Some(GIVEN_BACK));
        assert_eq!(
            fleet(Vec::new(), Vec::new()).violation(&released, false),
            None
        );
    }

    #[test]
    fn a_machine_that_takes_a_host_before_a_higher_priority_is_found() {
        for (machine, expected) in [("second", Some(PRIORITY)), ("first", None)] {
            let claim = claim("desk-0", machine);
            let claimed = request("create", "leases", "", &claim.lease("5spot-system"));
            assert!(is_about_claims(&claimed));
            let fleet = fleet(vec![claim], Vec::new());
            assert_eq!(fleet.violation(&claimed, true), expected);
        }
    }

    #[test]
    fn a_host_that_is_left_free_and_a_claim_without_use_are_found() {
        let now = NOON.parse().unwrap();
        let left_free = fleet(Vec::new(), Vec::new()).complaints(now);
        assert_eq!(left_free.len(), 2, "both wait for it: {left_free:?}");
        let unused = fleet(vec![claim("desk-0", "first")], Vec::new()).complaints(now);
        assert_eq!(unused.len(), 1, "{unused:?}");
    }
}

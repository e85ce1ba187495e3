//! A toy world: objects behind guarded writes, Cluster API and a node that move by themselves,
//! and a shell that does what a plan says.
//!
//! Every write is checked against what must never happen, see [`World::watch_over`].

use std::collections::BTreeMap;

use fivespot_api::{Phase, ScheduledMachine, ScheduledMachineStatus, name};
use fivespot_capi::{Cluster, Contract, Machine, Provider, Reference, key};
use fivespot_plan::{
    Access, Action, Call, Event, Fact, Freshness, Memory, Node, Places, Plan, Pod,
    Request, Seen, Side, Sighting, Step, Workload, plan,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// An object's key: kind and name. There is one namespace.
type Id = (String, String);

/// What a write came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    NotFound,
    Conflict,
    TooMany,
}

pub(crate) struct World {
    pub(crate) contract: Contract,
    pub(crate) now: Timestamp,
    pub(crate) sm: Option<ScheduledMachine>,
    pub(crate) objects: BTreeMap<Id, Value>,
    pub(crate) pods: Vec<Pod>,
    /// Until when evictions are refused.
    pub(crate) budget_until: Option<Timestamp>,
    pub(crate) access: Access,
    /// Everything that was written, in order; `Status` stands for a write of the status.
    pub(crate) log: Vec<(Timestamp, String)>,
    pub(crate) events: Vec<Event>,
    /// The phases that were stored, in order.
    pub(crate) phases: Vec<(Timestamp, Phase)>,
    /// How many more writes the shell gets done before it dies.
    pub(crate) writes_left: usize,
    /// Whether Cluster API and the node move.
    pub(crate) is_moving: bool,
    serial: u64,
}

pub(crate) const NAME: &str = "worker";

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A ScheduledMachine that is wanted from 9:00 to 17:59:59 UTC on working days.
pub(crate) fn scheduled_machine() -> ScheduledMachine {
    serde_json::from_value(json!({
        "apiVersion": name::API_VERSION,
        "kind": name::KIND,
        "metadata": {
            "name": NAME, "namespace": "default", "uid": "sm-1",
            "resourceVersion": "1", "generation": 1,
        },
        "spec": {
            "schedule": { "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"] },
            "clusterName": "prod",
            "bootstrapSpec": {
                "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "K0sWorkerConfig",
                "spec": { "version": "v1.30.0+k0s.0" },
            },
            "infrastructureSpec": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "RemoteMachine",
                "spec": { "address": "192.0.2.7" },
            },
        },
    }))
    .unwrap()
}

pub(crate) fn cluster(contract: Contract) -> Value {
    json!({
        "apiVersion": contract.api_version(), "kind": "Cluster",
        "metadata": { "name": "prod", "namespace": "default", "uid": "cluster-1" },
        "spec": {},
        "status": {
            "infrastructureReady": true,
            "conditions": [{ "type": "ControlPlaneInitialized", "status": "True" }],
            "initialization": {
                "infrastructureProvisioned": true, "controlPlaneInitialized": true,
            },
        },
    })
}

pub(crate) fn pod(name: &str) -> Pod {
    Pod {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: format!("pod-{name}"),
        is_of_daemon_set: false,
        is_mirror: false,
        is_finished: false,
        is_deleting: false,
    }
}

impl World {
    pub(crate) fn new(contract: Contract, now: &str) -> Self {
        let mut world = Self {
            contract,
            now: at(now),
            sm: Some(scheduled_machine()),
            objects: BTreeMap::new(),
            pods: Vec::new(),
            budget_until: None,
            access: Access::Connected,
            log: Vec::new(),
            events: Vec::new(),
            phases: Vec::new(),
            writes_left: usize::MAX,
            is_moving: true,
            serial: 1,
        };
        world.put(cluster(contract));
        world
    }

    pub(crate) fn get(&self, kind: &str) -> Option<&Value> {
        let name = if kind == "Cluster" { "prod" } else { NAME };
        self.objects.get(&(kind.to_owned(), name.to_owned()))
    }

    pub(crate) fn get_mut(&mut self, kind: &str) -> Option<&mut Value> {
        let version = self.next();
        let name = if kind == "Cluster" { "prod" } else { NAME };
        let object = self.objects.get_mut(&(kind.to_owned(), name.to_owned()))?;
        object["metadata"]["resourceVersion"] = json!(version);
        Some(object)
    }

    pub(crate) fn put(&mut self, mut object: Value) {
        let serial = self.next();
        object["metadata"]["resourceVersion"] = json!(serial);
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{serial}"));
        }
        self.objects.insert(id(&object), object);
    }

    pub(crate) fn sm(&self) -> &ScheduledMachine {
        self.sm.as_ref().unwrap()
    }

    pub(crate) fn status(&self) -> ScheduledMachineStatus {
        self.sm().status.clone().unwrap_or_default()
    }

    /// Edits the spec as a user does.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut ScheduledMachine)) {
        let version = self.next();
        let sm = self.sm.as_mut().unwrap();
        change(sm);
        sm.metadata.generation = sm.metadata.generation.map(|before| before + 1);
        sm.metadata.resource_version = Some(version);
    }

    /// `kubectl delete`.
    pub(crate) fn delete_sm(&mut self) {
        let now = self.now;
        self.edit(|sm| {
            sm.metadata.deletion_timestamp =
                Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
        });
        self.collect_sm();
    }

    fn collect_sm(&mut self) {
        let is_over = self.sm.as_ref().is_some_and(|sm| {
            sm.metadata.deletion_timestamp.is_some()
                && sm.metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
        });
        if is_over {
            self.sm = None;
        }
    }

    fn next(&mut self) -> String {
        self.serial += 1;
        self.serial.to_string()
    }

    /// Gathers, live.
    pub(crate) fn seen(&self) -> Seen {
        let sm = self.sm();
        let machine = self
            .get("Machine")
            .map(|object| Machine::read(object).unwrap());
        let places = Places::of(sm, machine.as_ref());
        let look = |places: &[Reference]| {
            places
                .iter()
                .map(|place| {
                    let found =
                        self.objects.get(&(place.kind.clone(), place.name.clone()));
                    let found = found.map(|object| Provider::read(object).unwrap());
                    Sighting {
                        place: place.clone(),
                        found: Fact::Known(found),
                    }
                })
                .collect()
        };
        Seen {
            freshness: Freshness::Live,
            contract: Fact::Known(self.contract),
            cluster: Fact::Known(
                self.get("Cluster")
                    .map(|object| Cluster::read(object).unwrap()),
            ),
            bootstrap: look(&places.bootstrap),
            infrastructure: look(&places.infrastructure),
            workload: self.workload(&places),
            machine: Fact::Known(machine),
        }
    }

    fn workload(&self, places: &Places) -> Workload {
        let Some(name) = &places.node else {
            return Workload::default();
        };
        if self.access != Access::Connected {
            return Workload {
                access: self.access.clone(),
                ..Workload::default()
            };
        }
        let node = self.objects.get(&("Node".to_owned(), name.clone()));
        let node = node.map(|object| {
            Node::from(
                &serde_json::from_value::<k8s_openapi::api::core::v1::Node>(
                    object.clone(),
                )
                .unwrap(),
            )
        });
        let pods = match (places.wants_pods, &node) {
            (true, Some(_)) => Fact::Known(self.pods.clone()),
            _ => Fact::default(),
        };
        Workload {
            access: Access::Connected,
            node: Fact::Known(node),
            pods,
        }
    }

    /// One pass of the shell; what it planned, and whether it wrote anything.
    pub(crate) fn pass(&mut self, memory: &mut Memory) -> (Plan, bool) {
        if self.sm.is_none() {
            return (Plan::default(), false);
        }
        let seen = self.seen();
        memory.observe(self.sm().metadata.generation, &seen, self.now);
        let next = plan(self.sm(), &seen, memory, self.now);
        let mut has_written = false;
        for action in &next.actions {
            if self.writes_left == 0 {
                return (next, has_written);
            }
            self.writes_left -= 1;
            self.watch_over(action);
            let answer = self.send(&action.request);
            self.log.push((self.now, format!("{:?}", action.step)));
            has_written = true;
            match answer {
                Answer::Done => {}
                Answer::TooMany => {
                    let Call::Evict { uid } = &action.request.call else {
                        panic!("not an eviction")
                    };
                    self.log.push((self.now, "429".to_owned()));
                    memory.refused(
                        uid,
                        "it would violate the disruption budget",
                        self.now,
                    );
                }
                Answer::NotFound | Answer::Conflict => return (next, has_written),
            }
        }
        memory.succeeded(&next.actions);
        if let Some(status) = &next.status {
            if self.writes_left == 0 {
                return (next, has_written);
            }
            self.writes_left -= 1;
            self.write_status(status);
            self.events.extend(next.events.clone());
            has_written = true;
        }
        (next, has_written)
    }

    fn write_status(&mut self, status: &ScheduledMachineStatus) {
        let version = self.next();
        let now = self.now;
        self.log.push((now, "Status".to_owned()));
        if let Some(phase) = status.phase
            && self.phases.last().map(|(_, last)| *last) != Some(phase)
        {
            self.phases.push((now, phase));
        }
        // As it goes over the wire, so that nothing is kept that is not stored.
        let stored = serde_json::to_value(status).unwrap();
        let sm = self.sm.as_mut().unwrap();
        sm.status = Some(serde_json::from_value(stored).unwrap());
        sm.metadata.resource_version = Some(version);
    }

    /// What must never happen.
    fn watch_over(&self, action: &Action) {
        let status = self.status();
        let machine = self.get("Machine");
        let target = &action.request.target.object;
        let label = |object: &Value| {
            object["metadata"]["labels"][name::SCHEDULED_MACHINE_LABEL].clone()
        };
        match action.step {
            Step::DeleteMachine | Step::DeleteBootstrap | Step::DeleteInfrastructure => {
                let found = self
                    .objects
                    .get(&(target.kind.clone(), target.name.clone()));
                if let Some(found) = found {
                    assert_eq!(label(found), NAME, "deletes only what is ours");
                }
                let is_provider = action.step != Step::DeleteMachine;
                assert!(
                    !(is_provider
                        && machine.is_some_and(|machine| label(machine) == NAME)),
                    "what a Machine needs outlives it",
                );
            }
            Step::CordonNode | Step::EvictPod | Step::ExcludeDrain => {
                assert!(
                    status.shutdown.is_some(),
                    "nothing is taken away before the commitment"
                );
            }
            Step::CreateBootstrap | Step::CreateInfrastructure => {
                assert!(
                    !self.sm().spec.kill_switch,
                    "the kill switch creates nothing"
                );
                assert!(self.sm().metadata.deletion_timestamp.is_none());
            }
            Step::RemoveFinalizer => {
                for kind in ["Machine", "K0sWorkerConfig", "RemoteMachine"] {
                    assert!(
                        self.get(kind).is_none_or(|object| label(object) != NAME),
                        "the finalizer outlives {kind}",
                    );
                }
            }
            Step::AddFinalizer
            | Step::CreateMachine
            | Step::UpdateMachine
            | Step::UncordonNode => {}
        }
        if action.step == Step::DeleteMachine {
            assert!(
                status.shutdown.is_some(),
                "every leaving begins with the commitment"
            );
        }
    }

    /// The API server's side of a request.
    pub(crate) fn send(&mut self, request: &Request) -> Answer {
        let target = &request.target;
        let id = (target.object.kind.clone(), target.object.name.clone());
        assert_eq!(
            request.side == Side::Workload,
            ["Node", "Pod"].contains(&id.0.as_str())
        );
        match &request.call {
            Call::Create(object) => {
                if self.objects.contains_key(&id) {
                    return Answer::Conflict;
                }
                self.put(object.clone());
                Answer::Done
            }
            Call::Patch(patch) if id.0 == name::KIND => self.patch_sm(patch),
            Call::Patch(patch) => self.patch(&id, patch),
            Call::Delete { uid } => self.delete(&id, Some(uid)),
            Call::Evict { uid } => self.evict(uid),
        }
    }

    fn patch_sm(&mut self, patch: &Value) -> Answer {
        let version = self.next();
        let Some(sm) = self.sm.as_mut() else {
            return Answer::NotFound;
        };
        if patch["metadata"]["resourceVersion"] != json!(sm.metadata.resource_version) {
            return Answer::Conflict;
        }
        let finalizers = patch["metadata"]["finalizers"].clone();
        sm.metadata.finalizers = Some(serde_json::from_value(finalizers).unwrap());
        sm.metadata.resource_version = Some(version);
        self.collect_sm();
        Answer::Done
    }

    fn patch(&mut self, id: &Id, patch: &Value) -> Answer {
        let version = self.next();
        let Some(object) = self.objects.get_mut(id) else {
            return Answer::NotFound;
        };
        for guard in ["uid", "resourceVersion"] {
            if patch["metadata"][guard] != object["metadata"][guard] {
                return Answer::Conflict;
            }
        }
        merge(object, patch);
        object["metadata"]["resourceVersion"] = json!(version);
        Answer::Done
    }

    pub(crate) fn delete(&mut self, id: &Id, uid: Option<&str>) -> Answer {
        let (version, now) = (self.next(), self.now.to_string());
        let Some(object) = self.objects.get_mut(id) else {
            return Answer::NotFound;
        };
        let meta = &mut object["metadata"];
        if uid.is_some_and(|uid| meta["uid"] != uid) {
            return Answer::Conflict;
        }
        if meta["finalizers"]
            .as_array()
            .is_some_and(|all| !all.is_empty())
        {
            if meta["deletionTimestamp"].is_null() {
                meta["deletionTimestamp"] = json!(now);
                meta["resourceVersion"] = json!(version);
            }
        } else {
            self.objects.remove(id);
        }
        Answer::Done
    }

    fn evict(&mut self, uid: &str) -> Answer {
        if self.budget_until.is_some_and(|until| self.now < until) {
            return Answer::TooMany;
        }
        let Some(pod) = self.pods.iter_mut().find(|pod| pod.uid == uid) else {
            return Answer::NotFound;
        };
        pod.is_deleting = true;
        Answer::Done
    }

    /// Cluster API, the providers and the kubelet, one step each; whether anything moved.
    pub(crate) fn step(&mut self) -> bool {
        if !self.is_moving {
            return false;
        }
        let before = self.pods.len();
        self.pods.retain(|pod| !pod.is_deleting);
        let has_moved = before != self.pods.len();
        let Some(machine) = self.get("Machine").cloned() else {
            return has_moved;
        };
        if machine["metadata"]["deletionTimestamp"].is_null() {
            self.provision(&machine) || has_moved
        } else {
            self.tear_down(&machine);
            true
        }
    }

    fn provision(&mut self, machine: &Value) -> bool {
        if machine["metadata"]["finalizers"].is_null() {
            let object = self.get_mut("Machine").unwrap();
            object["metadata"]["finalizers"] = json!([key::MACHINE_FINALIZER]);
            return true;
        }
        let uid = machine["metadata"]["uid"].clone();
        let kinds = ["K0sWorkerConfig", "RemoteMachine"];
        for kind in kinds {
            let Some(object) = self.get(kind) else {
                return false;
            };
            if object["metadata"]["ownerReferences"]
                .as_array()
                .is_some_and(|all| all.len() > 1)
            {
                continue;
            }
            let api_version = self.contract.api_version();
            let object = self.get_mut(kind).unwrap();
            let owners = object["metadata"]["ownerReferences"]
                .as_array_mut()
                .unwrap();
            owners.push(json!({
                "apiVersion": api_version, "kind": "Machine", "name": NAME, "uid": uid,
                "controller": true,
            }));
            if kind == "RemoteMachine" {
                object["metadata"]["finalizers"] = json!(["remote-machine"]);
            }
            object["status"] = json!({ "ready": true });
            return true;
        }
        if machine["status"]["nodeRef"].is_null() {
            self.join();
            return true;
        }
        false
    }

    fn join(&mut self) {
        self.put(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": NAME },
            "spec": { "providerID": "remote-machine://192.0.2.7:22" },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        }));
        let node = self.get("Node").unwrap()["metadata"]["uid"].clone();
        let is_old = self.contract == Contract::V1Beta1;
        let machine = self.get_mut("Machine").unwrap();
        machine["spec"]["providerID"] = json!("remote-machine://192.0.2.7:22");
        machine["status"] = if is_old {
            json!({
                "phase": "Running", "bootstrapReady": true, "infrastructureReady": true,
                "nodeRef": { "apiVersion": "v1", "kind": "Node", "name": NAME, "uid": node },
                "conditions": [{ "type": "Ready", "status": "True" }],
            })
        } else {
            json!({
                "phase": "Running", "nodeRef": { "name": NAME },
                "initialization": {
                    "bootstrapDataSecretCreated": true, "infrastructureProvisioned": true,
                },
                "conditions": [{ "type": "Ready", "status": "True", "reason": "Ready" }],
            })
        };
    }

    fn tear_down(&mut self, machine: &Value) {
        let annotations = &machine["metadata"]["annotations"];
        if annotations[key::EXCLUDE_NODE_DRAINING].is_null() {
            self.pods.clear();
        }
        for kind in ["RemoteMachine", "K0sWorkerConfig"] {
            if self.get(kind).is_some() {
                self.delete(&(kind.to_owned(), NAME.to_owned()), None);
                if let Some(object) = self.get_mut(kind) {
                    object["metadata"]["finalizers"] = json!([]);
                    self.delete(&(kind.to_owned(), NAME.to_owned()), None);
                }
                return;
            }
        }
        self.pods.clear();
        self.objects.remove(&("Node".to_owned(), NAME.to_owned()));
        self.objects
            .remove(&("Machine".to_owned(), NAME.to_owned()));
    }

    /// Lets everybody act until nothing moves, without time passing.
    pub(crate) fn settle(&mut self, memory: &mut Memory) -> Plan {
        for _ in 0..200 {
            let (next, has_written) = self.pass(memory);
            if !has_written && !self.step() {
                return next;
            }
            assert!(!next.confirm, "live facts need no confirmation");
        }
        panic!(
            "never quiet: {:#?}",
            &self.log[self.log.len().saturating_sub(20)..]
        );
    }

    /// Lets everybody act until `end`, sleeping from one wake-up to the next.
    pub(crate) fn run_until(&mut self, memory: &mut Memory, end: &str) {
        let end = at(end);
        for _ in 0..10_000 {
            let wake = self.settle(memory).wake;
            if self.writes_left == 0 {
                return;
            }
            match wake {
                Some(due) if due < end => {
                    assert!(due > self.now, "a quiet plan wakes later, not at {due}");
                    self.now = due;
                }
                Some(_) | None => {
                    self.now = end;
                    self.settle(memory);
                    return;
                }
            }
        }
        panic!("wakes without end");
    }

    /// How often a step was taken.
    pub(crate) fn count(&self, step: &str) -> usize {
        self.log.iter().filter(|(_, done)| done == step).count()
    }

    /// When a step was first taken.
    pub(crate) fn first(&self, step: &str) -> Timestamp {
        let found = self.log.iter().find(|(_, done)| done == step);
        found
            .unwrap_or_else(|| panic!("no {step} in {:#?}", self.log))
            .0
    }

    /// The kinds that exist besides the Cluster.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        let kinds = self.objects.keys().map(|(kind, _)| kind.as_str());
        kinds.filter(|kind| *kind != "Cluster").collect()
    }

    /// Moves the clock.
    pub(crate) fn pause(&mut self, seconds: i64) {
        self.now = self
            .now
            .checked_add(SignedDuration::from_secs(seconds))
            .unwrap();
    }
}

fn id(object: &Value) -> Id {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// RFC 7386.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    let object = object.as_object_mut().unwrap();
    for (field, change) in patch {
        if change.is_null() {
            object.remove(field);
        } else {
            merge(object.entry(field.clone()).or_insert(Value::Null), change);
        }
    }
}

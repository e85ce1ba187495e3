//! A simulation: objects behind guarded writes, Cluster API and a Node that act on their
//! own, and an operator that carries out plans.
//!
//! Every write is checked against the invariants, see [`Simulation::check_invariants`].

mod cluster_api;
mod invariants;
mod server;

use std::collections::BTreeMap;

use fivespot_api::host_claim::HostClaim;
use fivespot_api::{Phase, ScheduledMachine, ScheduledMachineStatus, name};
use fivespot_capi::{Cluster, Contract, Machine, Provider, Reference};
use fivespot_plan::{
    Access, AgentConfig, Call, Cause, Event, Fact, Failure, Freshness, Hosts, Locations,
    Lookup, Memory, Node, Observed, Plan, Pod, Specs, Step, StoredClaim, Unknown,
    Workload, plan,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// An object's key: kind and name. There is one namespace.
type Id = (String, String);

/// The response to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteResult {
    Success,
    NotFound,
    Conflict,
    TooMany,
}

pub(crate) struct Simulation {
    pub(crate) contract: Contract,
    pub(crate) now: Timestamp,
    pub(crate) sm: Option<ScheduledMachine>,
    pub(crate) objects: BTreeMap<Id, Value>,
    pub(crate) pods: Vec<Pod>,
    /// Until when evictions are refused.
    pub(crate) budget_until: Option<Timestamp>,
    pub(crate) access: Access,
    /// Where the provider specs are.
    pub(crate) specs: Specs,
    /// Calendars and overrides.
    pub(crate) schedule: fivespot_plan::ScheduleInputs,
    /// Another Machine of the Cluster that claims the Node.
    pub(crate) conflicting_machine: Option<String>,
    /// Why the agents' ConfigMaps cannot be read; `None` if they can.
    pub(crate) hidden_configs: Option<Unknown>,
    /// A step that fails, and the cause.
    pub(crate) failing: Option<(Step, Cause)>,
    /// Every write, in order; `Status` is a write of the status.
    pub(crate) log: Vec<(Timestamp, String)>,
    pub(crate) events: Vec<Event>,
    /// The reports, in order: the time, `Ready`'s reason and the message.
    pub(crate) reported: Vec<String>,
    /// The phases that were stored, in order.
    pub(crate) phases: Vec<(Timestamp, Phase)>,
    /// How many more writes the operator sends before it crashes.
    pub(crate) writes_left: usize,
    /// Whether the operator releases the finalizer a day after a removal began.
    pub(crate) releases_stuck: bool,
    /// How long the override of a reclaim stops the machine; `None` if a reclaim disables the
    /// schedule.
    pub(crate) reclaim_override: Option<SignedDuration>,
    /// What the stored CustomResourceDefinition lacks.
    pub(crate) outdated_crd: Option<String>,
    /// Whether Cluster API and the Node act.
    pub(crate) is_moving: bool,
    serial: u64,
}

pub(crate) const NAME: &str = "worker";

pub(crate) const CONTRACTS: [Contract; 2] = [Contract::V1Beta1, Contract::V1Beta2];

/// A Friday, an hour before the window opens.
pub(crate) const BEFORE: &str = "2026-03-06T08:00:00Z";
pub(crate) const OPENS: &str = "2026-03-06T09:00:00Z";
pub(crate) const NOON: &str = "2026-03-06T12:00:00Z";
pub(crate) const CLOSES: &str = "2026-03-06T18:00:00Z";
pub(crate) const EVENING: &str = "2026-03-06T20:00:00Z";
pub(crate) const MONDAY: &str = "2026-03-09T09:00:00Z";

/// A simulation with a machine in service.
pub(crate) fn in_service(contract: Contract, memory: &mut Memory) -> Simulation {
    let mut simulation = Simulation::new(contract, BEFORE);
    simulation.run_until(memory, NOON);
    assert_eq!(simulation.status().phase, Some(Phase::Active));
    simulation
}

pub(crate) fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A ScheduledMachine whose window is open from 9:00 to 17:59:59 UTC on working days.
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

impl Simulation {
    pub(crate) fn new(contract: Contract, now: &str) -> Self {
        let mut simulation = Self {
            contract,
            now: at(now),
            sm: Some(scheduled_machine()),
            objects: BTreeMap::new(),
            pods: Vec::new(),
            budget_until: None,
            access: Access::Connected,
            specs: Specs::Included,
            schedule: fivespot_plan::ScheduleInputs::default(),
            conflicting_machine: None,
            hidden_configs: None,
            failing: None,
            log: Vec::new(),
            events: Vec::new(),
            reported: Vec::new(),
            phases: Vec::new(),
            writes_left: usize::MAX,
            releases_stuck: false,
            reclaim_override: None,
            outdated_crd: None,
            is_moving: true,
            serial: 1,
        };
        simulation.put(cluster(contract));
        simulation
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

    /// Somebody deletes an object, whatever its finalizers are.
    pub(crate) fn remove(&mut self, kind: &str) {
        self.objects.remove(&(kind.to_owned(), NAME.to_owned()));
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

    /// Reads the state live.
    pub(crate) fn observed(&self) -> Observed {
        let sm = self.sm();
        let machine = self
            .get("Machine")
            .map(|object| Machine::read(object).unwrap());
        let locations = Locations::of(sm, machine.as_ref());
        let look = |locations: &[Reference]| {
            locations
                .iter()
                .map(|place| {
                    let found =
                        self.objects.get(&(place.kind.clone(), place.name.clone()));
                    let found = found.map(|object| Provider::read(object).unwrap());
                    Lookup {
                        reference: place.clone(),
                        found: Fact::Known(found),
                    }
                })
                .collect()
        };
        let (bootstrap, infrastructure): (Vec<Lookup>, Vec<Lookup>) =
            (look(&locations.bootstrap), look(&locations.infrastructure));
        let found = infrastructure.iter().chain(&bootstrap);
        let cluster = Locations::cluster_on_label(sm, machine.as_ref(), found);
        let cluster = cluster.unwrap_or(&locations.cluster).to_owned();
        let cluster = self.objects.get(&("Cluster".to_owned(), cluster));
        Observed {
            freshness: Freshness::Live,
            specs: self.specs.clone(),
            schedule: self.schedule.clone(),
            contract: Fact::Known(self.contract),
            cluster: Fact::Known(cluster.map(|object| Cluster::read(object).unwrap())),
            bootstrap,
            infrastructure,
            workload: self.workload(&locations),
            machine: Fact::Known(machine),
            releases_stuck: self.releases_stuck,
            reclaim_override: self.reclaim_override,
            outdated_crd: self.outdated_crd.clone(),
            hosts: self.hosts(),
        }
    }

    /// The Leases of hosts.
    fn hosts(&self) -> Hosts {
        let sm = self.sm();
        let recorded = sm.status.as_ref().and_then(|of| of.host.as_deref());
        let named = sm.spec.class.as_ref().and_then(|of| of.host.as_deref());
        let mut hosts = Hosts {
            namespace: "5spot-system".to_owned(),
            ..Hosts::default()
        };
        for lease in self.objects.values().filter(|of| of["kind"] == "Lease") {
            let claim = HostClaim::read(lease).unwrap();
            if sm.metadata.uid.as_deref() == Some(claim.holder.uid.as_str()) {
                let uid = lease["metadata"]["uid"].as_str().unwrap().to_owned();
                hosts.claims.push(StoredClaim { claim, uid });
            } else if Some(claim.host.as_str()) == recorded.or(named) {
                let holder = claim.holder;
                hosts.holder = Some(format!("{}/{}", holder.namespace, holder.name));
            }
        }
        hosts
    }

    /// The first host that has no Lease.
    fn free_host(&self) -> Option<String> {
        let class = self.sm().spec.class.clone()?;
        let pool = class.pool?;
        let is_free = |host: &&str| {
            let lease = name::host_claim(&class.name, host);
            let is_allowed = class.host.as_deref().is_none_or(|named| named == *host);
            is_allowed && !self.objects.contains_key(&("Lease".to_owned(), lease))
        };
        pool.names().find(is_free).map(str::to_owned)
    }

    fn workload(&self, locations: &Locations) -> Workload {
        let Some(name) = &locations.node else {
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
        let pods = match (locations.wants_pods, &node) {
            (true, Some(_)) => Fact::Known(self.pods.clone()),
            _ => Fact::default(),
        };
        let config = name::reclaim_config_map(name);
        let config = self.objects.get(&("ConfigMap".to_owned(), config));
        let looks_for_agent = node
            .as_ref()
            .is_some_and(|node| locations.wants_agent || node.agent_label.is_some());
        let agent_config =
            if let (true, Some(why)) = (looks_for_agent, &self.hidden_configs) {
                Fact::Unknown(why.clone())
            } else if looks_for_agent {
                Fact::Known(config.map(|object| {
                    let typed: k8s_openapi::api::core::v1::ConfigMap =
                        serde_json::from_value(object.clone()).unwrap();
                    AgentConfig::from(&typed)
                }))
            } else {
                Fact::default()
            };
        Workload {
            access: Access::Connected,
            node: Fact::Known(node),
            conflicting_machine: self.conflicting_machine.clone(),
            pods,
            agent_config,
        }
    }

    /// One reconcile of the operator; returns the plan, and whether it wrote anything.
    pub(crate) fn reconcile(&mut self, memory: &mut Memory) -> (Plan, bool) {
        if self.sm.is_none() {
            return (Plan::default(), false);
        }
        let observed = self.observed();
        memory.observe(self.sm().metadata.generation, &observed, self.now);
        memory.offer_host(None);
        let mut next = plan(self.sm(), &observed, memory, self.now);
        if next.seeks_host {
            memory.offer_host(self.free_host());
            next = plan(self.sm(), &observed, memory, self.now);
        }
        let mut has_written = false;
        for action in &next.actions {
            if self.writes_left == 0 {
                return (next, has_written);
            }
            self.writes_left -= 1;
            self.check_invariants(action);
            if let Some((step, cause)) =
                self.failing.filter(|(step, _)| *step == action.step)
            {
                self.fail(memory, step, cause);
                return (next, true);
            }
            let answer = self.send(&action.request);
            self.log.push((self.now, format!("{:?}", action.step)));
            has_written = true;
            match answer {
                WriteResult::Success => {}
                WriteResult::TooMany => {
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
                WriteResult::Conflict if action.step == Step::CreateOverride => {}
                WriteResult::NotFound | WriteResult::Conflict => {
                    return (next, has_written);
                }
            }
        }
        memory.succeeded(&next.actions);
        memory.repeated(&next.actions, self.now);
        if let Some(status) = &next.status {
            if self.writes_left == 0 {
                return (next, has_written);
            }
            self.writes_left -= 1;
            self.write_status(status);
            memory.status_written(&next, self.now);
            has_written = true;
        }
        self.events.extend(next.events.clone());
        (next, has_written)
    }

    fn fail(&mut self, memory: &mut Memory, step: Step, cause: Cause) {
        self.log.push((self.now, format!("{step:?}")));
        let retry_at = self.now.checked_add(SignedDuration::from_secs(30)).unwrap();
        let message = "the API server refuses it".to_owned();
        memory.failed(Failure {
            step,
            cause,
            message,
            attempts: 1,
            retry_at,
        });
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
        let message = status.message.as_deref().unwrap_or_default();
        let reported = format!("{} {}", status.conditions[0].reason, message);
        if self
            .reported
            .last()
            .is_none_or(|last| !last.ends_with(&reported))
        {
            self.reported.push(format!("{now} {reported}"));
        }
        // Serialised as it is sent, so that fields that are not stored are dropped.
        let stored = serde_json::to_value(status).unwrap();
        let sm = self.sm.as_mut().unwrap();
        sm.status = Some(serde_json::from_value(stored).unwrap());
        sm.metadata.resource_version = Some(version);
    }

    /// Lets all components act until nothing changes, without time passing.
    pub(crate) fn settle(&mut self, memory: &mut Memory) -> Plan {
        for _ in 0..200 {
            let (next, has_written) = self.reconcile(memory);
            if !has_written && !self.step() {
                return next;
            }
            assert!(!next.confirm, "live facts need no confirmation");
        }
        panic!(
            "never settles: {:#?}",
            &self.log[self.log.len().saturating_sub(20)..]
        );
    }

    /// Lets all components act until `end`, moving the clock from one requeue to the next.
    pub(crate) fn run_until(&mut self, memory: &mut Memory, end: &str) {
        let end = at(end);
        for _ in 0..10_000 {
            let requeue_at = self.settle(memory).requeue_at;
            if self.writes_left == 0 {
                return;
            }
            match requeue_at {
                Some(due) if due < end => {
                    assert!(due > self.now, "requeued later, not at {due}");
                    self.now = due;
                }
                Some(_) | None => {
                    self.now = end;
                    self.settle(memory);
                    return;
                }
            }
        }
        panic!("requeues without end");
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

    /// When a step was last taken.
    pub(crate) fn last(&self, step: &str) -> Timestamp {
        let mut all = self.log.iter().rev();
        all.find(|(_, done)| done == step).unwrap().0
    }

    /// The kinds that exist, except for the Cluster.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        let kinds = self.objects.keys().map(|(kind, _)| kind.as_str());
        kinds.filter(|kind| *kind != "Cluster").collect()
    }

    /// Advances the clock.
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

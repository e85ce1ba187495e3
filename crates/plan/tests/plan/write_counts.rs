//! The number of writes of a cycle, however slowly all components act.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{Phase, ScheduledMachineStatus};
use fivespot_capi::{Contract, key};
use fivespot_plan::Memory;
use serde_json::{Value, json};

use crate::simulation::{NAME, Simulation, at, pod};

/// How many writes a cycle may take in the management cluster, not counting statuses that only
/// repeat the reports of other components.
const MAX_WRITES: usize = 13;

/// Long enough that no status has to wait because of the previous one: in seconds, during
/// provisioning and otherwise.
const LONG_COMING: i64 = 31;
const LONG: i64 = 5;

/// A simulation in which every component takes long for each step, so that each step is reported
/// alone.
struct Slow {
    simulation: Simulation,
    memory: Memory,
    /// How long each step takes, in seconds.
    pause: i64,
    /// Every status that was written, in order.
    reported: Vec<ScheduledMachineStatus>,
}

impl Slow {
    /// A minute before the window opens.
    fn new(contract: Contract) -> Self {
        let mut simulation = Simulation::new(contract, "2026-03-06T08:00:00Z");
        simulation.is_moving = false;
        let mut slow = Self {
            simulation,
            memory: Memory::default(),
            pause: LONG_COMING,
            reported: Vec::new(),
        };
        slow.rest();
        slow.simulation.now = at("2026-03-06T08:59:00Z");
        slow.simulation.log.clear();
        slow.reported.clear();
        slow.reported.push(slow.simulation.status());
        slow
    }

    /// Reconciles until there is nothing more to do.
    fn rest(&mut self) {
        loop {
            self.simulation.pause(self.pause);
            let before = self.simulation.count("Status");
            let (_, has_written) = self.simulation.reconcile(&mut self.memory);
            if self.simulation.count("Status") > before {
                self.reported.push(self.simulation.status());
            }
            if !has_written {
                return;
            }
        }
    }

    /// Another component acts, and the operator observes it.
    fn then(&mut self, step: impl FnOnce(&mut Simulation)) {
        step(&mut self.simulation);
        self.rest();
    }

    /// Cluster API reports a condition of the Machine.
    fn report(&mut self, kind: &str, reason: &str) {
        let reported = json!({
            "type": kind, "status": "False", "reason": reason, "message": "",
            "lastTransitionTime": "2026-03-06T09:00:00Z",
        });
        self.then(|simulation| {
            simulation.get_mut("Machine").unwrap()["status"]["conditions"] =
                json!([reported]);
        });
    }

    /// Cluster API provisions the machine step by step, as it does under load.
    fn come_up(&mut self) {
        self.then(|simulation| {
            let machine = simulation.get_mut("Machine").unwrap();
            machine["metadata"]["finalizers"] = json!([key::MACHINE_FINALIZER]);
        });
        self.report("Ready", "WaitingForBootstrapData");
        for kind in ["K0sWorkerConfig", "RemoteMachine"] {
            self.then(|simulation| own(simulation, kind));
        }
        self.report("Ready", "WaitingForInfrastructure");
        let provider_id = json!("remote-machine://192.0.2.7:22");
        self.then(|simulation| {
            simulation.get_mut("Machine").unwrap()["spec"]["providerID"] =
                provider_id.clone();
        });
        self.report("Ready", "WaitingForNode");
        self.then(|simulation| {
            simulation.put(json!({
                "apiVersion": "v1", "kind": "Node", "metadata": { "name": NAME },
                "spec": { "providerID": provider_id },
                "status": { "conditions": [{ "type": "Ready", "status": "False" }] },
            }));
            let machine = simulation.get_mut("Machine").unwrap();
            machine["status"]["nodeRef"] = json!({ "name": NAME });
            machine["status"]["initialization"] = json!({
                "bootstrapDataSecretCreated": true, "infrastructureProvisioned": true,
            });
        });
        self.then(|simulation| {
            let conditions = json!([{ "type": "Ready", "status": "True" }]);
            simulation.get_mut("Node").unwrap()["status"]["conditions"] = conditions;
        });
        self.report("Ready", "NodeUnhealthy");
    }

    /// Cluster API deletes the machine.
    fn go_down(&mut self) {
        for reason in ["DrainingNode", "WaitingForInfrastructureDeletion"] {
            self.report("Deleting", reason);
        }
        self.simulation.is_moving = true;
        for _ in 0..4 {
            self.then(|simulation| {
                simulation.step();
            });
        }
    }

    /// The messages of the statuses with a report of the operator itself. The creation of a
    /// machine is not among them: the operator reports it when it observes the result.
    fn own_words(&self) -> Vec<String> {
        let reported: Vec<Value> = self.reported.iter().map(own_words).collect();
        let news = reported.windows(2).filter(|pair| pair[0] != pair[1]);
        news.map(|pair| pair[1]["message"].to_string())
            .filter(|message| !message.contains("creating"))
            .collect()
    }

    /// How many writes went to the management cluster, statuses aside.
    fn actions(&self) -> usize {
        let near = ["Status", "CordonNode", "EvictPod"];
        let log = self.simulation.log.iter();
        log.filter(|(_, step)| !near.contains(&step.as_str()))
            .count()
    }
}

/// Cluster API adopts an object for the Machine.
fn own(simulation: &mut Simulation, kind: &str) {
    let machine = simulation.get("Machine").unwrap()["metadata"]["uid"].clone();
    let api_version = simulation.contract.api_version();
    let object = simulation.get_mut(kind).unwrap();
    let owners = object["metadata"]["ownerReferences"].as_array_mut();
    owners.unwrap().push(json!({
        "apiVersion": api_version, "kind": "Machine", "name": NAME, "uid": machine,
        "controller": true,
    }));
    object["status"] = json!({ "ready": true });
}

/// A status without the conditions that only repeat the reports of other components.
fn own_words(status: &ScheduledMachineStatus) -> Value {
    let mut status = status.clone();
    for kind in [ConditionType::MachineReady, ConditionType::NodeAccess] {
        condition::remove(&mut status.conditions, kind);
    }
    serde_json::to_value(status).unwrap()
}

#[test]
fn a_cycle_with_slow_steps_needs_no_more_writes_than_a_fast_one() {
    for pods in [vec![], vec![pod("a"), pod("b"), pod("c")]] {
        let mut slow = Slow::new(Contract::V1Beta2);
        slow.rest();
        slow.simulation.now = at("2026-03-06T09:00:00Z");
        slow.rest();
        slow.come_up();
        assert_eq!(slow.simulation.status().phase, Some(Phase::Active));
        slow.pause = LONG;
        slow.simulation.pods = pods;
        slow.simulation.now = at("2026-03-06T18:00:00Z");
        slow.rest();
        while !slow.simulation.pods.is_empty() {
            slow.then(|simulation| simulation.pods.truncate(simulation.pods.len() - 1));
        }
        slow.go_down();
        assert_eq!(slow.simulation.status().phase, Some(Phase::Inactive));
        let (reported, actions) = (slow.own_words(), slow.actions());
        assert!(
            reported.len() + actions <= MAX_WRITES,
            "{actions} and {reported:#?}"
        );
        assert!(
            slow.reported.len() > reported.len() + 5,
            "the reports of other components are repeated"
        );
    }
}

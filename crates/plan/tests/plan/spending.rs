//! What a cycle costs the API server, however slowly everything goes.

use fivespot_api::condition::{self, ConditionType};
use fivespot_api::{Phase, ScheduledMachineStatus};
use fivespot_capi::{Contract, key};
use fivespot_plan::Memory;
use serde_json::{Value, json};

use crate::world::{NAME, World, at, pod};

/// How many writes a cycle may take in the management cluster, beside statuses that merely repeat
/// what others report.
const MOST: usize = 13;

/// So long that nothing has to wait for what was reported before: in seconds, while a machine comes up
/// and otherwise.
const LONG_COMING: i64 = 31;
const LONG: i64 = 5;

/// A world in which everybody takes long over each step, so that each is reported alone.
struct Slow {
    world: World,
    memory: Memory,
    /// How long everybody takes over each step, in seconds.
    pause: i64,
    /// Every status that was written, in order.
    reported: Vec<ScheduledMachineStatus>,
}

impl Slow {
    /// A minute before the window opens.
    fn new(contract: Contract) -> Self {
        let mut world = World::new(contract, "2026-03-06T08:00:00Z");
        world.is_moving = false;
        let mut slow = Self {
            world,
            memory: Memory::default(),
            pause: LONG_COMING,
            reported: Vec::new(),
        };
        slow.rest();
        slow.world.now = at("2026-03-06T08:59:00Z");
        slow.world.log.clear();
        slow.reported.clear();
        slow.reported.push(slow.world.status());
        slow
    }

    /// Passes until there is nothing more to do.
    fn rest(&mut self) {
        loop {
            self.world.pause(self.pause);
            let before = self.world.count("Status");
            let (_, has_written) = self.world.pass(&mut self.memory);
            if self.world.count("Status") > before {
                self.reported.push(self.world.status());
            }
            if !has_written {
                return;
            }
        }
    }

    /// Somebody else does something, and the operator notices it.
    fn then(&mut self, step: impl FnOnce(&mut World)) {
        step(&mut self.world);
        self.rest();
    }

    /// Cluster API reports on the Machine.
    fn report(&mut self, kind: &str, reason: &str) {
        let reported = json!({
            "type": kind, "status": "False", "reason": reason, "message": "",
            "lastTransitionTime": "2026-03-06T09:00:00Z",
        });
        self.then(|world| {
            world.get_mut("Machine").unwrap()["status"]["conditions"] = json!([reported]);
        });
    }

    /// Cluster API brings the machine up, as it does on a busy machine: step by step.
    fn come_up(&mut self) {
        self.then(|world| {
            let machine = world.get_mut("Machine").unwrap();
            machine["metadata"]["finalizers"] = json!([key::MACHINE_FINALIZER]);
        });
        self.report("Ready", "WaitingForBootstrapData");
        for kind in ["K0sWorkerConfig", "RemoteMachine"] {
            self.then(|world| own(world, kind));
        }
        self.report("Ready", "WaitingForInfrastructure");
        let provider_id = json!("remote-machine://192.0.2.7:22");
        self.then(|world| {
            world.get_mut("Machine").unwrap()["spec"]["providerID"] = provider_id.clone();
        });
        self.report("Ready", "WaitingForNode");
        self.then(|world| {
            world.put(json!({
                "apiVersion": "v1", "kind": "Node", "metadata": { "name": NAME },
                "spec": { "providerID": provider_id },
                "status": { "conditions": [{ "type": "Ready", "status": "False" }] },
            }));
            let machine = world.get_mut("Machine").unwrap();
            machine["status"]["nodeRef"] = json!({ "name": NAME });
            machine["status"]["initialization"] = json!({
                "bootstrapDataSecretCreated": true, "infrastructureProvisioned": true,
            });
        });
        self.then(|world| {
            let conditions = json!([{ "type": "Ready", "status": "True" }]);
            world.get_mut("Node").unwrap()["status"]["conditions"] = conditions;
        });
        self.report("Ready", "NodeUnhealthy");
    }

    /// Cluster API takes the machine down.
    fn go_down(&mut self) {
        for reason in ["DrainingNode", "WaitingForInfrastructureDeletion"] {
            self.report("Deleting", reason);
        }
        self.world.is_moving = true;
        for _ in 0..4 {
            self.then(|world| {
                world.step();
            });
        }
    }

    /// What the statuses said that reported something of the operator's own. That a machine is being
    /// created is not among them: the operator reports it when it sees its result.
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
        let log = self.world.log.iter();
        log.filter(|(_, step)| !near.contains(&step.as_str()))
            .count()
    }
}

/// Cluster API takes an object over for the Machine.
fn own(world: &mut World, kind: &str) {
    let machine = world.get("Machine").unwrap()["metadata"]["uid"].clone();
    let api_version = world.contract.api_version();
    let object = world.get_mut(kind).unwrap();
    let owners = object["metadata"]["ownerReferences"].as_array_mut();
    owners.unwrap().push(json!({
        "apiVersion": api_version, "kind": "Machine", "name": NAME, "uid": machine,
        "controller": true,
    }));
    object["status"] = json!({ "ready": true });
}

/// A status without what only repeats others' words.
fn own_words(status: &ScheduledMachineStatus) -> Value {
    let mut status = status.clone();
    for kind in [ConditionType::MachineReady, ConditionType::NodeAccess] {
        condition::remove(&mut status.conditions, kind);
    }
    serde_json::to_value(status).unwrap()
}

#[test]
fn a_cycle_in_which_every_step_takes_long_takes_no_more_writes_than_a_swift_one() {
    for pods in [vec![], vec![pod("a"), pod("b"), pod("c")]] {
        let mut slow = Slow::new(Contract::V1Beta2);
        slow.rest();
        slow.world.now = at("2026-03-06T09:00:00Z");
        slow.rest();
        slow.come_up();
        assert_eq!(slow.world.status().phase, Some(Phase::Active));
        slow.pause = LONG;
        slow.world.pods = pods;
        slow.world.now = at("2026-03-06T18:00:00Z");
        slow.rest();
        while !slow.world.pods.is_empty() {
            slow.then(|world| world.pods.truncate(world.pods.len() - 1));
        }
        slow.go_down();
        assert_eq!(slow.world.status().phase, Some(Phase::Inactive));
        let (reported, actions) = (slow.own_words(), slow.actions());
        assert!(
            reported.len() + actions <= MOST,
            "{actions} and {reported:#?}"
        );
        assert!(
            slow.reported.len() > reported.len() + 5,
            "what others report is reported"
        );
    }
}

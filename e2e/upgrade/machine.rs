//! The machines of an upgrade test: one in every phase, with the changes that bring it there and
//! away.

use std::error::Error;
use std::process::Command;

use serde_json::{Value, json};

use super::operator::until;
use super::server::Server;
use super::text;

/// The namespace of all objects of the test.
pub(super) const NAMESPACE: &str = "upgrade-test";

/// The Cluster that most machines join.
const CLUSTER: &str = "production";

/// The Cluster that is created at the end.
const LATE: &str = "late";

/// One ScheduledMachine.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// The phase in which it stays during the upgrades.
    pub(super) phase: &'static str,
    /// Whether its schedule is open when it is created.
    is_wanted: bool,
    cluster: &'static str,
    /// The change once it is Active.
    then: Option<Change>,
    /// The mode of the ScheduleOverride for it.
    mode: Option<&'static str>,
    /// The change at the end, when the manifests and the operator are new.
    last: Option<Change>,
    /// The phase after the last change.
    pub(super) end: &'static str,
}

/// A change that a user makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// Edits the schedule so that the machine is not wanted.
    Close,
    /// The same, with a pod on its Node that cannot be evicted.
    CloseHeld,
    /// Allows the eviction of the pod.
    Release,
    Disable,
    Enable,
    Kill,
    Revive,
    /// Edits the schedule so that the machine is wanted.
    Open,
    /// Creates an override with the mode of the case.
    Override,
    EndOverride,
    AddCluster,
}

const USUAL: Case = Case {
    name: "active",
    phase: "Active",
    is_wanted: true,
    cluster: CLUSTER,
    then: None,
    mode: None,
    last: Some(Change::Close),
    end: "Inactive",
};

/// One in every stable phase, and one under every mode of an override.
pub(super) const CASES: [Case; 9] = [
    Case {
        name: "pending",
        phase: "Pending",
        cluster: LATE,
        last: Some(Change::AddCluster),
        end: "Active",
        ..USUAL
    },
    USUAL,
    Case {
        name: "shutting-down",
        phase: "ShuttingDown",
        then: Some(Change::CloseHeld),
        last: Some(Change::Release),
        ..USUAL
    },
    Case {
        name: "inactive",
        phase: "Inactive",
        is_wanted: false,
        last: Some(Change::Open),
        end: "Active",
        ..USUAL
    },
    Case {
        name: "disabled",
        phase: "Disabled",
        then: Some(Change::Disable),
        last: Some(Change::Enable),
        end: "Active",
        ..USUAL
    },
    Case {
        name: "killed",
        phase: "Terminated",
        then: Some(Change::Kill),
        last: Some(Change::Revive),
        end: "Active",
        ..USUAL
    },
    Case {
        name: "override-run",
        phase: "Active",
        is_wanted: false,
        mode: Some("Run"),
        last: Some(Change::EndOverride),
        ..USUAL
    },
    Case {
        name: "override-stop",
        phase: "Inactive",
        mode: Some("Stop"),
        last: Some(Change::EndOverride),
        end: "Active",
        ..USUAL
    },
    Case {
        name: "override-hold",
        phase: "Active",
        // An override with mode Hold creates no machine.
        then: Some(Change::Override),
        mode: Some("Hold"),
        last: Some(Change::EndOverride),
        end: "Active",
        ..USUAL
    },
];

/// The machine that is opened and removed after each step.
pub(super) const NEW_MACHINE: Case = Case {
    name: "new",
    ..USUAL
};

/// The state of a machine that is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MachineState {
    pub(super) phase: String,
    /// The uid of the Machine; empty if there is none.
    pub(super) machine: String,
    /// Whether the Machine has a deletion timestamp.
    pub(super) is_deleting: bool,
    /// `status.shutdown` as JSON.
    pub(super) shutdown: String,
    /// The reason of its condition Ready.
    pub(super) reason: String,
}

/// Creates the Cluster that most machines join.
///
/// # Errors
/// The server rejects it.
pub(super) fn add_cluster(server: &Server) -> Result<(), Box<dyn Error>> {
    create_cluster(server, CLUSTER)
}

fn create_cluster(server: &Server, name: &str) -> Result<(), Box<dyn Error>> {
    let versions = server.management.kubectl(&["api-versions"])?;
    let version = ["cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1"]
        .into_iter()
        .find(|it| versions.lines().any(|line| line == *it))
        .ok_or("Cluster API is not installed")?;
    server.management.apply(
        &json!({
            "apiVersion": version,
            "kind": "Cluster",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["10.244.0.0/16"]}}},
        })
        .to_string(),
    )
}

impl Case {
    /// Creates the ScheduledMachine with its override.
    ///
    /// # Errors
    /// The server rejects them.
    pub(super) fn create(&self, server: &Server) -> Result<(), Box<dyn Error>> {
        if self.then != Some(Change::Override) {
            self.change_by_override(server)?;
        }
        let object = json!({
            "apiVersion": "5spot.finos.org/v1alpha1",
            "kind": "ScheduledMachine",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {
                "clusterName": self.cluster,
                "schedule": {
                    "daysOfWeek": ["mon-sun"],
                    "hoursOfDay": [hours(self.is_wanted)?],
                },
                "bootstrapSpec": {
                    "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                    "kind": "K0sWorkerConfig",
                    "spec": {"version": "v1.30.0+k0s.0"},
                },
                "infrastructureSpec": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "RemoteMachine",
                    "spec": {"address": format!("{}.example", self.name), "port": 22},
                },
                // Longer than the test takes.
                "gracefulShutdownTimeout": "4h",
                "nodeDrainTimeout": "4h",
            },
        });
        // With `create`, as a user does, so that the user's manager owns the fields later too.
        server
            .management
            .kubectl_with(&["create", "-f", "-"], &object.to_string())
            .map(drop)
    }

    /// Creates the override of the case, if it has a mode.
    fn change_by_override(&self, server: &Server) -> Result<(), Box<dyn Error>> {
        let Some(mode) = self.mode else {
            return Ok(());
        };
        let object = json!({
            "apiVersion": "5spot.finos.org/v1alpha1",
            "kind": "ScheduleOverride",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {
                "targetRef": {"name": self.name},
                "mode": mode,
                "endTime": utc(&["-d", "+5 hours", "+%FT%TZ"])?,
            },
        });
        server
            .management
            .kubectl_with(&["create", "-f", "-"], &object.to_string())
            .map(drop)
    }

    /// Brings the machine to the phase in which it stays.
    ///
    /// # Errors
    /// It does not reach the phase.
    pub(super) fn bring(&self, server: &Server) -> Result<(), Box<dyn Error>> {
        if let Some(change) = self.then {
            self.wait(server, "Active")?;
            self.change(server, change)?;
        }
        self.wait(server, self.phase)
    }

    /// Makes the last change, and waits for the phase after it.
    ///
    /// # Errors
    /// The phase is not reached.
    pub(super) fn finish(&self, server: &Server) -> Result<(), Box<dyn Error>> {
        if let Some(change) = self.last {
            self.change(server, change)?;
        }
        self.wait(server, self.end)
    }

    /// Deletes it and waits until it has been removed.
    ///
    /// # Errors
    /// It remains.
    pub(super) fn remove(&self, server: &Server) -> Result<(), Box<dyn Error>> {
        let words = ["delete", "sm", self.name, "-n", NAMESPACE];
        server
            .management
            .kubectl(&[&words[..], &["--timeout=120s"]].concat())
            .map(drop)
    }

    /// Waits for a phase.
    ///
    /// # Errors
    /// The phase is not reached.
    pub(super) fn wait(
        &self,
        server: &Server,
        phase: &str,
    ) -> Result<(), Box<dyn Error>> {
        until(&format!("{} is {phase}", self.name), || {
            Ok(self.observe(server)?.phase == phase)
        })
    }

    /// Returns the current state of the machine.
    ///
    /// # Errors
    /// The server does not respond.
    pub(super) fn observe(
        &self,
        server: &Server,
    ) -> Result<MachineState, Box<dyn Error>> {
        let object = server.management.get(&["sm", self.name, "-n", NAMESPACE])?;
        let machine = server
            .management
            .get(&["machine", self.name, "-n", NAMESPACE])?;
        let shutdown = &object["status"]["shutdown"];
        let conditions = object["status"]["conditions"].as_array();
        let ready =
            conditions.and_then(|all| all.iter().find(|it| it["type"] == "Ready"));
        let reason = ready.map(|it| text(it, "/reason")).unwrap_or_default();
        Ok(MachineState {
            phase: text(&object, "/status/phase").to_owned(),
            machine: text(&machine, "/metadata/uid").to_owned(),
            is_deleting: !machine["metadata"]["deletionTimestamp"].is_null(),
            shutdown: if shutdown.is_null() {
                String::new()
            } else {
                shutdown.to_string()
            },
            reason: reason.to_owned(),
        })
    }

    fn change(&self, server: &Server, change: Change) -> Result<(), Box<dyn Error>> {
        match change {
            Change::Close => self.schedule(server, false),
            Change::Open => self.schedule(server, true),
            Change::CloseHeld => {
                self.hold_pod(server)?;
                self.schedule(server, false)
            }
            Change::Release => {
                let words = ["delete", "pdb", self.name, "-n", NAMESPACE];
                server.workload.kubectl(&words).map(drop)
            }
            Change::Disable => {
                self.patch(server, &json!({"schedule": {"enabled": false}}))
            }
            Change::Enable => self.patch(server, &json!({"schedule": {"enabled": true}})),
            Change::Kill => self.patch(server, &json!({"killSwitch": true})),
            Change::Revive => self.patch(server, &json!({"killSwitch": false})),
            Change::Override => self.change_by_override(server),
            Change::EndOverride => {
                let words = ["delete", "smo", self.name, "-n", NAMESPACE];
                server.management.kubectl(&words).map(drop)
            }
            Change::AddCluster => create_cluster(server, LATE),
        }
    }

    fn schedule(&self, server: &Server, is_wanted: bool) -> Result<(), Box<dyn Error>> {
        let hours = hours(is_wanted)?;
        self.patch(server, &json!({"schedule": {"hoursOfDay": [hours]}}))
    }

    fn patch(&self, server: &Server, spec: &Value) -> Result<(), Box<dyn Error>> {
        let patch = json!({"spec": spec}).to_string();
        let words = ["patch", "sm", self.name, "-n", NAMESPACE, "--type=merge"];
        server
            .management
            .kubectl(&[&words[..], &["-p", &patch]].concat())
            .map(drop)
    }

    /// Creates a pod on its Node that cannot be evicted.
    fn hold_pod(&self, server: &Server) -> Result<(), Box<dyn Error>> {
        let object = server.management.get(&["sm", self.name, "-n", NAMESPACE])?;
        let labels = json!({"app": self.name});
        let budget = json!({
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        });
        server.workload.apply(&budget.to_string())?;
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": self.name, "namespace": NAMESPACE, "labels": labels},
            "spec": {
                "nodeName": text(&object, "/status/nodeRef/name"),
                "containers": [{"name": "app", "image": "registry.example/app:1"}],
            },
        });
        server
            .workload
            .kubectl_with(&["create", "-f", "-"], &pod.to_string())?;
        until("the budget counts its pod", || {
            let budget = server.workload.get(&["pdb", self.name, "-n", NAMESPACE])?;
            Ok(budget["status"]["currentHealthy"] == 1)
        })
    }
}

/// Hours in UTC: all hours, or one that is 12 hours away.
fn hours(is_wanted: bool) -> Result<String, Box<dyn Error>> {
    if is_wanted {
        return Ok("0-23".to_owned());
    }
    let now: u32 = utc(&["+%H"])?.parse()?;
    Ok(((now + 12) % 24).to_string())
}

/// The time of this machine, which the operators use.
fn utc(words: &[&str]) -> Result<String, Box<dyn Error>> {
    let done = Command::new("date").arg("-u").args(words).output()?;
    Ok(String::from_utf8(done.stdout)?.trim().to_owned())
}

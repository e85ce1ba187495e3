//! The objects of one machine on the server, and what follows from them.

use fivespot_api::name;
use fivespot_capi::key;
use fivespot_testkit::{machine_path, node_path};
use jiff::Timestamp;
use kubemu_apiserver::{Client, Selector};
use serde_json::Value;

use crate::effective_schedule::{EffectiveSchedule, Inputs};

/// The objects of one machine on the server. Null for objects that do not exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct MachineSnapshot {
    pub(crate) owner: Value,
    pub(crate) bootstrap: Value,
    pub(crate) infrastructure: Value,
    pub(crate) machine: Value,
    pub(crate) node: Value,
    pub(crate) cluster: Value,
    /// All Machines.
    pub(crate) machines: Vec<Value>,
    /// The pods on the Node.
    pub(crate) pods: Vec<Value>,
    /// Overrides and calendars.
    pub(crate) inputs: Inputs,
}

/// The paths of the objects of one machine.
#[derive(Clone, Debug)]
pub(crate) struct MachinePaths {
    pub(crate) name: String,
    pub(crate) owned: [String; 3],
    pub(crate) cluster: String,
}

const PODS: &str = "/api/v1/namespaces/default/pods";

/// The path of the overrides.
pub(crate) const OVERRIDES: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/scheduleoverrides";

/// The path of the calendars.
pub(crate) const CALENDARS: &str =
    "/apis/5spot.finos.org/v1alpha1/namespaces/default/schedulecalendars";

impl Inputs {
    /// Reads the relevant fields of the overrides and calendars.
    pub(crate) async fn of(client: &Client) -> Self {
        let list = async |path: &str| {
            let found = client.list(path, &Selector::default()).await;
            let found = found.map(|found| found.items).unwrap_or_default();
            let kept = ["name", "uid", "annotations"];
            let plain = found.iter().map(|one| {
                let of = |field: &str| (field.to_owned(), one["metadata"][field].clone());
                let metadata: serde_json::Map<_, _> = kept.map(of).into_iter().collect();
                serde_json::json!({"metadata": metadata, "spec": one["spec"]})
            });
            plain.collect()
        };
        Self {
            overrides: list(OVERRIDES).await,
            calendars: list(CALENDARS).await,
        }
    }
}

impl MachineSnapshot {
    pub(crate) async fn of(client: &Client, paths: &MachinePaths) -> Self {
        let get = async |path: &str| {
            let found = client.get(path).await;
            found.map(|found| Value::clone(&found)).unwrap_or_default()
        };
        let [bootstrap, infrastructure, machine] = &paths.owned;
        let all = machine.rsplit_once('/').map_or("", |(all, _)| all);
        let list = async |path: &str| {
            let found = client.list(path, &Selector::default()).await;
            found.map(|found| found.items).unwrap_or_default()
        };
        let pods = list(PODS).await;
        let is_on_it =
            |pod: &&std::sync::Arc<Value>| pod["spec"]["nodeName"] == paths.name;
        Self {
            owner: get(&machine_path(&paths.name)).await,
            bootstrap: get(bootstrap).await,
            infrastructure: get(infrastructure).await,
            machine: get(machine).await,
            node: get(&node_path(&paths.name)).await,
            cluster: get(&paths.cluster).await,
            machines: list(all)
                .await
                .iter()
                .map(|one| Value::clone(one))
                .collect(),
            pods: pods
                .iter()
                .filter(is_on_it)
                .map(|pod| Value::clone(pod))
                .collect(),
            inputs: Inputs::of(client).await,
        }
    }

    /// The reported phase. `none` if there is no status.
    pub(crate) fn phase(&self) -> &str {
        self.owner["status"]["phase"].as_str().unwrap_or("none")
    }

    pub(crate) fn uid(&self) -> &str {
        self.owner["metadata"]["uid"].as_str().unwrap_or_default()
    }

    /// Whether an object was made for this machine.
    pub(crate) fn is_ours(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        let owners = object["metadata"]["ownerReferences"].as_array();
        let is_owned_by = |uid: &Value| {
            uid.is_string()
                && owners.is_some_and(|all| all.iter().any(|one| one["uid"] == *uid))
        };
        let is_labelled =
            labels[name::SCHEDULED_MACHINE_UID_LABEL] == self.owner["metadata"]["uid"];
        let machine = &self.machine["metadata"];
        let is_of_machine = object["kind"] != "Machine"
            && machine["labels"][name::SCHEDULED_MACHINE_UID_LABEL]
                == self.owner["metadata"]["uid"]
            && is_owned_by(&machine["uid"]);
        labels[name::SCHEDULED_MACHINE_LABEL] == self.owner["metadata"]["name"]
            && !self.owner.is_null()
            && (is_labelled
                || is_owned_by(&self.owner["metadata"]["uid"])
                || is_of_machine)
    }

    /// The owned objects that exist.
    pub(crate) fn ours(&self) -> Vec<&Value> {
        let all = [&self.bootstrap, &self.infrastructure, &self.machine];
        all.into_iter()
            .filter(|object| !object.is_null() && self.is_ours(object))
            .collect()
    }

    /// The schedule with overrides and calendars. `None` if it is invalid.
    pub(crate) fn schedule(&self) -> Option<EffectiveSchedule<'_>> {
        EffectiveSchedule::of(&self.owner, &self.inputs)
    }

    /// Whether the schedule is enabled and open.
    pub(crate) fn is_in_force(&self, now: Timestamp) -> bool {
        self.is_enabled() && self.schedule().is_some_and(|of| of.is_wanted(now))
    }

    /// The next instant at which the schedule or an override changes for the machine.
    pub(crate) fn next_edge(&self, now: Timestamp) -> Option<Timestamp> {
        self.schedule().and_then(|of| of.next_edge(now))
    }

    /// Whether the operator has not yet begun what the schedule requires: no object of a needed
    /// machine exists, or a machine that is not needed is neither being removed nor held.
    pub(crate) fn is_overdue(&self, now: Timestamp) -> bool {
        let Some(schedule) = self.schedule() else {
            return false;
        };
        if !self.is_enabled() || self.is_killed() || schedule.is_held(now) {
            return false;
        }
        let is_going = self.machine["metadata"]["deletionTimestamp"].is_string();
        if schedule.is_needed(now) {
            self.ours().is_empty() && !schedule.is_too_short(now)
        } else {
            let has_machine = !self.machine.is_null() && self.is_ours(&self.machine);
            has_machine && !is_going && self.shutdown_record().is_none()
        }
    }

    /// Whether an override holds the machine, and nothing takes precedence over it.
    pub(crate) fn is_held(&self, now: Timestamp) -> bool {
        self.is_enabled()
            && !self.is_killed()
            && !self.is_deleting()
            && self.schedule().is_some_and(|of| of.is_held(now))
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.owner["spec"]["schedule"]["enabled"] != false
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.owner["spec"]["killSwitch"] == true
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.owner["metadata"]["deletionTimestamp"].is_string()
    }

    /// Whether a machine should serve now or be provisioned.
    pub(crate) fn is_needed(&self, now: Timestamp) -> bool {
        self.schedule().is_some_and(|of| of.is_needed(now))
            && self.is_enabled()
            && !self.is_killed()
            && !self.is_deleting()
            && !self.owner.is_null()
    }

    pub(crate) fn is_paused(&self) -> bool {
        let paused =
            |object: &Value| !object["metadata"]["annotations"][key::PAUSED].is_null();
        self.cluster["spec"]["paused"] == true
            || paused(&self.cluster)
            || paused(&self.owner)
            || paused(&self.machine)
    }

    /// The shutdown record of the Machine that exists.
    pub(crate) fn shutdown_record(&self) -> Option<&Value> {
        let shutdown = &self.owner["status"]["shutdown"];
        let is_for_it = shutdown["machineUID"] == self.machine["metadata"]["uid"];
        (shutdown.is_object() && is_for_it).then_some(shutdown)
    }

    /// Whether the Node belongs to the Machine.
    pub(crate) fn has_its_node(&self) -> bool {
        let provider = &self.machine["spec"]["providerID"];
        provider.is_string() && *provider == self.node["spec"]["providerID"]
    }
}

/// Parses the timestamp in a field.
pub(crate) fn instant(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

//! What the server holds of one machine, and what that means.

use fivespot_api::{ScheduledMachine, name};
use fivespot_apiserver::{Client, Selector};
use fivespot_capi::key;
use fivespot_testkit::{machine_path, node_path};
use jiff::Timestamp;
use serde_json::Value;

/// What the server holds of one machine; null where there is nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
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
}

/// Where the objects of one machine are.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) name: String,
    pub(crate) triple: [String; 3],
    pub(crate) cluster: String,
}

const PODS: &str = "/api/v1/namespaces/default/pods";

impl Seen {
    pub(crate) async fn of(client: &Client, places: &Places) -> Self {
        let get = async |path: &str| {
            let found = client.get(path).await;
            found.map(|found| Value::clone(&found)).unwrap_or_default()
        };
        let [bootstrap, infrastructure, machine] = &places.triple;
        let all = machine.rsplit_once('/').map_or("", |(all, _)| all);
        let list = async |path: &str| {
            let found = client.list(path, &Selector::default()).await;
            found.map(|found| found.items).unwrap_or_default()
        };
        let pods = list(PODS).await;
        let is_on_it =
            |pod: &&std::sync::Arc<Value>| pod["spec"]["nodeName"] == places.name;
        Self {
            owner: get(&machine_path(&places.name)).await,
            bootstrap: get(bootstrap).await,
            infrastructure: get(infrastructure).await,
            machine: get(machine).await,
            node: get(&node_path(&places.name)).await,
            cluster: get(&places.cluster).await,
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
        }
    }

    /// The phase that is told; `none` where there is no status.
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

    /// The objects of the triple that are there and ours.
    pub(crate) fn ours(&self) -> Vec<&Value> {
        let all = [&self.bootstrap, &self.infrastructure, &self.machine];
        all.into_iter()
            .filter(|object| !object.is_null() && self.is_ours(object))
            .collect()
    }

    /// Whether the window is open; none if the schedule is invalid.
    pub(crate) fn is_open(&self, now: Timestamp) -> Option<bool> {
        let owner: ScheduledMachine = serde_json::from_value(self.owner.clone()).ok()?;
        Some(owner.spec.schedule.schedule().ok()?.at(now).is_open())
    }

    /// Whether the schedule is in force and open.
    pub(crate) fn is_in_force(&self, now: Timestamp) -> bool {
        self.is_open(now) == Some(true) && self.is_enabled()
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

    /// Whether a machine should serve now.
    pub(crate) fn is_wanted(&self, now: Timestamp) -> bool {
        self.is_open(now) == Some(true)
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

    /// The commitment to leave for the Machine that is there.
    pub(crate) fn commitment(&self) -> Option<&Value> {
        let shutdown = &self.owner["status"]["shutdown"];
        let is_for_it = shutdown["machineUID"] == self.machine["metadata"]["uid"];
        (shutdown.is_object() && is_for_it).then_some(shutdown)
    }

    /// Whether the Node is the Machine's.
    pub(crate) fn has_its_node(&self) -> bool {
        let provider = &self.machine["spec"]["providerID"];
        provider.is_string() && *provider == self.node["spec"]["providerID"]
    }
}

/// An instant in an object.
pub(crate) fn instant(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

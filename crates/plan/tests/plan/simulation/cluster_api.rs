//! Cluster API, the providers and the kubelet.

use fivespot_capi::{Contract, key};
use serde_json::{Value, json};

use super::{NAME, Simulation};

impl Simulation {
    /// One step each of Cluster API, the providers and the kubelet; returns whether anything
    /// changed.
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
}

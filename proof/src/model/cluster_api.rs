//! Cluster API, the provider and the kubelet: one step at a time, or never any.

use fivespot_api::rules;
use fivespot_capi::{Contract, key};
use serde_json::{Value, json};

use super::environment::{Environment, NAME, is_deleting, is_ours};
use super::state::{Kind, Pod, State};

pub(crate) const PROVIDER_ID: &str = "remote-machine://192.0.2.7:22";

impl Environment {
    /// The next step of Cluster API and the provider; returns whether there was one.
    pub(crate) fn reconcile(&self, state: &mut State) -> bool {
        let is_new = |kind: &Kind| {
            self.get(state, *kind).is_some_and(|object| {
                object["metadata"]["finalizers"].is_null() && !is_deleting(&object)
            })
        };
        if let Some(kind) = Kind::INFRASTRUCTURES.into_iter().find(is_new) {
            self.change(state, kind, |object| {
                object["metadata"]["finalizers"] = json!(["example.com/provider"]);
            });
            return true;
        }
        match self.get(state, Kind::Machine).filter(is_ours) {
            Some(machine) if is_deleting(&machine) => self.tear_down(state, &machine),
            Some(machine) => self.provision(state, &machine),
            None => {
                let mut all = Kind::INFRASTRUCTURES.into_iter();
                all.any(|kind| self.end_infrastructure(state, kind))
            }
        }
    }

    /// The kubelet terminates a pod that was evicted or deleted; returns whether there was one.
    pub(crate) fn end_pod(state: &mut State) -> bool {
        let is_leaving = state.pod == Pod::Leaving;
        if is_leaving {
            state.pod = Pod::None;
        }
        is_leaving
    }

    fn provision(&self, state: &mut State, machine: &Value) -> bool {
        let is_of_ours = machine["spec"]["clusterName"] == "prod";
        if !is_of_ours || self.get(state, Kind::Cluster).is_none() {
            return false;
        }
        if machine["metadata"]["finalizers"].is_null() {
            self.change(state, Kind::Machine, |object| {
                object["metadata"]["finalizers"] = json!([key::MACHINE_FINALIZER]);
            });
            return true;
        }
        for kind in parts(machine) {
            let found = kind.and_then(|kind| Some((kind, self.get(state, kind)?)));
            let Some((kind, object)) = found else {
                return false;
            };
            match controller(&object) {
                None if state.refuses_adoption => return false,
                None => {
                    self.adopt(state, kind, &machine["metadata"]["uid"]);
                    return true;
                }
                // An object with another controller is never adopted.
                Some(owner) if owner["uid"] != machine["metadata"]["uid"] => {
                    return false;
                }
                Some(_) => {}
            }
        }
        if machine["status"]["nodeRef"].is_null() {
            self.run(state);
            return true;
        }
        false
    }

    fn adopt(&self, state: &mut State, kind: Kind, uid: &Value) {
        self.change(state, kind, |object| {
            let owner = json!({
                "apiVersion": Contract::V1Beta2.api_version(), "kind": "Machine",
                "name": NAME, "uid": uid, "controller": true,
            });
            match object["metadata"]["ownerReferences"].as_array_mut() {
                Some(owners) => owners.push(owner),
                None => object["metadata"]["ownerReferences"] = json!([owner]),
            }
        });
    }

    /// Creates the Node of a machine, as its kubelet does.
    pub(crate) fn join(&self, state: &mut State, provider_id: &str) {
        self.create(
            state,
            Kind::Node,
            json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": { "name": NAME },
                "spec": { "providerID": provider_id },
                "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
            }),
        );
        state.pod = Pod::Running;
    }

    fn run(&self, state: &mut State) {
        self.join(state, PROVIDER_ID);
        self.change(state, Kind::Machine, |machine| {
            machine["spec"]["providerID"] = json!(PROVIDER_ID);
            machine["status"] = json!({
                "phase": "Running", "nodeRef": { "name": NAME },
                "initialization": {
                    "bootstrapDataSecretCreated": true, "infrastructureProvisioned": true,
                },
                "conditions": [{ "type": "Ready", "status": "True", "reason": "Ready" }],
            });
        });
    }

    /// Drains the Machine, then deletes infrastructure, bootstrap, Node and Machine.
    fn tear_down(&self, state: &mut State, machine: &Value) -> bool {
        let annotations = &machine["metadata"]["annotations"];
        if annotations[key::EXCLUDE_NODE_DRAINING].is_null() && state.pod != Pod::None {
            state.pod = Pod::None;
            return true;
        }
        // Objects that the Machine refers to are deleted with it, adopted or not; but a provider
        // does nothing for an object that no Machine owns.
        for kind in parts(machine).into_iter().rev().flatten() {
            if let Some(object) = self.get(state, kind).filter(is_ours) {
                if !is_deleting(&object) {
                    self.delete(state, kind);
                } else if has_controller(&object) {
                    state.put(kind, None);
                } else if state.refuses_adoption {
                    return false;
                } else {
                    self.adopt(state, kind, &machine["metadata"]["uid"]);
                }
                return true;
            }
        }
        state.pod = Pod::None;
        state.put(Kind::Node, None);
        state.put(Kind::Machine, None);
        true
    }

    /// The provider removes an infrastructure object that is being deleted. One that never had a
    /// Machine hangs, as long as a Machine could be created for it.
    fn end_infrastructure(&self, state: &mut State, kind: Kind) -> bool {
        let is_admissible = state
            .sm
            .is_some_and(|id| rules::check(&self.machines.of(id)).is_empty());
        let may_get_one =
            is_admissible && self.has_cluster(state) && state.at(Kind::Machine).is_none();
        let is_going = self.get(state, kind).is_some_and(|object| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            let had_machine = owners
                .is_some_and(|all| all.iter().any(|owner| owner["kind"] == "Machine"));
            is_deleting(&object) && (had_machine || !may_get_one)
        });
        if is_going {
            state.put(kind, None);
        }
        is_going
    }
}

/// The bootstrap object and the infrastructure object that a Machine refers to.
pub(crate) fn parts(machine: &Value) -> [Option<Kind>; 2] {
    let spec = &machine["spec"];
    let kinds = [
        &spec["bootstrap"]["configRef"]["kind"],
        &spec["infrastructureRef"]["kind"],
    ];
    kinds.map(|kind| Kind::parse(kind.as_str().unwrap_or_default()))
}

pub(crate) fn has_controller(object: &Value) -> bool {
    controller(object).is_some()
}

fn controller(object: &Value) -> Option<&Value> {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners?.iter().find(|owner| owner["controller"] == true)
}

//! Which objects to read.

use fivespot_api::{
    InlineObject, NodeRef, ObjectRef, ScheduledMachine, ScheduledMachineStatus,
    ShutdownReason, name,
};
use fivespot_capi::{Machine, Reference, key};

use crate::Lookup;
use crate::observed::owned::is_made_by;

/// Which objects to read before planning. All but the Node are in the ScheduledMachine's
/// namespace.
///
/// A location is only a place to read: whether the object found there is ours is decided by its
/// labels and owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locations {
    /// Name of the Cluster: that of the Machine, else that of the spec.
    pub cluster: String,
    /// Name of the Machine.
    pub machine: String,
    /// Where a bootstrap object may be. A reference without a version is read in any served
    /// version.
    pub bootstrap: Vec<Reference>,
    /// Where an infrastructure object may be, likewise.
    pub infrastructure: Vec<Reference>,
    /// Name of the Node to read in the workload cluster: that of the Machine, else, while the
    /// Machine is being provisioned, the Machine's own name.
    pub node: Option<String>,
    /// Whether Cluster API reports that Node for the Machine, or for the reclaimed one. If not,
    /// the Node is only used in messages, and nothing waits for the response.
    pub has_joined: bool,
    /// Whether the pods on that Node are needed: a Machine is being shut down and not yet
    /// deleted.
    pub wants_pods: bool,
    /// Whether that Node should have an agent.
    pub wants_agent: bool,
}

impl Locations {
    /// The Cluster that objects without a Machine are completed for: that on the label of the
    /// first one that is ours, whatever the current spec has. `None` if there is a Machine of
    /// ours, which names its Cluster, or if no object was found.
    pub fn cluster_on_label<'a>(
        object: &ScheduledMachine,
        machine: Option<&Machine>,
        found: impl IntoIterator<Item = &'a Lookup>,
    ) -> Option<&'a str> {
        let own_name = object.metadata.name.as_deref().unwrap_or_default();
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        if machine.is_some_and(|found| is_made_by(&found.meta, own_name, uid)) {
            return None;
        }
        let found = found
            .into_iter()
            .filter_map(|of| of.found.known()?.as_ref());
        let mut ours = found.filter(|of| is_made_by(&of.meta, own_name, uid));
        let label = ours.find_map(|of| of.meta.labels.get(key::CLUSTER_NAME))?;
        Some(label)
    }

    /// The locations for a ScheduledMachine, given its Machine if there is one.
    pub fn of(object: &ScheduledMachine, machine: Option<&Machine>) -> Self {
        let own_name = object.metadata.name.as_deref().unwrap_or_default();
        let child = name::child(own_name);
        let status = object.status.as_ref();
        let uid = object.metadata.uid.as_deref().unwrap_or_default();
        let machine = machine.filter(|found| is_made_by(&found.meta, own_name, uid));
        let cluster =
            machine.map_or(&object.spec.cluster_name, |found| &found.cluster_name);
        let joined = match machine {
            Some(found) => found.node.as_ref().map(|node| node.name.clone()),
            None => status
                .and_then(reclaimed_node)
                .map(|node| node.name.clone()),
        };
        let has_joined = joined.is_some();
        let comes_up = machine.filter(|found| !found.meta.is_deleting);
        Self {
            cluster: cluster.clone(),
            machine: child.to_owned(),
            bootstrap: distinct(
                [
                    machine.and_then(|found| found.bootstrap.clone()),
                    status
                        .and_then(|status| status.bootstrap_ref.as_ref())
                        .map(reference),
                ],
                inline(&object.spec.bootstrap_spec, child),
            ),
            infrastructure: distinct(
                [
                    machine.and_then(|found| found.infrastructure.clone()),
                    status
                        .and_then(|status| status.infrastructure_ref.as_ref())
                        .map(reference),
                ],
                inline(&object.spec.infrastructure_spec, child),
            ),
            node: joined.or_else(|| comes_up.map(|found| found.meta.name.clone())),
            has_joined,
            wants_pods: has_joined
                && status.is_some_and(|status| status.shutdown.is_some())
                && machine.is_some_and(|found| !found.meta.is_deleting),
            wants_agent: has_joined && !object.spec.reclaim_commands().1.is_empty(),
        }
    }
}

/// The Node of a reclaimed Machine that is gone: the request may still be on it.
pub(crate) fn reclaimed_node(status: &ScheduledMachineStatus) -> Option<&NodeRef> {
    let is_reclaimed = status
        .shutdown
        .as_ref()
        .is_some_and(|of| of.reason == ShutdownReason::Reclaim);
    let node = status.node_ref.as_ref()?;
    (is_reclaimed || status.machine_ref.is_none()).then_some(node)
}

/// The places in order, each object once; `home` is where a new one would be created.
fn distinct(recorded: [Option<Reference>; 2], home: Reference) -> Vec<Reference> {
    // A reference of an edited status or Machine to any other API group is not followed.
    let of_providers = |place: &Reference| name::is_provider_group(&place.group);
    let recorded = recorded.into_iter().flatten().filter(of_providers);
    let mut all: Vec<Reference> = Vec::new();
    for place in recorded.chain([home]) {
        if !all.iter().any(|known| known.is_same_object(&place)) {
            all.push(place);
        }
    }
    all
}

/// Where a recorded object is.
pub(crate) fn reference(from: &ObjectRef) -> Reference {
    Reference::new(&from.api_version, &from.kind, &from.name)
}

fn inline(from: &InlineObject, name: &str) -> Reference {
    Reference::new(&from.api_version, &from.kind, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object() -> ScheduledMachine {
        serde_json::from_value(json!({
            "metadata": { "name": "worker", "uid": "sm-1" },
            "spec": {
                "schedule": {}, "clusterName": "prod",
                "bootstrapSpec": {
                    "apiVersion": "bootstrap.cluster.x-k8s.io/v1", "kind": "B", "spec": {},
                },
                "infrastructureSpec": {
                    "apiVersion": "infrastructure.cluster.x-k8s.io/v1", "kind": "I", "spec": {},
                },
            },
        }))
        .unwrap()
    }

    fn machine(label: &str, uid: &str) -> Machine {
        Machine::read(&json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": {
                "name": "worker", "uid": "m-1",
                "labels": {
                    name::SCHEDULED_MACHINE_LABEL: label,
                    name::SCHEDULED_MACHINE_UID_LABEL: uid,
                },
            },
            "spec": {
                "clusterName": "older",
                "infrastructureRef": {
                    "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Old", "name": "worker",
                },
            },
            "status": { "nodeRef": { "name": "n1" } },
        }))
        .unwrap()
    }

    #[test]
    fn recorded_locations_precede_those_of_the_spec() {
        let locations = Locations::of(&object(), Some(&machine("worker", "sm-1")));
        let kinds: Vec<_> = locations
            .infrastructure
            .iter()
            .map(|place| &place.kind)
            .collect();
        assert_eq!(kinds, ["Old", "I"]);
        assert_eq!(
            (locations.cluster.as_str(), locations.node.as_deref()),
            ("older", Some("n1"))
        );
    }

    #[test]
    fn a_foreign_machine_adds_no_locations() {
        // Likewise the Machine of an earlier ScheduledMachine of the same name.
        for foreign in [machine("another", "sm-1"), machine("worker", "sm-0")] {
            let locations = Locations::of(&object(), Some(&foreign));
            assert_eq!(locations.infrastructure.len(), 1);
            assert_eq!((locations.cluster.as_str(), locations.node), ("prod", None));
        }
    }

    #[test]
    fn no_secret_is_read_for_an_edited_status() {
        let mut object = object();
        object.status = Some(ScheduledMachineStatus {
            bootstrap_ref: Some(ObjectRef {
                api_version: "v1".to_owned(),
                kind: "Secret".to_owned(),
                name: "worker".to_owned(),
                namespace: None,
                uid: None,
            }),
            ..ScheduledMachineStatus::default()
        });
        let locations = Locations::of(&object, None);
        assert!(locations.bootstrap.iter().all(|place| place.kind == "B"));
    }
}

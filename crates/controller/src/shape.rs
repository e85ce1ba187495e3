//! What is kept of an object in a cache, who is woken by it, and how it is found again.

use fivespot_api::name;
use fivespot_capi::machine;
use kube::api::ApiResource;
use serde_json::{Map, Value};

use crate::Key;
use crate::store::{Object, Target};

/// How the objects of a watch are to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// ScheduledMachines.
    ScheduledMachine,
    /// Clusters of Cluster API.
    Cluster,
    /// Machines of Cluster API that bear our label.
    Machine,
    /// Bootstrap and infrastructure objects that bear our label.
    Provider,
    /// Nodes of the workload cluster of this Cluster.
    Node(Key),
    /// Pods on the Node of this ScheduledMachine.
    Pod(Key),
    /// ConfigMaps of agents on Nodes of the workload cluster of this Cluster.
    AgentConfig(Key),
}

/// Finds what belongs to the Cluster of that name.
pub(crate) fn cluster_term(cluster: &Key) -> String {
    format!("cluster {cluster}")
}

/// Finds the Machine that became the Node of that name.
fn node_term(cluster: &Key, node: &str) -> String {
    format!("node {cluster} {node}")
}

/// Finds the Machine with that provider's identifier.
fn provider_term(cluster: &Key, provider_id: &str) -> String {
    format!("provider {cluster} {provider_id}")
}

impl Shape {
    /// Whether it is read from a workload cluster.
    pub(crate) fn is_of_workload(&self) -> bool {
        match self {
            Self::Node(_) | Self::Pod(_) | Self::AgentConfig(_) => true,
            Self::ScheduledMachine | Self::Cluster | Self::Machine | Self::Provider => {
                false
            }
        }
    }

    /// What a cache keeps of `object`.
    pub(crate) fn keep(&self, mut object: Value, resource: &ApiResource) -> Object {
        name_kind(&mut object, resource);
        let meta = &object["metadata"];
        let own = Key::new(text(&meta["namespace"]), text(&meta["name"]));
        let (wakes, terms) = self.links(&object, &own);
        self.cut(&mut object);
        Object::new(object, wakes, terms)
    }

    /// Cuts `object` down to what is read of it.
    pub(crate) fn cut(&self, object: &mut Value) {
        strip_metadata(object);
        match self {
            Self::ScheduledMachine => {}
            Self::Machine => {
                keep_only(&mut object["spec"], &machine::SPEC);
                keep_only(&mut object["status"], &machine::STATUS);
                keep_conditions(object, &machine::CONDITIONS);
            }
            Self::Cluster => {
                keep_only(&mut object["spec"], &["paused"]);
                let kept = ["infrastructureReady", "initialization", "conditions"];
                keep_only(&mut object["status"], &kept);
                keep_conditions(object, &["ControlPlaneInitialized"]);
            }
            Self::Provider => {
                keep_only(object, &["apiVersion", "kind", "metadata", "status"]);
                let kept = ["ready", "initialization", "conditions"];
                keep_only(&mut object["status"], &kept);
            }
            Self::Node(_) => {
                let kept = ["providerID", "unschedulable", "taints"];
                keep_only(&mut object["spec"], &kept);
                keep_only(&mut object["status"], &["conditions"]);
                keep_conditions(object, &["Ready"]);
            }
            Self::AgentConfig(_) => {
                keep_only(object, &["apiVersion", "kind", "metadata", "data"]);
                keep_only(&mut object["data"], &[name::RECLAIM_CONFIG_KEY]);
            }
            Self::Pod(_) => {
                keep_only(&mut object["spec"], &["nodeName"]);
                keep_only(&mut object["status"], &["phase"]);
            }
        }
    }

    /// Whether the watches of this shape show `object`.
    pub(crate) fn shows(&self, object: &Value) -> bool {
        match self {
            Self::Machine | Self::Provider => {
                let label = &object["metadata"]["labels"][name::SCHEDULED_MACHINE_LABEL];
                label.is_string()
            }
            Self::ScheduledMachine
            | Self::Cluster
            | Self::Node(_)
            | Self::Pod(_)
            | Self::AgentConfig(_) => true,
        }
    }

    fn links(&self, object: &Value, own: &Key) -> (Vec<Target>, Vec<String>) {
        let of_cluster = || {
            let cluster = text(&object["spec"]["clusterName"]);
            Key::new(own.namespace.clone(), cluster)
        };
        match self {
            Self::ScheduledMachine => {
                let terms = vec![cluster_term(&of_cluster())];
                (vec![Target::One(own.clone())], terms)
            }
            Self::Cluster => (vec![Target::Cluster(own.clone())], Vec::new()),
            Self::Machine => {
                let cluster = of_cluster();
                let mut terms = vec![cluster_term(&cluster)];
                let node = text(&object["status"]["nodeRef"]["name"]);
                let provider_id = text(&object["spec"]["providerID"]);
                terms.extend((!node.is_empty()).then(|| node_term(&cluster, node)));
                terms.extend(
                    (!provider_id.is_empty())
                        .then(|| provider_term(&cluster, provider_id)),
                );
                (labelled(object, own), terms)
            }
            Self::Provider => (labelled(object, own), Vec::new()),
            Self::Node(cluster) => {
                let mut terms = vec![node_term(cluster, &own.name)];
                let provider_id = text(&object["spec"]["providerID"]);
                terms.extend(
                    (!provider_id.is_empty())
                        .then(|| provider_term(cluster, provider_id)),
                );
                (vec![Target::Machine(terms)], Vec::new())
            }
            Self::Pod(whose) => (vec![Target::One(whose.clone())], Vec::new()),
            Self::AgentConfig(cluster) => {
                let node = name::reclaim_node(&own.name);
                let wakes =
                    node.map(|node| Target::Machine(vec![node_term(cluster, node)]));
                (wakes.into_iter().collect(), Vec::new())
            }
        }
    }
}

/// Items of a list may leave out their kind.
fn name_kind(object: &mut Value, resource: &ApiResource) {
    if let Value::Object(fields) = object {
        fields
            .entry("apiVersion")
            .or_insert_with(|| Value::String(resource.api_version.clone()));
        fields
            .entry("kind")
            .or_insert_with(|| Value::String(resource.kind.clone()));
    }
}

/// The ScheduledMachine that the object's label names.
fn labelled(object: &Value, own: &Key) -> Vec<Target> {
    let label = &object["metadata"]["labels"][name::SCHEDULED_MACHINE_LABEL];
    let owner = label.as_str().filter(|owner| !owner.is_empty());
    owner
        .map(|owner| Target::One(Key::new(own.namespace.clone(), owner)))
        .into_iter()
        .collect()
}

/// Bookkeeping of the API server and of kubectl, often the larger part of an object.
fn strip_metadata(object: &mut Value) {
    let Value::Object(meta) = &mut object["metadata"] else {
        return;
    };
    meta.shift_remove("managedFields");
    if let Some(Value::Object(annotations)) = meta.get_mut("annotations") {
        annotations.shift_remove("kubectl.kubernetes.io/last-applied-configuration");
    }
}

fn keep_only(object: &mut Value, fields: &[&str]) {
    if let Value::Object(all) = object {
        all.retain(|field, _| fields.contains(&field.as_str()));
    }
}

/// Conditions of these types, without the times that change although nothing does.
fn keep_conditions(object: &mut Value, types: &[&str]) {
    let Some(Value::Array(conditions)) = object.pointer_mut("/status/conditions") else {
        return;
    };
    conditions.retain(|condition| types.contains(&text(&condition["type"])));
    for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
        let condition: &mut Map<String, Value> = condition;
        condition.shift_remove("lastHeartbeatTime");
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;

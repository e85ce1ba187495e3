//! Requests about the ConfigMap that configures the agent on a Node.

use fivespot_api::name;
use fivespot_capi::Reference;
use serde_json::{Value, json};

use super::workload;
use crate::{Action, AgentConfig, Call, Node, Step, Target};

/// Creates the agent's configuration. It is garbage-collected with its Node.
pub(crate) fn create_agent_config(node: &Node, text: &str) -> Action {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name::reclaim_config_map(&node.name),
            "namespace": name::SYSTEM_NAMESPACE,
            "labels": name::agent_labels(),
            "ownerReferences": [owning_node(node)],
        },
        "data": { name::RECLAIM_CONFIG_KEY: text },
    });
    on_agent_config(node, Step::CreateAgentConfig, Call::Create(object))
}

/// Changes the agent's configuration.
pub(crate) fn update_agent_config(
    node: &Node,
    config: &AgentConfig,
    text: &str,
) -> Action {
    let patch = json!({
        "metadata": {
            "uid": config.uid,
            "resourceVersion": config.resource_version,
            "ownerReferences": [owning_node(node)],
        },
        "data": { name::RECLAIM_CONFIG_KEY: text },
    });
    on_agent_config(node, Step::UpdateAgentConfig, Call::Patch(patch))
}

/// Deletes the agent's configuration.
pub(crate) fn delete_agent_config(node: &Node, config: &AgentConfig) -> Action {
    let call = Call::Delete {
        uid: config.uid.clone(),
    };
    on_agent_config(node, Step::DeleteAgentConfig, call)
}

fn owning_node(node: &Node) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "name": node.name, "uid": node.uid })
}

fn on_agent_config(node: &Node, step: Step, call: Call) -> Action {
    let name = name::reclaim_config_map(&node.name);
    let target = Target {
        object: Reference::new("v1", "ConfigMap", &name),
        namespace: Some(name::SYSTEM_NAMESPACE.to_owned()),
    };
    workload(step, target, call)
}

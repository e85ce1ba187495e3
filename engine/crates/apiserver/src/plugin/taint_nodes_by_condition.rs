//! TaintNodesByCondition: taints new nodes, so that no pods are scheduled to them until they are
//! ready.

use kubemu_admission::policy::Operation;
use serde_json::{Value, json};

use super::{Attributes, Plugin, pod};
use crate::kind::node::NOT_READY;
use crate::state::State;
use crate::status::Status;

/// The plugin. The taint is removed by the controller `node_taint`.
#[derive(Debug)]
pub(super) struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn name(&self) -> &'static str {
        "TaintNodesByCondition"
    }

    fn description(&self) -> &'static str {
        "Adds the taint `node.kubernetes.io/not-ready:NoSchedule` to new nodes. It is \
         removed when the node is ready."
    }

    fn admit(
        &self,
        _cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let creates = attributes.operation() == Operation::Create;
        if let Some(node) = object
            && creates
            && attributes.is_about("", "nodes")
        {
            let taints = pod::spec(node).entry("taints").or_insert_with(|| json!([]));
            if let Some(taints) = taints.as_array_mut() {
                let is_same =
                    |it: &Value| it["key"] == NOT_READY && it["effect"] == "NoSchedule";
                if !taints.iter().any(is_same) {
                    taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
                }
            }
        }
        Ok(())
    }
}

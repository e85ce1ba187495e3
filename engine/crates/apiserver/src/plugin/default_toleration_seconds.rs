//! DefaultTolerationSeconds: pods tolerate not-ready and unreachable nodes for five minutes.

use serde_json::{Value, json};

use super::{Attributes, Plugin};
use crate::meta;
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn name(&self) -> &'static str {
        "DefaultTolerationSeconds"
    }

    fn description(&self) -> &'static str {
        "Adds tolerations of five minutes to pods, for nodes that are not ready or not \
         reachable."
    }

    fn admit(
        &self,
        _cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        if let Some(pod) = object
            && attributes.is_about("", "pods")
        {
            tolerate(pod);
        }
        Ok(())
    }
}

/// Adds the tolerations that a pod lacks.
fn tolerate(pod: &mut Value) {
    let spec = meta::field(meta::fields(pod), "spec");
    let all = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(all) = all.as_array_mut() else {
        return;
    };
    for taint in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let covers = |field: &Value, word: &str| {
            matches!(field.as_str(), None | Some("")) || field == word
        };
        let tolerated = all
            .iter()
            .any(|it| covers(&it["key"], taint) && covers(&it["effect"], "NoExecute"));
        if !tolerated {
            all.push(
                json!({"key": taint, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300}),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_tolerations_are_kept() {
        let mut pod = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
        tolerate(&mut pod);
        let all = json!([{"operator": "Exists"}]);
        assert_eq!(pod["spec"]["tolerations"], all);
    }
}

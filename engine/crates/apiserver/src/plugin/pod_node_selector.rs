//! PodNodeSelector: restricts the nodes for the pods of a namespace.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubemu_admission::KubeVersion;
use kubemu_admission::policy::Operation;
use serde_json::Value;

use super::{Attributes, Plugin, pod};
use crate::admission_configuration::Fields;
use crate::meta;
use crate::state::State;
use crate::status::{Reason, Status};
use crate::store::Key;

/// The plugin.
#[derive(Debug, Default)]
pub(super) struct PodNodeSelector {
    /// The node labels that pods may select, by namespace.
    allowed: BTreeMap<String, Labels>,
    /// The selector for namespaces without one.
    default: Labels,
}

type Labels = BTreeMap<String, String>;

/// The annotation of a namespace with its selector.
const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";
/// The configuration field for the default selector.
const DEFAULT: &str = "clusterDefaultNodeSelector";

impl Plugin for PodNodeSelector {
    fn name(&self) -> &'static str {
        "PodNodeSelector"
    }

    fn description(&self) -> &'static str {
        "Adds the node selector of the namespace (annotation \
         `scheduler.alpha.kubernetes.io/node-selector`, or the one in the configuration) \
         to new pods, and rejects pods that select other nodes."
    }

    fn is_on_by_default(&self, _kube: KubeVersion) -> bool {
        false
    }

    fn configured(&self, configuration: &Value) -> Result<Arc<dyn Plugin>, String> {
        let fields = Fields::plain(configuration, "")?;
        let field = "podNodeSelectorPluginConfig";
        fields.only(&[field])?;
        let mut plugin = Self::default();
        let selectors = fields.get(field).and_then(Value::as_object);
        for (namespace, selector) in selectors.into_iter().flatten() {
            let wrong = |why: String| format!("{field}.{namespace}: {why}");
            let selector = selector.as_str();
            let selector = selector.ok_or("must be a string".to_owned());
            let labels = selector.and_then(labels).map_err(wrong)?;
            if namespace == DEFAULT {
                plugin.default = labels;
            } else {
                plugin.allowed.insert(namespace.clone(), labels);
            }
        }
        Ok(Arc::new(plugin))
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| is_new_pod(attributes)) else {
            return Ok(());
        };
        let selector = self.selector(cluster, attributes)?;
        refuse_conflict(attributes, &selector, pod)?;
        if !selector.is_empty() {
            let own = meta::field(pod::spec(pod), "nodeSelector");
            for (key, value) in selector {
                own.insert(key, value.into());
            }
        }
        self.check_allowed(attributes, pod)
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| is_new_pod(attributes)) else {
            return Ok(());
        };
        refuse_conflict(attributes, &self.selector(cluster, attributes)?, pod)?;
        self.check_allowed(attributes, pod)
    }
}

impl PodNodeSelector {
    /// The node selector of a namespace.
    ///
    /// # Errors
    /// 500 if the annotation is not a valid selector.
    fn selector(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
    ) -> Result<Labels, Status> {
        let key = Key::new("", attributes.namespace());
        let namespace = cluster.get(cluster.buckets.namespaces, &key);
        let value =
            namespace.and_then(|it| it["metadata"]["annotations"][ANNOTATION].as_str());
        match value {
            Some(value) => {
                labels(value).map_err(|why| Status::new(500, Reason::Unknown, why))
            }
            None => Ok(self.default.clone()),
        }
    }

    fn check_allowed(
        &self,
        attributes: &Attributes<'_>,
        pod: &Value,
    ) -> Result<(), Status> {
        let Some(allowed) = self.allowed.get(attributes.namespace()) else {
            return Ok(());
        };
        let own = pod["spec"]["nodeSelector"].as_object();
        let mut own = own.into_iter().flatten();
        let is_allowed =
            |key: &String, value: &Value| allowed.get(key).is_some_and(|it| value == it);
        if allowed.is_empty() || own.all(|(key, value)| is_allowed(key, value)) {
            return Ok(());
        }
        let why = "pod node label selector labels conflict with its namespace whitelist";
        Err(attributes.forbidden(why))
    }
}

fn is_new_pod(attributes: &Attributes<'_>) -> bool {
    attributes.is_about("", "pods") && attributes.operation() == Operation::Create
}

fn refuse_conflict(
    attributes: &Attributes<'_>,
    selector: &Labels,
    pod: &Value,
) -> Result<(), Status> {
    let own = &pod["spec"]["nodeSelector"];
    let differs = |key: &String, value: &String| {
        own.get(key).is_some_and(|it| it != value.as_str())
    };
    if !selector.iter().any(|(key, value)| differs(key, value)) {
        return Ok(());
    }
    let why = "pod node label selector conflicts with its namespace node label selector";
    Err(attributes.forbidden(why))
}

/// Parses `a=b,c=d` (`ConvertSelectorToLabelsMap`).
fn labels(selector: &str) -> Result<Labels, String> {
    let parts = selector.split(',').filter(|_| !selector.is_empty());
    let pair = |part: &str| {
        let (key, value) = part.split_once('=').filter(|(_, it)| !it.contains('='))?;
        Some((key.trim().to_owned(), value.trim().to_owned()))
    };
    parts
        .map(|part| pair(part).ok_or_else(|| format!("invalid selector: [{part}]")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_a_list_of_labels() {
        let found = labels("a=1, b = 2").unwrap();
        let expected = [("a", "1"), ("b", "2")];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(found, Labels::from(expected));
        assert_eq!(labels("").unwrap(), Labels::new());
        assert_eq!(labels("a=1,b").unwrap_err(), "invalid selector: [b]");
    }
}

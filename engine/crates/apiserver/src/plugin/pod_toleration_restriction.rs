//! PodTolerationRestriction: default and allowed tolerations for the pods of a namespace.

use std::sync::Arc;

use kubemu_admission::KubeVersion;
use kubemu_admission::policy::Operation;
use serde_json::{Value, json};

use super::{Attributes, Plugin, pod, toleration};
use crate::admission_configuration::{Fields, Shape};
use crate::state::State;
use crate::status::{Reason, Status};
use crate::store::Key;

/// The plugin.
#[derive(Debug, Default)]
pub(super) struct PodTolerationRestriction {
    default: Vec<Value>,
    allowed: Vec<Value>,
}

/// The annotation of a namespace with the default tolerations of its pods.
const DEFAULT: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
/// The annotation of a namespace with the allowed tolerations of its pods.
const ALLOWED: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";

const CONFIGURATION: Shape = Shape {
    kind: "Configuration",
    versions: &["podtolerationrestriction.admission.k8s.io/v1alpha1"],
    fields: &["default", "whitelist"],
};

impl Plugin for PodTolerationRestriction {
    fn name(&self) -> &'static str {
        "PodTolerationRestriction"
    }

    fn description(&self) -> &'static str {
        "Adds the default tolerations of the namespace or of the cluster to new pods, \
         and rejects pods with tolerations that are not in its whitelist."
    }

    fn is_on_by_default(&self, _kube: KubeVersion) -> bool {
        false
    }

    fn configured(&self, configuration: &Value) -> Result<Arc<dyn Plugin>, String> {
        let fields = Fields::read(configuration, &CONFIGURATION)?;
        for list in ["default", "whitelist"] {
            for toleration in fields.list(list)? {
                let known = ["key", "operator", "value", "effect", "tolerationSeconds"];
                toleration.only(&known)?;
            }
        }
        Ok(Arc::new(Self {
            default: fields.values("default")?,
            allowed: fields.values("whitelist")?,
        }))
    }

    fn admit(
        &self,
        cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| attributes.is_about("", "pods")) else {
            return Ok(());
        };
        let mut further = Vec::new();
        if attributes.operation() == Operation::Create {
            let own = of_namespace(cluster, attributes, DEFAULT)?;
            further = own.unwrap_or_else(|| self.default.clone());
        }
        if crate::kind::pod::qos_class(pod) != "BestEffort" {
            further.push(json!({"key": "node.kubernetes.io/memory-pressure",
                "operator": "Exists", "effect": "NoSchedule"}));
        }
        if !further.is_empty() {
            let own = pod::list(&pod["spec"], "tolerations");
            let merged = toleration::merged(own, &further);
            pod::spec(pod).insert("tolerations".to_owned(), merged.into());
        }
        self.check(cluster, attributes, pod)
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        match object.filter(|_| attributes.is_about("", "pods")) {
            Some(pod) => self.check(cluster, attributes, pod),
            None => Ok(()),
        }
    }
}

impl PodTolerationRestriction {
    fn check(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        pod: &Value,
    ) -> Result<(), Status> {
        let own = pod::list(&pod["spec"], "tolerations");
        let of_namespace = of_namespace(cluster, attributes, ALLOWED)?;
        let (allowed, whose) = match &of_namespace {
            Some(allowed) => (allowed, "namespace"),
            None => (&self.allowed, "cluster"),
        };
        if toleration::are_allowed(own, allowed) {
            return Ok(());
        }
        let message = format!(
            "pod tolerations (possibly merged with namespace default tolerations) conflict \
             with its {whose} whitelist"
        );
        Err(Status::new(500, Reason::Unknown, message))
    }
}

/// The tolerations in an annotation of the namespace; `None` without the annotation.
///
/// # Errors
/// 500 if the annotation is not a list of tolerations.
fn of_namespace(
    cluster: &State,
    attributes: &Attributes<'_>,
    annotation: &str,
) -> Result<Option<Vec<Value>>, Status> {
    let key = Key::new("", attributes.namespace());
    let namespace = cluster.get(cluster.buckets.namespaces, &key);
    let value =
        namespace.and_then(|it| it["metadata"]["annotations"][annotation].as_str());
    match value {
        None => Ok(None),
        Some("") => Ok(Some(Vec::new())),
        Some(value) => serde_json::from_str(value)
            .map(Some)
            .map_err(|error| Status::new(500, Reason::Unknown, error.to_string())),
    }
}

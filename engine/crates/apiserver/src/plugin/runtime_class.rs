//! RuntimeClass: sets the overhead and the node selection of pods from their class.

use kubemu_admission::policy::Operation;
use serde_json::{Map, Value};

use super::{Attributes, Plugin, pod, toleration};
use crate::meta;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::{Reason, Status};
use crate::store::Object;

/// The plugin.
#[derive(Debug)]
pub(super) struct RuntimeClass;

const MISMATCH: &str =
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

impl Plugin for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    fn description(&self) -> &'static str {
        "Adds the overhead, the node selector and the tolerations of their RuntimeClass \
         to new pods. Rejects pods whose class does not exist or that specify another \
         overhead."
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
        let Some(class) = class(cluster, attributes, pod)? else {
            return Ok(());
        };
        let overhead = &class["overhead"]["podFixed"];
        if class["overhead"].is_object() {
            let own = &pod["spec"]["overhead"];
            let is_set = own.as_object().is_some_and(|it| !it.is_empty());
            if is_set && own != overhead {
                return Err(attributes.forbidden(MISMATCH));
            }
            if !overhead.is_null() {
                pod::spec(pod).insert("overhead".to_owned(), overhead.clone());
            }
        }
        let scheduling = &class["scheduling"];
        if let Some(selector) = scheduling["nodeSelector"].as_object() {
            select(attributes, pod, selector)?;
        }
        let further = pod::list(scheduling, "tolerations");
        if !further.is_empty() {
            let merged =
                toleration::merged(pod::list(&pod["spec"], "tolerations"), further);
            pod::spec(pod).insert("tolerations".to_owned(), merged.into());
        }
        Ok(())
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
        let own = pod["spec"].get("overhead");
        let class = class(cluster, attributes, pod)?;
        match class.filter(|it| it["overhead"].is_object()) {
            Some(class) if own != class["overhead"].get("podFixed") => {
                Err(attributes.forbidden(MISMATCH))
            }
            None if own.is_some() => Err(attributes.forbidden(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined \
                 Overhead",
            )),
            _ => Ok(()),
        }
    }
}

fn is_new_pod(attributes: &Attributes<'_>) -> bool {
    attributes.is_about("", "pods") && attributes.operation() == Operation::Create
}

/// The class of a pod; `None` if it has none.
///
/// # Errors
/// 403 if the class does not exist, 500 for an empty name.
fn class(
    cluster: &State,
    attributes: &Attributes<'_>,
    pod: &Value,
) -> Result<Option<Object>, Status> {
    let Some(name) = pod["spec"]["runtimeClassName"].as_str() else {
        return Ok(None);
    };
    if name.is_empty() {
        // An empty name cannot be requested from the server.
        let message = "resource name may not be empty";
        return Err(Status::new(500, Reason::Unknown, message));
    }
    let resource = GroupResource::new("node.k8s.io", "runtimeclasses");
    let found = cluster.object(&resource, "", name);
    let why = || format!("pod rejected: RuntimeClass {name:?} not found");
    found.map(Some).ok_or_else(|| attributes.forbidden(&why()))
}

/// Adds the node selector of the class to that of the pod.
fn select(
    attributes: &Attributes<'_>,
    pod: &mut Value,
    selector: &Map<String, Value>,
) -> Result<(), Status> {
    let own = meta::field(pod::spec(pod), "nodeSelector");
    for (key, value) in selector {
        if let Some(previous) = own.get(key).filter(|it| *it != value) {
            let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
            return Err(attributes.forbidden(&format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; \
                 pod.spec.nodeSelector[{key}] = {}",
                text(value),
                text(previous)
            )));
        }
        own.insert(key.clone(), value.clone());
    }
    Ok(())
}

//! Priority: gives pods the priority of their class. There are the two classes that every cluster
//! has; PriorityClass is not served.

use serde_json::{Map, Value};

use super::{Attributes, Plugin};
use crate::meta;
use crate::state::State;
use crate::status::Status;

/// The plugin.
#[derive(Debug)]
pub(super) struct Priority;

/// The classes that every cluster has, and what they are worth.
const CLASSES: [(&str, i64); 2] = [
    ("system-cluster-critical", 2_000_000_000),
    ("system-node-critical", 2_000_001_000),
];

/// What becomes of a pod that has to wait, where nothing is said.
const PREEMPT: &str = "PreemptLowerPriority";

impl Plugin for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn admit(
        &self,
        _cluster: &mut State,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
    ) -> Result<(), Status> {
        let Some(pod) = object.filter(|_| attributes.is_about("", "pods")) else {
            return Ok(());
        };
        let spec = meta::field(meta::fields(pod), "spec");
        if let Some(old) = attributes.old_object() {
            keep(spec, &old["spec"]);
            return Ok(());
        }
        let priority = computed(spec, attributes)?;
        spec.insert("priority".to_owned(), priority.into());
        spec.insert("preemptionPolicy".to_owned(), PREEMPT.into());
        Ok(())
    }
}

/// An update that leaves the priority out keeps it.
fn keep(spec: &mut Map<String, Value>, old: &Value) {
    for field in ["priority", "preemptionPolicy"] {
        if let Some(had) = old.get(field) {
            spec.entry(field).or_insert_with(|| had.clone());
        }
    }
}

/// The priority of a pod's class.
///
/// # Errors
/// 403 for a class that there is not, and for a priority or a policy that is not its class's.
fn computed(
    spec: &Map<String, Value>,
    attributes: &Attributes<'_>,
) -> Result<i64, Status> {
    let text = |field: &str| spec.get(field).and_then(Value::as_str).unwrap_or_default();
    let class = text("priorityClassName");
    let value = match CLASSES.iter().find(|it| it.0 == class) {
        Some((_, value)) => *value,
        None if class.is_empty() => 0,
        None => {
            let why = format!("no PriorityClass with name {class} was found");
            return Err(attributes.forbidden(&why));
        }
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64)
        && given != value
    {
        return Err(attributes.forbidden(&format!(
            "the integer value of priority ({given}) must not be provided in pod spec; \
             priority admission controller computed {value} from the given PriorityClass name"
        )));
    }
    let policy = text("preemptionPolicy");
    if !matches!(policy, "" | PREEMPT) {
        return Err(attributes.forbidden(&format!(
            "the string value of PreemptionPolicy ({policy}) must not be provided in pod spec; \
             priority admission controller computed {PREEMPT} from the given PriorityClass name"
        )));
    }
    Ok(value)
}

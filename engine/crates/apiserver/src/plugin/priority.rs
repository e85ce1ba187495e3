//! Priority: sets the priority of pods from their class, and allows only one default class.

use kubemu_admission::policy::Operation;
use serde_json::{Map, Value};

use super::{Attributes, Plugin, pod};
use crate::kind::priority_class::SYSTEM_CLASSES;
use crate::meta;
use crate::resource::GroupResource;
use crate::state::State;
use crate::status::Status;
use crate::store::Object;

/// The plugin.
#[derive(Debug)]
pub(super) struct Priority;

/// The default preemption policy.
const PREEMPT: &str = "PreemptLowerPriority";

impl Plugin for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn description(&self) -> &'static str {
        "Sets the priority and the preemption policy of new pods from their \
         PriorityClass, or from the default class. Rejects pods whose class does not \
         exist or that specify another priority, and a second default class."
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
        let spec = pod::spec(pod);
        if let Some(old) = attributes.old_object() {
            restore_priority(spec, &old["spec"]);
            return Ok(());
        }
        let class = class_of(cluster, attributes, spec)?;
        check(attributes, spec, &class)?;
        if !class.name.is_empty() {
            spec.insert("priorityClassName".to_owned(), class.name.into());
        }
        spec.insert("priority".to_owned(), class.value.into());
        spec.insert("preemptionPolicy".to_owned(), class.policy.into());
        Ok(())
    }

    fn validate(
        &self,
        cluster: &State,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Status> {
        let is_class = attributes.is_about("scheduling.k8s.io", "priorityclasses");
        let Some(class) = object.filter(|it| is_class && it["globalDefault"] == true)
        else {
            return Ok(());
        };
        let creates = attributes.operation() == Operation::Create;
        match default_class(cluster) {
            Some(other) if creates || meta::name(&other) != meta::name(class) => {
                Err(attributes.forbidden(&format!(
                    "PriorityClass {} is already marked as default. Only one default can exist",
                    meta::name(&other)
                )))
            }
            _ => Ok(()),
        }
    }
}

/// The values that a class sets in a pod.
struct Class {
    name: String,
    value: i64,
    policy: String,
}

impl Class {
    fn of(class: &Value) -> Self {
        let policy = class["preemptionPolicy"].as_str();
        Self {
            name: meta::name(class).to_owned(),
            value: class["value"].as_i64().unwrap_or_default(),
            policy: policy.unwrap_or(PREEMPT).to_owned(),
        }
    }
}

fn classes() -> GroupResource {
    GroupResource::new("scheduling.k8s.io", "priorityclasses")
}

/// The default class: among several, the one with the lowest value.
fn default_class(cluster: &State) -> Option<Object> {
    let all = cluster.objects(&classes(), None).into_iter();
    let all = all.filter(|it| it["globalDefault"] == true);
    all.min_by_key(|it| it["value"].as_i64())
}

/// Restores the priority if an update omits it.
fn restore_priority(spec: &mut Map<String, Value>, old: &Value) {
    for field in ["priority", "preemptionPolicy"] {
        if let Some(previous) = old.get(field) {
            spec.entry(field).or_insert_with(|| previous.clone());
        }
    }
}

/// The class of a pod.
///
/// # Errors
/// 403 if the class does not exist.
fn class_of(
    cluster: &State,
    attributes: &Attributes<'_>,
    spec: &Map<String, Value>,
) -> Result<Class, Status> {
    let named = spec.get("priorityClassName").and_then(Value::as_str);
    let Some(named) = named.filter(|it| !it.is_empty()) else {
        let default = default_class(cluster);
        return Ok(default.map_or_else(
            || Class {
                name: String::new(),
                value: 0,
                policy: PREEMPT.to_owned(),
            },
            |it| Class::of(&it),
        ));
    };
    if let Some(found) = cluster.object(&classes(), "", named) {
        return Ok(Class::of(&found));
    }
    // System classes are recreated if they are deleted.
    let system = SYSTEM_CLASSES.iter().find(|it| it.0 == named);
    let system = system.map(|(name, value, _)| Class {
        name: (*name).to_owned(),
        value: *value,
        policy: PREEMPT.to_owned(),
    });
    let why = || format!("no PriorityClass with name {named} was found");
    system.ok_or_else(|| attributes.forbidden(&why()))
}

/// Rejects a priority or a preemption policy that differs from that of the class.
fn check(
    attributes: &Attributes<'_>,
    spec: &Map<String, Value>,
    class: &Class,
) -> Result<(), Status> {
    let provided = spec.get("priority").and_then(Value::as_i64);
    if let Some(provided) = provided.filter(|it| *it != class.value) {
        return Err(attributes.forbidden(&format!(
            "the integer value of priority ({provided}) must not be provided in pod spec; \
             priority admission controller computed {} from the given PriorityClass name",
            class.value
        )));
    }
    let provided = spec.get("preemptionPolicy").and_then(Value::as_str);
    match provided.filter(|it| !it.is_empty() && *it != class.policy) {
        Some(provided) => Err(attributes.forbidden(&format!(
            "the string value of PreemptionPolicy ({provided}) must not be provided in pod spec; \
             priority admission controller computed {} from the given PriorityClass name",
            class.policy
        ))),
        None => Ok(()),
    }
}

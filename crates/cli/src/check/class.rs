//! The classes of the machines: what one sets is checked as if its machines set it.

use fivespot_api::{ScheduledMachine, ScheduledMachineClass, name};
use fivespot_dashboard::ScheduleInputs;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::finding::Finding;
use crate::requests::Requests;

/// Reads all classes. One that cannot be decoded is left out, as the operator does.
///
/// # Errors
/// The server refuses to list them. The error is its message.
pub(super) async fn read(requests: &Requests) -> Result<ScheduleInputs, String> {
    let path = format!("/apis/{}/{}", name::API_VERSION, name::CLASS_PLURAL);
    let found = requests.list(&path).await?;
    let mut classes = ScheduleInputs::default();
    for class in found {
        if let Ok(class) = ScheduledMachineClass::deserialize(&class) {
            let name = class.metadata.name.unwrap_or_default();
            classes.set_class(&name, class.spec);
        }
    }
    Ok(classes)
}

/// The machines with the fields that their classes set, beside the references to them. A machine that
/// cannot be decoded, or whose class is not known, is unchanged.
pub(super) fn with_classes(
    machines: Vec<Value>,
    classes: &Result<ScheduleInputs, String>,
) -> Vec<Value> {
    match classes {
        Ok(classes) => {
            let machines = machines.into_iter();
            machines.map(|it| with_class(it, classes)).collect()
        }
        Err(_) => machines,
    }
}

fn with_class(mut machine: Value, classes: &ScheduleInputs) -> Value {
    let class = machine["spec"]["classRef"].clone();
    let Ok(mut object) = ScheduledMachine::deserialize(&machine) else {
        return machine;
    };
    let namespace = object.metadata.namespace.unwrap_or_default();
    classes.resolve_class(&mut object.spec, &namespace);
    if !class.is_null() && !object.spec.is_class_unknown() {
        machine["spec"] = json!(object.spec);
        machine["spec"]["classRef"] = class;
    }
    machine
}

/// A finding if classes cannot be read although a machine has one.
pub(super) fn check(
    classes: &Result<ScheduleInputs, String>,
    machines: &Result<Vec<Value>, String>,
) -> Option<Finding> {
    let why = classes.as_ref().err()?;
    let mut machines = machines.iter().flatten();
    let has_class = machines.any(|it| !it["spec"]["classRef"].is_null());
    has_class.then(|| Finding::unknown("class", why))
}

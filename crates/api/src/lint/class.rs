//! Hosts of classes that ScheduledMachines name.

use std::collections::HashMap;

use super::provider::full_name;
use super::{HOST_NAMED_TWICE, LintWarning, UNKNOWN_HOST, warning};
use crate::{ScheduledMachine, ScheduledMachineClass};

const FIELD: &str = "spec.classRef.host";

/// The warnings about hosts of classes that `machines` name, SL019 and SL020: each with the index in
/// `machines` of the one that it concerns. A class that is not among `classes` may have any host.
pub fn hosts_of_classes(
    machines: &[&ScheduledMachine],
    classes: &[&ScheduledMachineClass],
) -> Vec<(usize, LintWarning)> {
    let mut first: HashMap<[&str; 2], String> = HashMap::new();
    let mut found = Vec::new();
    for (place, machine) in machines.iter().enumerate() {
        let reference = machine.spec.class_ref.as_ref();
        let Some((class, host)) =
            reference.and_then(|of| Some((of.name.as_str(), of.host.as_deref()?)))
        else {
            continue;
        };
        let is_named =
            |of: &&&ScheduledMachineClass| of.metadata.name.as_deref() == Some(class);
        if let Some(known) = classes.iter().find(is_named)
            && !known.spec.hosts.iter().any(|of| of.name == host)
        {
            let what = if known.spec.hosts.is_empty() {
                "hosts".to_owned()
            } else {
                format!("host {host}")
            };
            let message = format!("ScheduledMachineClass {class} has no {what}");
            found.push((place, warning(UNKNOWN_HOST, FIELD, message)));
        }
        let own = full_name(machine);
        let other = first.entry([class, host]).or_insert_with(|| own.clone());
        if *other != own {
            let message = format!("ScheduledMachine {other} names {host}, too");
            found.push((place, warning(HOST_NAMED_TWICE, FIELD, message)));
        }
    }
    found
}

//! Why an override that was created has no effect, where that is so.

use std::collections::BTreeMap;

use fivespot_api::{ScheduleOverride, ScheduledMachine};
use fivespot_schedule::Schedule;
use jiff::Timestamp;
use kube::api::DynamicObject;

use crate::preview::Context;

/// Why `created` has no effect on its machine at `now`: the kill switch, a schedule that is disabled
/// or invalid, or a stronger override among `others`. None where it has one.
pub(super) fn note(
    machine: &ScheduledMachine,
    created: &DynamicObject,
    others: Vec<ScheduleOverride>,
    now: Timestamp,
) -> Option<String> {
    if machine.spec.kill_switch {
        return Some("it has no effect while spec.killSwitch is true".to_owned());
    }
    if !machine.spec.schedule.enabled {
        return Some("it has no effect while spec.schedule.enabled is false".to_owned());
    }
    let Ok(schedule) = machine.spec.schedule(&BTreeMap::new()) else {
        return Some("it has no effect while the schedule is invalid".to_owned());
    };
    let name = created.metadata.name.as_deref()?;
    stronger(machine, schedule, others, (name, now))
}

/// That another override counts at `now`, and not that of this name.
fn stronger(
    machine: &ScheduledMachine,
    schedule: Schedule,
    others: Vec<ScheduleOverride>,
    (name, now): (&str, Timestamp),
) -> Option<String> {
    let namespace = machine.metadata.namespace.clone().unwrap_or_default();
    let mut context = Context::default();
    for other in others {
        context.add_override(namespace.clone(), other);
    }
    let all = context.overrides(machine, &namespace);
    // Not listed yet, or not to be listed.
    if !all.iter().any(|of| of.name == name) {
        return None;
    }
    let schedule = schedule.with_overrides(all);
    let counts = schedule.override_at(now).filter(|of| of.name != name)?;
    Some(format!(
        "override {} counts until {}: Stop is stronger than Hold, Hold than Run, and of one mode the \
         one that ends last counts",
        counts.name, counts.end
    ))
}

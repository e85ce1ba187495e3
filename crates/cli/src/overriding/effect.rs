//! The reason why a created override has no effect, if so.

use std::collections::BTreeMap;

use fivespot_api::{Enforcement, ScheduleOverride, ScheduledMachine};
use fivespot_dashboard::ScheduleInputs;
use fivespot_schedule::Schedule;
use jiff::Timestamp;
use kube::api::DynamicObject;

/// The reason why `created` has no effect on its machine at `now`: the kill switch, a schedule that
/// is disabled or invalid, audit mode, or a stronger override among `others`. `None` if it has an
/// effect.
pub(super) fn note(
    machine: &ScheduledMachine,
    created: &DynamicObject,
    others: Vec<ScheduleOverride>,
    now: Timestamp,
) -> Option<String> {
    if machine.spec.kill_switch {
        return Some("it has no effect while spec.killSwitch is true".to_owned());
    }
    if !machine.spec.is_enabled() {
        let field = machine.spec.enabled_field().as_str();
        return Some(format!("it has no effect while {field} is false"));
    }
    if machine.spec.enforcement == Enforcement::Audit {
        let note = "it is only reported while spec.enforcement is Audit";
        return Some(note.to_owned());
    }
    let Ok(schedule) = machine.spec.schedule(&BTreeMap::new()) else {
        return Some("it has no effect while the schedule is invalid".to_owned());
    };
    let name = created.metadata.name.as_deref()?;
    overridden_by(machine, schedule, others, (name, now))
}

/// A note if another override than that of this name is in force at `now`.
fn overridden_by(
    machine: &ScheduledMachine,
    schedule: Schedule,
    others: Vec<ScheduleOverride>,
    (name, now): (&str, Timestamp),
) -> Option<String> {
    let namespace = machine.metadata.namespace.clone().unwrap_or_default();
    let mut inputs = ScheduleInputs::default();
    for other in others {
        inputs.add_override(&namespace, other);
    }
    let all = inputs.overrides(machine, &namespace);
    // The override is not in the list yet, or lists are not permitted.
    if !all.iter().any(|of| of.name == name) {
        return None;
    }
    let schedule = schedule.with_overrides(all);
    let counts = schedule.override_at(now).filter(|of| of.name != name)?;
    Some(format!(
        "override {} takes precedence until {} (Stop over Hold over Run; of the same mode, the one \
         that ends last)",
        counts.name, counts.end
    ))
}

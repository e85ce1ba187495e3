//! The reason why a created override has no effect, if so.

use std::collections::BTreeMap;

use fivespot_api::schedule_override::MAX_OVERRIDES;
use fivespot_api::{Enforcement, ScheduleOverride};
use jiff::Timestamp;

use crate::overriding::target::Target;

/// The reason why `created` has no effect on its machine at `now`: the kill switch, a schedule that
/// is disabled or invalid, audit mode, a stronger override, or a limit of overrides. `None` if it
/// has an effect, or if the overrides cannot be read.
pub(super) fn note(
    target: Target,
    created: ScheduleOverride,
    now: Timestamp,
) -> Option<String> {
    let spec = &target.machine.spec;
    if spec.kill_switch {
        return Some("it has no effect while spec.killSwitch is true".to_owned());
    }
    if !spec.is_enabled() {
        let field = spec.enabled_field().as_str();
        return Some(format!("it has no effect while {field} is false"));
    }
    if spec.enforcement == Enforcement::Audit {
        let note = "it is only reported while spec.enforcement is Audit";
        return Some(note.to_owned());
    }
    // Neither calendars nor a schedule that does not exist make it invalid.
    let Ok(schedule) = spec.schedule(&BTreeMap::new()) else {
        return Some("it has no effect while the schedule is invalid".to_owned());
    };
    let Target {
        machine, inputs, ..
    } = target;
    let namespace = machine.metadata.namespace.clone().unwrap_or_default();
    let name = created.metadata.name.clone()?;
    let mut inputs = inputs?;
    inputs.add_override(&namespace, created);
    let all = inputs.overrides(&machine, &namespace);
    if !all.iter().any(|of| of.name == name) {
        return Some(format!(
            "it has no effect: it is longer than the class of the machine allows, or \
             {MAX_OVERRIDES} overrides of the namespace come before it; its condition Ignored \
             says which"
        ));
    }
    let schedule = schedule.with_overrides(all);
    let counts = schedule.override_at(now).filter(|of| of.name != name)?;
    Some(format!(
        "override {} takes precedence until {} (Stop over Hold over Run; of the same mode, the one \
         that ends last)",
        counts.name, counts.end
    ))
}

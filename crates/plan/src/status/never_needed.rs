//! Why a schedule never needs a machine, and what to do about it.
//!
//! `Ready` stays `True` and `Stalled` absent: the observed state is the desired one. A GitOps tool
//! would otherwise fail a rollout for a machine whose calendar covers this year and is extended
//! next year.

use fivespot_api::ScheduledMachineStatus;

use crate::Event;
use crate::decide::case::Case;

/// A Warning, once, when the status first reports that no machine is ever needed. The schedule
/// works as specified, but is hardly intended.
pub(crate) fn event(
    case: &Case<'_>,
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
) -> Option<Event> {
    let why = why_never_needed(case)?;
    let says = |status: &ScheduledMachineStatus| {
        let message = status.message.as_deref();
        message.is_some_and(|message| message.contains(&why))
    };
    let note = format!("no machine is wanted: {why}");
    (says(after) && !says(before))
        .then(|| Event::warning("NeverNeeded", "EvaluateSchedule", &note))
}

/// Why no machine is needed within ten years, and what to do. `None` if one is needed, or if the
/// schedule is disabled or invalid, or follows an object that cannot be evaluated, whose future is
/// not known.
pub(crate) fn why_never_needed(case: &Case<'_>) -> Option<String> {
    if case.desired.unresolved().is_some() {
        return None;
    }
    let schedule = case.desired.schedule.as_ref().ok()?;
    let is_never = case.desired.is_enabled
        && case
            .need
            .is_some_and(|need| !need.is_needed() && need.known_until().is_none())
        && case.next_need_change().is_none();
    if !is_never {
        return None;
    }
    let cron = schedule.cron_expression().map(|(cron, _)| cron);
    let window = case.window?;
    Some(match cron.filter(|cron| !cron.can_fire()) {
        _ if window.is_open() || window.until().is_some() => format!(
            "no window is longer than spec.gracefulShutdownTimeout ({}), which endPolicy \
             CompleteByWindowEnd leaves for the shutdown; lengthen the windows, or shorten the \
             timeout",
            schedule.early_end(),
        ),
        Some(cron) => format!(
            "the cron expression '{cron}' never fires: that day does not exist in the months \
             that it names; correct spec.schedule.cron"
        ),
        None => {
            "no window opens within ten years; correct spec.schedule, or its exceptions"
                .to_owned()
        }
    })
}

//! What was observed of the condition of each entry, in one sentence for users.

use fivespot_schedule::DecidedBy;

use super::paused_kind;
use crate::decide::case::Case;
use crate::decide::{host_return, pace, reclaim};

pub(super) fn paused(case: &Case<'_>) -> String {
    if let Some(what) = paused_kind(case, case.owned.our_machine()) {
        return format!("the {what} is paused: nothing is changed");
    }
    let Some(unknown) = case.unobserved() else {
        let none =
            "neither the ScheduledMachine nor its Cluster nor its Machine is paused";
        return none.to_owned();
    };
    let why = unknown.message().unwrap_or("not read yet");
    format!("nothing is changed, because an object cannot be read: {why}")
}

pub(super) fn deleted(case: &Case<'_>) -> String {
    let message = match (case.subject.is_deleting, case.subject.has_finalizer()) {
        (false, _) => "no deletion is requested",
        (true, true) => "deletion is requested: the machine is shut down first",
        (true, false) => {
            "deletion is requested, and 5-Spot's finalizer is gone: nothing is changed"
        }
    };
    message.to_owned()
}

pub(super) fn kill_switch(case: &Case<'_>) -> String {
    format!("spec.killSwitch is {}", case.desired.is_killed)
}

pub(super) fn reclaim(case: &Case<'_>) -> String {
    let machine = case.owned.our_machine();
    let requested = machine.and_then(|machine| reclaim::requested(case, machine));
    requested.map_or_else(
        || "no reclaim is in progress".to_owned(),
        |request| format!("the machine is reclaimed: {request}"),
    )
}

pub(super) fn shutdown(case: &Case<'_>) -> String {
    let Some(stored) = &case.subject.status.shutdown else {
        return "no shutdown has begun".to_owned();
    };
    let machine = case.owned.our_machine();
    match machine.and_then(|machine| case.shutdown_record(machine)) {
        Some(shutdown) => format!(
            "the shutdown began at {} with the deadline {} ({:?})",
            shutdown.started_at,
            case.deadline(shutdown),
            shutdown.reason,
        ),
        None => format!(
            "the recorded shutdown is for a Machine that no longer exists (uid {})",
            stored.machine_uid,
        ),
    }
}

pub(super) fn disabled(case: &Case<'_>) -> String {
    if let Some(unknown) = case.unknown_schedule() {
        let why = unknown.message().unwrap_or("not read yet");
        let what = match case.unread_class() {
            Some(_) => "the class",
            None => "overrides or calendars",
        };
        return format!("{what} cannot be read, so the schedule is unknown: {why}");
    }
    match &case.desired.schedule {
        _ if !case.desired.is_enabled => {
            format!("{} is false", case.desired.enabled_field.as_str())
        }
        Err(invalid) => format!("the schedule is invalid: {}", invalid.message),
        Ok(_) => match case.hold() {
            Some(hold) => format!("the override {} holds until {}", hold.name, hold.end),
            None => "the schedule is enabled and valid".to_owned(),
        },
    }
}

pub(super) fn remediation(case: &Case<'_>) -> String {
    let Some(machine) = case.owned.our_machine() else {
        return "there is no Machine to replace".to_owned();
    };
    if !case.wants_replacement(machine) {
        return "the Machine does not need to be replaced".to_owned();
    }
    match case.replaceable_from(machine) {
        Some(due) if due > case.now => {
            format!("the Machine will be replaced, not before {due}")
        }
        Some(_) => "the Machine will be replaced".to_owned(),
        None => "the Machine will be replaced once its creation is recorded".to_owned(),
    }
}

pub(super) fn window(case: &Case<'_>) -> String {
    let held = pace::stop_held(case);
    let held = held.map_or_else(String::new, |held| format!("; {}", held.why.message));
    format!("{}{held}", window_state(case))
}

fn window_state(case: &Case<'_>) -> String {
    let Some(window) = case.window else {
        return "the schedule is invalid".to_owned();
    };
    let is_open = window.is_open();
    let state = match (decider(case, is_open), is_open) {
        (Some(decider), _) => decider,
        (None, true) => "the window is open".to_owned(),
        (None, false) => "the window is closed".to_owned(),
    };
    let window_state = format!("{state} {}", case.how_long(window));
    match case.need {
        Some(need) if need.is_needed() != window.is_open() => {
            let needed = if need.is_needed() {
                "is needed"
            } else {
                "is not needed"
            };
            let until = need
                .until()
                .map_or_else(String::new, |of| format!(" until {of}"));
            format!("{window_state}, the machine {needed}{until}")
        }
        Some(_) | None => window_state + &host_return::describe(case),
    }
}

/// The override or exception that decides instead of the windows, and its result; `None` if the
/// windows decide.
fn decider(case: &Case<'_>, is_wanted: bool) -> Option<String> {
    let (kind, name) = match case.decided_by()? {
        DecidedBy::Base => return None,
        DecidedBy::Exception(it) => ("exception", &it.name),
        DecidedBy::Override(it) => ("override", &it.name),
    };
    let wanted = if is_wanted { "wanted" } else { "not wanted" };
    Some(format!("{kind} {name} decides: the machine is {wanted}"))
}

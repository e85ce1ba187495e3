//! The events for users: one for each transition.

use fivespot_api::condition::{self, ConditionStatus, ConditionType, Reason};
use fivespot_api::{OverrideMode, Phase, ScheduledMachineStatus, ShutdownReason};
use fivespot_capi::shortened;
use jiff::{SignedDuration, Timestamp};

use crate::decide::outcome::{Omitted, State};
use crate::status::usage;

/// One event about the ScheduledMachine, with the fields of `events.k8s.io/v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Normal or Warning.
    pub kind: EventType,
    /// Why, as one CamelCase word.
    pub reason: String,
    /// The action, as one CamelCase word.
    pub action: String,
    /// What happened, in one sentence of at most 1,024 bytes.
    pub note: String,
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Expected operation.
    Normal,
    /// A problem that a user should check.
    Warning,
}

impl EventType {
    /// The type as in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The longest note that Kubernetes accepts, in bytes.
const MAX_NOTE_BYTES: usize = 1_024;

/// The events for the difference between two statuses: one for a change of phase, else one if
/// `Ready` changed to another reason that a user should check; one for a new reason of `Stalled`,
/// instead of that of the phase if both have the same reason.
pub(crate) fn between(
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
) -> Vec<Event> {
    // The event of Stalled has the same cause, and says what to do.
    let stalled = condition::find(&after.conditions, ConditionType::Stalled);
    let is_same = |event: &Event| stalled.is_some_and(|of| of.reason == event.reason);
    transition(before, after)
        .filter(|event| !is_same(event))
        .into_iter()
        .chain(reclaimed_in_error(before, after))
        .chain(switched_off(before, after))
        .chain(became(before, after, ConditionType::Stalled))
        .chain(calendar_missing(before, after))
        .chain(unresolved(before, after))
        .collect()
}

/// The Warning that a reclaim has begun, where another phase is reported: the step that records it
/// on the Machine had failed before.
fn reclaimed_in_error(
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
) -> Option<Event> {
    let is_reported = after.phase == Some(Phase::EmergencyRemove);
    (usage::begins_reclaim(before, after) && !is_reported).then(|| {
        let reason = Reason::EmergencyReclaim;
        let note = "the host is reclaimed; its machine is removed at once";
        Event::warning(reason.as_str(), "RecordReclaim", note)
    })
}

/// The Warning that a reclaim has disabled the schedule.
fn switched_off(
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
) -> Option<Event> {
    let reason = Reason::EmergencyReclaimDisabledSchedule;
    let said = |status: &ScheduledMachineStatus| {
        let found = condition::find(&status.conditions, ConditionType::Scheduled);
        found
            .filter(|of| of.reason == reason.as_str())
            .map(|of| of.message.clone())
    };
    let message = said(after).filter(|_| said(before).is_none())?;
    Some(Event::warning(reason.as_str(), "DisableSchedule", &message))
}

/// The Warning that a condition has become true or has another reason, with what to do.
fn became(
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
    kind: ConditionType,
) -> Option<Event> {
    let now = condition::find(&after.conditions, kind)?;
    let was = condition::find(&before.conditions, kind);
    let is_new = was.is_none_or(|was| was.reason != now.reason);
    is_new.then(|| Event::warning(&now.reason, kind.as_str(), &now.message))
}

/// The event about what is not done in audit mode: that the machine would be created, or shut
/// down.
pub(crate) fn omitted(
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
    state: &State,
) -> Option<Event> {
    let would_run = audited(before) == Some(true);
    let would_create = *state == State::Audited(Omitted::Creation) && !would_run;
    let would_remove =
        *state == State::Audited(Omitted::Removal) && audited(before) != Some(false);
    let would_end = *state == State::Idle && would_run && ends_service(after);
    let reason = if would_create {
        "WouldCreate"
    } else if would_remove || would_end {
        "WouldShutDown"
    } else {
        return None;
    };
    let note = after.message.as_deref().unwrap_or_default();
    Some(Event::normal(reason, "Audit", note))
}

/// Whether the status says that something is not done in audit mode: `true` if the machine would be
/// created, `false` if objects that exist are left as they are.
fn audited(status: &ScheduledMachineStatus) -> Option<bool> {
    let ready = condition::find(&status.conditions, ConditionType::Ready)?;
    let is_audited = ready.reason == Reason::Audited.as_str();
    is_audited.then_some(ready.status == ConditionStatus::True.as_str())
}

/// Whether the status says that no machine is wanted, by the schedule or the kill switch.
fn ends_service(status: &ScheduledMachineStatus) -> bool {
    let in_force = status.in_force.as_ref();
    let is_held = in_force.is_some_and(|of| of.mode == OverrideMode::Hold);
    status.phase == Some(Phase::Terminated)
        || status.phase == Some(Phase::Inactive) && !is_held
}

/// The Warning that the schedule that the machine follows cannot be evaluated any more.
fn unresolved(
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
) -> Option<Event> {
    let kind = ConditionType::SpotScheduleResolved;
    let now = condition::find(&after.conditions, kind)?;
    (now.status == "False")
        .then(|| became(before, after, kind))
        .flatten()
}

/// The Warning that a calendar of the schedule is missing.
fn calendar_missing(
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
) -> Option<Event> {
    let reason = Reason::CalendarNotFound.as_str();
    let kind = ConditionType::ReferencesValid;
    let now = condition::find(&after.conditions, kind)?;
    let was = condition::find(&before.conditions, kind);
    let is_new = was.is_none_or(|was| was.reason != reason);
    let is_missing = now.reason == reason && is_new;
    is_missing.then(|| Event::warning(reason, "EvaluateSchedule", &now.message))
}

/// The Warning that the machine was gone only after the end of its window, by which it should
/// have been.
pub(crate) fn left_late(
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
    now: Timestamp,
) -> Option<Event> {
    let shutdown = before.shutdown.as_ref()?;
    let end = shutdown.window_end.filter(|end| *end < now)?;
    let is_gone = after.shutdown.is_none() && after.machine_ref.is_none();
    let late = SignedDuration::from_secs(now.duration_since(end).as_secs());
    let began = shutdown.started_at;
    let why = if began > end {
        format!("its shutdown began only at {began}")
    } else {
        "a longer spec.gracefulShutdownTimeout starts its shutdown earlier".to_owned()
    };
    let note = format!(
        "the machine was removed {late:#} after the end of its window at {end}; {why}"
    );
    (is_gone && !late.is_zero())
        .then(|| Event::warning("LeftLate", "DeleteMachine", &note))
}

/// The event of a change of phase, or of a new problem.
fn transition(
    before: &ScheduledMachineStatus,
    after: &ScheduledMachineStatus,
) -> Option<Event> {
    let phase = after.phase?;
    let said = |status| {
        let conditions: &ScheduledMachineStatus = status;
        condition::find(&conditions.conditions, ConditionType::Ready)
            .map(|of| of.reason.clone())
    };
    let (was, is) = (said(before), said(after).unwrap_or_default());
    let message = after.message.as_deref().unwrap_or_default();
    let is_problem = phase == Phase::Error
        || is == Reason::RemovalStalled.as_str()
        || is == Reason::NodeNotReady.as_str()
        || is == Reason::InfrastructureMissing.as_str();
    // A reclaim that continues after a failed step or a pause is not another one.
    if phase == Phase::EmergencyRemove
        && !is_problem
        && !usage::begins_reclaim(before, after)
    {
        return None;
    }
    // The event about what is not done says it.
    if audited(after).is_some() {
        return None;
    }
    let transition = if before.phase == Some(phase) {
        let is_news = is_problem && was.as_deref() != Some(&is);
        if !is_news {
            return None;
        }
        phase.to_string()
    } else {
        match before.phase {
            Some(before) => format!("{before} -> {phase}"),
            None => phase.to_string(),
        }
    };
    let is_warning =
        is_problem || matches!(phase, Phase::Terminated | Phase::EmergencyRemove);
    let reason = reason(before.phase, after, is);
    Some(Event {
        kind: if is_warning {
            EventType::Warning
        } else {
            EventType::Normal
        },
        reason,
        action: format!("PhaseTransitionTo{phase}"),
        note: cut(&format!("{transition}: {message}")),
    })
}

/// A note cut to the length that Kubernetes accepts.
fn cut(note: &str) -> String {
    let mut most = MAX_NOTE_BYTES;
    loop {
        let cut = shortened(note, most);
        if cut.len() <= MAX_NOTE_BYTES {
            return cut;
        }
        // The limit counts bytes.
        most -= (cut.len() - MAX_NOTE_BYTES).div_ceil(4);
    }
}

impl Event {
    /// A Warning: a problem that a user should check.
    pub(crate) fn warning(reason: &str, action: &str, note: &str) -> Self {
        Self::of(EventType::Warning, reason, action, note)
    }

    /// Expected operation.
    pub(crate) fn normal(reason: &str, action: &str, note: &str) -> Self {
        Self::of(EventType::Normal, reason, action, note)
    }

    fn of(kind: EventType, reason: &str, action: &str, note: &str) -> Self {
        Self {
            kind,
            reason: reason.to_owned(),
            action: action.to_owned(),
            note: cut(note),
        }
    }
}

/// The reason of an event: the established name for the phase, or `Ready`'s own reason.
fn reason(
    before: Option<Phase>,
    after: &ScheduledMachineStatus,
    ready: String,
) -> String {
    let is_killed = after
        .shutdown
        .as_ref()
        .is_some_and(|of| of.reason == ShutdownReason::KillSwitch);
    let changed = before != after.phase;
    let word = match after.phase {
        Some(Phase::Pending) if changed => "ScheduleActive",
        Some(Phase::Active) if before == Some(Phase::Pending) => "MachineCreated",
        Some(Phase::ShuttingDown) if changed && is_killed => "KillSwitchActivated",
        Some(Phase::ShuttingDown) if changed => "GracePeriodActive",
        Some(Phase::Inactive) if before == Some(Phase::ShuttingDown) => "MachineDeleted",
        Some(Phase::Inactive) => "ScheduleInactive",
        Some(Phase::Disabled) => "ScheduleDisabled",
        Some(Phase::Terminated) => "KillSwitchActivated",
        Some(Phase::EmergencyRemove) => "EmergencyReclaim",
        Some(Phase::Pending | Phase::Active | Phase::ShuttingDown | Phase::Error)
        | None => {
            return ready;
        }
    };
    word.to_owned()
}

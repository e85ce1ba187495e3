//! The status: phase, message and conditions; and the events.

use fivespot_api::scheduled_capacity::{
    CapacityPhase, ScheduledCapacity, ScheduledCapacityStatus,
};
use fivespot_capi::{one_line_within, shortened};
use jiff::Timestamp;

use super::Case;
use crate::condition::Found;
use crate::why::Why;
use crate::{Event, Unknown};

/// How many characters of a message the status contains at most.
const MAX_MESSAGE: usize = 1_024;

const READY: &str = "Ready";
const TARGET_RESOLVED: &str = "TargetResolved";
const CAPACITY_WRITTEN: &str = "CapacityWritten";
const HANDBACK_COMPLETE: &str = "HandbackComplete";
const GOVERNANCE_CONFLICT: &str = "HostGovernanceConflict";
const SPOT_SCHEDULE_RESOLVED: &str = "SpotScheduleResolved";
const FIELD_CONTESTED: &str = "FieldContested";

/// Why the target keeps the values that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    about: About,
    reason: String,
    message: String,
}

/// What a problem is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Spec,
    Schedule,
    Target,
    Field,
    Contest,
    /// A person has asked for it.
    Held,
}

impl Problem {
    fn new(about: About, reason: &str, message: String) -> Self {
        let message = shortened(&message, MAX_MESSAGE);
        Self {
            about,
            reason: reason.to_owned(),
            message,
        }
    }

    pub(super) fn invalid(message: String) -> Self {
        Self::new(About::Spec, "InvalidSpec", message)
    }

    pub(super) fn unresolved(invalid: &Why) -> Self {
        let reason = invalid.reason.as_str();
        Self::new(About::Schedule, reason, invalid.message.clone())
    }

    pub(super) fn held(name: &str, end: Timestamp) -> Self {
        let message = format!("ScheduleOverride {name} keeps the values until {end}");
        Self::new(About::Held, "Held", message)
    }

    pub(super) fn paused(what: &str) -> Self {
        let message = format!(
            "{what} is paused by its annotation {}",
            super::PAUSED_ANNOTATION
        );
        Self::new(About::Held, "TargetPaused", message)
    }

    pub(super) fn target(reason: &'static str, message: String) -> Self {
        Self::new(About::Target, reason, message)
    }

    /// `what` could not be read; `remedy` is what to do if that is forbidden.
    pub(super) fn unread(unknown: &Unknown, what: &str, remedy: &str) -> Self {
        let (reason, why) = match unknown {
            Unknown::NotRequested => ("ReadFailed", String::new()),
            Unknown::NotServed { message } => ("KindNotServed", message.clone()),
            Unknown::Forbidden { message } => ("Forbidden", format!("{message}{remedy}")),
            Unknown::Failed { message } => ("ReadFailed", message.clone()),
        };
        Self::new(
            About::Target,
            reason,
            format!("{what} cannot be read: {why}"),
        )
    }

    pub(super) fn field(error: &fivespot_api::scheduled_capacity::MissingField) -> Self {
        Self::new(About::Field, "FieldNotFound", error.to_string())
    }

    pub(super) fn contested(by: Option<&str>) -> Self {
        let by = by.unwrap_or("another client");
        let message = format!(
            "{by} has changed the value again after three writes in ten minutes; it is written \
             when the schedule changes, and at no other time: let one of the two write it"
        );
        Self::new(About::Contest, FIELD_CONTESTED, message)
    }
}

/// Completes the status with phase, message and conditions.
pub(super) fn report(case: &mut Case<'_>, problem: Option<Problem>) {
    // A contest that has been found, and whose client is not known yet, is reported with it.
    let phase = phase(case, problem.as_ref());
    let (reason, message) = match &problem {
        Some(problem) => (problem.reason.as_str(), problem.message.clone()),
        None => (phase.as_str(), summary(case, phase)),
    };
    let is_ready = match &problem {
        Some(problem) => problem.about == About::Held && case.status.active.is_some(),
        None => phase != CapacityPhase::HandbackTimedOut,
    };
    let mut found = vec![Found::new(READY, is_ready, reason, message.clone())];
    found.push(target_resolved(case, problem.as_ref()));
    found.push(capacity_written(case, problem.as_ref()));
    found.extend(handback(case));
    found.extend(governance(case));
    found.extend(resolved(case, problem.as_ref()));
    if let Some(by) = &case.status.contested_by {
        let message = Problem::contested(Some(by)).message;
        found.push(Found::new(FIELD_CONTESTED, true, "OtherManager", message));
    }
    let generation = case.object.metadata.generation;
    let status = &mut case.status;
    status.phase = Some(phase);
    status.message = Some(message);
    status.observed_generation = generation;
    let after = |of: Found| of.after(&status.conditions, generation, case.now);
    status.conditions = found.into_iter().map(after).collect();
}

/// The phase: from what is written, apart from why.
fn phase(case: &Case<'_>, problem: Option<&Problem>) -> CapacityPhase {
    let (spec, status) = (&case.object.spec, &case.status);
    let is_wrong = |of: &Problem| {
        of.about == About::Spec
            || of.about == About::Field
            || of.reason == "TargetNotOwned"
    };
    if problem.is_some_and(is_wrong) {
        return CapacityPhase::Error;
    }
    match status.active {
        None => CapacityPhase::Pending,
        Some(true) => CapacityPhase::Active,
        Some(false) if spec.kill_switch => CapacityPhase::Terminated,
        Some(false) if !spec.is_enabled() => CapacityPhase::Disabled,
        Some(false) => match status.handback_deadline {
            None => CapacityPhase::Inactive,
            Some(deadline) if deadline > case.now => CapacityPhase::HandingBack,
            Some(_) => CapacityPhase::HandbackTimedOut,
        },
    }
}

fn summary(case: &Case<'_>, phase: CapacityPhase) -> String {
    let status = &case.status;
    let what = case.object.target_text();
    let until = match status.next_transition {
        Some(at) => format!(" until {at}"),
        None => String::new(),
    };
    let in_use = || {
        let found = status.observed_drained_value;
        found.map_or_else(|| "unknown".to_owned(), |found| found.to_string())
    };
    match phase {
        CapacityPhase::Pending => format!("nothing has been written to {what} yet"),
        CapacityPhase::Active => format!("{what} has the active values{until}"),
        CapacityPhase::Inactive if status.governed_node.is_some() => format!(
            "{what} has the inactive values: ScheduledMachine {} decides on Node {}",
            case.facts.governor.as_deref().unwrap_or_default(),
            status.governed_node.as_deref().unwrap_or_default(),
        ),
        CapacityPhase::Inactive => format!("{what} has the inactive values{until}"),
        CapacityPhase::HandingBack => format!(
            "{what} has the inactive values, and is awaited: {} is {}",
            drained_path(case),
            in_use()
        ),
        CapacityPhase::HandbackTimedOut => format!(
            "{what} has the inactive values, and is still in use: {} is {}; nothing is forced",
            drained_path(case),
            in_use()
        ),
        CapacityPhase::Disabled => format!("disabled: {what} has the inactive values"),
        CapacityPhase::Terminated => {
            format!("the kill switch is set: {what} has the inactive values")
        }
        CapacityPhase::Error => format!("{what} is not changed"),
    }
}

fn drained_path(case: &Case<'_>) -> String {
    let handback = case.object.spec.handback.as_ref();
    let path = handback.map_or("", |it| it.path_below_status());
    format!("status.{path}")
}

fn target_resolved(case: &Case<'_>, problem: Option<&Problem>) -> Found {
    match problem {
        Some(of) if of.about == About::Target => Found::new(
            TARGET_RESOLVED,
            false,
            of.reason.clone(),
            of.message.clone(),
        ),
        _ => Found::new(TARGET_RESOLVED, true, "Found", case.object.target_text()),
    }
}

fn capacity_written(case: &Case<'_>, problem: Option<&Problem>) -> Found {
    if let Some(Problem {
        reason, message, ..
    }) = problem.cloned()
    {
        return Found::new(CAPACITY_WRITTEN, false, reason, message);
    }
    let reason = match case.status.active {
        Some(true) => "Active",
        Some(false) => "Inactive",
        None => "NotCreated",
    };
    let is_written = case.status.active.is_some();
    Found::new(CAPACITY_WRITTEN, is_written, reason, "")
}

fn handback(case: &Case<'_>) -> Option<Found> {
    case.object.spec.handback.as_ref()?;
    let is_drained = case.status.observed_drained_value == Some(0);
    let found = match (case.status.active, case.status.handback_deadline) {
        (Some(false), None) if is_drained => ("Drained", true),
        (Some(false), None) => ("NotAwaited", false),
        (Some(false), Some(deadline)) if deadline <= case.now => {
            ("HandbackTimedOut", false)
        }
        (Some(false), Some(_)) => ("Waiting", false),
        (Some(true), _) => ("Active", false),
        (None, _) => ("NotWritten", false),
    };
    let (reason, holds) = found;
    Some(Found::new(HANDBACK_COMPLETE, holds, reason, ""))
}

fn governance(case: &Case<'_>) -> Option<Found> {
    let node = case.object.spec.node_name.as_ref()?;
    let (holds, reason, message) = match &case.facts.governor {
        Some(machine) => (
            true,
            "ScheduledMachine",
            format!(
                "Node {node} is that of ScheduledMachine {machine}: only the inactive values are \
                 written"
            ),
        ),
        None => (
            false,
            "NoScheduledMachine",
            format!("Node {node} is that of no ScheduledMachine"),
        ),
    };
    Some(Found::new(GOVERNANCE_CONFLICT, holds, reason, message))
}

fn resolved(case: &Case<'_>, problem: Option<&Problem>) -> Option<Found> {
    let reference = case.object.spec.schedule.reference()?;
    let what = format!("{} {}", reference.kind, reference.name);
    let found = match problem {
        Some(of) if of.about == About::Schedule => Found::new(
            SPOT_SCHEDULE_RESOLVED,
            false,
            of.reason.clone(),
            of.message.clone(),
        ),
        _ => Found::new(SPOT_SCHEDULE_RESOLVED, true, "Resolved", what),
    };
    Some(found)
}

/// The status after the server refused a write. What it says of the values stays.
pub fn write_failed(
    object: &ScheduledCapacity,
    reason: &'static str,
    message: &str,
    now: Timestamp,
) -> ScheduledCapacityStatus {
    let mut status = object.status.clone().unwrap_or_default();
    let message = one_line_within(message, MAX_MESSAGE);
    let failed = [
        Found::new(READY, false, reason, message.clone()),
        Found::new(CAPACITY_WRITTEN, false, reason, message.clone()),
    ];
    let generation = object.metadata.generation;
    for found in failed {
        let condition = found.after(&status.conditions, generation, now);
        let mut known = status.conditions.iter_mut();
        match known.find(|of| of.type_ == condition.type_) {
            Some(found) => *found = condition,
            None => status.conditions.push(condition),
        }
    }
    status.phase = Some(CapacityPhase::Error);
    status.message = Some(message);
    status.observed_generation = generation;
    status
}

/// A Warning if `Ready` has another reason that a user should check, and an event when that has
/// passed. None at an edge, so that it costs no request beyond the two writes.
pub fn event(
    before: &ScheduledCapacityStatus,
    after: &ScheduledCapacityStatus,
) -> Option<Event> {
    let note = after.message.as_deref().unwrap_or_default();
    let ready = |status: &ScheduledCapacityStatus| {
        let mut all = status.conditions.iter();
        let ready = all.find(|of| of.type_ == READY)?;
        Some((ready.status == "True", ready.reason.clone()))
    };
    let was = ready(before);
    let (is_well, reason) = ready(after)?;
    if is_well {
        let has_passed = was.is_some_and(|(was_well, _)| !was_well);
        return has_passed.then(|| Event::normal(&reason, "Schedule", note));
    }
    let is_new = was.is_none_or(|was| was != (is_well, reason.clone()));
    is_new.then(|| Event::warning(&reason, "Schedule", note))
}

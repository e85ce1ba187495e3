//! The conditions, one function each.

use fivespot_api::condition::{ConditionStatus, ConditionType, ConditionUpdate, Reason};
use fivespot_api::name;
use fivespot_capi::{ConditionState, Meta, Reference, one_line};
use fivespot_schedule::{DecidedBy, Override, OverrideMode};

use crate::decide::case::Case;
use crate::decide::host_return;
use crate::decide::machine;
use crate::observed::{owned::NamedMachine, owned::ProviderObjects};
use crate::status::ConditionChange;
use crate::why::Why;
use crate::{Cause, Fact, Failure, Step, Unknown};

/// The ClusterRole that must be extended if a permission is missing.
const ROLE: &str = fivespot_api::name::CONTROLLER;

/// The problem that the stored CustomResourceDefinition is older than this operator. The fields
/// it lacks would be dropped from each status that is written, so that nothing is created.
pub(crate) fn outdated(case: &Case<'_>) -> Option<Why> {
    let message = case.observed.outdated_crd.clone()?;
    Some(Why::new(Reason::CustomResourceDefinitionOutdated, message))
}

/// What prevents the creation of the three objects, the most fundamental cause first.
pub(crate) fn obstacle(case: &Case<'_>) -> Option<Why> {
    if let Some(fault) = &case.desired.fault {
        return Some(fault.clone());
    }
    if let Fact::Unknown(unknown) = &case.observed.contract {
        return Some(unknown_fact(unknown, "the versions of Cluster API"));
    }
    let (bootstrap, infrastructure) = (&case.owned.bootstrap, &case.owned.infrastructure);
    if let Some(kind) = bootstrap.not_served.or(infrastructure.not_served) {
        return Some(Why::new(Reason::KindNotServed, not_served(kind)));
    }
    cluster_obstacle(case).or_else(|| name_taken(case))
}

fn cluster_obstacle(case: &Case<'_>) -> Option<Why> {
    let name = &case.desired.cluster;
    let Some(cluster) = case.cluster() else {
        let message = format!(
            "there is no Cluster {name} in this namespace; create it, or correct spec.clusterName"
        );
        return Some(Why::new(Reason::ClusterNotFound, message));
    };
    if cluster.meta.is_deleting {
        let message = format!("Cluster {name} is being deleted");
        return Some(Why::new(Reason::ClusterDeleting, message));
    }
    let lacking = match (
        cluster.is_infrastructure_ready,
        cluster.is_control_plane_initialized,
    ) {
        (true, true) => return None,
        (false, _) => "its infrastructure is not ready",
        (true, false) => "its control plane is not initialised",
    };
    let message = format!("Cluster {name} is not ready for machines: {lacking}");
    Some(Why::new(Reason::ClusterNotReady, message))
}

fn name_taken(case: &Case<'_>) -> Option<Why> {
    let (owned, desired) = (case.owned, case.desired);
    let machine = match owned.machine {
        NamedMachine::Foreign(found) => {
            let api_version = found.contract.api_version();
            let place = Reference::new(api_version, "Machine", &found.meta.name);
            Some((&found.meta, place))
        }
        NamedMachine::Absent | NamedMachine::Ours(_) => None,
    };
    let bootstrap = || occupant(&owned.bootstrap, &desired.bootstrap.reference);
    let infrastructure =
        || occupant(&owned.infrastructure, &desired.infrastructure.reference);
    let (occupant, place) = machine.or_else(bootstrap).or_else(infrastructure)?;
    let (kind, name) = (&place.kind, case.subject.child());
    let message = match earlier_owner(case, occupant) {
        Some(earlier) => format!(
            "a {kind} {name} exists and belongs to an earlier ScheduledMachine {name} (uid \
             {earlier}); if this one is its restored copy, transfer the {kind} to it: kubectl \
             label -n {} {}.{} {name} {}={} --overwrite",
            case.subject.namespace,
            kind.to_lowercase(),
            place.group,
            name::SCHEDULED_MACHINE_UID_LABEL,
            case.subject.uid,
        ),
        None => format!(
            "a {kind} {name} exists and is not owned by this ScheduledMachine; rename one of the \
             two"
        ),
    };
    Some(Why::new(Reason::NameTaken, message))
}

/// An object of another owner where ours would be created, and its location.
fn occupant<'a>(
    part: &ProviderObjects<'a>,
    home: &Reference,
) -> Option<(&'a Meta, Reference)> {
    let occupant = part.occupant?;
    part.first().is_none().then(|| (occupant, home.clone()))
}

/// The uid of an earlier ScheduledMachine of our name that an object belongs to, according to its
/// labels and an owner reference.
fn earlier_owner(case: &Case<'_>, occupant: &Meta) -> Option<String> {
    let own = case.subject.name.as_str();
    let is_owned = occupant
        .owners
        .iter()
        .any(|owner| owner.kind == name::KIND && owner.name == own);
    let is_named = name::owner_name(&occupant.labels) == Some(own);
    let uid = name::owner_uid(&occupant.labels).filter(|_| is_named && is_owned)?;
    Some(one_line(uid))
}

/// Why a fact is unknown.
pub(crate) fn unknown_fact(unknown: &Unknown, what: &str) -> Why {
    match unknown {
        Unknown::NotRequested => {
            Why::new(Reason::ReadFailed, format!("{what} have not been read yet"))
        }
        Unknown::NotServed { message } => {
            Why::new(Reason::KindNotServed, not_served(message))
        }
        Unknown::Forbidden { message } => Why::new(Reason::Forbidden, forbidden(message)),
        Unknown::Failed { message } => Why::new(Reason::ReadFailed, message),
    }
}

/// The message about a kind that is not served, and what to do about it.
fn not_served(kind: &str) -> String {
    format!("the API server does not serve {kind}; install its provider")
}

/// The message about a refused request, and what to do about it.
pub(crate) fn forbidden(message: &str) -> String {
    format!("{message}; extend the ClusterRole {ROLE}")
}

/// `ReferencesValid`: every object that the spec refers to exists and may be used.
pub(crate) fn references(case: &Case<'_>, failure: Option<&Failure>) -> ConditionUpdate {
    let kind = ConditionType::ReferencesValid;
    let fault = case.desired.class_fault.as_ref();
    let fault = fault.filter(|_| case.unread_class().is_none());
    let refused = failure.filter(|failure| Step::CREATIONS.contains(&failure.step));
    let known = fault
        .map(|fault| fault.why.clone())
        .or_else(|| case.desired.too_large.clone())
        .or_else(|| refused.and_then(refusal));
    if let Some(why) = known {
        return why.condition(kind, false);
    }
    let unobserved = case.unobserved().or_else(|| case.unknown_schedule());
    if let Some(unknown) = unobserved.or_else(|| case.owned.unknown()) {
        let status = if matches!(unknown, Unknown::Forbidden { .. }) {
            ConditionStatus::False
        } else {
            ConditionStatus::Unknown
        };
        return unknown_fact(unknown, "the objects of this machine")
            .condition(kind, status);
    }
    if let Some(why) = obstacle(case).or_else(|| missing_calendar(case)) {
        return why.condition(kind, false);
    }
    let message = "all objects that the spec refers to exist";
    ConditionUpdate::new(kind, true, Reason::Valid, message)
}

/// `SpotScheduleResolved`: the schedule that the machine follows is evaluated.
pub(super) fn spot_schedule_resolved(case: &Case<'_>) -> ConditionChange {
    let kind = ConditionType::SpotScheduleResolved;
    let Some(followed) = &case.desired.followed else {
        return ConditionChange::Remove;
    };
    if case.unknown_schedule().is_some() {
        return ConditionChange::Keep;
    }
    let (of, name) = (&followed.reference.kind, &followed.reference.name);
    ConditionChange::Set(match &followed.schedule {
        Ok(_) if followed.is_flapping => {
            let message = format!(
                "{of} {name} has changed more than 6 times in 10 minutes: it is followed once a \
                 minute"
            );
            ConditionUpdate::new(kind, true, Reason::ProviderFlapping, message)
        }
        Ok(_) => {
            let message = format!("{of} {name} is evaluated");
            ConditionUpdate::new(kind, true, Reason::Resolved, message)
        }
        Err(why) => {
            Why::new(why.reason.clone(), one_line(&why.message)).condition(kind, false)
        }
    })
}

/// A calendar does not exist: the schedule applies without its exceptions.
fn missing_calendar(case: &Case<'_>) -> Option<Why> {
    let name = case.desired.missing_calendar.as_ref()?;
    let message = format!(
        "there is no ScheduleCalendar {} in this namespace: its exceptions do not apply; create it",
        one_line(name),
    );
    Some(Why::new(Reason::CalendarNotFound, message))
}

fn refusal(failure: &Failure) -> Option<Why> {
    let message = &failure.message;
    match failure.cause {
        Cause::Forbidden => Some(Why::new(Reason::Forbidden, forbidden(message))),
        Cause::Rejected | Cause::NamespaceTerminating => {
            Some(Why::new(Reason::Rejected, message))
        }
        Cause::NotServed => Some(Why::new(Reason::KindNotServed, message)),
        Cause::Unavailable => None,
    }
}

/// `Scheduled`: whether the window is open.
pub(crate) fn scheduled(case: &Case<'_>) -> ConditionUpdate {
    let kind = ConditionType::Scheduled;
    if case.desired.is_killed {
        let message = "the kill switch overrides the schedule";
        return ConditionUpdate::new(kind, false, Reason::KillSwitchActivated, message);
    }
    if !case.desired.is_enabled {
        if let Some(message) = reclaimed(case) {
            let reason = Reason::EmergencyReclaimDisabledSchedule;
            return ConditionUpdate::new(kind, false, reason, message);
        }
        let field = case.desired.enabled_field.as_str();
        let message =
            format!("the schedule is disabled; set {field} to true to enable it");
        return ConditionUpdate::new(kind, false, Reason::ScheduleDisabled, message);
    }
    if let Err(invalid) = &case.desired.schedule {
        return invalid.clone().condition(kind, ConditionStatus::Unknown);
    }
    if let Some(of) = case.override_in_force() {
        return overridden(case, of);
    }
    let (Some(window), Some(decided_by)) = (case.window, case.decided_by()) else {
        let why = Why::new(Reason::ScheduleInactive, "not evaluated");
        return why.condition(kind, ConditionStatus::Unknown);
    };
    let is_open = window.is_open();
    let word = if is_open { "open" } else { "closed" };
    let until = format!("{word} {}", case.how_long(window));
    let (reason, message) = match (decided_by, is_open) {
        (DecidedBy::Exception(of), _) => {
            let message = format!("exception {} applies today; {until}", of.name);
            let reason = if is_open {
                Reason::ExceptionRun
            } else {
                Reason::ExceptionStop
            };
            (reason, message)
        }
        (DecidedBy::Base | DecidedBy::Override(_), true) => {
            (Reason::ScheduleActive, until)
        }
        (DecidedBy::Base | DecidedBy::Override(_), false) => {
            (Reason::ScheduleInactive, until)
        }
    };
    ConditionUpdate::new(kind, is_open, reason, message)
}

/// `Scheduled` while an override is in force.
fn overridden(case: &Case<'_>, of: &Override) -> ConditionUpdate {
    let (status, reason, what) = match of.mode {
        OverrideMode::Run => (ConditionStatus::True, Reason::OverrideRun, "runs"),
        OverrideMode::Stop => (ConditionStatus::False, Reason::OverrideStop, "stops"),
        OverrideMode::Hold => (ConditionStatus::Unknown, Reason::OverrideHold, "holds"),
    };
    let message = format!(
        "override {} {what} the machine until {}{}",
        of.name,
        of.end,
        host_return::describe(case)
    );
    ConditionUpdate::new(ConditionType::Scheduled, status, reason, message)
}

/// The message that a reclaim has disabled the schedule, if one has. Only the message depends on
/// the reported condition, because the record was deleted with its Machine.
pub(crate) fn reclaimed(case: &Case<'_>) -> Option<String> {
    let before = case.subject.reported(ConditionType::Scheduled)?;
    let is_reason = |reason: &Reason| before.reason == reason.as_str();
    if is_reason(&Reason::EmergencyReclaimDisabledSchedule) {
        return Some(before.message.clone());
    }
    let machine = case.owned.our_machine()?;
    let recorded = machine.meta.annotations.get(name::RECLAIM_ANNOTATION)?;
    (!is_reason(&Reason::ScheduleDisabled)).then(|| {
        format!(
            "disabled because the host was reclaimed ({}); set {} to true to return to service",
            one_line(recorded),
            case.desired.enabled_field.as_str(),
        )
    })
}

/// `ScheduleValid`: the schedule can be evaluated.
pub(crate) fn schedule_valid(case: &Case<'_>) -> ConditionUpdate {
    let kind = ConditionType::ScheduleValid;
    match &case.desired.schedule {
        Ok(_) => ConditionUpdate::new(
            kind,
            true,
            Reason::Valid,
            "the schedule can be evaluated",
        ),
        Err(invalid) => invalid.clone().condition(kind, false),
    }
}

/// `MachineReady`: the Machine's own readiness; `None` without a Machine.
pub(crate) fn machine_ready(case: &Case<'_>) -> Option<ConditionUpdate> {
    let machine = case.owned.our_machine()?;
    let (status, reason, message) = if machine.meta.is_deleting {
        let progress = machine.deletion_progress();
        let (reason, message) = progress
            .map_or(("Deleting", "the Machine is being deleted"), |of| {
                (of.reason.as_str(), of.message.as_str())
            });
        (ConditionStatus::False, reason, message)
    } else if let Some(ready) = machine.condition("Ready") {
        let (status, usual) = match ready.status {
            ConditionState::True => (ConditionStatus::True, "Ready"),
            ConditionState::False => (ConditionStatus::False, "NotReady"),
            ConditionState::Unknown => (ConditionStatus::Unknown, "ReadyUnknown"),
        };
        let reported = Some(ready.reason.as_str()).filter(|reason| !reason.is_empty());
        (status, reported.unwrap_or(usual), ready.message.as_str())
    } else {
        let message = "the Machine does not report its readiness yet";
        (ConditionStatus::Unknown, "NotReported", message)
    };
    let why = Why::new(Reason::Reported(reason.to_owned()), message);
    Some(why.condition(ConditionType::MachineReady, status))
}

/// `NodeAccess`: the workload cluster is accessible, and the Node may be touched; `None` if the
/// cluster was not requested.
pub(crate) fn node_access(case: &Case<'_>) -> Option<ConditionUpdate> {
    let kind = ConditionType::NodeAccess;
    let machine = case.owned.our_machine();
    if let Some(why) = machine.and_then(|machine| machine::why_untouchable(case, machine))
    {
        let why = Why::new(Reason::NodeNotOurs, format!("{why}: it is not changed"));
        return Some(why.condition(kind, false));
    }
    let (reason, message) = case.observed.workload.access.condition()?;
    let is_connected = reason == Reason::Connected;
    Some(ConditionUpdate::new(kind, is_connected, reason, message))
}

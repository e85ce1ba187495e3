//! Which rung decides: the first that applies, from the top.

use fivespot_api::ShutdownReason;
use fivespot_capi::Machine;

use crate::Unknown;
use crate::decide::case::Case;
use crate::decide::reclaim;

/// What decides about the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rung<'a> {
    /// Nothing is touched. What is paused, for people.
    Paused(&'static str),
    /// What exists cannot be told: nothing is touched.
    Blind(&'a Unknown),
    /// The machine leaves.
    Leave(Removal),
    /// The schedule is switched off: what is there stays.
    Disabled,
    /// The schedule cannot be understood: what is there stays.
    Invalid,
    /// The machine is in service or on its way.
    Serve,
}

/// Why and how a machine leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removal {
    pub(crate) reason: ShutdownReason,
}

impl Removal {
    /// Whether there is neither grace nor drain.
    pub(crate) fn is_at_once(self) -> bool {
        match self.reason {
            ShutdownReason::KillSwitch | ShutdownReason::Reclaim => true,
            ShutdownReason::ScheduleEnded
            | ShutdownReason::Deleted
            | ShutdownReason::Remediation => false,
        }
    }
}

/// Climbs down the ladder to the first rung that applies.
pub(crate) fn climb<'a>(case: &Case<'a>) -> Rung<'a> {
    let machine = case.triple.our_machine();
    if let Some(paused) = paused(case, machine) {
        return Rung::Paused(paused);
    }
    if let Some(unknown) = case.blind_spot() {
        return Rung::Blind(unknown);
    }
    if let Some(reason) = overriding(case, machine).or_else(|| committed(case, machine)) {
        return Rung::Leave(Removal { reason });
    }
    if !case.want.is_enabled {
        return Rung::Disabled;
    }
    if case.window.is_none() {
        return Rung::Invalid;
    }
    match machine {
        _ if !case.is_wanted() => Rung::Leave(Removal {
            reason: ShutdownReason::ScheduleEnded,
        }),
        Some(machine) if is_replaceable(case, machine) => Rung::Leave(Removal {
            reason: ShutdownReason::Remediation,
        }),
        Some(_) | None => Rung::Serve,
    }
}

fn paused(case: &Case<'_>, machine: Option<&Machine>) -> Option<&'static str> {
    if case.subject.is_paused {
        Some("ScheduledMachine")
    } else if case.cluster().is_some_and(|cluster| cluster.is_paused) {
        Some("Cluster")
    } else if machine.is_some_and(|machine| machine.meta.is_paused()) {
        Some("Machine")
    } else {
        None
    }
}

/// What overrides the schedule. A requested reclaim is also a way in which a deleted object
/// leaves.
fn overriding(case: &Case<'_>, machine: Option<&Machine>) -> Option<ShutdownReason> {
    let is_reclaimed =
        machine.is_some_and(|machine| reclaim::requested(case, machine).is_some());
    if case.want.is_killed {
        Some(ShutdownReason::KillSwitch)
    } else if is_reclaimed {
        Some(ShutdownReason::Reclaim)
    } else if case.subject.is_deleting {
        Some(ShutdownReason::Deleted)
    } else {
        None
    }
}

/// The reason of a commitment that completes, that is: one that is not to be cancelled.
fn committed(case: &Case<'_>, machine: Option<&Machine>) -> Option<ShutdownReason> {
    let machine = machine?;
    let reason = case.commitment(machine)?.reason;
    let is_cancelled = case.is_wanted()
        && !machine.meta.is_deleting
        && reason != ShutdownReason::Remediation;
    (!is_cancelled).then_some(reason)
}

fn is_replaceable(case: &Case<'_>, machine: &Machine) -> bool {
    case.wants_replacement(machine)
        && case
            .replaceable_from(machine)
            .is_some_and(|due| due <= case.now)
}

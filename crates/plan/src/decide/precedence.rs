//! The precedence list: the first entry that matches, from the top, decides about a machine.
//!
//! The planner and `5spot explain` use the same list.

mod describe;

use fivespot_api::ShutdownReason;
use fivespot_capi::Machine;
use fivespot_schedule::Need;
use jiff::Timestamp;

use crate::Unknown;
use crate::decide::case::Case;
use crate::decide::{pace, reclaim};

/// What to do about the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision<'a> {
    /// Nothing is touched. Contains the kind that is paused, for users.
    Paused(&'static str),
    /// The existing objects could not be read: nothing is touched.
    NotObservable(&'a Unknown),
    /// The inputs of the schedule could not be read: the schedule creates and ends nothing.
    ScheduleUnknown(&'a Unknown),
    /// The machine is shut down, for this reason.
    ShutDown(ShutdownReason),
    /// The schedule is disabled: existing objects stay.
    Disabled,
    /// The schedule cannot be evaluated: existing objects stay.
    Invalid,
    /// An override holds the machine: nothing is started or shut down.
    Hold,
    /// The machine is in service, or is provisioned.
    Serve,
}

impl Decision<'_> {
    /// Why the machine is shut down; `None` if it is not.
    pub(crate) fn shutdown_reason(self) -> Option<ShutdownReason> {
        if let Self::ShutDown(reason) = self {
            Some(reason)
        } else {
            None
        }
    }
}

/// One entry of the list.
pub(crate) struct Entry {
    /// Its name in `5spot explain`.
    pub(crate) name: &'static str,
    /// What it does and why, in one line.
    pub(crate) reason: &'static str,
    /// The decision, if the entry matches.
    matches: for<'a> fn(&Case<'a>) -> Option<Decision<'a>>,
    /// What was observed of its condition, in one sentence.
    pub(crate) describe: fn(&Case<'_>) -> String,
}

/// The list, the highest precedence first. The number of an entry, from 1, is shown to users.
pub(crate) const PRECEDENCE: [Entry; 9] = [
    Entry {
        name: "paused",
        reason: "paused, or not readable: nothing is changed, whatever else is requested",
        matches: paused,
        describe: describe::paused,
    },
    Entry {
        name: "deleted",
        reason: "deletion is requested: the machine is shut down, then the finalizer is removed",
        matches: deleted,
        describe: describe::deleted,
    },
    Entry {
        name: "killSwitch",
        reason: "the kill switch is set: the machine is removed without grace and drain",
        matches: kill_switch,
        describe: describe::kill_switch,
    },
    Entry {
        name: "reclaim",
        reason: "the host is reclaimed: the machine is removed, and its schedule does not start it again",
        matches: reclaim_requested,
        describe: describe::reclaim,
    },
    Entry {
        name: "shutdown",
        reason: "a shutdown in progress continues, unless the machine is needed again",
        matches: shutdown_recorded,
        describe: describe::shutdown,
    },
    Entry {
        name: "disabled",
        reason: "the schedule is disabled, invalid, unknown or on hold: existing objects are kept",
        matches: disabled,
        describe: describe::disabled,
    },
    Entry {
        name: "remediation",
        reason: "a health check failed, or an object of the Machine is missing: it is replaced",
        matches: remediation,
        describe: describe::remediation,
    },
    Entry {
        name: "wanted",
        reason: "the machine is wanted: it is provisioned and kept in service",
        matches: wanted,
        describe: describe::window,
    },
    Entry {
        name: "notWanted",
        reason: "the machine is not wanted: it is shut down with grace and drain",
        matches: not_wanted,
        describe: describe::window,
    },
];

/// The decision of the first entry that matches.
pub(crate) fn decide<'a>(case: &Case<'a>) -> Decision<'a> {
    first_match(case).1
}

/// The first entry that matches, by its index in [`PRECEDENCE`], and its decision.
pub(crate) fn first_match<'a>(case: &Case<'a>) -> (usize, Decision<'a>) {
    let mut entries = PRECEDENCE.iter().enumerate();
    let found = entries.find_map(|(place, entry)| Some((place, (entry.matches)(case)?)));
    // One of the last two always matches.
    found.unwrap_or((PRECEDENCE.len(), Decision::Invalid))
}

fn paused<'a>(case: &Case<'a>) -> Option<Decision<'a>> {
    let paused = paused_kind(case, case.owned.our_machine()).map(Decision::Paused);
    paused.or_else(|| case.unobserved().map(Decision::NotObservable))
}

/// The kind of the object that is paused.
pub(crate) fn paused_kind(
    case: &Case<'_>,
    machine: Option<&Machine>,
) -> Option<&'static str> {
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

/// For an object that is deleted, the kill switch and a reclaim still decide how its machine is
/// shut down. How long its pods are given is not known before its class is read.
fn deleted<'a>(case: &Case<'a>) -> Option<Decision<'a>> {
    let machine = case.owned.our_machine();
    let is_begun = machine.is_none_or(|it| case.shutdown_record(it).is_some());
    let unread = case.unread_class().filter(|_| !is_begun);
    let decision = kill_switch(case)
        .or_else(|| reclaim_requested(case))
        .or_else(|| unread.map(Decision::ScheduleUnknown))
        .unwrap_or(Decision::ShutDown(ShutdownReason::Deleted));
    case.subject.is_deleting.then_some(decision)
}

fn kill_switch<'a>(case: &Case<'a>) -> Option<Decision<'a>> {
    let is_killed = case.desired.is_killed;
    is_killed.then_some(Decision::ShutDown(ShutdownReason::KillSwitch))
}

fn reclaim_requested<'a>(case: &Case<'a>) -> Option<Decision<'a>> {
    let machine = case.owned.our_machine()?;
    let is_reclaimed = reclaim::requested(case, machine).is_some();
    is_reclaimed.then_some(Decision::ShutDown(ShutdownReason::Reclaim))
}

/// A recorded shutdown that must not be cancelled.
fn shutdown_recorded<'a>(case: &Case<'a>) -> Option<Decision<'a>> {
    let machine = case.owned.our_machine()?;
    let shutdown = case.shutdown_record(machine)?;
    let reason = shutdown.reason;
    let can_be_cancelled =
        !machine.meta.is_deleting && reason != ShutdownReason::Remediation;
    if let Some(unknown) = case.unknown_schedule().filter(|_| can_be_cancelled) {
        return Some(Decision::ScheduleUnknown(unknown));
    }
    let is_cancelled = can_be_cancelled
        && case.is_wanted()
        && case.hold().is_none()
        && is_wanted_for_longer(case, shutdown.window_end);
    (!is_cancelled).then_some(Decision::ShutDown(reason))
}

fn disabled<'a>(case: &Case<'a>) -> Option<Decision<'a>> {
    if !case.desired.is_enabled {
        return Some(Decision::Disabled);
    }
    if let Some(unknown) = case.unknown_schedule() {
        return Some(Decision::ScheduleUnknown(unknown));
    }
    if case.need.is_none() {
        return Some(Decision::Invalid);
    }
    case.hold().is_some().then_some(Decision::Hold)
}

/// Whether the machine is needed for a window that ends later than the one by whose end it should
/// be gone.
fn is_wanted_for_longer(case: &Case<'_>, recorded_end: Option<Timestamp>) -> bool {
    match (recorded_end, case.need) {
        (Some(recorded_end), Some(Need::Needed { window_end, .. })) => {
            window_end.is_none_or(|end| end > recorded_end)
        }
        _ => true,
    }
}

fn remediation<'a>(case: &Case<'a>) -> Option<Decision<'a>> {
    let machine = case.owned.our_machine()?;
    let from = case.replaceable_from(machine);
    let is_due = case.is_wanted()
        && case.wants_replacement(machine)
        && from.is_some_and(|due| due <= case.now);
    is_due.then_some(Decision::ShutDown(ShutdownReason::Remediation))
}

fn wanted<'a>(case: &Case<'a>) -> Option<Decision<'a>> {
    let is_served = case.is_wanted() || pace::stop_held(case).is_some();
    is_served.then_some(Decision::Serve)
}

fn not_wanted<'a>(case: &Case<'a>) -> Option<Decision<'a>> {
    (!case.is_wanted()).then_some(Decision::ShutDown(ShutdownReason::ScheduleEnded))
}

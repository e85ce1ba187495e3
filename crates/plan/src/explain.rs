//! The ladder, rung by rung, for people: what decides, and what was seen on the way.

use fivespot_api::{Phase, ScheduledMachine, ScheduledMachineStatus, ShutdownReason};
use fivespot_capi::Machine;
use fivespot_schedule::Window;
use jiff::Timestamp;

use crate::decide::case::{Basis, Case};
use crate::decide::{ladder, ladder::Rung};
use crate::{Memory, Plan, Seen, Unknown, plan};

/// Why [`plan`] answers what it answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Every rung, the highest first. Exactly one decides.
    pub rungs: Vec<RungReport>,
    /// What the schedule says; none where it cannot be understood.
    pub window: Option<Window>,
    /// What is to be done.
    pub plan: Plan,
    /// The status as it is to be.
    pub status: ScheduledMachineStatus,
}

/// One rung of the ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RungReport {
    /// From 1, the highest.
    pub number: u8,
    /// What it asks, e.g. `killSwitch`.
    pub name: &'static str,
    /// Whether it decides: those above did not apply, those below are not asked.
    pub decides: bool,
    /// What was seen of it, in one sentence.
    pub saw: String,
}

impl Explanation {
    /// The phase as it is to be.
    pub fn phase(&self) -> Option<Phase> {
        self.status.phase
    }
}

/// Explains what [`plan`] answers to the same facts.
///
/// # Guarantees
/// Total and deterministic, like the plan, which is part of it.
pub fn explain(
    object: &ScheduledMachine,
    seen: &Seen,
    memory: &Memory,
    now: Timestamp,
) -> Explanation {
    let basis = Basis::of(object, seen);
    let case = basis.case(memory, now);
    let plan = plan(object, seen, memory, now);
    Explanation {
        rungs: rungs(&case),
        window: case.window,
        status: plan
            .status
            .clone()
            .unwrap_or_else(|| case.subject.status.clone()),
        plan,
    }
}

fn rungs(case: &Case<'_>) -> Vec<RungReport> {
    let rung = ladder::climb(case);
    let machine = case.triple.our_machine();
    let deciding = number(case, rung, machine);
    let all = [
        ("paused", paused(rung)),
        ("deleted", deleted(case)),
        (
            "killSwitch",
            format!("spec.killSwitch is {}", case.want.is_killed),
        ),
        ("reclaim", reclaim(case, machine)),
        ("leaving", leaving(case, machine)),
        ("disabled", disabled(case)),
        ("remediation", remediation(case, machine)),
        ("wanted", window(case)),
        ("notWanted", window(case)),
    ];
    (1..)
        .zip(all)
        .map(|(number, (name, saw))| RungReport {
            number,
            name,
            decides: number == deciding,
            saw,
        })
        .collect()
}

/// Which rung of the ladder it is that people know by its number.
fn number(case: &Case<'_>, rung: Rung<'_>, machine: Option<&Machine>) -> u8 {
    let is_committed = machine.is_some_and(|machine| case.commitment(machine).is_some());
    match rung {
        Rung::Paused(_) | Rung::Blind(_) => 1,
        Rung::Leave(_) if case.subject.is_deleting => 2,
        Rung::Leave(removal) => match removal.reason {
            ShutdownReason::KillSwitch if case.want.is_killed => 3,
            ShutdownReason::Reclaim => 4,
            ShutdownReason::Remediation if !is_committed => 7,
            ShutdownReason::ScheduleEnded if !is_committed => 9,
            ShutdownReason::Deleted
            | ShutdownReason::KillSwitch
            | ShutdownReason::Remediation
            | ShutdownReason::ScheduleEnded => 5,
        },
        Rung::Disabled | Rung::Invalid => 6,
        Rung::Serve => 8,
    }
}

fn paused(rung: Rung<'_>) -> String {
    match rung {
        Rung::Paused(what) => format!("the {what} is paused: nothing is touched"),
        Rung::Blind(unknown) => {
            format!(
                "nothing is touched, for something cannot be read: {}",
                words(unknown)
            )
        }
        Rung::Leave(_) | Rung::Disabled | Rung::Invalid | Rung::Serve => {
            "neither the ScheduledMachine nor its Cluster nor its Machine is paused"
                .to_owned()
        }
    }
}

fn words(unknown: &Unknown) -> &str {
    unknown.message().unwrap_or("nobody asked")
}

fn deleted(case: &Case<'_>) -> String {
    let told = match (case.subject.is_deleting, case.subject.has_finalizer()) {
        (false, _) => "no deletion is requested",
        (true, true) => "deletion is requested: the machine leaves first",
        (true, false) => {
            "deletion is requested, and our finalizer is gone: nothing is touched"
        }
    };
    told.to_owned()
}

fn reclaim(case: &Case<'_>, machine: Option<&Machine>) -> String {
    let requested =
        machine.and_then(|machine| crate::decide::reclaim::requested(case, machine));
    requested.map_or_else(
        || "no reclaim is under way".to_owned(),
        |request| format!("the machine is reclaimed: {request}"),
    )
}

fn leaving(case: &Case<'_>, machine: Option<&Machine>) -> String {
    let Some(stored) = &case.subject.status.shutdown else {
        return "no commitment to leave is stored".to_owned();
    };
    match machine.and_then(|machine| case.commitment(machine)) {
        Some(shutdown) => format!(
            "committed at {} to leave by {} ({:?})",
            shutdown.started_at,
            case.deadline(shutdown),
            shutdown.reason,
        ),
        None => format!(
            "the stored commitment is for a Machine that is gone (uid {})",
            stored.machine_uid,
        ),
    }
}

fn disabled(case: &Case<'_>) -> String {
    match &case.want.schedule {
        _ if !case.want.is_enabled => "spec.schedule.enabled is false".to_owned(),
        Err(misfit) => format!("the schedule cannot be understood: {}", misfit.message),
        Ok(_) => "the schedule is enabled and can be understood".to_owned(),
    }
}

fn remediation(case: &Case<'_>, machine: Option<&Machine>) -> String {
    let Some(machine) = machine else {
        return "there is no Machine to be replaced".to_owned();
    };
    if !case.wants_replacement(machine) {
        return "nothing asks for the Machine to be replaced".to_owned();
    }
    match case.replaceable_from(machine) {
        Some(due) if due > case.now => {
            format!("the Machine is to be replaced, from {due} on")
        }
        Some(_) => "the Machine is to be replaced".to_owned(),
        None => {
            "the Machine is to be replaced, once its creation is on record".to_owned()
        }
    }
}

fn window(case: &Case<'_>) -> String {
    let Some(window) = case.window else {
        return "no window can be told".to_owned();
    };
    let state = if window.is_open() { "open" } else { "closed" };
    match window.until() {
        Some(until) => format!("the window is {state} until {until}"),
        None => format!("the window is {state} for the next ten years"),
    }
}

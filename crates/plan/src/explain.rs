//! The precedence list, entry by entry, for users: which entry decides, and what was observed.

use fivespot_api::{Phase, ScheduledMachine, ScheduledMachineStatus};
use fivespot_schedule::{Steps, Window};
use jiff::Timestamp;

use crate::decide::case::{Case, CaseInputs};
use crate::decide::precedence::{self, PRECEDENCE};
use crate::{MAX_STEPS, Memory, Observed, Plan, plan};

/// Why [`plan`] returns what it returns.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Every entry, the highest precedence first. Exactly one decides.
    pub precedence: Vec<PrecedenceReport>,
    /// The current window of the schedule; `None` if the schedule is invalid.
    pub window: Option<Window>,
    /// The plan.
    pub plan: Plan,
    /// The desired status.
    pub status: ScheduledMachineStatus,
}

/// The names and the reasons of the entries of the precedence list, the highest first.
pub fn precedence() -> impl Iterator<Item = (&'static str, &'static str)> {
    PRECEDENCE.iter().map(|entry| (entry.name, entry.reason))
}

/// One entry of the precedence list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrecedenceReport {
    /// From 1, the highest.
    pub number: u8,
    /// Its name, e.g. `killSwitch`.
    pub name: &'static str,
    /// What it does and why, in one line.
    pub reason: &'static str,
    /// Whether it decides: the entries above it did not match, those below it are not evaluated.
    pub decides: bool,
    /// What was observed of its condition, in one sentence.
    pub observed: String,
}

impl Explanation {
    /// The desired phase.
    pub fn phase(&self) -> Option<Phase> {
        self.status.phase
    }
}

/// Explains the result of [`plan`] for the same observed state.
///
/// # Guarantees
/// Total and deterministic, like the plan, which is part of it.
pub fn explain(
    object: &ScheduledMachine,
    observed: &Observed,
    memory: &Memory,
    now: Timestamp,
) -> Explanation {
    let inputs = CaseInputs::of(object, observed);
    let steps = Steps::at_most(MAX_STEPS);
    let case = inputs.case(memory, now, &steps);
    let plan = plan(object, observed, memory, now);
    Explanation {
        precedence: entries(&case),
        window: case.window,
        status: plan
            .status
            .clone()
            .unwrap_or_else(|| case.subject.status.clone()),
        plan,
    }
}

fn entries(case: &Case<'_>) -> Vec<PrecedenceReport> {
    let (deciding, _) = precedence::first_match(case);
    let all = (1..).zip(PRECEDENCE.iter().enumerate());
    all.map(|(number, (place, entry))| PrecedenceReport {
        number,
        name: entry.name,
        reason: entry.reason,
        decides: place == deciding,
        observed: (entry.describe)(case),
    })
    .collect()
}

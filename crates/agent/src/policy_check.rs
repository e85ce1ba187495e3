//! Checks that the policy which limits the agent to its own Node, and as a service of its host to its
//! annotations, is in force: at start, then once a day. An agent that could write more does nothing.

use std::time::Duration;

use fivespot_api::reclaim::Report;
use tokio::time::Instant;

use crate::detect::with_causes;
use crate::node::{Attempt, Error, OwnNode, ReportState};
use crate::reporting::OwnMachine;
use crate::watched::{URGENT, backoff_while};

/// Interval between checks while the policy is in force.
const RECHECK_IN_FORCE: Duration = Duration::from_hours(24);
/// Interval between checks while it is not.
const RECHECK_MISSING: Duration = Duration::from_secs(10);

/// Whether the policy must be in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyRequirement {
    /// The agent does nothing until it is in force.
    #[default]
    Required,
    /// Not required, for example if the agent authenticates as a user that the policy does not match.
    NotRequired,
}

/// The state of the policy check.
#[derive(Debug)]
pub(crate) struct PolicyCheck {
    state: PolicyState,
    failures: u32,
    /// The time of the next check; `None` if the check is not required.
    due: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PolicyState {
    Unknown,
    Missing(&'static str),
    InForce,
    NotRequired,
}

impl PolicyCheck {
    pub(crate) fn new(requirement: PolicyRequirement) -> Self {
        let (state, due) = match requirement {
            PolicyRequirement::Required => (PolicyState::Unknown, Some(Instant::now())),
            PolicyRequirement::NotRequired => (PolicyState::NotRequired, None),
        };
        Self {
            state,
            failures: 0,
            due,
        }
    }

    /// When the next check is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Somebody waits for their host: an attempt that has failed is repeated soon.
    pub(crate) fn hasten(&mut self) {
        if self.failures > 0 {
            let soon = Instant::now() + URGENT;
            self.due = self.due.map(|due| due.min(soon));
        }
    }

    /// The Node is there, without which nothing could be tried.
    pub(crate) fn node_appeared(&mut self) {
        if self.state == PolicyState::Unknown {
            self.due = self.due.map(|due| due.min(Instant::now()));
        }
    }

    /// Whether the agent may do its work.
    pub(crate) fn is_satisfied(&self) -> bool {
        matches!(self.state, PolicyState::InForce | PolicyState::NotRequired)
    }

    /// The report to publish instead of `report`.
    pub(crate) fn report(&self, report: &Report) -> ReportState {
        match self.state {
            PolicyState::Unknown => ReportState::NotYet,
            PolicyState::Missing(policy) => {
                let why = format!("the policy {policy} is not in force");
                ReportState::Report(Report::rejected(&report.config, &why))
            }
            PolicyState::InForce | PolicyState::NotRequired => {
                ReportState::Report(report.clone())
            }
        }
    }

    /// Applies the result of the attempt to write what the agent must not. An error changes nothing;
    /// the attempt is repeated with backoff.
    pub(crate) fn update(&mut self, outcome: Result<Attempt, Error>, is_urgent: bool) {
        let (state, recheck) = match outcome {
            Ok(Attempt::Rejected) => (PolicyState::InForce, RECHECK_IN_FORCE),
            Ok(Attempt::Allowed(policy)) => {
                (PolicyState::Missing(policy), RECHECK_MISSING)
            }
            Ok(Attempt::Unknown) if self.is_satisfied() => (self.state, RECHECK_IN_FORCE),
            Ok(Attempt::Unknown) => (self.state, RECHECK_MISSING),
            Err(error) => {
                self.failures += 1;
                self.due = Some(Instant::now() + backoff_while(is_urgent, self.failures));
                let error = with_causes(&error);
                tracing::warn!(error, "could not check whether the policy is in force");
                return;
            }
        };
        if let PolicyState::Missing(policy) = state {
            tracing::error!(
                "the policy {policy} is not in force: detection is stopped, because this token may \
                 write more than the agent's annotations"
            );
        } else if state != self.state {
            tracing::info!("the policy about this agent is in force");
        }
        self.failures = 0;
        self.state = state;
        self.due = Some(Instant::now() + recheck);
    }
}

/// Tries to write what the agent must not. If its ScheduledMachine cannot be asked, a reclaim does not
/// wait for that.
pub(crate) async fn try_all(
    node: &OwnNode,
    machine: Option<&OwnMachine>,
) -> Result<Attempt, Error> {
    let tried = node.try_another().await?;
    let (Some(machine), Attempt::Rejected | Attempt::Unknown) = (machine, tried) else {
        return Ok(tried);
    };
    match machine.try_label().await {
        Ok(Attempt::Allowed(policy)) => Ok(Attempt::Allowed(policy)),
        Ok(Attempt::Rejected | Attempt::Unknown) => Ok(tried),
        Err(error) => {
            let error = with_causes(&error);
            tracing::warn!(error, "the ScheduledMachine could not be tried");
            Ok(tried)
        }
    }
}

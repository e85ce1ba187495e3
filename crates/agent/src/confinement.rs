//! Whether the policy that keeps the agent to its own Node is in force: it is tried at the start
//! and once a day, and an agent that could write to another Node does nothing.

use std::future::pending;
use std::time::Duration;

use fivespot_api::name::AGENT_POLICY;
use fivespot_api::reclaim::Report;
use tokio::time::{Instant, sleep_until};

use crate::detect::told;
use crate::follow::backoff;
use crate::node::{Attempt, Error, Told};

/// How long a policy that was in force is taken to be.
const AGAIN_IN_FORCE: Duration = Duration::from_hours(24);
/// How long one that was not is taken not to be: it may have been applied a moment later.
const AGAIN_MISSING: Duration = Duration::from_secs(10);

/// Whether the policy has to be shown to be in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// Nothing is done before it is.
    #[default]
    Required,
    /// It need not, such as where the agent acts as somebody whom the policy does not bind.
    NotRequired,
}

/// What is known of the policy.
#[derive(Debug)]
pub(crate) struct Confinement {
    standing: Standing,
    failures: u32,
    /// When it is tried next; none if it need not be.
    due: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Untried,
    Missing,
    Shown,
    NotRequired,
}

impl Confinement {
    pub(crate) fn new(proof: Proof) -> Self {
        let (standing, due) = match proof {
            Proof::Required => (Standing::Untried, Some(Instant::now())),
            Proof::NotRequired => (Standing::NotRequired, None),
        };
        Self {
            standing,
            failures: 0,
            due,
        }
    }

    /// Waits until it is to be tried.
    pub(crate) async fn due(&self) {
        match self.due {
            Some(due) => sleep_until(due).await,
            None => pending().await,
        }
    }

    /// Whether the agent may do its work.
    pub(crate) fn is_shown(&self) -> bool {
        matches!(self.standing, Standing::Shown | Standing::NotRequired)
    }

    /// What is said of a configuration in place of `report`.
    pub(crate) fn report(&self, report: &Report) -> Told {
        match self.standing {
            Standing::Untried => Told::NotYet,
            Standing::Missing => {
                let why = format!("the policy {AGENT_POLICY} is not in force");
                Told::Report(Report::rejected(&report.config, &why))
            }
            Standing::Shown | Standing::NotRequired => Told::Report(report.clone()),
        }
    }

    /// Takes what came of the attempt to write to another Node. One that came to nothing changes
    /// nothing, and is made again soon.
    pub(crate) fn has_tried(&mut self, outcome: Result<Attempt, Error>) {
        let (standing, again) = match outcome {
            Ok(Attempt::Refused) => (Standing::Shown, AGAIN_IN_FORCE),
            Ok(Attempt::Allowed) => (Standing::Missing, AGAIN_MISSING),
            Err(error) => {
                self.failures += 1;
                self.due = Some(Instant::now() + backoff(self.failures));
                let error = told(&error);
                tracing::warn!(error, "whether {AGENT_POLICY} is in force is not known");
                return;
            }
        };
        if standing == Standing::Missing {
            tracing::error!(
                "the policy {AGENT_POLICY} is not in force: nothing is looked for, because this \
                 token may write to every Node"
            );
        } else if standing != self.standing {
            tracing::info!("the policy {AGENT_POLICY} is in force");
        }
        self.failures = 0;
        self.standing = standing;
        self.due = Some(Instant::now() + again);
    }
}

//! One verdict for each machine, from its status: its state, the cause, and who has to do what.
//!
//! Every reader shows this verdict, so that none of them works out the state with the permissions
//! of its user.

pub mod capacity;
mod facts;
mod lease;
pub mod schedule;
#[cfg(test)]
mod tests;

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

use crate::condition::{Actor, Reason, Remedy};
use crate::{Phase, ScheduledMachine};
use facts::Facts;

pub use lease::Lease;

/// How long phase Error lasts before a user has to act.
const ERROR_LIMIT: SignedDuration = SignedDuration::from_mins(5);

/// How long the operator may take to report on a changed spec, and a Machine to go after its
/// deadline.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(1);

/// What provisioning usually takes, unless `provisioning.leadTime` says otherwise.
const USUAL_PROVISIONING: SignedDuration = SignedDuration::from_mins(10);

/// The state of a machine. The states to look at first come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum State {
    /// A user has to act.
    Blocked,
    /// The status does not describe the machine: no operator runs, or it has not seen the spec.
    Unknown,
    /// It is wanted for longer than provisioning usually takes, has lost its Node, or is leaving
    /// past its deadline.
    Late,
    /// It is being provisioned.
    Starting,
    /// It is being shut down.
    Leaving,
    /// It is in service.
    Serving,
    /// An override, a pause or audit mode keeps it as it is.
    Held,
    /// Its schedule is disabled.
    Disabled,
    /// The kill switch removed it.
    Killed,
    /// It is not wanted, and does not exist.
    Off,
}

impl State {
    /// Every state, those to look at first at the beginning.
    pub const ALL: [Self; 10] = [
        Self::Blocked,
        Self::Unknown,
        Self::Late,
        Self::Starting,
        Self::Leaving,
        Self::Serving,
        Self::Held,
        Self::Disabled,
        Self::Killed,
        Self::Off,
    ];

    /// The state as a string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "Blocked",
            Self::Unknown => "Unknown",
            Self::Late => "Late",
            Self::Starting => "Starting",
            Self::Leaving => "Leaving",
            Self::Serving => "Serving",
            Self::Held => "Held",
            Self::Disabled => "Disabled",
            Self::Killed => "Killed",
            Self::Off => "Off",
        }
    }

    /// What the state means.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Blocked => {
                "a user has to act: the condition `Stalled` is true, the phase has been Error for \
                 five minutes, or a kill switch or a deletion waits for the end of a pause or of \
                 audit mode"
            }
            Self::Unknown => {
                "the status does not describe the machine: no operator holds a fresh Lease, or the \
                 spec has changed more than a minute ago and the operator has not seen it"
            }
            Self::Late => {
                "it is wanted for longer than provisioning usually takes (`provisioning.leadTime`, \
                 else 10 minutes), has lost its Node, or is leaving past its deadline"
            }
            Self::Starting => "it is being provisioned",
            Self::Leaving => "it is being shut down",
            Self::Serving => "it is in service",
            Self::Held => {
                "an override of mode Hold, a pause or audit mode keeps it as it is"
            }
            Self::Disabled => "its schedule is disabled",
            Self::Killed => "the kill switch removed it",
            Self::Off => "it is not wanted, and does not exist",
        }
    }

    /// The position in a list that begins with what to look at first: Blocked, Unknown, Late, and
    /// the rest at one position.
    pub fn rank(self) -> u8 {
        match self {
            Self::Blocked => 0,
            Self::Unknown => 1,
            Self::Late => 2,
            Self::Starting
            | Self::Leaving
            | Self::Serving
            | Self::Held
            | Self::Disabled
            | Self::Killed
            | Self::Off => 3,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// The state of a machine, why, and who has to do what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The state.
    pub state: State,
    /// Since when, as far as the status says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The reason of the condition that decides. Empty if no condition does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The operator's message, in full; or why there is none.
    pub cause: String,
    /// What to do, from the table of reasons. `None` if there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// The page with more details, below `docs/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<&'static str>,
    /// Who can act.
    pub actor: Actor,
    /// Whether the status may be out of date: no operator runs, or it has not seen the spec yet.
    pub is_stale: bool,
}

impl Verdict {
    /// The verdict about an object that cannot be decoded, with the error.
    pub fn undecoded(error: impl fmt::Display) -> Self {
        Self {
            state: State::Unknown,
            since: None,
            reason: String::new(),
            cause: format!("the object cannot be read: {error}"),
            remedy: Some(Remedy::NOT_DECODED.text.to_owned()),
            page: None,
            actor: Actor::Owner,
            is_stale: false,
        }
    }

    /// The verdict about an object whose status does not describe it.
    fn unknown(
        meta: &ObjectMeta,
        remedy: Option<Remedy>,
        cause: String,
        since: Option<Timestamp>,
    ) -> Self {
        Self {
            since,
            cause,
            actor: remedy.map_or(Actor::Nobody, |_| Actor::PlatformTeam),
            ..Self::with_remedy(meta, remedy)
        }
    }

    /// An unknown state with a remedy and its page.
    fn with_remedy(meta: &ObjectMeta, remedy: Option<Remedy>) -> Self {
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        Self {
            state: State::Unknown,
            since: None,
            reason: String::new(),
            cause: String::new(),
            remedy: remedy.map(|it| it.text.replace("NAMESPACE", namespace)),
            page: remedy.and_then(|it| it.section).map(|it| it.path),
            actor: Actor::Nobody,
            is_stale: true,
        }
    }
}

/// The verdict about a machine, from what the operator has written into its status.
///
/// # Guarantees
/// Total. It depends on nothing but its arguments, and not on who reads the object.
///
/// # Example
/// ```
/// use fivespot_api::verdict::{Lease, State, verdict};
/// use fivespot_api::{Phase, ScheduledMachine};
/// # let object = serde_json::json!({
/// #     "metadata": {"name": "worker", "namespace": "default", "generation": 1},
/// #     "spec": {
/// #         "schedule": {"cron": "0 9 * * *"}, "clusterName": "production",
/// #         "bootstrapSpec": {"apiVersion": "a/v1", "kind": "K", "spec": {}},
/// #         "infrastructureSpec": {"apiVersion": "a/v1", "kind": "K", "spec": {}},
/// #     },
/// #     "status": {"observedGeneration": 1, "phase": "Inactive", "message": "no machine is wanted"},
/// # });
/// let object: ScheduledMachine = serde_json::from_value(object)?;
/// let now = "2026-03-06T15:00:00Z".parse()?;
/// assert_eq!(verdict(&object, &Lease::Held, now).state, State::Off);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verdict(object: &ScheduledMachine, lease: &Lease, now: Timestamp) -> Verdict {
    let facts = Facts::of(object);
    let report = facts.report();
    if let Some(unknown) = report.unknown(lease, now) {
        return unknown;
    }
    let (state, since) = state(&facts, now);
    if state == State::Unknown {
        return report.not_observed(None);
    }
    let (reason, cause) = facts.decisive(state);
    let row = Reason::row(reason);
    let provider = facts.reporting_object(reason);
    let (remedy, actor) = match provider {
        Some(_) => (Some(Remedy::PROVIDER_FAILURE), Actor::Provider),
        None => (
            row.and_then(|row| row.remedy),
            row.map_or(Actor::Nobody, |row| row.actor),
        ),
    };
    let with_remedy = Verdict::with_remedy(report.meta, remedy);
    let object = provider.unwrap_or_default();
    Verdict {
        state,
        since,
        reason: reason.to_owned(),
        cause,
        remedy: with_remedy
            .remedy
            .map(|text| text.replace("OBJECT", &object)),
        actor,
        is_stale: !report.is_current(),
        ..with_remedy
    }
}

/// What the status of any kind says about itself.
struct Report<'o> {
    meta: &'o ObjectMeta,
    /// Whether the operator has reported anything.
    is_there: bool,
    /// The generation that it is about.
    observed: Option<i64>,
    message: &'o str,
}

impl Report<'_> {
    /// Whether it is about the present spec.
    fn is_current(&self) -> bool {
        self.is_there && self.observed == self.meta.generation
    }

    /// The verdict where the status does not describe the object: no operator runs, or it should have
    /// seen the present spec by now.
    fn unknown(&self, lease: &Lease, now: Timestamp) -> Option<Verdict> {
        if let Lease::NotHeld { cause, since } = lease {
            let cause = match self.message {
                "" => cause.clone(),
                message => format!("{cause}; the last report was: {message}"),
            };
            let remedy = Some(Remedy::NO_OPERATOR);
            return Some(Verdict::unknown(self.meta, remedy, cause, *since));
        }
        let changed = self.spec_changed();
        let is_overdue = changed.is_some_and(|at| now.duration_since(at) > TOLERANCE);
        let is_unseen = !self.is_current() && is_overdue;
        is_unseen.then(|| self.not_observed(Some(Remedy::NOT_OBSERVED)))
    }

    /// The verdict where the operator has not seen the present spec.
    fn not_observed(&self, remedy: Option<Remedy>) -> Verdict {
        let cause = match self.observed {
            None => "the operator has not reported on this object yet".to_owned(),
            Some(observed) => format!(
                "the operator has not reported on generation {} of the spec: its last report is \
                 on generation {observed}",
                self.meta.generation.unwrap_or_default(),
            ),
        };
        Verdict::unknown(self.meta, remedy, cause, self.spec_changed())
    }

    /// When the spec last changed. `None` if a client removed the managed fields that say so, unless
    /// nothing has been observed of the object yet.
    fn spec_changed(&self) -> Option<Timestamp> {
        let managed = self.meta.managed_fields.iter().flatten();
        let of_spec = managed.filter(|entry| {
            let fields = entry.fields_v1.as_ref();
            let has_spec = fields.is_some_and(|it| it.0.get("f:spec").is_some());
            has_spec && entry.subresource.as_deref().is_none_or(str::is_empty)
        });
        let changed = of_spec
            .filter_map(|entry| Some(entry.time.as_ref()?.0))
            .max();
        let created = || {
            let created = self.meta.creation_timestamp.as_ref();
            created.filter(|_| self.observed.is_none()).map(|at| at.0)
        };
        changed.or_else(created)
    }
}

/// The state that the status says, and since when.
fn state(facts: &Facts<'_>, now: Timestamp) -> (State, Option<Timestamp>) {
    let ready_since = facts.ready_since();
    let is_over = |since: Option<Timestamp>, limit: SignedDuration| {
        since.is_some_and(|since| now.duration_since(since) >= limit)
    };
    let changed = facts.report().spec_changed();
    let is_of_spec = |since: &Timestamp| changed.is_none_or(|at| at <= *since);
    if let Some(since) = facts.stalled_since() {
        return (State::Blocked, Some(since));
    }
    let phase = facts.status.phase;
    if phase == Some(Phase::Error) && is_over(ready_since, ERROR_LIMIT) {
        return (State::Blocked, ready_since);
    }
    if facts.is_paused() || facts.is_audited() {
        let state = if facts.is_removal_requested() {
            State::Blocked
        } else {
            State::Held
        };
        return (state, ready_since);
    }
    if facts.is_leaving() {
        let deadline = facts.status.shutdown.as_ref().map(|it| it.deadline);
        return if is_over(deadline, TOLERANCE) {
            (State::Late, deadline)
        } else {
            (State::Leaving, facts.leaving_since())
        };
    }
    if facts.is_held() {
        return (State::Held, facts.held_since());
    }
    match phase {
        None => (State::Unknown, None),
        Some(Phase::Active) if facts.is_ready() => (State::Serving, ready_since),
        Some(Phase::Active) => (State::Late, ready_since),
        // A machine that was off already is as ready as before.
        Some(Phase::Disabled) => (State::Disabled, ready_since.filter(is_of_spec)),
        Some(Phase::Terminated) => (State::Killed, ready_since.filter(is_of_spec)),
        Some(Phase::Inactive) => (State::Off, ready_since),
        // Leaving phases were handled above.
        Some(
            Phase::Pending | Phase::Error | Phase::ShuttingDown | Phase::EmergencyRemove,
        ) => {
            let since = facts.wanted_since();
            if is_over(since, facts.usual_provisioning()) {
                (State::Late, since)
            } else {
                (State::Starting, since)
            }
        }
    }
}

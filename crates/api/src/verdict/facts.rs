//! What an object and its status say.

use std::sync::LazyLock;

use fivespot_schedule::Duration;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{Report, State, USUAL_PROVISIONING};
use crate::condition::{self, ConditionStatus, ConditionType, Reason};
use crate::schedule_override::OverrideMode;
use crate::{Phase, ScheduledMachine, ScheduledMachineStatus};

/// An object with its status, or an empty one.
pub(super) struct Facts<'o> {
    object: &'o ScheduledMachine,
    pub(super) status: &'o ScheduledMachineStatus,
}

static NO_STATUS: LazyLock<ScheduledMachineStatus> =
    LazyLock::new(ScheduledMachineStatus::default);

impl<'o> Facts<'o> {
    pub(super) fn of(object: &'o ScheduledMachine) -> Self {
        Self {
            object,
            status: object.status.as_ref().unwrap_or(&NO_STATUS),
        }
    }

    fn condition(&self, kind: ConditionType) -> Option<&'o Condition> {
        condition::find(&self.status.conditions, kind)
    }

    fn ready(&self) -> Option<&'o Condition> {
        self.condition(ConditionType::Ready)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready().is_none_or(is_true)
    }

    /// When `Ready` last changed.
    pub(super) fn ready_since(&self) -> Option<Timestamp> {
        self.ready().map(|it| it.last_transition_time.0)
    }

    /// Since when `Stalled` is true.
    pub(super) fn stalled_since(&self) -> Option<Timestamp> {
        let stalled = self.condition(ConditionType::Stalled);
        let stalled = stalled.filter(|it| is_true(it));
        stalled.map(|it| it.last_transition_time.0)
    }

    /// The operator's message, in full: that of the status may be shortened.
    pub(super) fn message(&self) -> &'o str {
        let of_ready = self.ready().map(|it| it.message.as_str());
        let of_ready = of_ready.filter(|it| !it.is_empty());
        of_ready
            .or(self.status.message.as_deref())
            .unwrap_or_default()
    }

    /// What the status says about itself.
    pub(super) fn report(&self) -> Report<'o> {
        Report {
            meta: &self.object.metadata,
            is_there: self.status.phase.is_some(),
            observed: self.status.observed_generation,
            message: self.message(),
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.ready()
            .is_some_and(|it| it.reason == Reason::Paused.as_str())
    }

    /// Whether audit mode prevents a step.
    pub(super) fn is_audited(&self) -> bool {
        self.ready()
            .is_some_and(|it| it.reason == Reason::Audited.as_str())
    }

    /// Whether the machine is to be removed by the kill switch or with its object, and is not.
    pub(super) fn is_removal_requested(&self) -> bool {
        let is_killed = self.object.spec.kill_switch;
        self.object.metadata.deletion_timestamp.is_some()
            || is_killed && self.status.phase != Some(Phase::Terminated)
    }

    pub(super) fn is_leaving(&self) -> bool {
        let phase = self.status.phase;
        let is_phase =
            matches!(phase, Some(Phase::ShuttingDown | Phase::EmergencyRemove));
        let is_failing = phase == Some(Phase::Error) && self.status.shutdown.is_some();
        is_phase || is_failing || self.object.metadata.deletion_timestamp.is_some()
    }

    /// When the shutdown or the deletion began.
    pub(super) fn leaving_since(&self) -> Option<Timestamp> {
        let begun = self.status.shutdown.as_ref().map(|it| it.started_at);
        let deleted = self.object.metadata.deletion_timestamp.as_ref();
        begun
            .or_else(|| deleted.map(|at| at.0))
            .or_else(|| self.ready_since())
    }

    /// Whether an override holds the machine.
    pub(super) fn is_held(&self) -> bool {
        let in_force = self.status.in_force.as_ref();
        in_force.is_some_and(|it| it.mode == OverrideMode::Hold)
    }

    /// Since when an override holds the machine: whether it is wanted is unknown since then.
    pub(super) fn held_since(&self) -> Option<Timestamp> {
        let scheduled = self.condition(ConditionType::Scheduled);
        let unknown = ConditionStatus::Unknown.as_str();
        let scheduled = scheduled.filter(|it| it.status == unknown);
        scheduled.map(|it| it.last_transition_time.0)
    }

    /// Since when the machine is wanted and not ready, as far as the status says.
    pub(super) fn wanted_since(&self) -> Option<Timestamp> {
        let opened = self.condition(ConditionType::Scheduled);
        let opened = opened.filter(|it| is_true(it));
        let created = self.status.last_scheduled_time;
        [
            self.ready_since(),
            opened.map(|it| it.last_transition_time.0),
            created.filter(|_| self.status.machine_ref.is_some()),
        ]
        .into_iter()
        .max()
        .flatten()
    }

    /// What provisioning usually takes: the lead time that the owner or the class set for it, else
    /// [`USUAL_PROVISIONING`].
    pub(super) fn usual_provisioning(&self) -> SignedDuration {
        let lead_time = self.status.lead_time.as_deref();
        let lead_time = lead_time.and_then(|text| text.parse::<Duration>().ok());
        lead_time.map_or(USUAL_PROVISIONING, Duration::into)
    }

    /// The reason that decides the state, and the cause.
    pub(super) fn decisive(&self, state: State) -> (&'o str, String) {
        let message = self.message().to_owned();
        let stalled = self.condition(ConditionType::Stalled);
        if let Some(stalled) = stalled.filter(|it| is_true(it)) {
            let cause = if message.is_empty() {
                stalled.message.clone()
            } else {
                message
            };
            return (&stalled.reason, cause);
        }
        let reason = self.ready().map_or("", |it| it.reason.as_str());
        let scheduled = self.condition(ConditionType::Scheduled);
        let scheduled = scheduled.map_or("", |it| it.reason.as_str());
        let is_of_schedule = match state {
            State::Held => !self.is_paused() && !self.is_audited(),
            State::Disabled => self.is_ready(),
            State::Blocked
            | State::Unknown
            | State::Late
            | State::Starting
            | State::Leaving
            | State::Serving
            | State::Killed
            | State::Off => false,
        };
        if is_of_schedule && !scheduled.is_empty() {
            return (scheduled, message);
        }
        match self.other_problem() {
            Some(other) if self.is_ready() && !has_problem(reason) => {
                (&other.reason, format!("{message}; {}", other.message))
            }
            _ => (reason, message),
        }
    }

    /// The first condition beside `Ready` that reports a problem.
    fn other_problem(&self) -> Option<&'o Condition> {
        let kinds = [
            ConditionType::ReferencesValid,
            ConditionType::NodeAccess,
            ConditionType::NodeTainted,
            ConditionType::AgentReady,
        ];
        let all = kinds.into_iter().filter_map(|kind| self.condition(kind));
        let mut wrong = all.filter(|it| it.status == ConditionStatus::False.as_str());
        wrong.find(|it| has_problem(&it.reason))
    }

    /// The provider's object that reports a failure while the machine comes up.
    pub(super) fn reporting_object(&self, reason: &str) -> Option<String> {
        let awaited = [Reason::Provisioning, Reason::ProvisioningTimeout];
        let is_awaited = awaited.iter().any(|it| it.as_str() == reason);
        reporting_object(self.message()).filter(|_| is_awaited)
    }
}

fn is_true(condition: &Condition) -> bool {
    condition.status == ConditionStatus::True.as_str()
}

/// Whether a reason of another controller, or one with a remedy.
fn has_problem(reason: &str) -> bool {
    Reason::row(reason).is_none_or(|row| row.remedy.is_some())
}

/// The provider's object that a message about provisioning names: `remotemachine worker` of
/// `waiting for Machine worker to get a Node; RemoteMachine worker: ProvisionFailed`.
fn reporting_object(message: &str) -> Option<String> {
    let (_, report) = message.split_once("; ")?;
    let (object, _) = report.split_once(": ")?;
    let (kind, name) = object.split_once(' ')?;
    let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    let is_kind = is_word(kind) && kind.starts_with(|it: char| it.is_ascii_uppercase());
    (is_kind && is_word(name)).then(|| format!("{} {name}", kind.to_lowercase()))
}

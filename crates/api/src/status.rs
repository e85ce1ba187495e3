//! The status: what was seen and decided, for people and for the next pass.
//!
//! Later decisions read only [`ScheduledMachineStatus::shutdown`],
//! [`ScheduledMachineStatus::last_scheduled_time`] and the references, the latter as places to
//! look. The phase is output only.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::schedule_override::OverrideMode;
use crate::scheduled_machine::{NodeTaint, null_is_default};

/// The longest uid that Kubernetes gives out, and that the status holds.
pub const LONGEST_UID: u32 = 128;

/// What was seen and decided. Every field may be absent, also all of them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledMachineStatus {
    /// A summary for people; never read back. A stored phase that is unknown reads as none.
    #[serde(
        default,
        deserialize_with = "known_phase",
        skip_serializing_if = "Option::is_none"
    )]
    pub phase: Option<Phase>,
    /// One sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether the schedule wants the machine at the time of the last pass.
    #[serde(default, deserialize_with = "null_is_default")]
    pub in_schedule: bool,
    /// The `metadata.generation` that the last pass saw; the schema's default of -1 reads as none.
    #[serde(
        default,
        deserialize_with = "written_generation",
        skip_serializing_if = "Option::is_none"
    )]
    pub observed_generation: Option<i64>,
    /// Details, one per type; see [`crate::condition`].
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub conditions: Vec<Condition>,
    /// The Machine, while it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_ref: Option<ObjectRef>,
    /// The bootstrap object, from just before its creation until it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_ref: Option<ObjectRef>,
    /// The infrastructure object, from just before its creation until it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_ref: Option<ObjectRef>,
    /// The hash of what the references were created from, see [`crate::spec_hash::SpecHash`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec_hash: Option<String>,
    /// The Node, once the Machine has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<NodeRef>,
    /// The provider's identifier of the machine.
    #[serde(
        default,
        rename = "providerID",
        skip_serializing_if = "Option::is_none"
    )]
    pub provider_id: Option<String>,
    /// The commitment to leave, while a Machine leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<Shutdown>,
    /// The taints that the operator has put, or is about to put, on the Node: one half of the
    /// ownership record, of which the other half is on the Node itself. At most
    /// [`MOST_APPLIED_TAINTS`](crate::MOST_APPLIED_TAINTS). A stored entry with an unknown effect is
    /// left out.
    #[serde(
        default,
        deserialize_with = "known_taints",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub applied_node_taints: Vec<NodeTaint>,
    /// The ScheduleOverride that counts, while one is in force.
    #[serde(default, rename = "override", skip_serializing_if = "Option::is_none")]
    pub in_force: Option<OverrideInForce>,
    /// The last activation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_provisioning: Option<LastProvisioning>,
    /// How long the machine was wanted, there and late, by months.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// When a Machine was last created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scheduled_time: Option<Timestamp>,
    /// The next opening of the schedule; absent while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_activation: Option<Timestamp>,
    /// The deadline while the machine leaves, else while it is wanted the end of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cleanup: Option<Timestamp>,
    /// Whatever comes first: the next flip of the schedule or the deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_transition: Option<Timestamp>,
}

/// The ScheduleOverride that counts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OverrideInForce {
    /// Its name.
    pub name: String,
    /// Its mode.
    pub mode: OverrideMode,
    /// When it ends.
    pub end_time: Timestamp,
}

/// The last activation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastProvisioning {
    /// When the machine was made.
    pub start_time: Timestamp,
    /// When its Node was first Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_time: Option<Timestamp>,
}

/// The newest month is the last; no more are kept.
pub const MOST_MONTHS: usize = 14;

/// An account of what the machine was used for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// At most [`MOST_MONTHS`], in order.
    #[serde(default, deserialize_with = "null_is_default")]
    pub months: Vec<UsageMonth>,
    /// From when on the account is kept: a status that is lost begins another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// Until when the account is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounted_time: Option<Timestamp>,
    /// The state since then. A stored state that is unknown reads as none.
    #[serde(
        default,
        deserialize_with = "known_state",
        skip_serializing_if = "Option::is_none"
    )]
    pub accounted_state: Option<AccountedState>,
}

/// The seconds of a month, in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageMonth {
    /// `YYYY-MM`.
    pub month: String,
    /// With a Ready Node.
    #[serde(default)]
    pub active_seconds: i64,
    /// In which a machine was wanted.
    #[serde(default)]
    pub wanted_seconds: i64,
    /// With a machine on its way.
    #[serde(default)]
    pub provisioning_seconds: i64,
    /// In which a machine was wanted and no Node was Ready.
    #[serde(default)]
    pub late_seconds: i64,
    /// How often the owner of the host reclaimed it.
    #[serde(default)]
    pub reclaims: i64,
}

/// What a span of time is accounted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum AccountedState {
    /// With a Ready Node.
    Active,
    /// On its way.
    Provisioning,
    /// Neither.
    None,
}

impl AccountedState {
    /// Every state, in the order in which the schema lists them.
    pub const ALL: [Self; 3] = [Self::Active, Self::Provisioning, Self::None];

    /// The state as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "Active",
            Self::Provisioning => "Provisioning",
            Self::None => "None",
        }
    }
}

/// A summary of the state for people. Output only: nothing is decided from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum Phase {
    /// Wanted, and on its way.
    Pending,
    /// Wanted, and in service.
    Active,
    /// Leaving.
    ShuttingDown,
    /// Not wanted, and gone.
    Inactive,
    /// The schedule is switched off.
    Disabled,
    /// Removed by the kill switch.
    Terminated,
    /// Being removed because its owner reclaims it.
    EmergencyRemove,
    /// Something failed; the condition `Ready` says what. It heals by itself.
    Error,
}

impl Phase {
    /// Every phase, in the order in which the schema lists them.
    pub const ALL: [Self; 8] = [
        Self::Pending,
        Self::Active,
        Self::ShuttingDown,
        Self::Inactive,
        Self::Disabled,
        Self::Terminated,
        Self::EmergencyRemove,
        Self::Error,
    ];

    /// The phase as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Active => "Active",
            Self::ShuttingDown => "ShuttingDown",
            Self::Inactive => "Inactive",
            Self::Disabled => "Disabled",
            Self::Terminated => "Terminated",
            Self::EmergencyRemove => "EmergencyRemove",
            Self::Error => "Error",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// Where an object that was created is to be looked for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Group and version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Uid of the object; absent until it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// The Node that a Machine became.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRef {
    /// Always `v1`.
    pub api_version: String,
    /// Always `Node`.
    pub kind: String,
    /// Name of the Node.
    pub name: String,
    /// Uid of the Node; a Node of another uid is another Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// The commitment to leave: written before anything is taken away, gone when everything is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shutdown {
    /// The Machine that leaves; the commitment counts for no other.
    #[serde(rename = "machineUID")]
    pub machine_uid: String,
    /// The time of the pass that wrote the commitment.
    pub started_at: Timestamp,
    /// The latest time at which the Machine is deleted.
    pub deadline: Timestamp,
    /// Why it leaves. A stored reason that is unknown, as one that a later release has written,
    /// reads as [`ShutdownReason::ScheduleEnded`]: the commitment stands, with its deadline.
    #[serde(deserialize_with = "known_reason")]
    pub reason: ShutdownReason,
    /// The end of the window by which the machine leaves, under
    /// [`EndPolicy::CompleteByWindowEnd`](crate::EndPolicy::CompleteByWindowEnd).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_end: Option<Timestamp>,
}

/// Why a machine leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum ShutdownReason {
    /// The schedule closed.
    ScheduleEnded,
    /// The ScheduledMachine is being deleted.
    Deleted,
    /// Cluster API's health check asks the owner to replace the Machine.
    Remediation,
    /// The kill switch is set.
    KillSwitch,
    /// The owner of the host wants it back.
    Reclaim,
}

impl ShutdownReason {
    /// Every reason, in the order in which the schema lists them.
    pub const ALL: [Self; 5] = [
        Self::ScheduleEnded,
        Self::Deleted,
        Self::Remediation,
        Self::KillSwitch,
        Self::Reclaim,
    ];

    /// The reason as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ScheduleEnded => "ScheduleEnded",
            Self::Deleted => "Deleted",
            Self::Remediation => "Remediation",
            Self::KillSwitch => "KillSwitch",
            Self::Reclaim => "Reclaim",
        }
    }
}

impl fmt::Display for ShutdownReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

fn known_phase<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Phase>, D::Error> {
    let written = Option::<String>::deserialize(deserializer)?;
    Ok(written.and_then(|written| {
        Phase::ALL
            .into_iter()
            .find(|phase| phase.as_str() == written)
    }))
}

/// A generation that was written: -1 is the schema's default of a status that nobody has written.
pub(crate) fn written_generation<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<i64>, D::Error> {
    let generation = Option::<i64>::deserialize(deserializer)?;
    Ok(generation.filter(|generation| *generation >= 0))
}

fn known_state<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<AccountedState>, D::Error> {
    let written = Option::<String>::deserialize(deserializer)?;
    Ok(written.and_then(|written| {
        let mut states = AccountedState::ALL.into_iter();
        states.find(|state| state.as_str() == written)
    }))
}

fn known_reason<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ShutdownReason, D::Error> {
    let written = String::deserialize(deserializer)?;
    let mut known = ShutdownReason::ALL.into_iter();
    let known = known.find(|reason| reason.as_str() == written);
    Ok(known.unwrap_or(ShutdownReason::ScheduleEnded))
}

fn known_taints<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<NodeTaint>, D::Error> {
    let written = Option::<Vec<Value>>::deserialize(deserializer)?;
    let written = written.unwrap_or_default().into_iter();
    Ok(written
        .filter_map(|taint| serde_json::from_value(taint).ok())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduled_machine::TaintEffect;
    use serde_json::json;

    #[test]
    fn a_status_of_a_later_release_is_read_without_the_words_that_are_unknown() {
        let status: ScheduledMachineStatus = serde_json::from_value(json!({
            "phase": "Resting",
            "shutdown": {
                "machineUID": "m-1", "startedAt": "2026-03-06T18:00:00Z",
                "deadline": "2026-03-06T18:05:00Z", "reason": "Rebalanced",
            },
            "appliedNodeTaints": [
                { "key": "a", "effect": "Discourage" },
                { "key": "b", "effect": "NoSchedule" },
            ],
        }))
        .unwrap();
        assert_eq!(status.phase, None);
        let shutdown = status.shutdown.unwrap();
        assert_eq!(shutdown.reason, ShutdownReason::ScheduleEnded);
        assert_eq!(shutdown.deadline.to_string(), "2026-03-06T18:05:00Z");
        let kept: Vec<_> = status.applied_node_taints;
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].effect, TaintEffect::NoSchedule);
    }
}

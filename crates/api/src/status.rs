//! The status: what was observed and decided, for users and for the next reconcile.
//!
//! Later decisions read only [`ScheduledMachineStatus::shutdown`],
//! [`ScheduledMachineStatus::last_scheduled_time`] and the references; the references are only
//! hints where to find the objects. The phase is output only.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::schedule_override::OverrideMode;
use crate::scheduled_machine::{
    MAX_APPLIED_TAINTS, MAX_RETURNS, NodeTaint, null_is_default,
};
use crate::schema::{self, MAX_LABEL, MAX_MESSAGE, MAX_NAME, MAX_SHORT, NO_GENERATION};
use crate::spot_schedule::SpotScheduleRef;

/// The longest uid that Kubernetes assigns, and the bound of the status field.
pub const MAX_UID_LENGTH: u32 = 128;

/// The observed state.
// Every field is optional.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::without_defaults)]
pub struct ScheduledMachineStatus {
    /// A summary of the state. It is output only and never read by the operator.
    // An unknown stored phase reads as `None`.
    #[serde(
        default,
        deserialize_with = "known",
        skip_serializing_if = "Option::is_none"
    )]
    pub phase: Option<Phase>,
    /// The state in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_MESSAGE))]
    pub message: Option<String>,
    /// Whether the machine is in service: true in phase Active only.
    #[serde(default, deserialize_with = "null_is_default")]
    pub ready: bool,
    /// Whether the schedule is active now.
    #[serde(default, deserialize_with = "null_is_default")]
    pub in_schedule: bool,
    /// The generation of the spec that was last reconciled.
    // The schema's default of -1 reads as `None`.
    #[serde(
        default,
        deserialize_with = "written_generation",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = NO_GENERATION))]
    pub observed_generation: Option<i64>,
    /// Conditions, one per type.
    // See crate::condition.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(schema_with = "schema::conditions_of_scheduled_machine")]
    pub conditions: Vec<Condition>,
    /// The Cluster of the Machine; without one, the Cluster that the next one joins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub cluster_name: Option<String>,
    /// The Machine, while it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_ref: Option<ObjectRef>,
    /// The bootstrap object, from just before it is created until it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_ref: Option<ObjectRef>,
    /// The infrastructure object, from just before it is created until it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infrastructure_ref: Option<ObjectRef>,
    /// The host of its class that the machine has: from just before anything is created until all
    /// three objects are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_LABEL))]
    pub host: Option<String>,
    /// The hash of bootstrapSpec, infrastructureSpec and machineTemplate at the creation of the
    /// machine.
    // See crate::spec_hash::SpecHash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub spec_hash: Option<String>,
    /// The Node, once the Machine has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_ref: Option<NodeRef>,
    /// The provider ID of the machine.
    #[serde(
        default,
        rename = "providerID",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(length(max = 2048))]
    pub provider_id: Option<String>,
    /// The shutdown in progress: recorded before anything is removed, cleared when everything is
    /// removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shutdown: Option<Shutdown>,
    /// The taints that 5-Spot has applied to the Node, or is about to apply. It changes and
    /// removes only taints that are listed here and in the annotation on the Node.
    // A stored entry with an unknown effect is left out.
    #[serde(
        default,
        deserialize_with = "known_taints",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(
        length(max = MAX_APPLIED_TAINTS),
        extend("x-kubernetes-list-map-keys" = ["key", "effect"])
    )]
    pub applied_node_taints: Vec<NodeTaint>,
    /// When a Machine was last created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scheduled_time: Option<Timestamp>,
    /// When a shutdown by schedule last began, where the class of the machine has stopsPerMinute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_shutdown_time: Option<Timestamp>,
    /// When the machine is created for the next window; absent while it is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_activation: Option<Timestamp>,
    /// During shutdown, the deadline for deleting the Machine; while the machine is needed, the
    /// start of its shutdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cleanup: Option<Timestamp>,
    /// The earlier of nextActivation and nextCleanup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_transition: Option<Timestamp>,
    /// The ScheduleOverride in force; of several, the one that takes precedence.
    #[serde(default, rename = "override", skip_serializing_if = "Option::is_none")]
    pub in_force: Option<OverrideInForce>,
    /// The schedule that the machine follows, as it was last resolved; absent for an inline
    /// schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_schedule: Option<FollowedSchedule>,
    /// How long before its windows the machine is created, as it or its class says; absent for 0s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub lead_time: Option<String>,
    /// The last activation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_provisioning: Option<LastProvisioning>,
    /// When the machine returned after a reclaim within the last 24 hours.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = MAX_RETURNS))]
    pub returns: Vec<HostReturn>,
    /// How long the machine has been needed this week, of the hours that its class limits; absent
    /// without limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weekly_use: Option<WeeklyUse>,
    /// How the machine was used, by month. Written when the phase or the state of the schedule
    /// changes; the time since accountedTime is not included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// The schedule that the machine follows.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FollowedSchedule {
    /// Group and version.
    #[schemars(length(max = MAX_NAME))]
    pub api_version: String,
    /// Kind.
    #[schemars(length(max = MAX_NAME))]
    pub kind: String,
    /// Name.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
    /// Whether it is open. It holds on while the object cannot be resolved.
    pub active: bool,
    /// When that changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_transition_time: Option<Timestamp>,
    /// The generation of the object that was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl FollowedSchedule {
    /// Whether it is about the object of a reference, in any version.
    pub fn is_of(&self, reference: &SpotScheduleRef) -> bool {
        self.kind == reference.kind && self.name == reference.name
    }
}

/// The ScheduleOverride in force.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverrideInForce {
    /// Name of the ScheduleOverride.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
    /// What it does.
    pub mode: OverrideMode,
    /// When it ends.
    pub end_time: Timestamp,
}

/// A return after a reclaim.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostReturn {
    /// When it was decided.
    pub time: Timestamp,
    /// UID of the ScheduleOverride that it ends.
    #[serde(rename = "overrideUID")]
    #[schemars(length(max = MAX_UID_LENGTH))]
    pub override_uid: String,
}

/// The last activation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastProvisioning {
    /// When the machine was created.
    pub start_time: Timestamp,
    /// When its Node was first Ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_time: Option<Timestamp>,
}

/// How long a machine was needed in one week, as far as the limits of its class allowed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WeeklyUse {
    /// When the week began, in the time zone of the class.
    pub week_start: Timestamp,
    /// Seconds in that week, without those from since on.
    #[schemars(range(min = 0))]
    pub seconds: i64,
    /// Since when the machine is needed and allowed, also before the week; absent while it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// The maximum number of months. The last one is the newest.
pub const MAX_MONTHS: usize = 14;

/// How the machine was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::without_defaults)]
pub struct Usage {
    /// The newest months.
    // In ascending order.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(length(max = MAX_MONTHS), extend("x-kubernetes-list-map-keys" = ["month"]))]
    pub months: Vec<UsageMonth>,
    /// The start of the recorded time.
    // If the status is lost, a new account starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// The end of the time that is included in months.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounted_time: Option<Timestamp>,
    /// The state since accountedTime.
    // An unknown stored state reads as `None`.
    #[serde(
        default,
        deserialize_with = "known",
        skip_serializing_if = "Option::is_none"
    )]
    pub accounted_state: Option<AccountedState>,
}

/// One month, in UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = schema::without_defaults)]
pub struct UsageMonth {
    /// The month, YYYY-MM.
    #[schemars(length(max = MAX_SHORT))]
    pub month: String,
    /// Seconds with a Ready Node.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub active_seconds: i64,
    /// Seconds in which the schedule wanted the machine, except while it was disabled, killed or
    /// kept from starting by an override.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub wanted_seconds: i64,
    /// Seconds in which objects of the machine existed without a Ready Node.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub provisioning_seconds: i64,
    /// Seconds in which the machine was wanted without a Ready Node, except in audit mode.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub late_seconds: i64,
    /// Seconds in which the machine was wanted in audit mode, and would have been used.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub audited_seconds: i64,
    /// Number of emergency reclaims.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub reclaims: i64,
}

/// How a span of time is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum AccountedState {
    /// With a Ready Node.
    Active,
    /// Objects of the machine exist, without a Ready Node.
    Provisioning,
    /// No object of the machine exists.
    None,
    /// No object of the machine exists, because it is in audit mode: it is not late.
    Audited,
}

impl AccountedState {
    /// Every state, in the order in which the schema lists them.
    pub const ALL: [Self; 4] =
        [Self::Active, Self::Provisioning, Self::None, Self::Audited];

    /// The state as a string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "Active",
            Self::Provisioning => "Provisioning",
            Self::None => "None",
            Self::Audited => "Audited",
        }
    }
}

/// A summary of the state for users. Output only: nothing is decided from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum Phase {
    /// Wanted, and being provisioned.
    Pending,
    /// Wanted, and in service.
    Active,
    /// Being shut down.
    ShuttingDown,
    /// Not wanted, and removed.
    Inactive,
    /// The schedule is disabled.
    Disabled,
    /// Removed by the kill switch.
    Terminated,
    /// Being removed because its owner reclaims it.
    EmergencyRemove,
    /// A step failed; the condition `Ready` has the cause. The step is retried.
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

    /// The phase as a string.
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

/// Where to find an object that was created.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// Group and version.
    #[schemars(length(max = MAX_NAME))]
    pub api_version: String,
    /// Kind.
    #[schemars(length(max = MAX_NAME))]
    pub kind: String,
    /// Name.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
    /// Namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_LABEL))]
    pub namespace: Option<String>,
    /// UID; absent until the object exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_UID_LENGTH))]
    pub uid: Option<String>,
}

/// The Node of a Machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeRef {
    /// Always v1.
    #[schemars(length(max = MAX_NAME))]
    pub api_version: String,
    /// Always Node.
    #[schemars(length(max = MAX_NAME))]
    pub kind: String,
    /// Name.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
    /// UID; a Node with another UID is a different Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_UID_LENGTH))]
    pub uid: Option<String>,
}

/// The shutdown record: the decision to remove one Machine, with its deadline.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shutdown {
    /// UID of the Machine that is shut down.
    // The record does not apply to another Machine.
    #[serde(rename = "machineUID")]
    #[schemars(length(max = MAX_UID_LENGTH))]
    pub machine_uid: String,
    /// When the shutdown started.
    pub started_at: Timestamp,
    /// The latest time at which the Machine is deleted.
    pub deadline: Timestamp,
    /// Why the machine is shut down.
    // An unknown stored reason, for example of a later release, reads as
    // ShutdownReason::ScheduleEnded: the record is kept, with its deadline.
    #[serde(deserialize_with = "known_reason")]
    pub reason: ShutdownReason,
    /// The end of the window by which the Machine is deleted; absent if it may be deleted later.
    // Under EndPolicy::CompleteByWindowEnd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_end: Option<Timestamp>,
}

/// Why a machine is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum ShutdownReason {
    /// The window closed.
    ScheduleEnded,
    /// The ScheduledMachine is being deleted.
    Deleted,
    /// Cluster API's health check requires the owner to replace the Machine.
    Remediation,
    /// The kill switch is set.
    KillSwitch,
    /// The owner of the host reclaims it.
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

    /// Whether the shutdown has neither grace nor drain.
    pub fn is_at_once(self) -> bool {
        match self {
            Self::KillSwitch | Self::Reclaim => true,
            Self::ScheduleEnded | Self::Deleted | Self::Remediation => false,
        }
    }

    /// The reason as a string.
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

/// A word that this release knows; `None` for another one.
fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let written = Option::<String>::deserialize(deserializer)?;
    let known = |written| serde_json::from_value(Value::String(written)).ok();
    Ok(written.and_then(known))
}

/// The generation, unless it is absent or [`NO_GENERATION`].
pub(crate) fn written_generation<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<i64>, D::Error> {
    let generation = Option::<i64>::deserialize(deserializer)?;
    Ok(generation.filter(|generation| *generation >= 0))
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn known_reason<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ShutdownReason, D::Error> {
    Ok(known(deserializer)?.unwrap_or(ShutdownReason::ScheduleEnded))
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
    fn a_status_of_a_later_release_is_read_without_unknown_values() {
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

//! ScheduledCapacity: a value of another object follows a schedule.

pub(crate) mod field_path;
mod text;

use std::fmt;

use fivespot_schedule::Duration;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::object::{named, with_spec};
use crate::scheduled_machine::null_is_default;
use crate::schema::{MAX_MESSAGE, MAX_NAME, MAX_SHORT, NO_GENERATION};
use crate::status::{FollowedSchedule, ObjectRef, written_generation};
use crate::{ScheduleSpec, name, schema};

pub use field_path::{
    FieldPath, InvalidPath, MAX_STEPS, MAX_VALUE, MissingField, is_scalar,
};
pub use text::ValueSet;

/// The default of `handback.timeout`.
pub const DEFAULT_HANDBACK_TIMEOUT: Duration = Duration::minutes(10);
/// The maximum number of items of `fields`.
const MAX_FIELDS: usize = 16;
/// The longest path of a field.
const MAX_PATH: u32 = 512;
/// How many of our last writes the status records.
pub const MAX_RECENT_WRITES: usize = 3;

/// A value of another object that follows a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledCapacity {
    /// Name, namespace, uid and the rest.
    pub metadata: ObjectMeta,
    /// The desired state.
    pub spec: ScheduledCapacitySpec,
    /// What was observed and written; absent before the first reconcile.
    pub status: Option<ScheduledCapacityStatus>,
}

/// The desired state: which values of which object, and when. The target cannot be changed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledCapacitySpec {
    /// When the active values apply: daysOfWeek and hoursOfDay, or cron and duration, or windows,
    /// or a reference to a schedule. In addition, exceptions for dates.
    pub schedule: ScheduleSpec,
    /// Whether the values follow the schedule. If it is false, the inactive values are written.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// If true, the inactive values are written at once, whatever the schedule says. Set it to
    /// false to return to the schedule.
    #[serde(default)]
    pub kill_switch: bool,
    /// How long before the window opens the active values are written: digits and one of s, m, h,
    /// at most 2h.
    #[serde(default = "no_time")]
    #[schemars(length(max = MAX_SHORT))]
    pub lead_time: String,
    /// The object whose values are written.
    pub target: CapacityTarget,
    /// The spec of an object that is created with the name of the ScheduledCapacity, owned by it,
    /// and removed with it; instead of target.name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::passed_on")]
    pub template: Option<Map<String, Value>>,
    /// The field that follows the schedule, instead of fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacityField>,
    /// The fields that follow the schedule, instead of capacity. They change together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = MAX_FIELDS),
        extend("x-kubernetes-list-map-keys" = ["field"])
    )]
    pub fields: Option<Vec<ScheduledField>>,
    /// What is awaited after the inactive values were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handback: Option<Handback>,
    /// A Node on which the capacity runs. While it is the Node of a ScheduledMachine of the
    /// namespace, only the inactive values are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub node_name: Option<String>,
}

/// An object of the namespace, or of cluster scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityTarget {
    /// Group and version, such as apps/v1; v1 for the kinds of the core.
    #[schemars(length(max = MAX_NAME))]
    pub api_version: String,
    /// Kind.
    #[schemars(length(max = MAX_NAME))]
    pub kind: String,
    /// Name of an object that exists. It is never created or deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub name: Option<String>,
    /// scale: the field replicas is written through the subresource, so that the permission for
    /// the subresource is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub subresource: Option<String>,
}

/// A field that follows the schedule.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityField {
    /// The path below spec: names joined by dots, a quoted key in brackets for that of a map,
    /// [name=value] for the item of a list with that value, [0] for an item by its place. At most
    /// ten steps.
    #[schemars(length(max = MAX_PATH))]
    pub field: String,
    /// The value while the schedule is active: an integer, a boolean or a string.
    #[schemars(schema_with = "schema::scalar")]
    pub active_value: Value,
    /// The value while the schedule is inactive.
    #[serde(default = "zero")]
    #[schemars(schema_with = "schema::scalar")]
    pub inactive_value: Value,
}

/// One of several fields that follow the schedule.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledField {
    /// The path below spec, as in capacity.field.
    #[schemars(length(max = MAX_PATH))]
    pub field: String,
    /// The value while the schedule is active: an integer, a boolean or a string.
    #[schemars(schema_with = "schema::scalar")]
    pub active_value: Value,
    /// The value while the schedule is inactive.
    #[schemars(schema_with = "schema::scalar")]
    pub inactive_value: Value,
}

/// What is awaited after the inactive values were written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Handback {
    /// The path, below the status of the target, of a number that is 0 when nothing uses the
    /// capacity any more. A number that is absent is not 0.
    #[schemars(length(max = MAX_PATH))]
    pub drained_path: String,
    /// How long it may take until HandbackTimedOut is reported: digits and one of s, m, h, at most
    /// 24h. Nothing is forced then.
    #[serde(default = "default_timeout")]
    #[schemars(length(max = MAX_SHORT))]
    pub timeout: String,
}

/// A summary of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum CapacityPhase {
    /// Nothing has been written yet.
    Pending,
    /// The active values are written.
    Active,
    /// The inactive values are written, and the target is still in use.
    HandingBack,
    /// The same, for longer than handback.timeout.
    HandbackTimedOut,
    /// The inactive values are written, and the target is not in use.
    Inactive,
    /// Disabled; the inactive values are written.
    Disabled,
    /// The kill switch is set; the inactive values are written.
    Terminated,
    /// The spec is invalid, or a write was refused.
    Error,
}

impl CapacityPhase {
    /// The phase as a string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Active => "Active",
            Self::HandingBack => "HandingBack",
            Self::HandbackTimedOut => "HandbackTimedOut",
            Self::Inactive => "Inactive",
            Self::Disabled => "Disabled",
            Self::Terminated => "Terminated",
            Self::Error => "Error",
        }
    }
}

impl fmt::Display for CapacityPhase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// A value that was written.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WrittenValue {
    /// The path of the field.
    #[schemars(length(max = MAX_PATH))]
    pub field: String,
    /// The value that was asked for.
    #[schemars(schema_with = "schema::scalar")]
    pub value: Value,
    /// What the server stored, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::scalar")]
    pub stored: Option<Value>,
}

/// The observed state.
// Every field is optional.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledCapacityStatus {
    /// A summary of the state. It is output only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<CapacityPhase>,
    /// The state in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_MESSAGE))]
    pub message: Option<String>,
    /// The generation of the spec that was last reconciled.
    #[serde(
        default,
        deserialize_with = "written_generation",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(range(min = NO_GENERATION))]
    pub observed_generation: Option<i64>,
    /// The generation of the spec whose values the target was last found or given to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_generation: Option<i64>,
    /// Conditions, one per type.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(schema_with = "schema::conditions_of_scheduled_capacity")]
    pub conditions: Vec<Condition>,
    /// Whether the values that were last written are the active ones; absent if none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// The target, once it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<ObjectRef>,
    /// The value of the first field that was last written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::scalar")]
    pub written_value: Option<Value>,
    /// The values that were last written.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(
        length(max = MAX_FIELDS),
        extend("x-kubernetes-list-map-keys" = ["field"])
    )]
    pub written: Vec<WrittenValue>,
    /// When the values were last written, the newest last.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = MAX_RECENT_WRITES))]
    pub recent_writes: Vec<Timestamp>,
    /// The client that writes other values again and again. While it is set, values are written
    /// when the schedule changes and at no other time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub contested_by: Option<String>,
    /// The number at handback.drainedPath, while it is awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_drained_value: Option<i64>,
    /// When HandbackTimedOut is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handback_deadline: Option<Timestamp>,
    /// The Node of nodeName, while it is that of a ScheduledMachine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub governed_node: Option<String>,
    /// When the values change next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_transition: Option<Timestamp>,
    /// The schedule that is followed; absent for an inline schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spot_schedule: Option<FollowedSchedule>,
}

impl ScheduledCapacitySpec {
    /// The fields that follow the schedule, `capacity` as the only one.
    pub fn all_fields(&self) -> Vec<ScheduledField> {
        let capacity = self.capacity.iter().map(|it| ScheduledField {
            field: it.field.clone(),
            active_value: it.active_value.clone(),
            inactive_value: it.inactive_value.clone(),
        });
        capacity
            .chain(self.fields.iter().flatten().cloned())
            .collect()
    }

    /// Whether `enabled` and `schedule.enabled` are both true.
    pub fn is_enabled(&self) -> bool {
        self.schedule.is_enabled_beside(Some(self.enabled))
    }
}

impl Handback {
    /// `drainedPath` without the `status.` that it may begin with.
    pub fn path_below_status(&self) -> &str {
        let path = self.drained_path.as_str();
        path.strip_prefix("status.").unwrap_or(path)
    }
}

fn enabled() -> bool {
    true
}

fn no_time() -> String {
    "0s".to_owned()
}

fn default_timeout() -> String {
    DEFAULT_HANDBACK_TIMEOUT.to_string()
}

fn zero() -> Value {
    Value::from(0)
}

named!(
    ScheduledCapacity,
    scope: NamespaceResourceScope,
    api_version: name::API_VERSION,
    group: name::GROUP,
    plural: name::CAPACITY_PLURAL
);
with_spec!(ScheduledCapacity, status);

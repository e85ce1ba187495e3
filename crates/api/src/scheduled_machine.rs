//! The resource as users write it: the spec, its defaults, and the envelope around it.
//!
//! Everything here is raw: a string is whatever the API server stored. What the strings mean is
//! found out once, by the planner, and [`crate::rules`] says which of them are acceptable.

use std::collections::BTreeMap;

use fivespot_schedule::Schedule;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::Error as _;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::name;
use crate::status::ScheduledMachineStatus;

/// The default of `schedule.timezone`.
pub const DEFAULT_TIMEZONE: &str = "UTC";
/// The default of `gracefulShutdownTimeout` and `nodeDrainTimeout`.
pub const DEFAULT_TIMEOUT: &str = "5m";
/// The default of `priority`.
pub const DEFAULT_PRIORITY: u8 = 50;
/// What an absent `schedule.duration` means where a cron expression is given.
pub const DEFAULT_DURATION: &str = "1h";

/// A machine that is added to a Cluster API cluster and removed from it on a schedule.
///
/// It implements k8s-openapi's resource traits, and is thereby a resource to `kube` without this
/// crate knowing a client.
///
/// # Example
/// ```
/// use fivespot_api::ScheduledMachine;
/// let sm: ScheduledMachine = serde_json::from_str(r#"{
///     "apiVersion": "5spot.finos.org/v1alpha1", "kind": "ScheduledMachine",
///     "metadata": {"name": "worker"},
///     "spec": {"schedule": {"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]},
///              "clusterName": "prod",
///              "bootstrapSpec": {"apiVersion": "b/v1", "kind": "B", "spec": {}},
///              "infrastructureSpec": {"apiVersion": "i/v1", "kind": "I", "spec": {}}}
/// }"#)?;
/// assert_eq!(sm.spec.priority, 50);
/// assert_eq!(sm.spec.schedule.timezone, "UTC");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduledMachine {
    /// Name, namespace, uid and the rest.
    pub metadata: ObjectMeta,
    /// What the user asked for.
    pub spec: ScheduledMachineSpec,
    /// What was seen and decided; absent before the first pass.
    pub status: Option<ScheduledMachineStatus>,
}

/// What the user asks for.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledMachineSpec {
    /// When the machine is wanted.
    pub schedule: ScheduleSpec,
    /// The Cluster API Cluster that the machine joins, in the same namespace.
    pub cluster_name: String,
    /// The bootstrap object that is created for the machine.
    pub bootstrap_spec: InlineObject,
    /// The infrastructure object that is created for the machine.
    pub infrastructure_spec: InlineObject,
    /// What the Machine carries besides: labels, annotations, version, failure domain.
    #[serde(default, deserialize_with = "null_is_default")]
    pub machine_template: MachineTemplate,
    /// Priority from 0 to 255. With --max-starts-per-minute, machines with a higher priority start
    /// first.
    #[serde(default = "default_priority")]
    pub priority: u8,
    /// How long the whole leave-taking may last, e.g. `5m`; `0s` means no waiting.
    #[serde(default = "default_timeout")]
    pub graceful_shutdown_timeout: String,
    /// How long evictions may last, e.g. `5m`; `0s` means no waiting.
    #[serde(default = "default_timeout")]
    pub node_drain_timeout: String,
    /// Removes the machine at once, without grace or drain, for as long as it is true.
    #[serde(default)]
    pub kill_switch: bool,
    /// Process names or command-line parts on whose appearance the node is given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill_if_commands: Option<Vec<String>>,
    /// Taints that the Node bears while it is in service.
    #[serde(default, deserialize_with = "null_is_default")]
    pub node_taints: Vec<NodeTaint>,
}

/// When the machine is wanted: either days and hours, or cron and duration.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleSpec {
    /// Days such as `mon` or `mon-fri`; an entry may be a comma list.
    #[serde(default, deserialize_with = "null_is_default")]
    pub days_of_week: Vec<String>,
    /// Hours such as `9` or `9-17` (both ends included); an entry may be a comma list.
    #[serde(default, deserialize_with = "null_is_default")]
    pub hours_of_day: Vec<String>,
    /// Five cron fields; each firing opens a window of `duration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// How long one firing keeps the machine wanted; absent means [`DEFAULT_DURATION`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// The IANA time zone in which days, hours and cron are read.
    #[serde(default = "default_timezone")]
    pub timezone: String,
    /// Whether the schedule is in force.
    #[serde(default = "yes")]
    pub enabled: bool,
}

impl ScheduleSpec {
    /// What was typed as what is meant; `enabled` is left to the caller.
    ///
    /// # Errors
    /// Whatever [`Schedule::weekly`] or, when `cron` is there, [`Schedule::cron`] refuses.
    /// Rules that only admission knows, such as that cron excludes days, are not checked.
    pub fn schedule(&self) -> Result<Schedule, fivespot_schedule::Error> {
        match &self.cron {
            Some(cron) => Schedule::cron(cron, self.duration.as_deref(), &self.timezone),
            None => {
                Schedule::weekly(&self.days_of_week, &self.hours_of_day, &self.timezone)
            }
        }
    }
}

impl Default for ScheduleSpec {
    fn default() -> Self {
        Self {
            days_of_week: Vec::new(),
            hours_of_day: Vec::new(),
            cron: None,
            duration: None,
            timezone: default_timezone(),
            enabled: true,
        }
    }
}

/// A provider object that is written inside a ScheduledMachine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InlineObject {
    /// Group and version of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// The ScheduledMachine's own namespace, if given at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object's spec, passed on untouched.
    pub spec: Map<String, Value>,
}

/// What the created Machine carries besides what the operator needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineTemplate {
    /// Labels of the Machine; Cluster API copies some of them to the Node.
    #[serde(default, deserialize_with = "null_is_default")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Machine.
    #[serde(default, deserialize_with = "null_is_default")]
    pub annotations: BTreeMap<String, String>,
    /// The Kubernetes version of the machine, `Machine.spec.version`, for bootstrap providers
    /// that need it there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where the infrastructure provider places the machine, `Machine.spec.failureDomain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
}

/// How many taints `spec.nodeTaints` holds at most.
pub const MOST_TAINTS: usize = 64;

/// How many taints `status.appliedNodeTaints` holds at most: those that the spec asks for, and
/// those of earlier specs that are still on the Node.
pub const MOST_APPLIED_TAINTS: usize = 160;

/// A taint; key and effect are its identity, the value may change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub struct NodeTaint {
    /// A qualified name.
    pub key: String,
    /// The value, empty if there is none.
    #[serde(default, deserialize_with = "null_is_default")]
    pub value: String,
    /// What happens to pods that do not tolerate the taint.
    pub effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize,
)]
pub enum TaintEffect {
    /// They are not scheduled here.
    NoSchedule,
    /// They are scheduled elsewhere if possible.
    PreferNoSchedule,
    /// They are not scheduled here, and those that run here are evicted.
    NoExecute,
}

impl TaintEffect {
    /// Every effect, in the order in which the schema lists them.
    pub const ALL: [Self; 3] =
        [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute];

    /// The effect as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

impl k8s_openapi::Resource for ScheduledMachine {
    const API_VERSION: &'static str = name::API_VERSION;
    const GROUP: &'static str = name::GROUP;
    const KIND: &'static str = name::KIND;
    const VERSION: &'static str = name::VERSION;
    const URL_PATH_SEGMENT: &'static str = name::PLURAL;
    type Scope = NamespaceResourceScope;
}

impl k8s_openapi::ListableResource for ScheduledMachine {
    const LIST_KIND: &'static str = name::LIST_KIND;
}

impl k8s_openapi::Metadata for ScheduledMachine {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl Serialize for ScheduledMachine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = 4 + usize::from(self.status.is_some());
        let mut object = serializer.serialize_struct(name::KIND, fields)?;
        object.serialize_field("apiVersion", name::API_VERSION)?;
        object.serialize_field("kind", name::KIND)?;
        object.serialize_field("metadata", &self.metadata)?;
        object.serialize_field("spec", &self.spec)?;
        if let Some(status) = &self.status {
            object.serialize_field("status", status)?;
        }
        object.end()
    }
}

/// The object as it is read: list items may lack `apiVersion` and `kind`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    api_version: Option<String>,
    kind: Option<String>,
    metadata: ObjectMeta,
    spec: ScheduledMachineSpec,
    #[serde(default)]
    status: Option<ScheduledMachineStatus>,
}

impl<'de> Deserialize<'de> for ScheduledMachine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        for (field, found, expected) in [
            ("apiVersion", &stored.api_version, name::API_VERSION),
            ("kind", &stored.kind, name::KIND),
        ] {
            if let Some(found) = found.as_deref().filter(|found| *found != expected) {
                return Err(D::Error::custom(format!(
                    "{field} is `{found}`, expected `{expected}`"
                )));
            }
        }
        Ok(Self {
            metadata: stored.metadata,
            spec: stored.spec,
            status: stored.status,
        })
    }
}

/// Reads a JSON null as the default, as the API server does for a field that has one.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn default_timezone() -> String {
    DEFAULT_TIMEZONE.to_owned()
}

fn default_timeout() -> String {
    DEFAULT_TIMEOUT.to_owned()
}

fn default_priority() -> u8 {
    DEFAULT_PRIORITY
}

fn yes() -> bool {
    true
}

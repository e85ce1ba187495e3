//! The resource as users write it: the spec, its defaults, and the object around it.
//!
//! The fields are described only here: the schema of the CRD is generated from their types,
//! defaults and bounds, and `kubectl explain` prints their first comment ([`crate::crd`]).
//!
//! The values are raw: a string is what the API server stored. The planner parses the strings,
//! and [`crate::rules`] defines which of them are acceptable.

mod reclaim;
mod schedule;

use std::collections::BTreeMap;

use fivespot_schedule::{Dates, Duration, Schedule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::object::{Stored, Written, named};
use crate::scheduled_machine_class::{ClassProblem, ClassRef, ResolvedClass};
use crate::schema::{MAX_LABEL, MAX_NAME, MAX_SHORT};
use crate::status::ScheduledMachineStatus;
use crate::{name, schema};

use reclaim::DEFAULT_RECLAIM_STOP;
pub use reclaim::{MAX_RETURNS, ReclaimSpec, ReturnSpec};
pub(crate) use schedule::default_timezone;
pub use schedule::{
    CalendarRef, DEFAULT_TIMEZONE, ExceptionAction, ScheduleException, ScheduleSpec,
    ScheduleWindow,
};

/// The default of `gracefulShutdownTimeout` and `nodeDrainTimeout`.
pub const DEFAULT_TIMEOUT: Duration = Duration::minutes(5);
/// The default of `provisioning.leadTime`, `provisioning.minimumRun` and `shutdown.lastCall`.
pub const NO_TIME: Duration = Duration::ZERO;
/// The default of `provisioning.timeout`.
pub const DEFAULT_PROVISIONING_TIMEOUT: Duration = Duration::minutes(30);
/// The default of `priority`.
pub const DEFAULT_PRIORITY: u8 = 50;

/// A machine that is added to a Cluster API cluster and removed from it on a schedule.
///
/// It implements k8s-openapi's resource traits, so that `kube` accepts it as a resource
/// although this crate does not depend on a client.
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
    /// The desired state.
    pub spec: ScheduledMachineSpec,
    /// What was observed and decided; absent before the first reconcile.
    pub status: Option<ScheduledMachineStatus>,
}

/// The desired state: when the machine runs, what it is created from, how it is shut down.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledMachineSpec {
    /// When the machine runs: daysOfWeek and hoursOfDay, or cron and duration, or windows. In
    /// addition, exceptions for dates.
    pub schedule: ScheduleSpec,
    /// Whether the machine follows its schedule, like schedule.enabled: the machine is disabled if
    /// either is false. Disabling it does not remove a running machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The class that the machine is made from, instead of bootstrapSpec, infrastructureSpec,
    /// machineTemplate, nodeTaints, the two timeouts, provisioning and shutdown. Changes take
    /// effect at the next activation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_ref: Option<ClassRef>,
    /// What the class is, as last read.
    // Whoever reads it puts its fields into this spec and the reference here:
    // `ScheduledMachineSpec::resolve`.
    #[serde(skip)]
    pub class: Option<ResolvedClass>,
    /// The Cluster API Cluster, in the same namespace, that the machine joins; with classRef, by
    /// default the first one of the class. It cannot be changed while the machine exists.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = MAX_NAME))]
    pub cluster_name: String,
    /// The bootstrap object that is created for the machine, with the name of the
    /// ScheduledMachine. Required without classRef. Changes take effect at the next activation.
    #[serde(default, skip_serializing_if = "InlineObject::is_absent")]
    #[schemars(transform = InlineObject::bootstrap)]
    pub bootstrap_spec: InlineObject,
    /// The infrastructure object that is created for the machine, with the name of the
    /// ScheduledMachine. Required without classRef. Changes take effect at the next activation.
    #[serde(default, skip_serializing_if = "InlineObject::is_absent")]
    #[schemars(transform = InlineObject::infrastructure)]
    pub infrastructure_spec: InlineObject,
    /// Additional labels, annotations and fields of the created Machine. Changes take effect at
    /// the next activation.
    #[serde(default, deserialize_with = "null_is_default")]
    pub machine_template: MachineTemplate,
    /// Priority from 0 to 255. With --max-starts-per-minute, machines with a higher priority start
    /// first.
    #[serde(default = "default_priority")]
    pub priority: u8,
    /// Time limit for the whole shutdown, from the end of the window to the deletion of the
    /// Machine: digits and one of s, m, h, at most 24h. 0s means no waiting.
    #[serde(default = "default_timeout")]
    #[schemars(length(max = MAX_SHORT))]
    pub graceful_shutdown_timeout: String,
    /// Time limit for evicting the pods of the Node, within gracefulShutdownTimeout: digits and one
    /// of s, m, h, at most 24h. 0s means no waiting.
    #[serde(default = "default_timeout")]
    #[schemars(length(max = MAX_SHORT))]
    pub node_drain_timeout: String,
    /// If true, the machine is removed immediately, without grace period and without drain. Set it
    /// to false to return to the schedule.
    #[serde(default)]
    pub kill_switch: bool,
    /// Enforce: the machine is created and removed. Audit: what would be done is reported in the
    /// status and in events, and nothing is created, changed or removed. It cannot be changed to
    /// Audit while the machine exists.
    #[serde(default)]
    pub enforcement: Enforcement,
    /// Commands that trigger an emergency reclaim, which returns the host to its owner: if a
    /// process runs whose name or executable file name equals an entry, or whose command line
    /// contains one, the machine is removed immediately and the schedule is disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(max = 256)))]
    pub kill_if_commands: Option<Vec<String>>,
    /// How the owner of the host gets it back, and how it returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim: Option<ReclaimSpec>,
    /// Taints of the Node while the machine is running. Taints of other clients are not changed.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(length(max = MAX_TAINTS), extend("x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub node_taints: Vec<NodeTaint>,
    /// How the machine is provisioned.
    #[serde(default, deserialize_with = "null_is_default")]
    pub provisioning: Provisioning,
    /// How the machine is shut down at the end of a window.
    #[serde(default, deserialize_with = "null_is_default")]
    pub shutdown: ShutdownSpec,
    /// Not supported: it is not part of this API. See the page about migration from finos/5-spot.
    // Described only to be rejected with a message that a user can act on (SM103). The API server
    // would drop a field that the schema lacks, in silence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::passed_on")]
    pub kata: Option<Map<String, Value>>,
}

/// A field that disables a ScheduledMachine if it is false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnabledField {
    /// `spec.enabled`.
    Spec,
    /// `spec.schedule.enabled`.
    Schedule,
}

impl EnabledField {
    /// The path of the field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spec => "spec.enabled",
            Self::Schedule => "spec.schedule.enabled",
        }
    }

    /// A merge patch of the spec that disables the machine.
    pub fn disabling(self) -> Value {
        match self {
            Self::Spec => json!({ "enabled": false }),
            Self::Schedule => json!({ "schedule": { "enabled": false } }),
        }
    }
}

impl ScheduledMachineSpec {
    /// The commands that trigger a reclaim, and the path of the field that has them.
    pub fn reclaim_commands(&self) -> (&'static str, &[String]) {
        let commands = self.reclaim.as_ref().and_then(|of| of.commands.as_deref());
        match commands {
            Some(commands) => ("spec.reclaim.commands", commands),
            None => (
                "spec.killIfCommands",
                self.kill_if_commands.as_deref().unwrap_or_default(),
            ),
        }
    }

    /// When the machine returns after a reclaim; `None` if a person has to return it.
    pub fn returning(&self) -> Option<&ReturnSpec> {
        self.reclaim.as_ref()?.returning.as_ref()
    }

    /// Whether what the class of the machine sets is unknown, because the class does not exist or was
    /// not read.
    pub fn is_class_unknown(&self) -> bool {
        match &self.class {
            Some(class) => class.problem == Some(ClassProblem::NotFound),
            None => self.class_ref.is_some(),
        }
    }

    /// How long a reclaim stops the machine; `None` if it disables the schedule. A class that is
    /// unknown may let the machine return, and a schedule that is disabled stays so.
    pub fn reclaim_stop(&self) -> Option<Duration> {
        let returns = self.returning().is_some() || self.is_class_unknown();
        returns.then_some(DEFAULT_RECLAIM_STOP)
    }

    /// Whether neither `enabled` nor `schedule.enabled` is false.
    pub fn is_enabled(&self) -> bool {
        self.schedule.is_enabled_beside(self.enabled)
    }

    /// The field that disables the machine: the one that is false. If none is, the one that the
    /// object has, which a reclaim sets to false; beside a reference that is `enabled`.
    pub fn enabled_field(&self) -> EnabledField {
        match self.enabled {
            Some(true) if self.schedule.enabled => EnabledField::Spec,
            Some(false) => EnabledField::Spec,
            None if self.schedule.enabled && self.schedule.reference().is_some() => {
                EnabledField::Spec
            }
            Some(true) | None => EnabledField::Schedule,
        }
    }

    /// As [`ScheduleSpec::schedule`], with the lead time and, under
    /// [`EndPolicy::CompleteByWindowEnd`], the early end of the shutdown. A duration that
    /// cannot be parsed counts as zero; the rules report it.
    ///
    /// # Errors
    /// As [`ScheduleSpec::schedule`].
    pub fn schedule(
        &self,
        calendars: &BTreeMap<String, Dates>,
    ) -> Result<Schedule, fivespot_schedule::Error> {
        let length = |text: &str| text.parse().unwrap_or(Duration::ZERO);
        let early_end = match self.shutdown.end_policy {
            EndPolicy::StartAtWindowEnd => Duration::ZERO,
            EndPolicy::CompleteByWindowEnd => length(&self.graceful_shutdown_timeout),
        };
        let schedule = self.schedule.schedule_with(calendars)?;
        Ok(schedule
            .with_lead_time(length(&self.provisioning.lead_time))
            .with_early_end(early_end))
    }
}

/// Whether what is decided about the machine is done.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema,
)]
pub enum Enforcement {
    /// It is done.
    #[default]
    Enforce,
    /// It is only reported.
    Audit,
}

impl Enforcement {
    /// The value as a string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "Enforce",
            Self::Audit => "Audit",
        }
    }
}

/// How the machine is provisioned.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct Provisioning {
    /// How long before the start of a window the machine is created, at most 2h.
    #[schemars(length(max = MAX_SHORT))]
    pub lead_time: String,
    /// Time until the Node is Ready after which the ScheduledMachine is Stalled, from 1m to 24h.
    #[schemars(length(max = MAX_SHORT))]
    pub timeout: String,
    /// The machine is not created for less than this, at most 24h.
    #[schemars(length(max = MAX_SHORT))]
    pub minimum_run: String,
}

impl Default for Provisioning {
    fn default() -> Self {
        Self {
            lead_time: NO_TIME.to_string(),
            timeout: DEFAULT_PROVISIONING_TIMEOUT.to_string(),
            minimum_run: NO_TIME.to_string(),
        }
    }
}

/// How the machine is shut down at the end of a window.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ShutdownSpec {
    /// StartAtWindowEnd: the shutdown starts at the end of the window. CompleteByWindowEnd: it
    /// starts gracefulShutdownTimeout earlier, and the Machine is deleted by the end.
    pub end_policy: EndPolicy,
    /// How long before the shutdown the Node gets the taint
    /// 5spot.finos.org/last-call:PreferNoSchedule and the annotation 5spot.finos.org/leaves-at; 0s
    /// for never.
    #[schemars(length(max = MAX_SHORT))]
    pub last_call: String,
}

impl Default for ShutdownSpec {
    fn default() -> Self {
        Self {
            end_policy: EndPolicy::default(),
            last_call: NO_TIME.to_string(),
        }
    }
}

/// What happens at the end of a window.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema,
)]
pub enum EndPolicy {
    /// The shutdown starts.
    #[default]
    StartAtWindowEnd,
    /// The Machine has been deleted by then.
    CompleteByWindowEnd,
}

impl EndPolicy {
    /// The policy as a string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StartAtWindowEnd => "StartAtWindowEnd",
            Self::CompleteByWindowEnd => "CompleteByWindowEnd",
        }
    }
}

/// A provider object that is written inside a ScheduledMachine.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InlineObject {
    /// Group and version of the object
    #[schemars(length(max = MAX_NAME))]
    pub api_version: String,
    /// Kind of the object
    #[schemars(length(max = MAX_NAME))]
    pub kind: String,
    /// Namespace of the object. If set, it must be that of the ScheduledMachine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_LABEL))]
    pub namespace: Option<String>,
    /// Additional labels and annotations of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<InlineMetadata>,
    /// The object's spec, passed to the provider unchanged.
    #[schemars(schema_with = "schema::passed_on")]
    pub spec: Map<String, Value>,
}

impl InlineObject {
    /// Whether it was left out: an object that is written has a kind or an `apiVersion`.
    pub fn is_absent(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn bootstrap(schema: &mut Schema) {
        Self::of(schema, "bootstrap", "K0sWorkerConfig");
    }

    pub(crate) fn infrastructure(schema: &mut Schema) {
        Self::of(schema, "infrastructure", "RemoteMachine");
    }

    /// Completes the descriptions for the bootstrap or infrastructure role.
    fn of(schema: &mut Schema, role: &str, kind: &str) {
        let group = format!(": group {role}.cluster.x-k8s.io or k0smotron.io.");
        schema::append_to_description(schema, "apiVersion", &group);
        schema::append_to_description(schema, "kind", &format!(", such as {kind}."));
    }
}

/// Additional labels and annotations of a provider object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InlineMetadata {
    /// Labels of the object. Keys of Kubernetes, Cluster API and 5-Spot are reserved, as in
    /// machineTemplate.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(transform = schema::map::<64, MAX_LABEL>)]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the object, at most 64 KiB of keys and values in total. The same keys as
    /// for labels are reserved.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(transform = schema::map::<64, 4096>)]
    pub annotations: BTreeMap<String, String>,
    /// Not allowed: the object has the name of the ScheduledMachine.
    // This field and the next one exist to be rejected with a message (SM087, SM088).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub name: Option<String>,
    /// Not allowed: the object is in the namespace of the ScheduledMachine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_NAME))]
    pub namespace: Option<String>,
}

/// Additional labels, annotations and fields of the created Machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTemplate {
    /// Labels of the Machine. Keys of Kubernetes, Cluster API and 5-Spot are reserved, except
    /// those that Cluster API copies to the Node.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(transform = schema::map::<64, MAX_LABEL>)]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Machine, at most 64 KiB of keys and values in total. The same keys as
    /// for labels are reserved.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(transform = schema::map::<64, 4096>)]
    pub annotations: BTreeMap<String, String>,
    /// The Kubernetes version in the Machine's spec, such as v1.31.2. Required by bootstrap
    /// providers without a version field of their own, such as kubeadm; otherwise omit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub version: Option<String>,
    /// The failure domain of the Cluster in which the infrastructure provider places the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub failure_domain: Option<String>,
}

/// The maximum number of taints in `spec.nodeTaints`.
pub const MAX_TAINTS: usize = 64;

/// The maximum number of taints in `status.appliedNodeTaints`: those of the spec, and those of
/// earlier specs that are still on the Node.
pub const MAX_APPLIED_TAINTS: usize = 160;

/// A taint. Key and effect are its identity, the value may change.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize, JsonSchema,
)]
pub struct NodeTaint {
    /// A qualified name, such as example.com/dedicated.
    #[schemars(length(max = MAX_NAME))]
    pub key: String,
    /// The value; empty if absent.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(length(max = MAX_LABEL))]
    pub value: String,
    /// What happens to pods that do not tolerate the taint.
    pub effect: TaintEffect,
}

/// What a taint does to pods that do not tolerate it.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Deserialize,
    Serialize,
    JsonSchema,
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

    /// The effect as a string.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

named!(
    ScheduledMachine,
    scope: NamespaceResourceScope,
    api_version: name::API_VERSION,
    group: name::GROUP,
    plural: name::PLURAL
);

impl Serialize for ScheduledMachine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written {
            api_version: name::API_VERSION,
            kind: name::KIND,
            metadata: &self.metadata,
            spec: &self.spec,
            status: self.status.as_ref(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ScheduledMachine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = Stored::deserialize(deserializer)?;
        let stored = stored.of::<Self, _>(name::MACHINE_VERSIONS)?;
        // A status that was never written has only the schema's defaults.
        let status = stored
            .status
            .filter(|status| *status != ScheduledMachineStatus::default());
        Ok(Self {
            metadata: stored.metadata,
            spec: stored.spec,
            status,
        })
    }
}

/// Reads a JSON null as the default, as the API server does for a field with a default.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

pub(crate) fn default_timeout() -> String {
    DEFAULT_TIMEOUT.to_string()
}

pub(crate) fn default_priority() -> u8 {
    DEFAULT_PRIORITY
}

//! The resource as users write it: the spec, its defaults, and the envelope around it.
//!
//! The fields are described here and nowhere else: the schema of the CRD follows from their types,
//! defaults and bounds, and `kubectl explain` prints their first comment ([`crate::crd`]).
//!
//! Everything here is raw: a string is whatever the API server stored. What the strings mean is
//! found out once, by the planner, and [`crate::rules`] says which of them are acceptable.

use std::collections::BTreeMap;

use fivespot_schedule::{DateEntry, Dates, Duration, Schedule, WindowText};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::resource::{Stored, Written};
use crate::schema::{MAX_LABEL, MAX_NAME, MAX_SHORT};
use crate::status::ScheduledMachineStatus;
use crate::{name, schema};

/// The default of `schedule.timezone`.
pub const DEFAULT_TIMEZONE: &str = "UTC";
/// The default of `gracefulShutdownTimeout` and `nodeDrainTimeout`.
pub const DEFAULT_TIMEOUT: &str = "5m";
/// The default of `provisioning.leadTime`, `provisioning.minimumRun` and `shutdown.lastCall`.
pub const NO_TIME: &str = "0s";
/// The default of `provisioning.timeout`.
pub const DEFAULT_PROVISIONING_TIMEOUT: &str = "30m";
/// The default of `priority`.
pub const DEFAULT_PRIORITY: u8 = 50;

/// How many items `daysOfWeek`, `hoursOfDay` and the days of a window have at most.
const MOST_TEXTS: usize = 32;
/// How many windows and how many exceptions a schedule has at most.
const MOST_ENTRIES: usize = 16;

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

/// The desired state: when the machine runs, what it is created from, how it is shut down.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduledMachineSpec {
    /// When the machine runs: daysOfWeek and hoursOfDay, or cron and duration, or windows. In
    /// addition, exceptions for dates.
    pub schedule: ScheduleSpec,
    /// The Cluster API Cluster, in the same namespace, that the machine joins. It cannot be
    /// changed while the machine exists.
    #[schemars(length(max = MAX_NAME))]
    pub cluster_name: String,
    /// The bootstrap object that is created for the machine, with the name of the
    /// ScheduledMachine. Changes take effect at the next activation.
    #[schemars(transform = InlineObject::bootstrap)]
    pub bootstrap_spec: InlineObject,
    /// The infrastructure object that is created for the machine, with the name of the
    /// ScheduledMachine. Changes take effect at the next activation.
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
    /// Commands that trigger an emergency reclaim, which returns the host to its owner: if a
    /// process runs whose name or executable file name equals an entry, or whose command line
    /// contains one, the machine is removed immediately and the schedule is disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), inner(length(max = 256)))]
    pub kill_if_commands: Option<Vec<String>>,
    /// Taints of the Node while the machine is running. Taints that are set by others are not
    /// changed.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(length(max = MOST_TAINTS), extend("x-kubernetes-list-map-keys" = ["key", "effect"]))]
    pub node_taints: Vec<NodeTaint>,
    /// How the machine is provisioned.
    #[serde(default, deserialize_with = "null_is_default")]
    pub provisioning: Provisioning,
    /// How the machine is shut down at the end of a window.
    #[serde(default, deserialize_with = "null_is_default")]
    pub shutdown: ShutdownSpec,
}

impl ScheduledMachineSpec {
    /// As [`ScheduleSpec::schedule`], with the lead time and, under
    /// [`EndPolicy::CompleteByWindowEnd`], the early end of the shutdown. A duration that cannot
    /// be read counts as none; the rules say so.
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

/// When the machine runs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
pub struct ScheduleSpec {
    /// Days on which the machine runs: mon, tue, wed, thu, fri, sat, sun, ranges such as mon-fri
    /// or fri-mon, or comma-separated lists of these.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(length(max = MOST_TEXTS), inner(length(max = MAX_SHORT)))]
    pub days_of_week: Vec<String>,
    /// Hours in which the machine runs, both ends included: 9-17 is from 09:00:00 to 17:59:59.
    /// Ranges may cross midnight, such as 22-6, which for a single day means its first and its
    /// last hours. Entries may be comma-separated lists.
    #[serde(deserialize_with = "null_is_default")]
    #[schemars(length(max = MOST_TEXTS), inner(length(max = MAX_SHORT)))]
    pub hours_of_day: Vec<String>,
    /// Five cron fields (minute, hour, day of month, month, day of week), instead of daysOfWeek
    /// and hoursOfDay. Each firing opens a window of the given duration; adjacent or overlapping
    /// windows are merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub cron: Option<String>,
    /// Length of the window that each firing of cron opens, from 1m to 168h; 1h if absent. Only
    /// allowed with cron.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub duration: Option<String>,
    /// Windows in which the machine runs, instead of daysOfWeek, hoursOfDay and cron. Adjacent or
    /// overlapping windows are merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = MOST_ENTRIES),
        extend("x-kubernetes-list-map-keys" = ["name"])
    )]
    pub windows: Option<Vec<ScheduleWindow>>,
    /// Dates on which the schedule does not apply. The first exception that matches the local
    /// date decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MOST_ENTRIES), extend("x-kubernetes-list-map-keys" = ["name"]))]
    pub exceptions: Option<Vec<ScheduleException>>,
    /// The IANA time zone of days, hours, cron, windows and exceptions, such as Europe/Zurich. At
    /// daylight saving time changes, a skipped hour is never active and a repeated hour is active
    /// twice.
    #[schemars(length(max = MAX_SHORT))]
    pub timezone: String,
    /// Whether the schedule is enabled. Disabling it does not remove a running machine.
    pub enabled: bool,
}

/// A window. It belongs to the local day on which it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleWindow {
    /// The name of the window.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
    /// Days on which the window starts, as in daysOfWeek; every day if empty.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = MOST_TEXTS), inner(length(max = MAX_SHORT)))]
    pub days: Vec<String>,
    /// Time of day at which the window starts, HH:MM.
    #[schemars(length(max = MAX_SHORT))]
    pub start: String,
    /// Time of day at which the window ends, HH:MM. If it is not after start, the window ends on
    /// the next day; if it equals start, after 24 hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub end: Option<String>,
    /// Length of the window, from 1m to 168h, instead of end. It is elapsed time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub duration: Option<String>,
}

/// Dates on which something else applies, from 00:00 to 24:00 local time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleException {
    /// The name of the exception.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
    /// What happens on these dates: Run (the machine runs all day) or Stop (it does not run).
    pub action: ExceptionAction,
    /// The ScheduleCalendar with the dates, in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar_ref: Option<CalendarRef>,
    /// The first date, YYYY-MM-DD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub start_date: Option<String>,
    /// The last date, YYYY-MM-DD, included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SHORT))]
    pub end_date: Option<String>,
}

/// A ScheduleCalendar of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct CalendarRef {
    /// Name of the ScheduleCalendar.
    #[schemars(length(max = MAX_NAME))]
    pub name: String,
}

/// What happens on the dates of an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
pub enum ExceptionAction {
    /// The machine is wanted all day.
    Run,
    /// The machine is not wanted.
    Stop,
}

impl ExceptionAction {
    /// Every action, in the order in which the schema lists them.
    pub const ALL: [Self; 2] = [Self::Run, Self::Stop];

    /// The action as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Run => "Run",
            Self::Stop => "Stop",
        }
    }
}

impl ScheduleException {
    /// As the schedule takes it, with the dates of the calendar that it names; none if that
    /// calendar is not there.
    ///
    /// # Errors
    /// A text that is no date.
    fn in_schedule(
        &self,
        calendars: &BTreeMap<String, Dates>,
    ) -> Result<Option<fivespot_schedule::Exception>, fivespot_schedule::Error> {
        let dates = match (&self.calendar_ref, &self.start_date, &self.end_date) {
            (Some(calendar), _, _) => calendars.get(&calendar.name).cloned(),
            (None, Some(first), Some(last)) => {
                let entry = DateEntry::range(first, last);
                let entry =
                    entry.map_err(|fault| fivespot_schedule::Error::Exception {
                        exception: self.name.clone(),
                        fault,
                    })?;
                Some([entry].into_iter().collect())
            }
            (None, _, _) => Some(Dates::default()),
        };
        Ok(dates.map(|dates| fivespot_schedule::Exception {
            name: self.name.clone(),
            action: match self.action {
                ExceptionAction::Run => fivespot_schedule::ExceptionAction::Run,
                ExceptionAction::Stop => fivespot_schedule::ExceptionAction::Stop,
            },
            dates,
        }))
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
            lead_time: NO_TIME.to_owned(),
            timeout: DEFAULT_PROVISIONING_TIMEOUT.to_owned(),
            minimum_run: NO_TIME.to_owned(),
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
            last_call: NO_TIME.to_owned(),
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
    /// Every policy, in the order in which the schema lists them.
    pub const ALL: [Self; 2] = [Self::StartAtWindowEnd, Self::CompleteByWindowEnd];

    /// The policy as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::StartAtWindowEnd => "StartAtWindowEnd",
            Self::CompleteByWindowEnd => "CompleteByWindowEnd",
        }
    }
}

impl ScheduleSpec {
    /// What was typed as what is meant, without the exceptions that name a calendar; `enabled` is
    /// left to the caller.
    ///
    /// # Errors
    /// Whatever the constructor of [`Schedule`] for the form that is there refuses, and dates of
    /// exceptions that cannot be read. Rules that only admission knows, such as that cron excludes
    /// days, are not checked.
    pub fn schedule(&self) -> Result<Schedule, fivespot_schedule::Error> {
        self.schedule_with(&BTreeMap::new())
    }

    /// As [`ScheduleSpec::schedule`], with the calendars of the namespace by name. An exception
    /// whose calendar is not there does not apply.
    ///
    /// # Errors
    /// As [`ScheduleSpec::schedule`].
    pub fn schedule_with(
        &self,
        calendars: &BTreeMap<String, Dates>,
    ) -> Result<Schedule, fivespot_schedule::Error> {
        let exceptions = self.exceptions.iter().flatten();
        let exceptions: Result<Vec<_>, _> = exceptions
            .filter_map(|exception| exception.in_schedule(calendars).transpose())
            .collect();
        Ok(self.base()?.with_exceptions(exceptions?))
    }

    /// The names of the calendars that exceptions refer to.
    pub fn calendars(&self) -> impl Iterator<Item = &str> {
        let exceptions = self.exceptions.iter().flatten();
        let references = exceptions.filter_map(|it| it.calendar_ref.as_ref());
        references.map(|reference| reference.name.as_str())
    }

    /// The schedule without its exceptions.
    fn base(&self) -> Result<Schedule, fivespot_schedule::Error> {
        let zone = &self.timezone;
        if let Some(windows) = &self.windows {
            let windows: Vec<_> = windows.iter().map(ScheduleWindow::text).collect();
            return Schedule::windows(&windows, zone);
        }
        match &self.cron {
            Some(cron) => Schedule::cron(cron, self.duration.as_deref(), zone),
            None => Schedule::weekly(&self.days_of_week, &self.hours_of_day, zone),
        }
    }
}

impl ScheduleWindow {
    fn text(&self) -> WindowText<'_, String> {
        WindowText {
            name: &self.name,
            days: &self.days,
            start: &self.start,
            end: self.end.as_deref(),
            duration: self.duration.as_deref(),
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
            windows: None,
            exceptions: None,
            timezone: DEFAULT_TIMEZONE.to_owned(),
            enabled: true,
        }
    }
}

/// A provider object that is written inside a ScheduledMachine.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
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
    /// The object's spec, passed to the provider unchanged.
    #[schemars(schema_with = "schema::passed_on")]
    pub spec: Map<String, Value>,
}

impl InlineObject {
    fn bootstrap(schema: &mut Schema) {
        Self::of(schema, "bootstrap", "K0sWorkerConfig");
    }

    fn infrastructure(schema: &mut Schema) {
        Self::of(schema, "infrastructure", "RemoteMachine");
    }

    /// Completes the descriptions for the objects of one role.
    fn of(schema: &mut Schema, role: &str, kind: &str) {
        let group = format!(": group {role}.cluster.x-k8s.io or k0smotron.io.");
        schema::append_to_description(schema, "apiVersion", &group);
        schema::append_to_description(schema, "kind", &format!(", such as {kind}."));
    }
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

/// How many taints `spec.nodeTaints` holds at most.
pub const MOST_TAINTS: usize = 64;

/// How many taints `status.appliedNodeTaints` holds at most: those that the spec asks for, and
/// those of earlier specs that are still on the Node.
pub const MOST_APPLIED_TAINTS: usize = 160;

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
        Written {
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
        let stored = Stored::deserialize(deserializer)?.of_kind(name::KIND)?;
        // The default of a status that nobody has written says nothing.
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

/// Reads a JSON null as the default, as the API server does for a field that has one.
pub(crate) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn default_timeout() -> String {
    DEFAULT_TIMEOUT.to_owned()
}

fn default_priority() -> u8 {
    DEFAULT_PRIORITY
}

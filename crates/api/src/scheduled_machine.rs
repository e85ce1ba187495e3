//! The resource as users write it: the spec, its defaults, and the envelope around it.
//!
//! Everything here is raw: a string is whatever the API server stored. What the strings mean is
//! found out once, by the planner, and [`crate::rules`] says which of them are acceptable.

use std::collections::BTreeMap;

use fivespot_schedule::{DateEntry, Dates, Duration, Schedule, WindowText};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::name;
use crate::resource::{Stored, Written};
use crate::status::ScheduledMachineStatus;

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
    /// Taints that the Node has while it is in service.
    #[serde(default, deserialize_with = "null_is_default")]
    pub node_taints: Vec<NodeTaint>,
    /// How early the machine is made, and how long that may take.
    #[serde(default, deserialize_with = "null_is_default")]
    pub provisioning: Provisioning,
    /// When the machine leaves, before or after the end of its window.
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

/// When the machine is wanted: days and hours, cron and duration, or windows; and the exceptions
/// from that.
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
    /// Windows with a start and an end; absent, or not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<ScheduleWindow>>,
    /// Dates on which something else applies; the first that matches a date decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceptions: Option<Vec<ScheduleException>>,
    /// The IANA time zone in which days, hours, cron, windows and exceptions are read.
    #[serde(default = "default_timezone")]
    pub timezone: String,
    /// Whether the schedule is in force.
    #[serde(default = "yes")]
    pub enabled: bool,
}

/// A window of a schedule. It belongs to the local day on which it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleWindow {
    /// The name, unique in the schedule.
    pub name: String,
    /// Days such as `mon` or `mon-fri`; every day if empty.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub days: Vec<String>,
    /// When it starts, `HH:MM`.
    pub start: String,
    /// When it ends, `HH:MM`; on the next day if that is not after `start`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// How long it lasts, instead of `end`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
}

/// Dates on which the schedule does not apply.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleException {
    /// The name, unique in the schedule.
    pub name: String,
    /// What happens on these dates instead.
    pub action: ExceptionAction,
    /// The calendar with the dates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar_ref: Option<CalendarRef>,
    /// The first date, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_date: Option<String>,
    /// The last date, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_date: Option<String>,
}

/// An object of the same namespace, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct CalendarRef {
    /// Its name.
    pub name: String,
}

/// What happens on the dates of an exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
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

/// How the machine is made.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Provisioning {
    /// How long before a window opens the machine is made.
    #[serde(default = "no_time")]
    pub lead_time: String,
    /// How long it may take until the Node is Ready before the object is Stalled.
    #[serde(default = "default_provisioning_timeout")]
    pub timeout: String,
    /// No machine is made for less than that.
    #[serde(default = "no_time")]
    pub minimum_run: String,
}

impl Default for Provisioning {
    fn default() -> Self {
        Self {
            lead_time: no_time(),
            timeout: default_provisioning_timeout(),
            minimum_run: no_time(),
        }
    }
}

/// How the machine leaves at the end of a window.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShutdownSpec {
    /// Whether the shutdown begins or is over when the window ends.
    #[serde(default)]
    pub end_policy: EndPolicy,
    /// How long before the machine is no longer needed its Node gets the taint of the last call.
    #[serde(default = "no_time")]
    pub last_call: String,
}

impl Default for ShutdownSpec {
    fn default() -> Self {
        Self {
            end_policy: EndPolicy::default(),
            last_call: no_time(),
        }
    }
}

/// What happens at the end of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
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

fn default_timezone() -> String {
    DEFAULT_TIMEZONE.to_owned()
}

fn default_timeout() -> String {
    DEFAULT_TIMEOUT.to_owned()
}

fn no_time() -> String {
    NO_TIME.to_owned()
}

fn default_provisioning_timeout() -> String {
    DEFAULT_PROVISIONING_TIMEOUT.to_owned()
}

fn default_priority() -> u8 {
    DEFAULT_PRIORITY
}

fn yes() -> bool {
    true
}

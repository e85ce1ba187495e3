//! The kinds of the API: ScheduledMachine, ScheduledCapacity, ScheduleOverride, ScheduleCalendar,
//! and the schedules that many objects share.
//!
//! CRDs, policies, webhooks and reference pages are rendered by iterating over [`RESOURCES`].

use serde_json::Value;

use k8s_openapi::ListableResource as _;

use crate::name;
use crate::object::is_served;
use crate::rules::{
    CALENDAR_RULES, CAPITAL_MARKETS_RULES, OVERRIDE_RULES, RULES, Rule, capacity_rules,
    class_rules, set_rules, time_based_rules,
};
use crate::schedule_calendar::ScheduleCalendar;
use crate::schedule_override::ScheduleOverride;
use crate::scheduled_capacity::ScheduledCapacity;
use crate::scheduled_machine_class::ScheduledMachineClass;
use crate::scheduled_machine_set::ScheduledMachineSet;
use crate::schema::whole;
use crate::spot_schedule::{CapitalMarketsSchedule, TimeBasedSpotSchedule};

/// A kind of the API, with everything that is rendered for it.
#[derive(Debug)]
pub struct Resource {
    /// The API group.
    pub group: &'static str,
    /// The versions in which it is served; the first one is stored. They have the same schema.
    pub versions: &'static [&'static str],
    /// The kind.
    pub kind: &'static str,
    /// The kind of a list of them.
    pub list_kind: &'static str,
    /// The plural, as in URLs.
    pub plural: &'static str,
    /// The singular, as `kubectl` accepts it.
    pub singular: &'static str,
    /// Its short name for `kubectl get`.
    pub short_name: &'static str,
    /// The name of the ValidatingAdmissionPolicy that is rendered from its rules.
    pub policy: &'static str,
    /// The name of the binding of that policy.
    pub policy_binding: &'static str,
    /// The name of the equivalent webhook; rejections show it.
    pub webhook: &'static str,
    /// The path to which API servers send requests to that webhook.
    pub webhook_path: &'static str,
    /// The validation rules.
    pub(crate) rules: fn() -> &'static [Rule],
    /// The columns of `kubectl get`: name, type, path; the last one only under `-o wide`.
    pub(crate) columns: &'static [Column],
    /// Whether it has the subresource `status`.
    pub(crate) has_status: bool,
    /// Whether it has the subresource `scale`, for `spec.replicas`.
    pub has_scale: bool,
    /// Whether its objects are in namespaces.
    pub is_namespaced: bool,
    /// The schema of the whole object.
    pub(crate) schema: fn() -> Value,
}

/// A printer column.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) of_type: &'static str,
    pub(crate) path: &'static str,
    /// Whether it is printed under `-o wide` only.
    pub(crate) is_wide: bool,
}

const fn column(name: &'static str, of_type: &'static str, path: &'static str) -> Column {
    Column {
        name,
        of_type,
        path,
        is_wide: false,
    }
}

const fn wide(name: &'static str, path: &'static str) -> Column {
    Column {
        is_wide: true,
        ..column(name, "string", path)
    }
}

/// Whether the condition Ready holds.
const READY: Column = column(
    "Ready",
    "string",
    ".status.conditions[?(@.type==\"Ready\")].status",
);

/// ScheduledMachine.
pub const SCHEDULED_MACHINE: &Resource = &RESOURCES[0];
/// ScheduleOverride.
pub const SCHEDULE_OVERRIDE: &Resource = &RESOURCES[1];
/// ScheduleCalendar.
pub const SCHEDULE_CALENDAR: &Resource = &RESOURCES[2];

/// TimeBasedSpotSchedule.
pub const TIME_BASED_SPOT_SCHEDULE: &Resource = &RESOURCES[3];
/// CapitalMarketsSchedule.
pub const CAPITAL_MARKETS_SCHEDULE: &Resource = &RESOURCES[4];
/// ScheduledCapacity.
pub const SCHEDULED_CAPACITY: &Resource = &RESOURCES[5];

/// ScheduledMachineClass.
pub const SCHEDULED_MACHINE_CLASS: &Resource = &RESOURCES[6];

/// ScheduledMachineSet.
pub const SCHEDULED_MACHINE_SET: &Resource = &RESOURCES[7];

/// Every kind.
pub static RESOURCES: [Resource; 8] = [
    Resource {
        group: name::GROUP,
        versions: name::MACHINE_VERSIONS,
        kind: name::KIND,
        list_kind: name::LIST_KIND,
        plural: name::PLURAL,
        singular: name::SINGULAR,
        short_name: name::SHORT_NAME,
        policy: name::POLICY,
        policy_binding: name::POLICY_BINDING,
        webhook: name::WEBHOOK_NAME,
        webhook_path: name::WEBHOOK_PATH,
        rules: || RULES,
        columns: &[
            column("Phase", "string", ".status.phase"),
            READY,
            column(
                "Reason",
                "string",
                ".status.conditions[?(@.type==\"Ready\")].reason",
            ),
            column("Cluster", "string", ".status.clusterName"),
            column("Node", "string", ".status.nodeRef.name"),
            column("Next", "string", ".status.nextTransition"),
            column("Age", "date", ".metadata.creationTimestamp"),
            wide(
                "Stalled",
                ".status.conditions[?(@.type==\"Stalled\")].reason",
            ),
            wide("InSchedule", ".status.inSchedule"),
            wide("Enabled", ".spec.schedule.enabled"),
            wide("KillSwitch", ".spec.killSwitch"),
            wide("Days", ".spec.schedule.daysOfWeek"),
            wide("Hours", ".spec.schedule.hoursOfDay"),
            wide("Cron", ".spec.schedule.cron"),
            wide("Windows", ".spec.schedule.windows"),
            wide(
                "Message",
                ".status.conditions[?(@.type==\"Ready\")].message",
            ),
        ],
        has_status: true,
        has_scale: false,
        is_namespaced: true,
        schema: whole::scheduled_machine,
    },
    Resource {
        group: name::GROUP,
        versions: &[name::VERSION],
        kind: name::OVERRIDE_KIND,
        list_kind: ScheduleOverride::LIST_KIND,
        plural: name::OVERRIDE_PLURAL,
        singular: "scheduleoverride",
        short_name: "smo",
        policy: "scheduleoverride-validation",
        policy_binding: "scheduleoverride-validation-binding",
        webhook: "scheduleoverride-validation.5spot.finos.org",
        webhook_path: "/validate-scheduleoverride",
        rules: || OVERRIDE_RULES,
        columns: &[
            column("Mode", "string", ".spec.mode"),
            column("Target", "string", ".spec.targetRef.name"),
            column("Start", "string", ".spec.startTime"),
            column("End", "string", ".spec.endTime"),
            column(
                "Active",
                "string",
                ".status.conditions[?(@.type==\"Active\")].status",
            ),
            column("Machines", "integer", ".status.matchedMachines"),
            column("Age", "date", ".metadata.creationTimestamp"),
            wide("Reason", ".spec.reason"),
        ],
        has_status: true,
        has_scale: false,
        is_namespaced: true,
        schema: whole::schedule_override,
    },
    Resource {
        group: name::GROUP,
        versions: &[name::VERSION],
        kind: name::CALENDAR_KIND,
        list_kind: ScheduleCalendar::LIST_KIND,
        plural: name::CALENDAR_PLURAL,
        singular: "schedulecalendar",
        short_name: "smc",
        policy: "schedulecalendar-validation",
        policy_binding: "schedulecalendar-validation-binding",
        webhook: "schedulecalendar-validation.5spot.finos.org",
        webhook_path: "/validate-schedulecalendar",
        rules: || CALENDAR_RULES,
        columns: &[column("Age", "date", ".metadata.creationTimestamp")],
        has_status: false,
        has_scale: false,
        is_namespaced: true,
        schema: whole::schedule_calendar,
    },
    Resource {
        group: name::SPOT_GROUP,
        versions: &[name::VERSION],
        kind: name::TIME_BASED_KIND,
        list_kind: TimeBasedSpotSchedule::LIST_KIND,
        plural: name::TIME_BASED_PLURAL,
        singular: "timebasedspotschedule",
        short_name: "tbss",
        policy: "timebasedspotschedule-validation",
        policy_binding: "timebasedspotschedule-validation-binding",
        webhook: "timebasedspotschedule-validation.5spot.finos.org",
        webhook_path: "/validate-timebasedspotschedule",
        rules: time_based_rules,
        columns: &[
            column("Active", "boolean", ".status.active"),
            READY,
            column("Next", "string", ".status.nextTransitionTime"),
            column("TimeZone", "string", ".spec.timezone"),
            column("Age", "date", ".metadata.creationTimestamp"),
            wide("Enabled", ".spec.enabled"),
            wide("Days", ".spec.daysOfWeek"),
            wide("Hours", ".spec.hoursOfDay"),
            wide("Cron", ".spec.cron"),
            wide("Windows", ".spec.windows"),
        ],
        has_status: true,
        has_scale: false,
        is_namespaced: true,
        schema: whole::time_based_spot_schedule,
    },
    Resource {
        group: name::SPOT_GROUP,
        versions: &[name::VERSION],
        kind: name::CAPITAL_MARKETS_KIND,
        list_kind: CapitalMarketsSchedule::LIST_KIND,
        plural: name::CAPITAL_MARKETS_PLURAL,
        singular: "capitalmarketsschedule",
        short_name: "cms",
        policy: "capitalmarketsschedule-validation",
        policy_binding: "capitalmarketsschedule-validation-binding",
        webhook: "capitalmarketsschedule-validation.5spot.finos.org",
        webhook_path: "/validate-capitalmarketsschedule",
        rules: || CAPITAL_MARKETS_RULES,
        columns: &[
            column("Active", "boolean", ".status.active"),
            READY,
            column("Next", "string", ".status.nextTransitionTime"),
            column("TimeZone", "string", ".spec.timezone"),
            column("Age", "date", ".metadata.creationTimestamp"),
            wide("Sessions", ".spec.sessions"),
        ],
        has_status: true,
        has_scale: false,
        is_namespaced: true,
        schema: whole::capital_markets_schedule,
    },
    Resource {
        group: name::GROUP,
        versions: &[name::VERSION],
        kind: name::CAPACITY_KIND,
        list_kind: ScheduledCapacity::LIST_KIND,
        plural: name::CAPACITY_PLURAL,
        singular: "scheduledcapacity",
        short_name: "scap",
        policy: "scheduledcapacity-validation",
        policy_binding: "scheduledcapacity-validation-binding",
        webhook: "scheduledcapacity-validation.5spot.finos.org",
        webhook_path: "/validate-scheduledcapacity",
        rules: capacity_rules,
        columns: &[
            column("Phase", "string", ".status.phase"),
            column("Value", "string", ".status.writtenValue"),
            column("Target", "string", ".status.targetRef.name"),
            column("Next", "string", ".status.nextTransition"),
            column("Age", "date", ".metadata.creationTimestamp"),
            wide("Kind", ".spec.target.kind"),
            wide("Message", ".status.message"),
        ],
        has_status: true,
        has_scale: false,
        is_namespaced: true,
        schema: whole::scheduled_capacity,
    },
    Resource {
        group: name::GROUP,
        versions: &[name::VERSION],
        kind: name::CLASS_KIND,
        list_kind: ScheduledMachineClass::LIST_KIND,
        plural: name::CLASS_PLURAL,
        singular: "scheduledmachineclass",
        short_name: "smclass",
        policy: "scheduledmachineclass-validation",
        policy_binding: "scheduledmachineclass-validation-binding",
        webhook: "scheduledmachineclass-validation.5spot.finos.org",
        webhook_path: "/validate-scheduledmachineclass",
        rules: class_rules,
        columns: &[
            column("Clusters", "string", ".spec.clusterNames"),
            column("Bootstrap", "string", ".spec.bootstrapSpec.kind"),
            column("Infrastructure", "string", ".spec.infrastructureSpec.kind"),
            column("Age", "date", ".metadata.creationTimestamp"),
        ],
        has_status: false,
        has_scale: false,
        is_namespaced: false,
        schema: whole::scheduled_machine_class,
    },
    Resource {
        group: name::GROUP,
        versions: &[name::VERSION],
        kind: name::SET_KIND,
        list_kind: ScheduledMachineSet::LIST_KIND,
        plural: name::SET_PLURAL,
        singular: "scheduledmachineset",
        short_name: "smset",
        policy: "scheduledmachineset-validation",
        policy_binding: "scheduledmachineset-validation-binding",
        webhook: "scheduledmachineset-validation.5spot.finos.org",
        webhook_path: "/validate-scheduledmachineset",
        rules: set_rules,
        columns: &[
            column("Desired", "integer", ".spec.replicas"),
            column("Current", "integer", ".status.replicas"),
            column("Active", "integer", ".status.activeReplicas"),
            READY,
            column("Class", "string", ".spec.template.spec.classRef.name"),
            column("Age", "date", ".metadata.creationTimestamp"),
            wide(
                "Message",
                ".status.conditions[?(@.type==\"Ready\")].message",
            ),
        ],
        has_status: true,
        has_scale: true,
        is_namespaced: true,
        schema: whole::scheduled_machine_set,
    },
];

impl Resource {
    /// The kind of that name. `None` if it is not in the group.
    pub fn of_kind(kind: &str) -> Option<&'static Self> {
        RESOURCES.iter().find(|resource| resource.kind == kind)
    }

    /// The validation rules, in the order of their ids.
    pub fn rules(&self) -> &'static [Rule] {
        (self.rules)()
    }

    /// Group and stored version, as in `apiVersion`.
    pub fn api_version(&self) -> String {
        let version = self.versions.first().copied().unwrap_or_default();
        format!("{}/{version}", self.group)
    }

    /// Whether an `apiVersion` is one in which it is served.
    ///
    /// # Example
    /// ```
    /// use fivespot_api::resource::{SCHEDULE_CALENDAR, SCHEDULED_MACHINE};
    /// assert!(SCHEDULED_MACHINE.is_served_as("5spot.finos.org/v1beta1"));
    /// assert!(!SCHEDULED_MACHINE.is_served_as("capi.5spot.io/v1beta1"));
    /// assert!(!SCHEDULE_CALENDAR.is_served_as("5spot.finos.org/v1beta1"));
    /// ```
    pub fn is_served_as(&self, api_version: &str) -> bool {
        is_served(self.group, self.versions, api_version)
    }

    /// The name of the CRD: plural and group.
    pub fn definition_name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }
}

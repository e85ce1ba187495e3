//! The rules about a ScheduledMachine: field, requirement, and reason. The policy evaluates
//! them and the reference page lists them in this order.
//!
//! Everything that mentions a rule is generated from here (`internals/decisions/0006-rule-table.md`).
//!
//! Rules 1 to 13 are those of the admission document, with its messages. Where one mistake
//! would violate several rules of one field, all but the first accept it.

use super::class::{
    BOOTSTRAP_OR_CLASS, CLUSTER_OR_CLASS, INFRASTRUCTURE_OR_CLASS, NO_FIELD_OF_CLASS,
    NO_OBJECT_BESIDE_CLASS,
};
use super::created::{
    BOOTSTRAP_GROUP, BOUNDED_SIZE, GROUP, INFRASTRUCTURE_GROUP, KIND,
    KIND_OF_ONE_MACHINE, KUBERNETES_VERSION, LABEL_VALUE, LABEL_VALUES, NO_NAME,
    NO_NAMESPACE, NO_RESERVED_KEYS, NO_RESERVED_TAINT, OWN_NAMESPACE, QUALIFIED_KEYS,
    QUALIFIED_NAME, TWO_KINDS, VERSION,
};
use super::reference::{
    NO_FORM_BESIDE_REFERENCE, SCHEDULE_KIND, SCHEDULE_NAME, SPOT_GROUP, WHOLE_REFERENCE,
};
use super::requirement::{
    A_FIRING, A_MINUTE_TO_A_DAY, AT_MOST_A_DAY, AT_MOST_TWO_HOURS, CLUSTER_NAME,
    COMMANDS_ONCE, DURATION, NAME, NO_KATA, NOT_AUDITED_WHILE_IT_EXISTS, NOT_BLANK,
    SAME_CLUSTER, not_empty,
};
use super::schedule::{
    A_DATE, CALENDAR_OR_DATES, COMPLETE, CRON_DAYS_OF_MONTH, CRON_DAYS_OF_WEEK,
    CRON_HOURS, CRON_MINUTES, CRON_MONTHS, CRON_OR_LISTS, DATES_IN_ORDER, DAYS,
    DURATION_ONLY_WITH_CRON, FIVE_FIELDS, HOURS, HOURS_OF_A_DAY, NO_OTHER_FORM,
    OBJECT_NAME, ONE_END, TIME_OF_DAY, WINDOW_DAYS, ZONE_NAME,
};
use super::{Examples, Rule};

/// Every rule about a ScheduledMachine.
pub const RULES: &[Rule] = &[
    Rule {
        id: "SM001",
        path: "spec.clusterName",
        requirement: not_empty("spec.clusterName must not be empty"),
        why: "The machine joins the Cluster of this name.",
    },
    Rule {
        id: "SM002",
        path: "spec.gracefulShutdownTimeout",
        requirement: DURATION,
        why: "An invalid duration would only be noticed when the machine shuts down.",
    },
    Rule {
        id: "SM003",
        path: "spec.nodeDrainTimeout",
        requirement: DURATION,
        why: "An invalid duration would only be noticed when the machine shuts down.",
    },
    Rule {
        id: "SM004",
        path: "spec.schedule",
        requirement: CRON_OR_LISTS,
        why: "Two descriptions of one schedule could contradict each other.",
    },
    Rule {
        id: "SM005",
        path: "spec.schedule",
        requirement: COMPLETE,
        why: "Days without hours, or hours without days, have no window.",
    },
    Rule {
        id: "SM006",
        path: "spec.schedule.daysOfWeek[]",
        requirement: DAYS,
        why: "Days are lower case; a range may cross the end of the week.",
    },
    Rule {
        id: "SM007",
        path: "spec.schedule.hoursOfDay[]",
        requirement: HOURS,
        why: "Both ends of a range are included; a range may cross midnight.",
    },
    Rule {
        id: "SM008",
        path: "spec.bootstrapSpec.apiVersion",
        requirement: GROUP,
        why: "A ScheduledMachine must not create objects of the core API.",
    },
    Rule {
        id: "SM009",
        path: "spec.bootstrapSpec.apiVersion",
        requirement: BOOTSTRAP_GROUP,
        why: "Permission to create a ScheduledMachine must not be permission to create objects \
              of any other kind.",
    },
    Rule {
        id: "SM010",
        path: "spec.bootstrapSpec.kind",
        requirement: not_empty("spec.bootstrapSpec.kind must not be empty"),
        why: "Without a kind there is nothing to create.",
    },
    Rule {
        id: "SM011",
        path: "spec.infrastructureSpec.apiVersion",
        requirement: GROUP,
        why: "A ScheduledMachine must not create objects of the core API.",
    },
    Rule {
        id: "SM012",
        path: "spec.infrastructureSpec.apiVersion",
        requirement: INFRASTRUCTURE_GROUP,
        why: "Permission to create a ScheduledMachine must not be permission to create objects \
              of any other kind.",
    },
    Rule {
        id: "SM013",
        path: "spec.infrastructureSpec.kind",
        requirement: not_empty("spec.infrastructureSpec.kind must not be empty"),
        why: "Without a kind there is nothing to create.",
    },
    Rule {
        id: "SM014",
        path: "spec.gracefulShutdownTimeout",
        requirement: AT_MOST_A_DAY,
        why: "A shutdown that takes longer is probably stuck.",
    },
    Rule {
        id: "SM015",
        path: "spec.nodeDrainTimeout",
        requirement: AT_MOST_A_DAY,
        why: "A shutdown that takes longer is probably stuck.",
    },
    Rule {
        id: "SM016",
        path: "spec.clusterName",
        requirement: CLUSTER_NAME,
        why: "The name is used as a label value.",
    },
    Rule {
        id: "SM017",
        path: "spec.clusterName",
        requirement: SAME_CLUSTER,
        why: "A Machine cannot move from one Cluster to another.",
    },
    Rule {
        id: "SM018",
        path: "spec.schedule.hoursOfDay[]",
        requirement: HOURS_OF_A_DAY,
        why: "There is no hour 24: the end of a range is included, so `18-23` ends at midnight.",
    },
    Rule {
        id: "SM019",
        path: "spec.schedule.cron",
        requirement: FIVE_FIELDS,
        why: "Seconds, years and names such as `@daily` are not supported.",
    },
    Rule {
        id: "SM020",
        path: "spec.schedule.cron",
        requirement: CRON_MINUTES,
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM021",
        path: "spec.schedule.cron",
        requirement: CRON_HOURS,
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM022",
        path: "spec.schedule.cron",
        requirement: CRON_DAYS_OF_MONTH,
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM023",
        path: "spec.schedule.cron",
        requirement: CRON_MONTHS,
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM024",
        path: "spec.schedule.cron",
        requirement: CRON_DAYS_OF_WEEK,
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM025",
        path: "spec.schedule.duration",
        requirement: DURATION,
        why: "It is the length of the window that each firing opens.",
    },
    Rule {
        id: "SM026",
        path: "spec.schedule.duration",
        requirement: A_FIRING,
        why: "A window of less than a minute ends before a machine is ready; one of more than a \
              week is never closed.",
    },
    Rule {
        id: "SM027",
        path: "spec.schedule",
        requirement: DURATION_ONLY_WITH_CRON,
        why: "hoursOfDay already determines the length of the window.",
    },
    Rule {
        id: "SM028",
        path: "spec.schedule.timezone",
        requirement: ZONE_NAME,
        why: "Whether the zone exists is checked by the operator, which has the tz database.",
    },
    Rule {
        id: "SM029",
        path: "spec.bootstrapSpec.apiVersion",
        requirement: VERSION,
        why: "Group and version become part of a URL.",
    },
    Rule {
        id: "SM030",
        path: "spec.bootstrapSpec.kind",
        requirement: KIND,
        why: "These are the kinds that Kubernetes allows.",
    },
    Rule {
        id: "SM031",
        path: "spec.bootstrapSpec.kind",
        requirement: KIND_OF_ONE_MACHINE,
        why: "Objects that are shared by several machines must not be created and deleted with \
              one of them.",
    },
    Rule {
        id: "SM032",
        path: "spec.infrastructureSpec.apiVersion",
        requirement: VERSION,
        why: "Group and version become part of a URL.",
    },
    Rule {
        id: "SM033",
        path: "spec.infrastructureSpec.kind",
        requirement: KIND,
        why: "These are the kinds that Kubernetes allows.",
    },
    Rule {
        id: "SM034",
        path: "spec.infrastructureSpec.kind",
        requirement: KIND_OF_ONE_MACHINE,
        why: "Objects that are shared by several machines must not be created and deleted with \
              one of them.",
    },
    Rule {
        id: "SM035",
        path: "spec.bootstrapSpec.namespace",
        requirement: OWN_NAMESPACE,
        why: "A user of one namespace must not create objects in another.",
    },
    Rule {
        id: "SM036",
        path: "spec.infrastructureSpec.namespace",
        requirement: OWN_NAMESPACE,
        why: "A user of one namespace must not create objects in another.",
    },
    Rule {
        id: "SM037",
        path: "spec.machineTemplate.labels",
        requirement: QUALIFIED_KEYS,
        why: "The API server would reject the Machine.",
    },
    Rule {
        id: "SM038",
        path: "spec.machineTemplate.labels",
        requirement: NO_RESERVED_KEYS,
        why: "With such a key the Machine could appear to belong to another owner, or its drain \
              could be skipped.",
    },
    Rule {
        id: "SM039",
        path: "spec.machineTemplate.labels",
        requirement: LABEL_VALUES,
        why: "The API server would reject the Machine.",
    },
    Rule {
        id: "SM040",
        path: "spec.machineTemplate.annotations",
        requirement: QUALIFIED_KEYS,
        why: "The API server would reject the Machine.",
    },
    Rule {
        id: "SM041",
        path: "spec.machineTemplate.annotations",
        requirement: NO_RESERVED_KEYS,
        why: "With such a key the Machine could appear to belong to another owner, or its drain \
              could be skipped.",
    },
    Rule {
        id: "SM042",
        path: "spec.nodeTaints[].key",
        requirement: QUALIFIED_NAME,
        why: "The API server would reject the taint.",
    },
    Rule {
        id: "SM043",
        path: "spec.nodeTaints[].key",
        requirement: NO_RESERVED_TAINT,
        why: "Kubernetes' own controllers set and remove taints with these prefixes.",
    },
    Rule {
        id: "SM044",
        path: "spec.nodeTaints[].value",
        requirement: LABEL_VALUE,
        why: "The API server would reject the taint.",
    },
    Rule {
        id: "SM045",
        path: "spec.killIfCommands[]",
        requirement: NOT_BLANK,
        why: "Every process would match.",
    },
    Rule {
        id: "SM046",
        path: "metadata.name",
        requirement: NAME.only_in_policy().examples(Examples::Text {
            accepts: &["worker", "5spot-1"],
            rejects: &[
                "Worker",
                "a.b",
                "-a",
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl",
            ],
        }),
        why: "The name is used as a label value and as the name of a Node.",
    },
    Rule {
        id: "SM047",
        path: "spec.schedule",
        requirement: NO_OTHER_FORM,
        why: "Two descriptions of one schedule could contradict each other.",
    },
    Rule {
        id: "SM048",
        path: "spec.machineTemplate.version",
        requirement: KUBERNETES_VERSION,
        why: "Cluster API rejects a Machine with another version, and kubeadm cannot join with it.",
    },
    Rule {
        id: "SM049",
        path: "spec.machineTemplate.failureDomain",
        requirement: not_empty("must not be empty; omit it to let the provider choose"),
        why: "Cluster API rejects a Machine with an empty failure domain.",
    },
    Rule {
        id: "SM050",
        path: "spec.machineTemplate.annotations",
        requirement: BOUNDED_SIZE,
        why: "The API server rejects a Machine whose annotations exceed a total size, after its \
              other objects were created.",
    },
    Rule {
        id: "SM051",
        path: "spec",
        requirement: TWO_KINDS,
        why: "Both objects have the name of the ScheduledMachine, so one object would have both \
              roles.",
    },
    Rule {
        id: "SM052",
        path: "spec.schedule.windows[].name",
        requirement: NAME,
        why: "The name is shown in previews, events and messages.",
    },
    Rule {
        id: "SM053",
        path: "spec.schedule.windows[].days",
        requirement: WINDOW_DAYS,
        why: "Days are lower case; a range may cross the end of the week.",
    },
    Rule {
        id: "SM054",
        path: "spec.schedule.windows[].start",
        requirement: TIME_OF_DAY,
        why: "It is a local time in the time zone of the schedule.",
    },
    Rule {
        id: "SM055",
        path: "spec.schedule.windows[].end",
        requirement: TIME_OF_DAY,
        why: "For midnight write '00:00': an end that is not after the start is on the next day.",
    },
    Rule {
        id: "SM056",
        path: "spec.schedule.windows[]",
        requirement: ONE_END,
        why: "Without either the window never ends; both could contradict each other.",
    },
    Rule {
        id: "SM057",
        path: "spec.schedule.windows[].duration",
        requirement: DURATION,
        why: "It is the length of the window.",
    },
    Rule {
        id: "SM058",
        path: "spec.schedule.windows[].duration",
        requirement: A_FIRING,
        why: "A window of less than a minute ends before a machine is ready; one of more than a week is never closed.",
    },
    Rule {
        id: "SM059",
        path: "spec.schedule.exceptions[].name",
        requirement: NAME,
        why: "The name is shown in previews, events and messages.",
    },
    Rule {
        id: "SM060",
        path: "spec.schedule.exceptions[]",
        requirement: CALENDAR_OR_DATES,
        why: "An exception needs dates, from exactly one source.",
    },
    Rule {
        id: "SM061",
        path: "spec.schedule.exceptions[].startDate",
        requirement: A_DATE,
        why: "It is a local date in the time zone of the schedule.",
    },
    Rule {
        id: "SM062",
        path: "spec.schedule.exceptions[].endDate",
        requirement: A_DATE,
        why: "It is a local date in the time zone of the schedule.",
    },
    Rule {
        id: "SM063",
        path: "spec.schedule.exceptions[]",
        requirement: DATES_IN_ORDER,
        why: "Such an exception has no dates.",
    },
    Rule {
        id: "SM064",
        path: "spec.schedule.exceptions[].calendarRef.name",
        requirement: OBJECT_NAME,
        why: "No object can have another name.",
    },
    Rule {
        id: "SM065",
        path: "spec.provisioning.leadTime",
        requirement: DURATION,
        why: "An invalid lead time would count as zero.",
    },
    Rule {
        id: "SM066",
        path: "spec.provisioning.leadTime",
        requirement: AT_MOST_TWO_HOURS,
        why: "A machine that takes longer is probably stuck.",
    },
    Rule {
        id: "SM067",
        path: "spec.provisioning.timeout",
        requirement: DURATION,
        why: "An invalid timeout would never expire.",
    },
    Rule {
        id: "SM068",
        path: "spec.provisioning.timeout",
        requirement: A_MINUTE_TO_A_DAY,
        why: "No machine is ready within a minute, and a failure must be reported within a day.",
    },
    Rule {
        id: "SM069",
        path: "spec.provisioning.minimumRun",
        requirement: DURATION,
        why: "An invalid minimum would count as zero.",
    },
    Rule {
        id: "SM070",
        path: "spec.provisioning.minimumRun",
        requirement: AT_MOST_A_DAY,
        why: "With a longer minimum, a window of one day would never get a machine.",
    },
    Rule {
        id: "SM071",
        path: "spec.shutdown.lastCall",
        requirement: DURATION,
        why: "An invalid last call would count as zero.",
    },
    Rule {
        id: "SM072",
        path: "spec.shutdown.lastCall",
        requirement: AT_MOST_A_DAY,
        why: "With a longer last call, a Node with daily windows would always be tainted.",
    },
    Rule {
        id: "SM087",
        path: "spec.bootstrapSpec.metadata",
        requirement: NO_NAME,
        why: "Another name could be that of an object of another machine.",
    },
    Rule {
        id: "SM088",
        path: "spec.bootstrapSpec.metadata",
        requirement: NO_NAMESPACE,
        why: "A user of one namespace must not create objects in another.",
    },
    Rule {
        id: "SM089",
        path: "spec.bootstrapSpec.metadata.labels",
        requirement: QUALIFIED_KEYS,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM090",
        path: "spec.bootstrapSpec.metadata.labels",
        requirement: NO_RESERVED_KEYS,
        why: "With such a key the object could appear to belong to another owner.",
    },
    Rule {
        id: "SM091",
        path: "spec.bootstrapSpec.metadata.labels",
        requirement: LABEL_VALUES,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM092",
        path: "spec.bootstrapSpec.metadata.annotations",
        requirement: QUALIFIED_KEYS,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM093",
        path: "spec.bootstrapSpec.metadata.annotations",
        requirement: NO_RESERVED_KEYS,
        why: "With such a key the object could appear to belong to another owner.",
    },
    Rule {
        id: "SM094",
        path: "spec.bootstrapSpec.metadata.annotations",
        requirement: BOUNDED_SIZE,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM095",
        path: "spec.infrastructureSpec.metadata",
        requirement: NO_NAME,
        why: "Another name could be that of an object of another machine.",
    },
    Rule {
        id: "SM096",
        path: "spec.infrastructureSpec.metadata",
        requirement: NO_NAMESPACE,
        why: "A user of one namespace must not create objects in another.",
    },
    Rule {
        id: "SM097",
        path: "spec.infrastructureSpec.metadata.labels",
        requirement: QUALIFIED_KEYS,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM098",
        path: "spec.infrastructureSpec.metadata.labels",
        requirement: NO_RESERVED_KEYS,
        why: "With such a key the object could appear to belong to another owner.",
    },
    Rule {
        id: "SM099",
        path: "spec.infrastructureSpec.metadata.labels",
        requirement: LABEL_VALUES,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM100",
        path: "spec.infrastructureSpec.metadata.annotations",
        requirement: QUALIFIED_KEYS,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM101",
        path: "spec.infrastructureSpec.metadata.annotations",
        requirement: NO_RESERVED_KEYS,
        why: "With such a key the object could appear to belong to another owner.",
    },
    Rule {
        id: "SM102",
        path: "spec.infrastructureSpec.metadata.annotations",
        requirement: BOUNDED_SIZE,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM103",
        path: "spec",
        requirement: NO_KATA,
        why: "It would give whoever may create a ScheduledMachine root on the host.",
    },
    Rule {
        id: "SM104",
        path: "spec.enforcement",
        requirement: NOT_AUDITED_WHILE_IT_EXISTS,
        why: "In audit mode nothing is removed, not by the schedule, the kill switch, a reclaim or a deletion either.",
    },
    Rule {
        id: "SM105",
        path: "spec.schedule",
        requirement: NO_FORM_BESIDE_REFERENCE,
        why: "Two descriptions of one schedule could contradict each other.",
    },
    Rule {
        id: "SM106",
        path: "spec.schedule",
        requirement: WHOLE_REFERENCE,
        why: "Without one of them no object is named.",
    },
    Rule {
        id: "SM107",
        path: "spec.schedule.apiVersion",
        requirement: SPOT_GROUP,
        why: "Only objects of this group are schedules.",
    },
    Rule {
        id: "SM108",
        path: "spec.schedule.kind",
        requirement: SCHEDULE_KIND,
        why: "The operator looks for the kind in the API server's discovery.",
    },
    Rule {
        id: "SM109",
        path: "spec.schedule.name",
        requirement: SCHEDULE_NAME,
        why: "No object can have another name.",
    },
    Rule {
        id: "SM120",
        path: "spec.reclaim.commands[]",
        requirement: NOT_BLANK,
        why: "Every process would match.",
    },
    Rule {
        id: "SM121",
        path: "spec",
        requirement: COMMANDS_ONCE,
        why: "Two lists of one thing could contradict each other.",
    },
    Rule {
        id: "SM122",
        path: "spec.reclaim.return.after",
        requirement: DURATION,
        why: "The machine would never return before its override ends.",
    },
    Rule {
        id: "SM123",
        path: "spec.reclaim.return.after",
        requirement: A_MINUTE_TO_A_DAY,
        why: "Someone who leaves the desk for a moment would lose the host, or it would never return.",
    },
    Rule {
        id: "SM124",
        path: "spec.clusterName",
        requirement: CLUSTER_OR_CLASS,
        why: "Without a class nothing else says which Cluster the machine joins.",
    },
    Rule {
        id: "SM125",
        path: "spec.bootstrapSpec",
        requirement: BOOTSTRAP_OR_CLASS,
        why: "The machine is made from it.",
    },
    Rule {
        id: "SM126",
        path: "spec.infrastructureSpec",
        requirement: INFRASTRUCTURE_OR_CLASS,
        why: "The machine is made from it.",
    },
    Rule {
        id: "SM127",
        path: "spec",
        requirement: NO_OBJECT_BESIDE_CLASS,
        why: "Two descriptions of one machine could contradict each other.",
    },
    Rule {
        id: "SM128",
        path: "spec",
        requirement: NO_FIELD_OF_CLASS,
        why: "The platform team decides it for all machines of the class.",
    },
    Rule {
        id: "SM129",
        path: "spec.classRef.name",
        requirement: SCHEDULE_NAME,
        why: "No object can have another name.",
    },
    Rule {
        id: "SM846",
        path: "spec.classRef.host",
        requirement: NAME,
        why: "No host of a class can have another name.",
    },
];

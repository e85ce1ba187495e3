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
use super::reference::{
    NO_FORM_BESIDE_REFERENCE, SCHEDULE_KIND, SCHEDULE_NAME, SPOT_GROUP, WHOLE_REFERENCE,
};
use super::requirement::{
    A_FIRING, A_MINUTE_TO_A_DAY, AT_MOST_A_DAY, AT_MOST_TWO_HOURS, BOOTSTRAP_GROUP,
    BOUNDED_SIZE, CLUSTER_NAME, COMMANDS_ONCE, DURATION, GROUP, INFRASTRUCTURE_GROUP,
    KIND, KIND_OF_ONE_MACHINE, KUBERNETES_VERSION, LABEL_VALUE, LABEL_VALUES, NAME,
    NO_KATA, NO_NAME, NO_NAMESPACE, NO_RESERVED_KEYS, NO_RESERVED_TAINT,
    NOT_AUDITED_WHILE_IT_EXISTS, NOT_BLANK, OWN_NAMESPACE, QUALIFIED_KEYS,
    QUALIFIED_NAME, SAME_CLUSTER, TWO_KINDS, VERSION, not_empty,
};
use super::schedule::{
    A_DATE, CALENDAR_OR_DATES, COMPLETE, CRON_DAYS_OF_MONTH, CRON_DAYS_OF_WEEK,
    CRON_HOURS, CRON_MINUTES, CRON_MONTHS, CRON_OR_LISTS, DATES_IN_ORDER, DAYS,
    DURATION_ONLY_WITH_CRON, FIVE_FIELDS, HOURS, HOURS_OF_A_DAY, NO_OTHER_FORM,
    OBJECT_NAME, ONE_END, TIME_OF_DAY, WINDOW_DAYS, ZONE_NAME,
};
use super::{Examples, Rule};

/// The members of the spec of a machine of a class, in place of those without one.
const BY_CLASS: &str = r#"{"classRef": {"name": "desks"}, "clusterName": null,
    "bootstrapSpec": null, "infrastructureSpec": null}"#;

/// Texts that are not dates.
const NO_DATES: &[&str] = &[
    "",
    "2026-02-29",
    "2026-13-01",
    "26-12-24",
    "2026-12-24T00:00:00Z",
    "24.12.2026",
];

/// Texts that are not RFC 3339 times.
pub(super) const NO_TIMES: &[&str] = &[
    "",
    "2026-03-06",
    "2026-03-06T22:00",
    "2026-03-06T22:00:00",
    "2026-02-29T22:00:00Z",
    "2026-03-06T24:00:00Z",
    "2026-03-06 22:00:00Z",
    "tonight",
];

const TIMEOUTS: Examples = Examples::Text {
    accepts: &["0s", "30s", "5m", "24h", "007m"],
    rejects: &["", "5", "5 m", "m5", "five minutes", "1.5h", "-5m", "5M"],
};

const BOUNDED_TIMEOUTS: Examples = Examples::Text {
    accepts: &["0s", "24h", "1440m", "86400s", "0000086400s"],
    rejects: &["25h", "1441m", "86401s", "99999999999999999999h"],
};

const WINDOW_LENGTHS: Examples = Examples::Text {
    accepts: &["1h", "90m", "3600s"],
    rejects: &["", "1", "1d", "one hour"],
};

const BOUNDED_WINDOW_LENGTHS: Examples = Examples::Text {
    accepts: &["1m", "60s", "168h", "604800s"],
    rejects: &["0s", "59s", "169h", "9999999h"],
};

const NAMESPACES: Examples = Examples::Text {
    accepts: &["default"],
    rejects: &["kube-system", ""],
};

const KEYS: Examples = Examples::Json {
    accepts: &["{}", r#"{"team": "a", "example.com/cost-centre": "7"}"#],
    rejects: &[
        r#"{"bad key!": "a"}"#,
        r#"{"/x": "a"}"#,
        r#"{"Example.com/x": "a"}"#,
        r#"{"-x": "a"}"#,
    ],
};

const KEYS_OF_OTHERS: Examples = Examples::Json {
    accepts: &[
        r#"{"example.com/x": "a"}"#,
        r#"{"node-role.kubernetes.io/batch": ""}"#,
        r#"{"node-restriction.kubernetes.io/zone": "a"}"#,
        r#"{"node.cluster.x-k8s.io/zone": "a"}"#,
        r#"{"cluster.x-k8s.io/skip-remediation": ""}"#,
        r#"{"machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": ""}"#,
    ],
    rejects: &[
        r#"{"5spot.finos.org/scheduled-machine": "other"}"#,
        r#"{"sub.5spot.finos.org/x": "a"}"#,
        r#"{"5spot.eribourg.dev/managed": "true"}"#,
        r#"{"topology.kubernetes.io/zone": "a"}"#,
        r#"{"k8s.io/x": "a"}"#,
        r#"{"cluster.x-k8s.io/cluster-name": "other"}"#,
        r#"{"cluster.x-k8s.io/control-plane": ""}"#,
        r#"{"machine.cluster.x-k8s.io/exclude-node-draining": ""}"#,
        r#"{"pre-drain.delete.hook.machine.cluster.x-k8s.io/x": ""}"#,
        r#"{"sub.node.cluster.x-k8s.io/x": ""}"#,
    ],
};

const VALUES_OF_LABELS: Examples = Examples::Json {
    accepts: &[r#"{"team": "a", "empty": ""}"#],
    rejects: &[
        r#"{"team": "a b"}"#,
        r#"{"team": "-a"}"#,
        r#"{"team": "a_"}"#,
    ],
};

const SIZES: Examples = Examples::Sizes {
    accepts: &["0 bytes", "65536 bytes"],
    rejects: &["65537 bytes"],
};

const NO_NAME_IN_METADATA: Examples = Examples::Json {
    accepts: &["{}", r#"{"labels": {"team": "a"}}"#],
    rejects: &[r#"{"name": "other"}"#],
};

const NO_NAMESPACE_IN_METADATA: Examples = Examples::Json {
    accepts: &["{}", r#"{"labels": {"team": "a"}}"#],
    rejects: &[r#"{"namespace": "default"}"#],
};

pub(super) const NAMES: Examples = Examples::Text {
    accepts: &["night", "week-1"],
    rejects: &[
        "",
        "Night",
        "a.b",
        "-a",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ],
};

const TIMES_OF_DAY: Examples = Examples::Text {
    accepts: &["00:00", "07:30", "23:59"],
    rejects: &["", "24:00", "7:30", "07:60", "07:30:00", "noon"],
};

pub(super) const START_DATES: Examples = Examples::Text {
    accepts: &["2026-12-24", "2024-02-29"],
    rejects: NO_DATES,
};

pub(super) const END_DATES: Examples = Examples::Text {
    accepts: &["2026-12-24", "2028-02-29"],
    rejects: NO_DATES,
};

/// Every rule about a ScheduledMachine.
pub const RULES: &[Rule] = &[
    Rule {
        id: "SM001",
        path: "spec.clusterName",
        requirement: not_empty("spec.clusterName must not be empty"),
        examples: Examples::Text {
            accepts: &["prod"],
            rejects: &[""],
        },
        why: "The machine joins the Cluster of this name.",
    },
    Rule {
        id: "SM002",
        path: "spec.gracefulShutdownTimeout",
        requirement: DURATION,
        examples: TIMEOUTS,
        why: "An invalid duration would only be noticed when the machine shuts down.",
    },
    Rule {
        id: "SM003",
        path: "spec.nodeDrainTimeout",
        requirement: DURATION,
        examples: TIMEOUTS,
        why: "An invalid duration would only be noticed when the machine shuts down.",
    },
    Rule {
        id: "SM004",
        path: "spec.schedule",
        requirement: CRON_OR_LISTS,
        examples: Examples::Json {
            accepts: &[
                r#"{"cron": "0 9-17 * * 1-5"}"#,
                r#"{"cron": "0 9 * * *", "daysOfWeek": [], "hoursOfDay": []}"#,
                r#"{"daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}"#,
            ],
            rejects: &[
                r#"{"cron": "0 9-17 * * 1-5", "daysOfWeek": ["mon-fri"], "hoursOfDay": ["9-17"]}"#,
                r#"{"cron": "0 9 * * *", "hoursOfDay": ["9"]}"#,
            ],
        },
        why: "Two descriptions of one schedule could contradict each other.",
    },
    Rule {
        id: "SM005",
        path: "spec.schedule",
        requirement: COMPLETE,
        examples: Examples::Json {
            accepts: &[
                r#"{"daysOfWeek": ["sat"], "hoursOfDay": ["0-23"]}"#,
                r#"{"cron": "0 9 * * *"}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}]}"#,
            ],
            rejects: &[
                "{}",
                r#"{"daysOfWeek": ["mon-fri"]}"#,
                r#"{"daysOfWeek": ["mon-fri"], "hoursOfDay": []}"#,
                r#"{"hoursOfDay": ["9-17"]}"#,
            ],
        },
        why: "Days without hours, or hours without days, have no window.",
    },
    Rule {
        id: "SM006",
        path: "spec.schedule.daysOfWeek[]",
        requirement: DAYS,
        examples: Examples::Text {
            accepts: &["mon", "mon-fri", "fri-mon", "mon-wed,fri-sun"],
            rejects: &["", "monday", "Mon", "mon-", "mon,", "mon - fri", "1-5"],
        },
        why: "Days are lower case; a range may cross the end of the week.",
    },
    Rule {
        id: "SM007",
        path: "spec.schedule.hoursOfDay[]",
        requirement: HOURS,
        examples: Examples::Text {
            accepts: &["9", "09", "9-17", "22-6", "0-9,18-23"],
            rejects: &["", "9am", "9-", "9:30", "-1", "9 - 17", "123"],
        },
        why: "Both ends of a range are included; a range may cross midnight.",
    },
    Rule {
        id: "SM008",
        path: "spec.bootstrapSpec.apiVersion",
        requirement: GROUP,
        examples: Examples::Text {
            accepts: &["bootstrap.cluster.x-k8s.io/v1beta1"],
            rejects: &["", "v1"],
        },
        why: "A ScheduledMachine must not create objects of the core API.",
    },
    Rule {
        id: "SM009",
        path: "spec.bootstrapSpec.apiVersion",
        requirement: BOOTSTRAP_GROUP,
        examples: Examples::Text {
            accepts: &["bootstrap.cluster.x-k8s.io/v1beta1", "k0smotron.io/v1beta1"],
            rejects: &[
                "rbac.authorization.k8s.io/v1",
                "apps/v1",
                "bootstrap.cluster.x-k8s.io.evil.example/v1",
            ],
        },
        why: "Permission to create a ScheduledMachine must not be permission to create objects \
              of any other kind.",
    },
    Rule {
        id: "SM010",
        path: "spec.bootstrapSpec.kind",
        requirement: not_empty("spec.bootstrapSpec.kind must not be empty"),
        examples: Examples::Text {
            accepts: &["K0sWorkerConfig"],
            rejects: &[""],
        },
        why: "Without a kind there is nothing to create.",
    },
    Rule {
        id: "SM011",
        path: "spec.infrastructureSpec.apiVersion",
        requirement: GROUP,
        examples: Examples::Text {
            accepts: &["infrastructure.cluster.x-k8s.io/v1beta1"],
            rejects: &["", "v1"],
        },
        why: "A ScheduledMachine must not create objects of the core API.",
    },
    Rule {
        id: "SM012",
        path: "spec.infrastructureSpec.apiVersion",
        requirement: INFRASTRUCTURE_GROUP,
        examples: Examples::Text {
            accepts: &[
                "infrastructure.cluster.x-k8s.io/v1beta1",
                "k0smotron.io/v1beta1",
            ],
            rejects: &[
                "rbac.authorization.k8s.io/v1",
                "apps/v1",
                "infrastructure.cluster.x-k8s.io.evil.example/v1",
            ],
        },
        why: "Permission to create a ScheduledMachine must not be permission to create objects \
              of any other kind.",
    },
    Rule {
        id: "SM013",
        path: "spec.infrastructureSpec.kind",
        requirement: not_empty("spec.infrastructureSpec.kind must not be empty"),
        examples: Examples::Text {
            accepts: &["RemoteMachine"],
            rejects: &[""],
        },
        why: "Without a kind there is nothing to create.",
    },
    Rule {
        id: "SM014",
        path: "spec.gracefulShutdownTimeout",
        requirement: AT_MOST_A_DAY,
        examples: BOUNDED_TIMEOUTS,
        why: "A shutdown that takes longer is probably stuck.",
    },
    Rule {
        id: "SM015",
        path: "spec.nodeDrainTimeout",
        requirement: AT_MOST_A_DAY,
        examples: BOUNDED_TIMEOUTS,
        why: "A shutdown that takes longer is probably stuck.",
    },
    Rule {
        id: "SM016",
        path: "spec.clusterName",
        requirement: CLUSTER_NAME,
        examples: Examples::Text {
            accepts: &["prod", "Prod-1.eu_west"],
            rejects: &[
                "-prod",
                "prod/1",
                "prod cluster",
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl",
            ],
        },
        why: "The name is used as a label value.",
    },
    Rule {
        id: "SM017",
        path: "spec.clusterName",
        requirement: SAME_CLUSTER,
        examples: Examples::Json {
            accepts: &[r#"{"from": "prod", "to": "prod"}"#],
            rejects: &[r#"{"from": "prod", "to": "staging"}"#],
        },
        why: "A Machine cannot move from one Cluster to another.",
    },
    Rule {
        id: "SM018",
        path: "spec.schedule.hoursOfDay[]",
        requirement: HOURS_OF_A_DAY,
        examples: Examples::Text {
            accepts: &["0-23", "00", "23", "20-23"],
            rejects: &["24", "9-24", "99", "9,30"],
        },
        why: "There is no hour 24: the end of a range is included, so `18-23` ends at midnight.",
    },
    Rule {
        id: "SM019",
        path: "spec.schedule.cron",
        requirement: FIVE_FIELDS,
        examples: Examples::Text {
            accepts: &["0 9-17 * * 1-5", "*/5 * * * *", "0  9 * * *"],
            rejects: &["", "@daily", "0 9 * *", "0 0 9 * * 1-5", " 0 9 * * *"],
        },
        why: "Seconds, years and names such as `@daily` are not supported.",
    },
    Rule {
        id: "SM020",
        path: "spec.schedule.cron",
        requirement: CRON_MINUTES,
        examples: Examples::Text {
            accepts: &["0 * * * *", "*/15 * * * *", "0-59/5,7 * * * *"],
            rejects: &[
                "60 * * * *",
                "a * * * *",
                "5/15 * * * *",
                "*/0 * * * *",
                ", * * * *",
            ],
        },
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM021",
        path: "spec.schedule.cron",
        requirement: CRON_HOURS,
        examples: Examples::Text {
            accepts: &["0 0-23 * * *", "0 09,17 * * *"],
            rejects: &["0 24 * * *", "0 9-24 * * *", "0 -9 * * *"],
        },
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM022",
        path: "spec.schedule.cron",
        requirement: CRON_DAYS_OF_MONTH,
        examples: Examples::Text {
            accepts: &["0 9 1,31 * *"],
            rejects: &["0 9 0 * *", "0 9 32 * *", "0 9 L * *"],
        },
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM023",
        path: "spec.schedule.cron",
        requirement: CRON_MONTHS,
        examples: Examples::Text {
            accepts: &["0 9 * 1-12 *", "0 9 * JAN,mar-Jun *"],
            rejects: &["0 9 * 0 *", "0 9 * 13 *", "0 9 * january *"],
        },
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM024",
        path: "spec.schedule.cron",
        requirement: CRON_DAYS_OF_WEEK,
        examples: Examples::Text {
            accepts: &["0 9 * * 0-7", "0 9 * * mon-FRI"],
            rejects: &["0 9 * * 8", "0 9 * * monday", "0 9 * * 5#2"],
        },
        why: "A field that never matches means that no window ever opens.",
    },
    Rule {
        id: "SM025",
        path: "spec.schedule.duration",
        requirement: DURATION,
        examples: WINDOW_LENGTHS,
        why: "It is the length of the window that each firing opens.",
    },
    Rule {
        id: "SM026",
        path: "spec.schedule.duration",
        requirement: A_FIRING,
        examples: BOUNDED_WINDOW_LENGTHS,
        why: "A window of less than a minute ends before a machine is ready; one of more than a \
              week is never closed.",
    },
    Rule {
        id: "SM027",
        path: "spec.schedule",
        requirement: DURATION_ONLY_WITH_CRON,
        examples: Examples::Json {
            accepts: &[
                r#"{"cron": "0 9 * * *", "duration": "8h"}"#,
                r#"{"daysOfWeek": ["mon"], "hoursOfDay": ["9"]}"#,
            ],
            rejects: &[
                r#"{"daysOfWeek": ["mon"], "hoursOfDay": ["9"], "duration": "8h"}"#,
            ],
        },
        why: "hoursOfDay already determines the length of the window.",
    },
    Rule {
        id: "SM028",
        path: "spec.schedule.timezone",
        requirement: ZONE_NAME,
        examples: Examples::Text {
            accepts: &[
                "UTC",
                "Europe/Zurich",
                "America/Port-au-Prince",
                "Etc/GMT+5",
            ],
            rejects: &["", "../etc/passwd", "Europe Zurich", "+02:00"],
        },
        why: "Whether the zone exists is checked by the operator, which has the tz database.",
    },
    Rule {
        id: "SM029",
        path: "spec.bootstrapSpec.apiVersion",
        requirement: VERSION,
        examples: Examples::Text {
            accepts: &[
                "bootstrap.cluster.x-k8s.io/v1",
                "bootstrap.cluster.x-k8s.io/v1beta2",
                "k0smotron.io/v2alpha1",
            ],
            rejects: &[
                "bootstrap.cluster.x-k8s.io/",
                "bootstrap.cluster.x-k8s.io/1",
                "bootstrap.cluster.x-k8s.io/v0",
                "bootstrap.cluster.x-k8s.io/v1/x",
                "bootstrap.cluster.x-k8s.io/../../../api/v1/namespaces",
            ],
        },
        why: "Group and version become part of a URL.",
    },
    Rule {
        id: "SM030",
        path: "spec.bootstrapSpec.kind",
        requirement: KIND,
        examples: Examples::Text {
            accepts: &["K0sWorkerConfig"],
            rejects: &["k0s", "Foo/Bar", "Foo-Bar", "Foo Bar"],
        },
        why: "These are the kinds that Kubernetes allows.",
    },
    Rule {
        id: "SM031",
        path: "spec.bootstrapSpec.kind",
        requirement: KIND_OF_ONE_MACHINE,
        examples: Examples::Text {
            accepts: &["K0sWorkerConfig"],
            rejects: &[
                "K0sWorkerConfigTemplate",
                "AWSCluster",
                "RemoteMachineList",
                "AWSClusterStaticIdentity",
            ],
        },
        why: "Objects that are shared by several machines must not be created and deleted with \
              one of them.",
    },
    Rule {
        id: "SM032",
        path: "spec.infrastructureSpec.apiVersion",
        requirement: VERSION,
        examples: Examples::Text {
            accepts: &[
                "infrastructure.cluster.x-k8s.io/v1",
                "infrastructure.cluster.x-k8s.io/v1beta2",
                "k0smotron.io/v2alpha1",
            ],
            rejects: &[
                "infrastructure.cluster.x-k8s.io/",
                "infrastructure.cluster.x-k8s.io/1",
                "infrastructure.cluster.x-k8s.io/v0",
                "infrastructure.cluster.x-k8s.io/v1/x",
                "infrastructure.cluster.x-k8s.io/../../../api/v1/namespaces",
            ],
        },
        why: "Group and version become part of a URL.",
    },
    Rule {
        id: "SM033",
        path: "spec.infrastructureSpec.kind",
        requirement: KIND,
        examples: Examples::Text {
            accepts: &["RemoteMachine"],
            rejects: &["k0s", "Foo/Bar", "Foo-Bar", "Foo Bar"],
        },
        why: "These are the kinds that Kubernetes allows.",
    },
    Rule {
        id: "SM034",
        path: "spec.infrastructureSpec.kind",
        requirement: KIND_OF_ONE_MACHINE,
        examples: Examples::Text {
            accepts: &["RemoteMachine"],
            rejects: &[
                "RemoteMachineTemplate",
                "AWSCluster",
                "RemoteMachineList",
                "AWSClusterStaticIdentity",
            ],
        },
        why: "Objects that are shared by several machines must not be created and deleted with \
              one of them.",
    },
    Rule {
        id: "SM035",
        path: "spec.bootstrapSpec.namespace",
        requirement: OWN_NAMESPACE,
        examples: NAMESPACES,
        why: "A user of one namespace must not create objects in another.",
    },
    Rule {
        id: "SM036",
        path: "spec.infrastructureSpec.namespace",
        requirement: OWN_NAMESPACE,
        examples: NAMESPACES,
        why: "A user of one namespace must not create objects in another.",
    },
    Rule {
        id: "SM037",
        path: "spec.machineTemplate.labels",
        requirement: QUALIFIED_KEYS,
        examples: KEYS,
        why: "The API server would reject the Machine.",
    },
    Rule {
        id: "SM038",
        path: "spec.machineTemplate.labels",
        requirement: NO_RESERVED_KEYS,
        examples: KEYS_OF_OTHERS,
        why: "With such a key the Machine could appear to belong to another owner, or its drain \
              could be skipped.",
    },
    Rule {
        id: "SM039",
        path: "spec.machineTemplate.labels",
        requirement: LABEL_VALUES,
        examples: VALUES_OF_LABELS,
        why: "The API server would reject the Machine.",
    },
    Rule {
        id: "SM040",
        path: "spec.machineTemplate.annotations",
        requirement: QUALIFIED_KEYS,
        examples: KEYS,
        why: "The API server would reject the Machine.",
    },
    Rule {
        id: "SM041",
        path: "spec.machineTemplate.annotations",
        requirement: NO_RESERVED_KEYS,
        examples: KEYS_OF_OTHERS,
        why: "With such a key the Machine could appear to belong to another owner, or its drain \
              could be skipped.",
    },
    Rule {
        id: "SM042",
        path: "spec.nodeTaints[].key",
        requirement: QUALIFIED_NAME,
        examples: Examples::Text {
            accepts: &["workload", "gpu_type", "example.com/dedicated"],
            rejects: &[
                "",
                "work load",
                "/x",
                "Example.com/x",
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl",
            ],
        },
        why: "The API server would reject the taint.",
    },
    Rule {
        id: "SM043",
        path: "spec.nodeTaints[].key",
        requirement: NO_RESERVED_TAINT,
        examples: Examples::Text {
            accepts: &["example.com/x", "not-kubernetes.io/x"],
            rejects: &[
                "5spot.finos.org/x",
                "kubernetes.io/x",
                "node.kubernetes.io/unreachable",
                "node-role.kubernetes.io/control-plane",
            ],
        },
        why: "Kubernetes' own controllers set and remove taints with these prefixes.",
    },
    Rule {
        id: "SM044",
        path: "spec.nodeTaints[].value",
        requirement: LABEL_VALUE,
        examples: Examples::Text {
            accepts: &["", "batch", "a.b_c-d"],
            rejects: &["a b", "-a", "a."],
        },
        why: "The API server would reject the taint.",
    },
    Rule {
        id: "SM045",
        path: "spec.killIfCommands[]",
        requirement: NOT_BLANK,
        examples: Examples::Text {
            accepts: &["chrome", " x"],
            rejects: &["", " "],
        },
        why: "Every process would match.",
    },
    Rule {
        id: "SM046",
        path: "metadata.name",
        requirement: NAME.only_in_policy(),
        examples: Examples::Text {
            accepts: &["worker", "5spot-1"],
            rejects: &[
                "Worker",
                "a.b",
                "-a",
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl",
            ],
        },
        why: "The name is used as a label value and as the name of a Node.",
    },
    Rule {
        id: "SM047",
        path: "spec.schedule",
        requirement: NO_OTHER_FORM,
        examples: Examples::Json {
            accepts: &[
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}]}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "daysOfWeek": [], "hoursOfDay": []}"#,
            ],
            rejects: &[
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "cron": "0 9 * * *"}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "duration": "8h"}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "daysOfWeek": ["mon"], "hoursOfDay": ["9"]}"#,
                r#"{"windows": [{"name": "night", "start": "19:00", "end": "07:30"}], "hoursOfDay": ["9"]}"#,
            ],
        },
        why: "Two descriptions of one schedule could contradict each other.",
    },
    Rule {
        id: "SM048",
        path: "spec.machineTemplate.version",
        requirement: KUBERNETES_VERSION,
        examples: Examples::Text {
            accepts: &["v1.31.2", "1.31.2", "v1.30.0+k0s.0", "v1.32.0-rc.1"],
            rejects: &["", "latest", "v1.31", "v1.31.x", "1.31.2.3", "V1.31.2"],
        },
        why: "Cluster API rejects a Machine with another version, and kubeadm cannot join with it.",
    },
    Rule {
        id: "SM049",
        path: "spec.machineTemplate.failureDomain",
        requirement: not_empty("must not be empty; omit it to let the provider choose"),
        examples: Examples::Text {
            accepts: &["zone-1"],
            rejects: &[""],
        },
        why: "Cluster API rejects a Machine with an empty failure domain.",
    },
    Rule {
        id: "SM050",
        path: "spec.machineTemplate.annotations",
        requirement: BOUNDED_SIZE,
        examples: SIZES,
        why: "The API server rejects a Machine whose annotations exceed a total size, after its \
              other objects were created.",
    },
    Rule {
        id: "SM051",
        path: "spec",
        requirement: TWO_KINDS,
        examples: Examples::Json {
            accepts: &[
                r#"{"bootstrapSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "K0sWorkerConfig", "spec": {}}, "infrastructureSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "spec": {}}}"#,
            ],
            rejects: &[
                r#"{"bootstrapSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "spec": {}}, "infrastructureSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "spec": {}}}"#,
                r#"{"bootstrapSpec": {"apiVersion": "k0smotron.io/v1beta1", "kind": "RemoteMachine", "spec": {}}, "infrastructureSpec": {"apiVersion": "k0smotron.io/v1beta2", "kind": "RemoteMachine", "spec": {}}}"#,
            ],
        },
        why: "Both objects have the name of the ScheduledMachine, so one object would have both \
              roles.",
    },
    Rule {
        id: "SM052",
        path: "spec.schedule.windows[].name",
        requirement: NAME,
        examples: NAMES,
        why: "The name is shown in previews, events and messages.",
    },
    Rule {
        id: "SM053",
        path: "spec.schedule.windows[].days",
        requirement: WINDOW_DAYS,
        examples: Examples::Json {
            accepts: &[r"[]", r#"["mon-fri"]"#, r#"["mon-wed,fri", "sun"]"#],
            rejects: &[r#"[""]"#, r#"["mon", "Tue"]"#, r#"["1-5"]"#],
        },
        why: "Days are lower case; a range may cross the end of the week.",
    },
    Rule {
        id: "SM054",
        path: "spec.schedule.windows[].start",
        requirement: TIME_OF_DAY,
        examples: TIMES_OF_DAY,
        why: "It is a local time in the time zone of the schedule.",
    },
    Rule {
        id: "SM055",
        path: "spec.schedule.windows[].end",
        requirement: TIME_OF_DAY,
        examples: TIMES_OF_DAY,
        why: "For midnight write '00:00': an end that is not after the start is on the next day.",
    },
    Rule {
        id: "SM056",
        path: "spec.schedule.windows[]",
        requirement: ONE_END,
        examples: Examples::Json {
            accepts: &[
                r#"{"name": "night", "start": "19:00", "end": "07:30"}"#,
                r#"{"name": "weekend", "start": "07:30", "duration": "48h"}"#,
            ],
            rejects: &[
                r#"{"name": "night", "start": "19:00"}"#,
                r#"{"name": "night", "start": "19:00", "end": "07:30", "duration": "1h"}"#,
            ],
        },
        why: "Without either the window never ends; both could contradict each other.",
    },
    Rule {
        id: "SM057",
        path: "spec.schedule.windows[].duration",
        requirement: DURATION,
        examples: WINDOW_LENGTHS,
        why: "It is the length of the window.",
    },
    Rule {
        id: "SM058",
        path: "spec.schedule.windows[].duration",
        requirement: A_FIRING,
        examples: BOUNDED_WINDOW_LENGTHS,
        why: "A window of less than a minute ends before a machine is ready; one of more than a week is never closed.",
    },
    Rule {
        id: "SM059",
        path: "spec.schedule.exceptions[].name",
        requirement: NAME,
        examples: NAMES,
        why: "The name is shown in previews, events and messages.",
    },
    Rule {
        id: "SM060",
        path: "spec.schedule.exceptions[]",
        requirement: CALENDAR_OR_DATES,
        examples: Examples::Json {
            accepts: &[
                r#"{"name": "e", "action": "Stop", "calendarRef": {"name": "zurich"}}"#,
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24", "endDate": "2026-12-24"}"#,
            ],
            rejects: &[
                r#"{"name": "e", "action": "Stop"}"#,
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24"}"#,
                r#"{"name": "e", "action": "Stop", "calendarRef": {"name": "zurich"}, "endDate": "2026-12-24"}"#,
            ],
        },
        why: "An exception needs dates, from exactly one source.",
    },
    Rule {
        id: "SM061",
        path: "spec.schedule.exceptions[].startDate",
        requirement: A_DATE,
        examples: START_DATES,
        why: "It is a local date in the time zone of the schedule.",
    },
    Rule {
        id: "SM062",
        path: "spec.schedule.exceptions[].endDate",
        requirement: A_DATE,
        examples: END_DATES,
        why: "It is a local date in the time zone of the schedule.",
    },
    Rule {
        id: "SM063",
        path: "spec.schedule.exceptions[]",
        requirement: DATES_IN_ORDER,
        examples: Examples::Json {
            accepts: &[
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24", "endDate": "2027-01-02"}"#,
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24", "endDate": "2026-12-24"}"#,
            ],
            rejects: &[
                r#"{"name": "e", "action": "Stop", "startDate": "2026-12-24", "endDate": "2026-12-23"}"#,
            ],
        },
        why: "Such an exception has no dates.",
    },
    Rule {
        id: "SM064",
        path: "spec.schedule.exceptions[].calendarRef.name",
        requirement: OBJECT_NAME,
        examples: Examples::Text {
            accepts: &["zurich", "holidays.zurich"],
            rejects: &["", "Zurich", "-a", "a/b"],
        },
        why: "No object can have another name.",
    },
    Rule {
        id: "SM065",
        path: "spec.provisioning.leadTime",
        requirement: DURATION,
        examples: Examples::Text {
            accepts: &["0s", "10m"],
            rejects: &["", "10", "-5m"],
        },
        why: "An invalid lead time would count as zero.",
    },
    Rule {
        id: "SM066",
        path: "spec.provisioning.leadTime",
        requirement: AT_MOST_TWO_HOURS,
        examples: Examples::Text {
            accepts: &["0s", "2h", "120m", "7200s"],
            rejects: &["3h", "121m", "7201s", "99999999999999999999h"],
        },
        why: "A machine that takes longer is probably stuck.",
    },
    Rule {
        id: "SM067",
        path: "spec.provisioning.timeout",
        requirement: DURATION,
        examples: Examples::Text {
            accepts: &["20m", "1h"],
            rejects: &["", "20", "-5m"],
        },
        why: "An invalid timeout would never expire.",
    },
    Rule {
        id: "SM068",
        path: "spec.provisioning.timeout",
        requirement: A_MINUTE_TO_A_DAY,
        examples: Examples::Text {
            accepts: &["1m", "60s", "24h"],
            rejects: &["0s", "59s", "25h", "99999999999999999999h"],
        },
        why: "No machine is ready within a minute, and a failure must be reported within a day.",
    },
    Rule {
        id: "SM069",
        path: "spec.provisioning.minimumRun",
        requirement: DURATION,
        examples: Examples::Text {
            accepts: &["0s", "30m"],
            rejects: &["", "30", "-5m"],
        },
        why: "An invalid minimum would count as zero.",
    },
    Rule {
        id: "SM070",
        path: "spec.provisioning.minimumRun",
        requirement: AT_MOST_A_DAY,
        examples: Examples::Text {
            accepts: &["0s", "24h"],
            rejects: &["25h", "99999999999999999999h"],
        },
        why: "With a longer minimum, a window of one day would never get a machine.",
    },
    Rule {
        id: "SM071",
        path: "spec.shutdown.lastCall",
        requirement: DURATION,
        examples: Examples::Text {
            accepts: &["0s", "30m"],
            rejects: &["", "30", "-5m"],
        },
        why: "An invalid last call would count as zero.",
    },
    Rule {
        id: "SM072",
        path: "spec.shutdown.lastCall",
        requirement: AT_MOST_A_DAY,
        examples: Examples::Text {
            accepts: &["0s", "24h"],
            rejects: &["25h", "99999999999999999999h"],
        },
        why: "With a longer last call, a Node with daily windows would always be tainted.",
    },
    Rule {
        id: "SM087",
        path: "spec.bootstrapSpec.metadata",
        requirement: NO_NAME,
        examples: NO_NAME_IN_METADATA,
        why: "Another name could be that of an object of another machine.",
    },
    Rule {
        id: "SM088",
        path: "spec.bootstrapSpec.metadata",
        requirement: NO_NAMESPACE,
        examples: NO_NAMESPACE_IN_METADATA,
        why: "A user of one namespace must not create objects in another.",
    },
    Rule {
        id: "SM089",
        path: "spec.bootstrapSpec.metadata.labels",
        requirement: QUALIFIED_KEYS,
        examples: KEYS,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM090",
        path: "spec.bootstrapSpec.metadata.labels",
        requirement: NO_RESERVED_KEYS,
        examples: KEYS_OF_OTHERS,
        why: "With such a key the object could appear to belong to another owner.",
    },
    Rule {
        id: "SM091",
        path: "spec.bootstrapSpec.metadata.labels",
        requirement: LABEL_VALUES,
        examples: VALUES_OF_LABELS,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM092",
        path: "spec.bootstrapSpec.metadata.annotations",
        requirement: QUALIFIED_KEYS,
        examples: KEYS,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM093",
        path: "spec.bootstrapSpec.metadata.annotations",
        requirement: NO_RESERVED_KEYS,
        examples: KEYS_OF_OTHERS,
        why: "With such a key the object could appear to belong to another owner.",
    },
    Rule {
        id: "SM094",
        path: "spec.bootstrapSpec.metadata.annotations",
        requirement: BOUNDED_SIZE,
        examples: SIZES,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM095",
        path: "spec.infrastructureSpec.metadata",
        requirement: NO_NAME,
        examples: NO_NAME_IN_METADATA,
        why: "Another name could be that of an object of another machine.",
    },
    Rule {
        id: "SM096",
        path: "spec.infrastructureSpec.metadata",
        requirement: NO_NAMESPACE,
        examples: NO_NAMESPACE_IN_METADATA,
        why: "A user of one namespace must not create objects in another.",
    },
    Rule {
        id: "SM097",
        path: "spec.infrastructureSpec.metadata.labels",
        requirement: QUALIFIED_KEYS,
        examples: KEYS,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM098",
        path: "spec.infrastructureSpec.metadata.labels",
        requirement: NO_RESERVED_KEYS,
        examples: KEYS_OF_OTHERS,
        why: "With such a key the object could appear to belong to another owner.",
    },
    Rule {
        id: "SM099",
        path: "spec.infrastructureSpec.metadata.labels",
        requirement: LABEL_VALUES,
        examples: VALUES_OF_LABELS,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM100",
        path: "spec.infrastructureSpec.metadata.annotations",
        requirement: QUALIFIED_KEYS,
        examples: KEYS,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM101",
        path: "spec.infrastructureSpec.metadata.annotations",
        requirement: NO_RESERVED_KEYS,
        examples: KEYS_OF_OTHERS,
        why: "With such a key the object could appear to belong to another owner.",
    },
    Rule {
        id: "SM102",
        path: "spec.infrastructureSpec.metadata.annotations",
        requirement: BOUNDED_SIZE,
        examples: SIZES,
        why: "The API server would reject the object.",
    },
    Rule {
        id: "SM103",
        path: "spec",
        requirement: NO_KATA,
        examples: Examples::Json {
            accepts: &["{}", r#"{"priority": 7}"#],
            rejects: &[
                r#"{"kata": {}}"#,
                r#"{"kata": {"kind": "ConfigMap", "name": "kata", "restartService": "containerd"}}"#,
            ],
        },
        why: "It would give whoever may create a ScheduledMachine root on the host.",
    },
    Rule {
        id: "SM104",
        path: "spec.enforcement",
        requirement: NOT_AUDITED_WHILE_IT_EXISTS,
        examples: Examples::Json {
            accepts: &[
                r#"{"from": "Enforce", "to": "Enforce"}"#,
                r#"{"from": "Audit", "to": "Audit"}"#,
                r#"{"from": "Audit", "to": "Enforce"}"#,
            ],
            rejects: &[r#"{"from": "Enforce", "to": "Audit"}"#],
        },
        why: "In audit mode nothing is removed, not by the schedule, the kill switch, a reclaim or a deletion either.",
    },
    Rule {
        id: "SM105",
        path: "spec.schedule",
        requirement: NO_FORM_BESIDE_REFERENCE,
        examples: Examples::Json {
            accepts: &[
                r#"{"apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "TimeBasedSpotSchedule", "name": "office"}"#,
                r#"{"apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "TimeBasedSpotSchedule", "name": "office", "daysOfWeek": [], "timezone": "Europe/Zurich", "exceptions": []}"#,
            ],
            rejects: &[
                r#"{"apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "TimeBasedSpotSchedule", "name": "office", "duration": "8h"}"#,
                r#"{"apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "TimeBasedSpotSchedule", "name": "office", "daysOfWeek": ["mon"], "hoursOfDay": ["9"]}"#,
            ],
        },
        why: "Two descriptions of one schedule could contradict each other.",
    },
    Rule {
        id: "SM106",
        path: "spec.schedule",
        requirement: WHOLE_REFERENCE,
        examples: Examples::Json {
            accepts: &[
                r#"{"apiVersion": "spotschedules.5spot.finos.org/v1alpha1", "kind": "TimeBasedSpotSchedule", "name": "office"}"#,
            ],
            rejects: &[
                r#"{"kind": "TimeBasedSpotSchedule", "name": "office"}"#,
                r#"{"daysOfWeek": ["mon"], "hoursOfDay": ["9"], "name": "office"}"#,
            ],
        },
        why: "Without one of them no object is named.",
    },
    Rule {
        id: "SM107",
        path: "spec.schedule.apiVersion",
        requirement: SPOT_GROUP,
        examples: Examples::Text {
            accepts: &[
                "spotschedules.5spot.finos.org/v1alpha1",
                "spotschedules.5spot.finos.org/v2",
            ],
            rejects: &[
                "",
                "v1",
                "5spot.finos.org/v1alpha1",
                "spotschedules.5spot.finos.org/",
            ],
        },
        why: "Only objects of this group are schedules.",
    },
    Rule {
        id: "SM108",
        path: "spec.schedule.kind",
        requirement: SCHEDULE_KIND,
        examples: Examples::Text {
            accepts: &[
                "TimeBasedSpotSchedule",
                "CapitalMarketsSchedule",
                "ManualSchedule",
            ],
            rejects: &["", "timebasedspotschedule", "Manual.Schedule", "A/B"],
        },
        why: "The operator looks for the kind in the API server's discovery.",
    },
    Rule {
        id: "SM109",
        path: "spec.schedule.name",
        requirement: SCHEDULE_NAME,
        examples: Examples::Text {
            accepts: &["office", "office.zurich"],
            rejects: &["", "Office", "-a", "a/b"],
        },
        why: "No object can have another name.",
    },
    Rule {
        id: "SM120",
        path: "spec.reclaim.commands[]",
        requirement: NOT_BLANK,
        examples: Examples::Text {
            accepts: &["chrome", " x"],
            rejects: &["", " "],
        },
        why: "Every process would match.",
    },
    Rule {
        id: "SM121",
        path: "spec",
        requirement: COMMANDS_ONCE,
        examples: Examples::Json {
            accepts: &[
                r#"{"killIfCommands": ["steam"], "reclaim": {"return": {"after": "30m"}}}"#,
                r#"{"reclaim": {"commands": ["steam"]}}"#,
            ],
            rejects: &[
                r#"{"killIfCommands": ["steam"], "reclaim": {"commands": ["steam"]}}"#,
                r#"{"killIfCommands": [], "reclaim": {"commands": []}}"#,
            ],
        },
        why: "Two lists of one thing could contradict each other.",
    },
    Rule {
        id: "SM122",
        path: "spec.reclaim.return.after",
        requirement: DURATION,
        examples: Examples::Text {
            accepts: &["30m", "1h"],
            rejects: &["", "30", "-5m"],
        },
        why: "The machine would never return before its override ends.",
    },
    Rule {
        id: "SM123",
        path: "spec.reclaim.return.after",
        requirement: A_MINUTE_TO_A_DAY,
        examples: Examples::Text {
            accepts: &["1m", "24h"],
            rejects: &["59s", "25h", "99999999999999999999h"],
        },
        why: "Someone who leaves the desk for a moment would lose the host, or it would never return.",
    },
    Rule {
        id: "SM124",
        path: "spec.clusterName",
        requirement: CLUSTER_OR_CLASS,
        examples: Examples::Json {
            accepts: &["{}", BY_CLASS],
            rejects: &[r#"{"clusterName": null}"#],
        },
        why: "Without a class nothing else says which Cluster the machine joins.",
    },
    Rule {
        id: "SM125",
        path: "spec.bootstrapSpec",
        requirement: BOOTSTRAP_OR_CLASS,
        examples: Examples::Json {
            accepts: &["{}", BY_CLASS],
            rejects: &[r#"{"bootstrapSpec": null}"#],
        },
        why: "The machine is made from it.",
    },
    Rule {
        id: "SM126",
        path: "spec.infrastructureSpec",
        requirement: INFRASTRUCTURE_OR_CLASS,
        examples: Examples::Json {
            accepts: &["{}", BY_CLASS],
            rejects: &[r#"{"infrastructureSpec": null}"#],
        },
        why: "The machine is made from it.",
    },
    Rule {
        id: "SM127",
        path: "spec",
        requirement: NO_OBJECT_BESIDE_CLASS,
        examples: Examples::Json {
            accepts: &["{}", BY_CLASS],
            rejects: &[
                r#"{"classRef": {"name": "desks"}}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null}"#,
                r#"{"classRef": {"name": "desks"}, "infrastructureSpec": null}"#,
            ],
        },
        why: "Two descriptions of one machine could contradict each other.",
    },
    Rule {
        id: "SM128",
        path: "spec",
        requirement: NO_FIELD_OF_CLASS,
        examples: Examples::Json {
            accepts: &["{}", BY_CLASS],
            rejects: &[
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "gracefulShutdownTimeout": "1h"}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "nodeDrainTimeout": "1h"}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "machineTemplate": {"labels": {"team": "a"}}}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "machineTemplate": {"version": "v1.31.2"}}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "nodeTaints": [{"key": "a", "effect": "NoSchedule"}]}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "provisioning": {"leadTime": "10m"}}"#,
                r#"{"classRef": {"name": "desks"}, "bootstrapSpec": null, "infrastructureSpec": null, "shutdown": {"lastCall": "10m"}}"#,
            ],
        },
        why: "The platform team decides it for all machines of the class.",
    },
    Rule {
        id: "SM129",
        path: "spec.classRef.name",
        requirement: SCHEDULE_NAME,
        examples: Examples::Text {
            accepts: &["desks", "gpu.zurich"],
            rejects: &["", "Desks", "-a", "a/b"],
        },
        why: "No object can have another name.",
    },
    Rule {
        id: "SM846",
        path: "spec.classRef.host",
        requirement: NAME,
        examples: Examples::Text {
            accepts: &["desk-7", "0"],
            rejects: &["", "Desk-7", "desk.7", "-7"],
        },
        why: "No host of a class can have another name.",
    },
];

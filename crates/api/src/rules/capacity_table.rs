//! The rules about a ScheduledCapacity: those about an inline schedule and a reference, and its
//! own.

use std::sync::LazyLock;

use serde_json::Value;

use super::node::{is_set, text};
use super::pattern::{is_match, matching, pattern};
use super::reference::SCHEDULE_NAME;
use super::requirement::{AT_MOST_A_DAY, AT_MOST_TWO_HOURS, DURATION, Requirement};
use super::{Examples, RULES, Rule};
use crate::scheduled_capacity::{FieldPath, is_scalar};

/// What is added to the number of a rule about the schedule of a machine: SM004 is SM504 here.
const OFFSET: u16 = 500;

/// The syntax of a path: [`FieldPath`](crate::scheduled_capacity::FieldPath) in a regular
/// expression. Where all letters are printable, `[^ !#-~]` is the quotation mark.
const PATH: Requirement = Requirement::new(
    "self.matches('^[ -~]+$') && self.matches('^[A-Za-z_][A-Za-z0-9_-]*\
    ([.][A-Za-z_][A-Za-z0-9_-]*|[[][^ !#-~][ !#-~]+[^ !#-~][]]\
    |[[][A-Za-z][A-Za-z0-9]*=[ !#-Z^-~]+[]]|[[](0|[1-9][0-9]{0,3})[]]){0,9}$') \
    && !self.matches('[[][A-Za-z][A-Za-z0-9]*=[ !#-Z^-~]+[]]$')",
    |node, _| text(node, |path| path.parse::<FieldPath>().is_ok()),
    "must be a path such as replicas, limits[\"cpu\"] or groups[name=a].quota: at most ten steps, \
    the last one not [name=value]",
).examples(Examples::Text {
    accepts: &[
        "replicas",
        "hard[\"requests.cpu\"]",
        "topology.workers.machineDeployments[name=md-0].replicas",
        "a[0]",
        "a.b.c.d.e.f.g.h.i.j",
    ],
    rejects: &[
        "",
        ".replicas",
        "a..b",
        "a b",
        "a[\"\"]",
        "a[01]",
        "a[name=]",
        "a[name=md-0]",
        "a.b.c.d.e.f.g.h.i.j.k",
    ],
});

const VALUE: Requirement = Requirement::new(
    "type(self) == int || type(self) == bool || type(self) == string && self.size() <= 253",
    |node, _| is_scalar(node),
    "must be an integer, a boolean or a string of at most 253 characters",
)
.only_in_policy().examples(Examples::Json {
    accepts: &["3", "-1", "true", "\"500m\"", "\"\""],
    rejects: &["1.5", "[3]", "{\"value\": 3}"],
});

const CAPACITY_OR_FIELDS: Requirement = Requirement::new(
    "has(self.capacity) != has(self.fields)",
    |node, _| is_set(node, "capacity") != is_set(node, "fields"),
    "exactly one of capacity and fields must be set",
)
.reading(&["capacity", "fields"]).examples(Examples::Json {
            accepts: &["{}"],
            rejects: &[
                r#"{"fields": [{"field": "paused", "activeValue": false, "inactiveValue": true}]}"#,
            ],
        });

const NAME_OR_TEMPLATE: Requirement = Requirement::new(
    "has(self.target.name) != has(self.template)",
    |node, _| is_set(&node["target"], "name") != is_set(node, "template"),
    "exactly one of target.name and template must be set",
)
.reading(&["target.name", "template"])
.examples(Examples::Json {
    accepts: &[
        r#"{"target": {"apiVersion": "apps/v1", "kind": "Deployment"}, "template": {}}"#,
    ],
    rejects: &[
        r#"{"target": {"apiVersion": "apps/v1", "kind": "Deployment"}}"#,
        r#"{"template": {}}"#,
    ],
});

const SCALE: Requirement = Requirement::new(
    "self == 'scale'",
    |node, _| text(node, |text| text == "scale"),
    "must be 'scale', or absent",
)
.examples(Examples::Text {
    accepts: &["scale"],
    rejects: &["", "status", "Scale"],
});

const SCALED_FIELD: Requirement = Requirement::new(
    "!has(self.target.subresource) || self.target.subresource != 'scale' || !has(self.template) \
    && (!has(self.capacity) || self.capacity.field == 'replicas') \
    && (!has(self.fields) || self.fields.all(it, it.field == 'replicas'))",
    scales_only_replicas,
    "through the subresource scale only the field replicas of an object that exists is written",
)
.reading(&["target.subresource", "template", "capacity", "fields"]).examples(Examples::Json {
            accepts: &[
                r#"{"target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                    "subresource": "scale"}}"#,
            ],
            rejects: &[
                r#"{"target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                    "subresource": "scale"}, "capacity": {"field": "paused", "activeValue": true}}"#,
                r#"{"target": {"apiVersion": "apps/v1", "kind": "Deployment",
                    "subresource": "scale"}, "template": {}}"#,
            ],
        });

fn scales_only_replicas(node: &Value, _: &Value) -> bool {
    let is_replicas = |written: &Value| text(&written["field"], |it| it == "replicas");
    let mut fields = node["fields"].as_array().into_iter().flatten();
    node["target"]["subresource"] != "scale"
        || !is_set(node, "template")
            && is_replicas(&node["capacity"])
            && fields.all(is_replicas)
}

const SAME_TARGET: Requirement = Requirement::of_change(
    "self.spec.target == oldSelf.spec.target",
    "target must not change; create another ScheduledCapacity",
).examples(Examples::Json {
            accepts: &[r#"{"from": {"enabled": true}, "to": {"enabled": false}}"#],
            rejects: &[
                r#"{"from": {"target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}},
                    "to": {"target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "b"}}}"#,
            ],
        });

const TARGET_VERSION: Requirement = matching!(
    "^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?\
    v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$",
    "must be group and version such as 'apps/v1', or 'v1' for the kinds of the core"
)
.examples(Examples::Text {
    accepts: &[
        "v1",
        "apps/v1",
        "karpenter.sh/v1",
        "cluster.x-k8s.io/v1beta1",
    ],
    rejects: &["", "apps", "apps/", "apps/v1/x", "Apps/v1", "apps/v0"],
});

const TARGET_KIND: Requirement = matching!(
    pattern!(kind),
    "must be 1 to 63 letters and digits, the first an upper-case letter"
)
.examples(Examples::Text {
    accepts: &["Deployment", "MachineDeployment"],
    rejects: &["", "deployments", "Machine-Deployment"],
});

const OWN: &[Rule] = &[
    Rule {
        id: "SM701",
        path: "spec",
        requirement: CAPACITY_OR_FIELDS,
        why: "`capacity` is the short form for one field.",
    },
    Rule {
        id: "SM702",
        path: "spec",
        requirement: NAME_OR_TEMPLATE,
        why: "The target is an object that exists, or one that is created.",
    },
    Rule {
        id: "SM703",
        path: "spec",
        requirement: SCALED_FIELD,
        why: "A Scale has no other field, and belongs to an object that exists.",
    },
    Rule {
        id: "SM704",
        path: "spec",
        requirement: SAME_TARGET,
        why: "The earlier target would keep its last value, and nobody would change it back.",
    },
    Rule {
        id: "SM705",
        path: "spec.target.apiVersion",
        requirement: TARGET_VERSION,
        why: "No API server serves another one.",
    },
    Rule {
        id: "SM706",
        path: "spec.target.kind",
        requirement: TARGET_KIND,
        why: "No kind has another name.",
    },
    Rule {
        id: "SM707",
        path: "spec.target.name",
        requirement: SCHEDULE_NAME,
        why: "No object can have another name.",
    },
    Rule {
        id: "SM708",
        path: "spec.target.subresource",
        requirement: SCALE,
        why: "No other subresource has a value that follows a schedule.",
    },
    Rule {
        id: "SM709",
        path: "spec.capacity.field",
        requirement: PATH,
        why: "A path that cannot be parsed names no field.",
    },
    Rule {
        id: "SM710",
        path: "spec.capacity.activeValue",
        requirement: VALUE,
        why: "Objects and lists would replace what other clients write in them.",
    },
    Rule {
        id: "SM711",
        path: "spec.capacity.inactiveValue",
        requirement: VALUE,
        why: "Objects and lists would replace what other clients write in them.",
    },
    Rule {
        id: "SM712",
        path: "spec.fields[].field",
        requirement: PATH,
        why: "A path that cannot be parsed names no field.",
    },
    Rule {
        id: "SM713",
        path: "spec.fields[].activeValue",
        requirement: VALUE,
        why: "Objects and lists would replace what other clients write in them.",
    },
    Rule {
        id: "SM714",
        path: "spec.fields[].inactiveValue",
        requirement: VALUE,
        why: "Objects and lists would replace what other clients write in them.",
    },
    Rule {
        id: "SM715",
        path: "spec.handback.drainedPath",
        requirement: PATH,
        why: "A path that cannot be parsed names no number.",
    },
    Rule {
        id: "SM716",
        path: "spec.handback.timeout",
        requirement: DURATION,
        why: "An invalid timeout would count as its default.",
    },
    Rule {
        id: "SM717",
        path: "spec.handback.timeout",
        requirement: AT_MOST_A_DAY,
        why: "The next window has begun by then.",
    },
    Rule {
        id: "SM718",
        path: "spec.leadTime",
        requirement: DURATION,
        why: "An invalid lead time would count as zero.",
    },
    Rule {
        id: "SM719",
        path: "spec.leadTime",
        requirement: AT_MOST_TWO_HOURS,
        why: "It is the lead time of machines, with the same bound.",
    },
    Rule {
        id: "SM720",
        path: "spec.nodeName",
        requirement: SCHEDULE_NAME,
        why: "No Node can have another name.",
    },
];

static TABLE: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let all = RULES.iter();
    let of_schedule = all.filter(|rule| rule.path.starts_with("spec.schedule"));
    let of_schedule = of_schedule.map(|rule| rule.renumbered(OFFSET));
    of_schedule.chain(OWN.iter().copied()).collect()
});

/// Every rule about a ScheduledCapacity: each rule about `spec.schedule` of a ScheduledMachine,
/// and its own.
pub fn capacity_rules() -> &'static [Rule] {
    &TABLE
}

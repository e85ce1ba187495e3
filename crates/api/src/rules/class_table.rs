//! The rules about a ScheduledMachineClass: those about the fields that it has in common with a
//! ScheduledMachine, and its own.

use std::sync::LazyLock;

use super::created::NO_NAMESPACE;
use super::node::text;
use super::pattern::pattern;
use super::requirement::{CLUSTER_NAME, DURATION, NAME, Requirement, lasting, lasts};
use super::schedule::ZONE_NAME;
use super::{Examples, RULES, Rule};

/// The fields that both have.
const COMMON: [&str; 9] = [
    "spec.bootstrapSpec",
    "spec.infrastructureSpec",
    "spec.machineTemplate",
    "spec.nodeTaints",
    "spec.gracefulShutdownTimeout",
    "spec.nodeDrainTimeout",
    "spec.provisioning",
    "spec.reclaim",
    "spec.shutdown",
];

/// The rule that the two objects differ in kind.
const TWO_KINDS: &str = "SM051";

/// What is added to the number of a rule about a machine: SM002 is SM802 here.
const OFFSET: u16 = 800;

const SOME_CLUSTER: Requirement = Requirement::new(
    "self.size() > 0",
    |node, _| node.as_array().is_none_or(|names| !names.is_empty()),
    "must name at least one Cluster",
)
.examples(Examples::Json {
    accepts: &[r#"["prod"]"#, r#"["prod", "staging"]"#],
    rejects: &["[]"],
});

const AT_MOST_HALF_AN_HOUR: Requirement =
    lasting!(at most "30m", of 4 digits).examples(Examples::Text {
        accepts: &["0s", "30m", "1800s"],
        rejects: &["31m", "1801s", "1h", "99999999999999999999h"],
    });
const A_MINUTE_TO_TWO_WEEKS: Requirement = lasting!(from "1m" to "336h", of 7 digits)
    .examples(Examples::Text {
        accepts: &["1m", "60s", "336h"],
        rejects: &["0s", "59s", "337h", "99999999999999999999h"],
    });

/// Nothing may hold a machine that must be gone by the end of its window.
const NOTHING_HELD_BY_AN_END: Requirement = Requirement::new(
    "!has(self.shutdown) || !has(self.shutdown.endPolicy) \
    || self.shutdown.endPolicy != 'CompleteByWindowEnd' \
    || !has(self.stopsPerMinute) && (!has(self.minimumActive) || self.minimumActive == 0)",
    |node, _| {
        let is_by_an_end = node["shutdown"]["endPolicy"] == "CompleteByWindowEnd";
        let minimum = node["minimumActive"].as_i64().unwrap_or(0);
        !is_by_an_end || node["stopsPerMinute"].is_null() && minimum == 0
    },
    "stopsPerMinute and minimumActive cannot hold machines whose shutdown.endPolicy is \
    CompleteByWindowEnd",
)
.reading(&["minimumActive", "shutdown.endPolicy", "stopsPerMinute"]).examples(Examples::Json {
            accepts: &[
                "{}",
                r#"{"stopsPerMinute": 5, "minimumActive": 3}"#,
                r#"{"shutdown": {"endPolicy": "StartAtWindowEnd"}, "stopsPerMinute": 5}"#,
                r#"{"shutdown": {"endPolicy": "CompleteByWindowEnd"}, "minimumActive": 0}"#,
                r#"{"shutdown": {"endPolicy": "CompleteByWindowEnd"}, "startsPerMinute": 5}"#,
            ],
            rejects: &[
                r#"{"shutdown": {"endPolicy": "CompleteByWindowEnd"}, "stopsPerMinute": 5}"#,
                r#"{"shutdown": {"endPolicy": "CompleteByWindowEnd"}, "minimumActive": 3}"#,
            ],
        });

const NAMESPACES: Examples = Examples::Json {
    accepts: &[r#"{"apiVersion": "k0smotron.io/v1beta1", "kind": "Worker", "spec": {}}"#],
    rejects: &[
        r#"{"apiVersion": "k0smotron.io/v1beta1", "kind": "Worker", "namespace": "default", "spec": {}}"#,
    ],
};

const OWN: [Rule; 11] = [
    Rule {
        id: "SM845",
        path: "spec.hosts[].name",
        requirement: NAME,
        why: "The claim of a host is named after it.",
    },
    Rule {
        id: "SM990",
        path: "spec",
        requirement: NOTHING_HELD_BY_AN_END,
        why: "A machine that waits for its turn to leave would not be gone by the end of its window.",
    },
    Rule {
        id: "SM991",
        path: "spec.clusterNames",
        requirement: SOME_CLUSTER,
        why: "The first one is joined by machines that name none.",
    },
    Rule {
        id: "SM992",
        path: "spec.clusterNames[]",
        requirement: CLUSTER_NAME,
        why: "The name is used as a label value.",
    },
    Rule {
        id: "SM993",
        path: "spec.bootstrapSpec",
        requirement: NO_NAMESPACE.examples(NAMESPACES),
        why: "Each object is in the namespace of its ScheduledMachine.",
    },
    Rule {
        id: "SM994",
        path: "spec.infrastructureSpec",
        requirement: NO_NAMESPACE.examples(NAMESPACES),
        why: "Each object is in the namespace of its ScheduledMachine.",
    },
    Rule {
        id: "SM995",
        path: "spec.timezone",
        requirement: ZONE_NAME,
        why: "Whether the zone exists is checked by the operator, which has the tz database.",
    },
    Rule {
        id: "SM996",
        path: "spec.limits.maxOverride",
        requirement: DURATION,
        why: "An invalid duration would limit nothing.",
    },
    Rule {
        id: "SM997",
        path: "spec.limits.maxOverride",
        requirement: A_MINUTE_TO_TWO_WEEKS,
        why: "No override lasts longer than 14 days.",
    },
    Rule {
        id: "SM998",
        path: "spec.jitter",
        requirement: DURATION,
        why: "An invalid jitter would count as zero.",
    },
    Rule {
        id: "SM999",
        path: "spec.jitter",
        requirement: AT_MOST_HALF_AN_HOUR,
        why: "Whoever has written a window expects its machine within it.",
    },
];

static TABLE: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let common = RULES.iter().filter(|rule| {
        let is_common = COMMON.iter().any(|field| rule.path.starts_with(field));
        let is_about_absence = rule.requirement.is_about_absence;
        let reads_namespace = rule.path.ends_with("Spec.namespace");
        rule.id == TWO_KINDS || is_common && !is_about_absence && !reads_namespace
    });
    let common = common.map(|rule| rule.renumbered(OFFSET));
    let mut all: Vec<Rule> = common.chain(OWN).collect();
    all.sort_by_key(|rule| rule.id);
    all
});

/// Every rule about a ScheduledMachineClass.
pub fn class_rules() -> &'static [Rule] {
    &TABLE
}

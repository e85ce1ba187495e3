//! The suggested and mandatory FlowSchemas and PriorityLevelConfigurations
//! (k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap). Requests are not queued by them.

use serde_json::{Value, json};

use crate::initial::object::Initial;
use crate::state::State;

const GROUP: &str = "flowcontrol.apiserver.k8s.io";
/// Who writes the specs, and who says whether a level exists.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";

/// The limited levels with queues: their shares, the percentage that they lend, the number of
/// queues, and how many of these a flow uses.
const QUEUED: [(&str, [u8; 4]); 6] = [
    ("system", [30, 33, 64, 6]),
    ("node-high", [40, 25, 64, 6]),
    ("leader-election", [10, 0, 16, 4]),
    ("workload-high", [40, 50, 128, 6]),
    ("workload-low", [100, 90, 128, 6]),
    ("global-default", [20, 50, 128, 6]),
];

const QUEUE_LENGTH: u8 = 50;

/// A FlowSchema.
struct Schema {
    name: &'static str,
    level: &'static str,
    precedence: u16,
    /// How flows are told apart: by user or by namespace; empty if not at all.
    flows: &'static str,
    subjects: Vec<Value>,
    rules: Rules,
}

/// Which requests of the subjects a schema is for.
enum Rules {
    Everything,
    Probes,
    /// The verbs, groups, resources of namespaces, and whether those of the cluster too.
    Resources(Vec<Rule>),
}

type Rule = (
    &'static [&'static str],
    &'static str,
    &'static [&'static str],
    bool,
);

/// Creates those that are missing.
pub(super) fn install(state: &mut State) {
    for level in levels() {
        let level = Initial {
            group: GROUP,
            plural: "prioritylevelconfigurations",
            manager: PRODUCER,
            object: level,
        };
        state.ensure(level, None);
    }
    for schema in schemas() {
        let message = format!(
            "This FlowSchema references the PriorityLevelConfiguration object named {:?} and it \
             exists",
            schema.level
        );
        let found = json!({"type": "Dangling", "status": "False", "reason": "Found",
            "message": message, "lastTransitionTime": state.now()});
        let schema = Initial {
            group: GROUP,
            plural: "flowschemas",
            manager: PRODUCER,
            object: schema.object(),
        };
        state.ensure(schema, Some((CONSUMER, found)));
    }
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "generation": 1,
            "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}},
        "spec": spec,
        "status": {},
    })
}

fn levels() -> Vec<Value> {
    let level = |name, spec| object("PriorityLevelConfiguration", name, spec);
    let queued = QUEUED
        .iter()
        .map(|(name, [shares, lent, queues, hand_size])| {
            level(
                name,
                json!({"type": "Limited", "limited": {
                    "nominalConcurrencyShares": shares, "lendablePercent": lent,
                    "limitResponse": {"type": "Queue", "queuing": {"queues": queues,
                        "handSize": hand_size, "queueLengthLimit": QUEUE_LENGTH}}}}),
            )
        });
    let catch_all = json!({"type": "Limited", "limited": {
        "nominalConcurrencyShares": 5, "lendablePercent": 0,
        "limitResponse": {"type": "Reject"}}});
    let exempt = json!({"type": "Exempt",
        "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}});
    queued
        .chain([level("catch-all", catch_all), level("exempt", exempt)])
        .collect()
}

impl Schema {
    fn object(self) -> Value {
        let everything = |scope: bool| {
            json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
                "namespaces": ["*"], "clusterScope": scope})
        };
        let mut rule = json!({"subjects": self.subjects});
        match self.rules {
            Rules::Everything => {
                rule["resourceRules"] = json!([everything(true)]);
                rule["nonResourceRules"] =
                    json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]);
            }
            Rules::Probes => {
                rule["nonResourceRules"] = json!([{"verbs": ["get"],
                    "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]);
            }
            Rules::Resources(rules) => {
                rule["resourceRules"] = rules.into_iter().map(resources).collect();
            }
        }
        let mut spec = json!({
            "priorityLevelConfiguration": {"name": self.level},
            "matchingPrecedence": self.precedence,
        });
        if !self.flows.is_empty() {
            spec["distinguisherMethod"] = json!({"type": self.flows});
        }
        spec["rules"] = json!([rule]);
        object("FlowSchema", self.name, spec)
    }
}

fn resources((verbs, group, resources, of_cluster): Rule) -> Value {
    let mut rule = json!({"verbs": verbs, "apiGroups": [group], "resources": resources,
        "namespaces": ["*"]});
    if of_cluster {
        rule["clusterScope"] = true.into();
    }
    rule
}

fn groups(names: &[&str]) -> Vec<Value> {
    let group = |name| json!({"kind": "Group", "group": {"name": name}});
    names.iter().map(group).collect()
}

fn users(names: &[&str]) -> Vec<Value> {
    let user = |name| json!({"kind": "User", "user": {"name": name}});
    names.iter().map(user).collect()
}

fn service_accounts_of_the_system() -> Value {
    json!({"kind": "ServiceAccount",
        "serviceAccount": {"name": "*", "namespace": "kube-system"}})
}

const BY_USER: &str = "ByUser";
const BY_NAMESPACE: &str = "ByNamespace";
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
const SCHEDULER: &str = "system:kube-scheduler";

fn schemas() -> Vec<Schema> {
    let mut all = schemas_of_the_system();
    all.extend(schemas_of_workloads());
    all
}

/// A schema for all requests of the subjects.
fn everything(
    name: &'static str,
    level: &'static str,
    (precedence, flows): (u16, &'static str),
    subjects: Vec<Value>,
) -> Schema {
    Schema {
        name,
        level,
        precedence,
        flows,
        subjects,
        rules: Rules::Everything,
    }
}

fn everybody() -> Vec<Value> {
    groups(&["system:unauthenticated", "system:authenticated"])
}

fn schemas_of_the_system() -> Vec<Schema> {
    let leases = "coordination.k8s.io";
    let nodes = || groups(&["system:nodes"]);
    let mut electors = users(&[CONTROLLER_MANAGER, SCHEDULER]);
    electors.push(service_accounts_of_the_system());
    vec![
        everything("system-nodes", "system", (500, BY_USER), nodes()),
        Schema {
            rules: Rules::Resources(vec![
                (&["*"], "", &["nodes", "nodes/status"], true),
                (&["*"], leases, &["leases"], false),
            ]),
            ..everything("system-node-high", "node-high", (400, BY_USER), nodes())
        },
        Schema {
            rules: Rules::Probes,
            ..everything("probes", "exempt", (2, ""), everybody())
        },
        Schema {
            rules: Rules::Resources(vec![(
                &["get", "create", "update"],
                leases,
                &["leases"],
                false,
            )]),
            ..everything(
                "system-leader-election",
                "leader-election",
                (100, BY_USER),
                electors,
            )
        },
    ]
}

fn schemas_of_workloads() -> Vec<Schema> {
    vec![
        everything(
            "kube-controller-manager",
            "workload-high",
            (800, BY_NAMESPACE),
            users(&[CONTROLLER_MANAGER]),
        ),
        everything(
            "kube-scheduler",
            "workload-high",
            (800, BY_NAMESPACE),
            users(&[SCHEDULER]),
        ),
        everything(
            "kube-system-service-accounts",
            "workload-high",
            (900, BY_NAMESPACE),
            vec![service_accounts_of_the_system()],
        ),
        everything(
            "service-accounts",
            "workload-low",
            (9000, BY_USER),
            groups(&["system:serviceaccounts"]),
        ),
        everything(
            "global-default",
            "global-default",
            (9900, BY_USER),
            everybody(),
        ),
        everything("exempt", "exempt", (1, ""), groups(&["system:masters"])),
        everything("catch-all", "catch-all", (10_000, BY_USER), everybody()),
    ]
}

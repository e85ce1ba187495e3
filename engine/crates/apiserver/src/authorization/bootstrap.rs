//! The bootstrap roles and bindings of a new cluster.
//!
//! The user-facing roles and those of discovery and delegation
//! (plugin/pkg/auth/authorizer/rbac/bootstrappolicy). The roles of components that do not run
//! here are left out.

use serde_json::{Value, json};

use super::GROUP;
use super::rule::Rule;
use crate::state::{Initial, SERVER_MANAGER, State};

/// A rule: verbs, groups and resources, separated by spaces; `-` is the core group.
type Row = (&'static str, &'static str, &'static str);

const READ: &str = "get list watch";
const WRITE: &str = "create delete deletecollection patch update";
const BOTH: &str = "create delete deletecollection get list patch update watch";

const VIEW: &[Row] = &[
    (
        READ,
        "-",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods \
         replicationcontrollers replicationcontrollers/scale serviceaccounts services \
         services/status",
    ),
    (
        READ,
        "-",
        "bindings limitranges namespaces/status pods/log pods/status \
         replicationcontrollers/status resourcequotas resourcequotas/status",
    ),
    (READ, "-", "namespaces"),
    (READ, "- events.k8s.io", "events"),
    (READ, "discovery.k8s.io", "endpointslices"),
    (
        READ,
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale \
         deployments/status replicasets replicasets/scale replicasets/status statefulsets \
         statefulsets/scale statefulsets/status",
    ),
    (
        READ,
        "autoscaling",
        "horizontalpodautoscalers horizontalpodautoscalers/status",
    ),
    (READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    (
        READ,
        "extensions",
        "daemonsets daemonsets/status deployments deployments/scale deployments/status \
         ingresses ingresses/status networkpolicies replicasets replicasets/scale \
         replicasets/status replicationcontrollers/scale",
    ),
    (
        READ,
        "policy",
        "poddisruptionbudgets poddisruptionbudgets/status",
    ),
    (
        READ,
        "networking.k8s.io",
        "ingresses ingresses/status networkpolicies",
    ),
    (
        READ,
        "resource.k8s.io",
        "resourceclaims resourceclaims/status resourceclaimtemplates",
    ),
];

const EDIT: &[Row] = &[
    (
        READ,
        "-",
        "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy",
    ),
    ("impersonate", "-", "serviceaccounts"),
    (
        WRITE,
        "-",
        "pods pods/attach pods/exec pods/portforward pods/proxy",
    ),
    ("create", "-", "pods/eviction"),
    (
        WRITE,
        "-",
        "configmaps persistentvolumeclaims replicationcontrollers \
         replicationcontrollers/scale secrets serviceaccounts services services/proxy",
    ),
    ("create", "-", "serviceaccounts/token"),
    (WRITE, "- events.k8s.io", "events"),
    (
        WRITE,
        "apps",
        "daemonsets deployments deployments/rollback deployments/scale replicasets \
         replicasets/scale statefulsets statefulsets/scale",
    ),
    (WRITE, "autoscaling", "horizontalpodautoscalers"),
    (WRITE, "batch", "cronjobs jobs"),
    (
        WRITE,
        "extensions",
        "daemonsets deployments deployments/rollback deployments/scale ingresses \
         networkpolicies replicasets replicasets/scale replicationcontrollers/scale",
    ),
    (WRITE, "policy", "poddisruptionbudgets"),
    (WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    (BOTH, "coordination.k8s.io", "leases"),
    (
        WRITE,
        "resource.k8s.io",
        "resourceclaims resourceclaimtemplates",
    ),
];

const ADMIN: &[Row] = &[
    (
        "create",
        "authorization.k8s.io",
        "localsubjectaccessreviews",
    ),
    (BOTH, GROUP, "rolebindings roles"),
];

const BASIC: &[Row] = &[
    (
        "create",
        "authorization.k8s.io",
        "selfsubjectaccessreviews selfsubjectrulesreviews",
    ),
    ("create", "authentication.k8s.io", "selfsubjectreviews"),
];

const DELEGATOR: &[Row] = &[
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews"),
];

const HEALTH: &str = "/healthz /livez /readyz /version /version/";
const DISCOVERY: &str = "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* \
                         /readyz /version /version/";
const MONITORING: &str = "/healthz /healthz/* /livez /livez/* /metrics /metrics/slis \
                          /readyz /readyz/*";
const ISSUER: &str = "/.well-known/openid-configuration \
                      /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/";

/// The cluster role bindings: role and groups.
const BINDINGS: [(&str, &[&str]); 6] = [
    ("cluster-admin", &["system:masters"]),
    ("system:basic-user", &["system:authenticated"]),
    ("system:discovery", &["system:authenticated"]),
    ("system:monitoring", &["system:monitoring"]),
    (
        "system:public-info-viewer",
        &["system:authenticated", "system:unauthenticated"],
    ),
    (
        "system:service-account-issuer-discovery",
        &["system:serviceaccounts"],
    ),
];

/// Creates the bootstrap roles and bindings that are missing.
pub(crate) fn install(state: &mut State) {
    for role in roles() {
        ensure(state, "clusterroles", role);
    }
    for (name, groups) in BINDINGS {
        ensure(state, "clusterrolebindings", binding(name, groups));
    }
}

fn ensure(state: &mut State, plural: &str, object: Value) {
    let initial = Initial {
        group: GROUP,
        plural,
        manager: SERVER_MANAGER,
        object,
    };
    state.ensure(initial, None);
}

fn roles() -> Vec<Value> {
    let paths = |text| vec![of_paths("get", text)];
    let mut monitoring = paths(MONITORING);
    monitoring.push(row(&("get", "-", "nodes/metrics")));
    let everything = vec![row(&("*", "*", "*")), of_paths("*", "*")];
    vec![
        role("cluster-admin", &everything),
        role("system:discovery", &paths(DISCOVERY)),
        role("system:monitoring", &monitoring),
        role("system:basic-user", &rows(BASIC)),
        role("system:public-info-viewer", &paths(HEALTH)),
        aggregated("admin", None),
        aggregated("edit", Some("admin")),
        aggregated("view", Some("edit")),
        part_of("admin", &rows(ADMIN)),
        part_of("edit", &rows(EDIT)),
        part_of("view", &rows(VIEW)),
        role("system:auth-delegator", &rows(DELEGATOR)),
        role("system:service-account-issuer-discovery", &paths(ISSUER)),
    ]
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace()
        .map(|it| {
            if it == "-" {
                String::new()
            } else {
                it.to_owned()
            }
        })
        .collect()
}

fn rows(rows: &[Row]) -> Vec<Rule> {
    rows.iter().map(row).collect()
}

fn row((verbs, groups, resources): &Row) -> Rule {
    Rule {
        verbs: words(verbs),
        groups: words(groups),
        resources: words(resources),
        ..Rule::default()
    }
}

fn of_paths(verb: &str, paths: &str) -> Rule {
    Rule {
        verbs: words(verb),
        paths: words(paths),
        ..Rule::default()
    }
}

fn named(kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
    })
}

fn role(name: &str, rules: &[Rule]) -> Value {
    let mut role = named("ClusterRole", name);
    role["rules"] = rules.iter().map(Rule::to_value).collect();
    role
}

/// The label of roles that are aggregated into the role `name`.
fn label(name: &str) -> String {
    format!("{GROUP}/aggregate-to-{name}")
}

fn aggregated(name: &str, part_of: Option<&str>) -> Value {
    let mut role = named("ClusterRole", name);
    if let Some(whole) = part_of {
        role["metadata"]["labels"][label(whole)] = "true".into();
    }
    role["aggregationRule"] =
        json!({"clusterRoleSelectors": [{"matchLabels": {label(name): "true"}}]});
    role["rules"] = Value::Null;
    role
}

fn part_of(whole: &str, rules: &[Rule]) -> Value {
    let mut role = role(&format!("system:aggregate-to-{whole}"), rules);
    role["metadata"]["labels"][label(whole)] = "true".into();
    role
}

fn binding(name: &str, groups: &[&str]) -> Value {
    let subjects = groups
        .iter()
        .map(|group| json!({"kind": "Group", "apiGroup": GROUP, "name": group}));
    let mut binding = named("ClusterRoleBinding", name);
    binding["roleRef"] = json!({"apiGroup": GROUP, "kind": "ClusterRole", "name": name});
    binding["subjects"] = subjects.collect();
    binding
}

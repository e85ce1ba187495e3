//! The values of the chart, one row per value.

mod optional;

use fivespot_api::name;
use serde_json::{Value, json};

use super::Entry;
use crate::capacity_target::REFUSED_GROUPS;
use crate::controller;
use crate::provider::PROVIDERS;

/// What the policy does.
const ADMISSION: [&str; 3] = ["Deny", "Audit", "None"];
/// Which nodes the operator manages.
const NODE_ACCESS: [&str; 2] = ["workload", "management"];
/// The log levels.
const LOG_LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// From 1 minute to 336 hours, as `5spot-controller --reclaim-by-override` accepts it.
const RECLAIM_SPAN: &str = "^(\
    ([6-9][0-9]|[1-9][0-9]{2,5}|1[01][0-9]{5}|120[0-8][0-9]{3}|1209[0-5][0-9]{2}|1209600)s\
    |([1-9][0-9]{0,3}|1[0-9]{4}|200[0-9]{2}|201[0-5][0-9]|20160)m\
    |([1-9][0-9]?|[12][0-9]{2}|3[0-2][0-9]|33[0-6])h\
    )?$";

/// Every value, in the order of `values.yaml`.
pub(super) fn entries() -> Vec<Entry> {
    let mut all = image("image", "the operator", "5spot-controller");
    all.extend(deployment());
    all.extend(scheduling());
    all.extend(pod());
    all.extend(behaviour());
    all.extend(scope());
    all.push(capacity());
    all.extend(permissions());
    all.extend(user_roles());
    all.extend(network());
    all.extend(optional::monitoring());
    all.extend(optional::optional_parts());
    all.extend(optional::metadata());
    all
}

fn entry(path: impl Into<String>, default: Value, schema: Value, meaning: &str) -> Entry {
    Entry {
        path: path.into(),
        meaning: meaning.to_owned(),
        default,
        schema,
    }
}

fn text() -> Value {
    json!({"type": "string"})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn seconds() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": 3600})
}

fn port() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": 65535})
}

fn object() -> Value {
    json!({"type": "object"})
}

fn texts() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn label() -> Value {
    json!({"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"})
}

/// The values of the image of a part, whose entry point is `program`.
fn image(group: &str, part: &str, program: &str) -> Vec<Entry> {
    let path = |name: &str| format!("{group}.{name}");
    let condition = match group.split_once('.') {
        Some((optional, _)) => format!(" with {optional}.enabled"),
        None => String::new(),
    };
    let repository = json!({
        "type": "string",
        // Whether there is a registry is checked where the error can say what to write.
        "pattern": "^$|^[A-Za-z0-9][A-Za-z0-9.:-]*(/[a-z0-9._-]+)*$",
    });
    let digest = json!({"type": "string", "pattern": "^$|^sha256:[0-9a-f]{64}$"});
    vec![
        entry(
            path("repository"),
            json!(""),
            repository,
            &format!(
                "Registry and repository of the image of {part}, with {program} as its entry \
                 point, such as registry.example/{program}, or docker.io/example/{program} on \
                 Docker Hub. Required{condition}."
            ),
        ),
        entry(
            path("tag"),
            json!(""),
            text(),
            "Tag of the image. Empty means the version of the chart.",
        ),
        entry(
            path("digest"),
            json!(""),
            digest,
            "Digest of the image, sha256:... If set, it is used instead of the tag.",
        ),
        entry(
            path("pullPolicy"),
            json!("IfNotPresent"),
            json!({"enum": ["Always", "IfNotPresent", "Never"]}),
            "When the image is pulled.",
        ),
    ]
}

fn deployment() -> Vec<Entry> {
    let amounts = json!({
        "type": "object",
        "additionalProperties": {"type": ["string", "number"]},
    });
    let resources = json!({
        "type": "object",
        "properties": {"requests": amounts, "limits": amounts},
        "additionalProperties": false,
    });
    vec![
        entry(
            "imagePullSecrets",
            json!([]),
            list(object()),
            "Secrets for pulling images, such as [{name: registry}].",
        ),
        entry(
            "replicas",
            json!(2),
            json!({"type": "integer", "minimum": 0}),
            "Number of replicas; one is the leader, the others are on standby.",
        ),
        entry(
            "resources",
            controller::resources(),
            resources,
            "Resource requests and limits of a replica. docs/scale.md shows the memory use by \
             number of machines.",
        ),
    ]
}

fn scheduling() -> Vec<Entry> {
    vec![
        entry(
            "nodeSelector",
            json!({}),
            texts(),
            "Additional labels of the nodes on which the operator and the webhook run.",
        ),
        entry(
            "tolerations",
            json!([]),
            list(object()),
            "Tolerations of the operator and the webhook.",
        ),
        entry(
            "affinity",
            json!({}),
            object(),
            "Affinity of the operator and the webhook.",
        ),
        entry(
            "priorityClassName",
            json!(""),
            text(),
            "PriorityClass of the operator and the webhook, such as system-cluster-critical.",
        ),
    ]
}

fn pod() -> Vec<Entry> {
    vec![
        entry(
            "podLabels",
            json!({}),
            texts(),
            "Additional labels of the pods of the operator and the webhook.",
        ),
        entry(
            "podAnnotations",
            json!({}),
            texts(),
            "Annotations of the pods of the operator and the webhook.",
        ),
        entry(
            "serviceAccount.annotations",
            json!({}),
            texts(),
            "Annotations of the ServiceAccount of the operator.",
        ),
        entry(
            "extraArgs",
            json!([]),
            list(text()),
            "Additional arguments of `5spot-controller`.",
        ),
        entry(
            "extraEnv",
            json!([]),
            list(object()),
            "Additional environment variables of the operator, such as [{name: RUST_LOG, value: \
             debug}].",
        ),
        entry(
            "zoneinfo.volume",
            json!({}),
            json!({"type": "object", "maxProperties": 1}),
            "Source of a volume with compiled time zones for the operator, as in the volumes of a \
             pod but without a name, such as {persistentVolumeClaim: {claimName: zoneinfo}}. Empty \
             means the time zones of the image.",
        ),
        entry(
            "appArmor",
            json!(false),
            flag(),
            "Whether no pod runs without the AppArmor profile of its container runtime. A kubelet \
             refuses such a pod if AppArmor is not enabled on its node. If false, the profile is \
             applied where AppArmor is enabled.",
        ),
        entry(
            "userNamespaces",
            json!(false),
            flag(),
            "Whether the operator and the webhook run in user namespaces (hostUsers: false). Needs \
             Kubernetes 1.33, Linux 6.3, and containerd 2.0 or CRI-O 1.25 on their nodes, or the \
             pods do not start.",
        ),
    ]
}

fn behaviour() -> Vec<Entry> {
    vec![
        entry(
            "log.level",
            json!("info"),
            json!({"enum": LOG_LEVELS}),
            "How much the operator logs: error, warn, info, debug or trace.",
        ),
        entry(
            "log.format",
            json!("json"),
            json!({"enum": ["json", "text"]}),
            "Format of the log: json or text.",
        ),
        entry(
            "leaderElection.leaseDurationSeconds",
            json!(15),
            seconds(),
            "How long other replicas wait before they take over the Lease; at least 5 more than \
             renewDeadlineSeconds.",
        ),
        entry(
            "leaderElection.renewDeadlineSeconds",
            json!(10),
            seconds(),
            "How long after the last renewal the leader stops writing.",
        ),
        entry(
            "leaderElection.retryPeriodSeconds",
            json!(2),
            seconds(),
            "Interval between renewals of the Lease.",
        ),
    ]
}

fn capacity() -> Entry {
    entry(
        "capacity.targets",
        json!([]),
        list(json!({
            "type": "object",
            "properties": {
                "kind": {"type": "string", "pattern": "^[A-Z][A-Za-z0-9]*$"},
                "resource": {
                    "type": "string",
                    "pattern": "^[a-z0-9-]+$",
                    "not": {"enum": ["secrets"]},
                },
                "group": {
                    "type": "string",
                    "pattern": "^$|^[a-z0-9.-]+$",
                },
                "access": {"enum": ["patch", "scale", "template"]},
                "clusterScoped": flag(),
            },
            "required": ["kind", "resource"],
            "additionalProperties": false,
            "anyOf": [
                {"properties": {"group": {"not": {"enum": REFUSED_GROUPS}}}},
                {
                    "properties": {
                        "group": {"const": name::GROUP},
                        "resource": {"const": name::SET_PLURAL},
                        "access": {"const": "scale"},
                    },
                    "required": ["access"],
                },
            ],
        })),
        "Kinds whose objects ScheduledCapacities may change, such as [{kind: Deployment, group: \
             apps, resource: deployments, access: scale}]. access is patch if it is absent; scale \
             is the subresource alone, template also the creation. clusterScoped: true if the \
             objects have no namespace. With one or more, a controller with an identity of its own \
             reconciles ScheduledCapacities, and a policy lets only those write them who may patch \
             the target.",
    )
}

fn scope() -> Vec<Entry> {
    vec![
        entry(
            "namespaces",
            json!([]),
            list(label()),
            "Namespaces to watch; an empty list means all. Permissions are granted only in these \
             namespaces, and end when such a namespace is deleted: delete its ScheduledMachines \
             first, or their finalizers block the deletion of the namespace.",
        ),
        entry(
            "nodeAccess",
            json!("workload"),
            json!({"enum": NODE_ACCESS}),
            "How nodes are reached: workload (with the kubeconfigs of workload clusters) or \
             management (the nodes are in this cluster).",
        ),
        entry(
            "reclaimByOverride",
            json!(""),
            json!({"type": "string", "pattern": RECLAIM_SPAN}),
            "How long a reclaim stops a machine with a ScheduleOverride, such as 4h, from \
             1m to 336h; if empty, a reclaim sets spec.schedule.enabled to false.",
        ),
        entry(
            "admission",
            json!("Deny"),
            json!({"enum": ADMISSION}),
            "What the policy does with an object that violates a rule: Deny, Audit or None (no \
             policy, only the rules in the CRD). With Audit the webhook, if it is enabled, admits \
             and records too. The policies about classes reject also with Audit.",
        ),
        entry(
            "crds.install",
            json!(true),
            flag(),
            "Whether the chart installs the CRDs. If false, apply deploy/crds of the same version \
             before each upgrade.",
        ),
        entry(
            "crds.keep",
            json!(true),
            flag(),
            "Whether the CRDs, and with them all objects and their machines, stay when the chart \
             is uninstalled. With false, `helm uninstall` removes every machine.",
        ),
    ]
}

fn permissions() -> Vec<Entry> {
    let providers: Vec<&str> = PROVIDERS.iter().map(|it| it.name).collect();
    let named = providers.join(", ");
    let cluster = json!({
        "type": "object",
        "properties": {
            "namespace": label(),
            "name": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"},
        },
        "required": ["namespace", "name"],
        "additionalProperties": false,
    });
    vec![
        entry(
            "providers",
            json!(["k0smotron"]),
            list(json!({"enum": providers})),
            &format!(
                "Providers of the bootstrap and infrastructure objects: {named}. For another \
                 provider, label a ClusterRole with 5spot.finos.org/aggregate-to-controller=true."
            ),
        ),
        entry(
            "kubeconfigs.clusters",
            json!([]),
            list(cluster),
            "Clusters, each by namespace and name, whose kubeconfig Secret the operator may read. \
             Without it the operator does not drain or taint nodes of workload clusters.",
        ),
        entry(
            "kubeconfigs.namespaces",
            json!([]),
            list(label()),
            "Namespaces in which the operator may read every Secret, including private keys of \
             control planes, if the names of the Clusters are not known in advance.",
        ),
        entry(
            "kubeconfigs.clusterWide",
            json!(false),
            flag(),
            "Whether the operator may read every Secret of the cluster.",
        ),
    ]
}

fn user_roles() -> Vec<Entry> {
    vec![
        entry(
            "userRoles.create",
            json!(true),
            flag(),
            "Whether to create the ClusterRoles for users: 5spot-view, 5spot-edit and \
             5spot-override-editor. Set it to false in all but one release of a cluster.",
        ),
        entry(
            "userRoles.aggregate",
            json!(true),
            flag(),
            "Whether the ClusterRole 5spot-view is added to Kubernetes' own roles view, edit and \
             admin.",
        ),
        entry(
            "userRoles.aggregateEdit",
            json!(false),
            flag(),
            "Whether the ClusterRole 5spot-edit is added to edit and admin as well. A user who may \
             create a ScheduledMachine decides what runs on its machine.",
        ),
    ]
}

fn network() -> Vec<Entry> {
    let ports: Vec<u16> = controller::Network::default()
        .egress_ports
        .into_iter()
        .collect();
    vec![
        entry(
            "networkPolicy.enabled",
            json!(true),
            flag(),
            "Whether to create a NetworkPolicy for the pods of the operator, the webhook and, with \
             agent.detection scan, the agent.",
        ),
        entry(
            "networkPolicy.egressPorts",
            json!(ports),
            // An empty list would allow every port.
            json!({"type": "array", "items": port(), "minItems": 1}),
            "Ports of API servers that these pods may connect to: 443 and 6443 \
             as usual, 30443 for the control planes of k0smotron. Add those of this cluster and of \
             your workload clusters.",
        ),
        entry(
            "networkPolicy.metricsNamespace",
            json!(controller::Network::default().metrics_namespace),
            label(),
            "Namespace from which the metrics port may be read.",
        ),
    ]
}

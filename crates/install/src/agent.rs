//! The agent of emergency reclaim in a workload cluster: its namespaces, its identity, what that
//! may do, and its DaemonSet.

use std::collections::BTreeMap;

use fivespot_api::name::{
    AGENT_FIELD_MANAGER as AGENT, AGENT_NAMESPACE, RECLAIM_AGENT_ENABLED,
    RECLAIM_AGENT_KEY, RECLAIM_REASON_ANNOTATION, RECLAIM_REQUESTED_ANNOTATION,
    RECLAIM_REQUESTED_AT_ANNOTATION, SYSTEM_NAMESPACE,
};
use serde_json::{Value, json};

use crate::controller;

/// The name of the policy that binds the agent to its own Node.
pub const POLICY: &str = "5spot-reclaim-agent-own-node";

/// The annotations that the agent may write, on its own Node only.
pub const ANNOTATIONS: [&str; 4] = [
    RECLAIM_AGENT_KEY,
    RECLAIM_REASON_ANNOTATION,
    RECLAIM_REQUESTED_ANNOTATION,
    RECLAIM_REQUESTED_AT_ANNOTATION,
];

/// How many characters one of them may have.
const LONGEST_VALUE: u32 = 2048;

/// What a token says of the Node that its pod runs on; since Kubernetes 1.30.
const NODE_OF_TOKEN: &str = "authentication.kubernetes.io/node-name";

/// The file that says which machine a host is.
const MACHINE_ID: &str = "/etc/machine-id";

/// The agent in one workload cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The image with `5spot-reclaim-agent` as its entry point.
    pub image: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            image: format!("{AGENT}:{}", env!("CARGO_PKG_VERSION")),
        }
    }
}

impl Settings {
    /// Everything that a workload cluster is given before its first machine with
    /// `killIfCommands`, in the order in which it is applied. Cannot fail.
    pub fn documents(&self) -> Vec<Value> {
        let mut all = namespaces().to_vec();
        all.push(service_account());
        all.extend(roles());
        all.extend(policy());
        all.push(self.daemon_set());
        all
    }

    /// The agent on each node that the operator has labelled for it.
    pub fn daemon_set(&self) -> Value {
        let mut daemon_set = object("apps/v1", "DaemonSet", AGENT, Some(AGENT_NAMESPACE));
        daemon_set["spec"] = json!({
            "selector": {"matchLabels": labels()},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "10%"},
            },
            "template": {
                "metadata": {"labels": labels()},
                "spec": {
                    "serviceAccountName": AGENT,
                    "automountServiceAccountToken": true,
                    "enableServiceLinks": false,
                    "nodeSelector": {
                        "kubernetes.io/os": "linux",
                        RECLAIM_AGENT_KEY: RECLAIM_AGENT_ENABLED,
                    },
                    // A machine is its owner's whatever is wrong with it as a node.
                    "tolerations": [{"operator": "Exists"}],
                    "priorityClassName": "system-node-critical",
                    "terminationGracePeriodSeconds": 5,
                    "hostPID": true,
                    "hostNetwork": true,
                    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [self.container()],
                    "volumes": [{
                        "name": "machine-id",
                        "hostPath": {"path": MACHINE_ID, "type": "File"},
                    }],
                },
            },
        });
        daemon_set
    }

    fn container(&self) -> Value {
        json!({
            "name": "agent",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "env": [{
                "name": "NODE_NAME",
                "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
            }],
            // No limit on the processor: what is held back is the answer to the owner.
            "resources": {
                "requests": {"cpu": "10m", "memory": "16Mi"},
                "limits": {"memory": "64Mi"},
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "privileged": false,
                "readOnlyRootFilesystem": true,
                "runAsUser": 0,
                "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
            },
            "volumeMounts": [{
                "name": "machine-id",
                "mountPath": MACHINE_ID,
                "readOnly": true,
            }],
        })
    }
}

/// The namespace of the configurations, which is that of the operator where both are in one
/// cluster, and the namespace of the agents. Seeing the host's processes is more than the
/// stricter Pod Security Standards allow, and more than belongs beside the operator's token.
pub fn namespaces() -> [Value; 2] {
    let mut namespace = object("v1", "Namespace", AGENT_NAMESPACE, None);
    namespace["metadata"]["labels"] = json!({
        "app.kubernetes.io/name": "5spot",
        "pod-security.kubernetes.io/enforce": "privileged",
    });
    [controller::system_namespace(), namespace]
}

fn service_account() -> Value {
    let mut account = object("v1", "ServiceAccount", AGENT, Some(AGENT_NAMESPACE));
    account["automountServiceAccountToken"] = false.into();
    account
}

/// What the agent may do, and the bindings that give it to the agent. Which Node it may do it
/// to, roles cannot say: that is the policy's.
pub fn roles() -> [Value; 4] {
    let group = "rbac.authorization.k8s.io";
    let version = "rbac.authorization.k8s.io/v1";
    let subjects = json!([{
        "kind": "ServiceAccount",
        "name": AGENT,
        "namespace": AGENT_NAMESPACE,
    }]);
    let binding = |kind: &str, role: &str, namespace: Option<&str>| {
        let mut binding = object(version, kind, AGENT, namespace);
        binding["roleRef"] = json!({"apiGroup": group, "kind": role, "name": AGENT});
        binding["subjects"] = subjects.clone();
        binding
    };
    let mut nodes = object(version, "ClusterRole", AGENT, None);
    nodes["rules"] = json!([{
        "apiGroups": [""],
        "resources": ["nodes"],
        "verbs": ["get", "list", "watch", "patch"],
    }]);
    let mut configurations = object(version, "Role", AGENT, Some(SYSTEM_NAMESPACE));
    configurations["rules"] = json!([{
        "apiGroups": [""],
        "resources": ["configmaps"],
        "verbs": ["get", "list", "watch"],
    }]);
    [
        nodes,
        binding("ClusterRoleBinding", "ClusterRole", None),
        configurations,
        binding("RoleBinding", "Role", Some(SYSTEM_NAMESPACE)),
    ]
}

/// The policy that lets the agent do no more to Nodes than write its annotations on its own, and
/// the binding that puts it in force.
///
/// A token that does not say on which node its pod runs may write to none.
pub fn policy() -> [Value; 2] {
    let version = "admissionregistration.k8s.io/v1";
    let user = format!("system:serviceaccount:{AGENT_NAMESPACE}:{AGENT}");
    let annotations = ANNOTATIONS.map(|key| format!("'{key}'")).join(", ");
    let mut policy = object(version, "ValidatingAdmissionPolicy", POLICY, None);
    policy["spec"] = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [{
                "apiGroups": [""],
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE", "DELETE", "CONNECT"],
                "resources": ["nodes", "nodes/*"],
            }],
        },
        "matchConditions": [{
            "name": "asked-by-the-agent",
            "expression": format!("request.userInfo.username == '{user}'"),
        }],
        "variables": [
            {
                "name": "own",
                "expression": format!("[{annotations}]"),
            },
            {
                "name": "before",
                "expression": "oldObject.?metadata.?annotations.orValue({})",
            },
            {
                "name": "after",
                "expression": "object.?metadata.?annotations.orValue({})",
            },
        ],
        "validations": validations().map(|(expression, message)| {
            json!({"expression": expression, "message": message, "reason": "Forbidden"})
        }),
    });
    let mut binding = object(version, "ValidatingAdmissionPolicyBinding", POLICY, None);
    binding["spec"] = json!({"policyName": POLICY, "validationActions": ["Deny"]});
    [policy, binding]
}

/// What must hold of a request of the agent, and what it is told otherwise.
fn validations() -> [(String, String); 5] {
    let same = |path: &str| format!("object.?{path} == oldObject.?{path}");
    let unchanged = [
        "spec",
        "status",
        "metadata.?labels",
        "metadata.?finalizers",
        "metadata.?ownerReferences",
    ]
    .map(same)
    .join(" && ");
    [
        (
            "request.operation == 'UPDATE' && request.?subResource.orValue('') == ''"
                .to_owned(),
            "the reclaim agent may do nothing to a Node but annotate it".to_owned(),
        ),
        (
            format!(
                "request.userInfo.?extra[?'{NODE_OF_TOKEN}'].orValue([]) == [request.name]"
            ),
            "the reclaim agent may annotate no Node but the one that its token names"
                .to_owned(),
        ),
        (
            unchanged,
            "the reclaim agent may change nothing of a Node but annotations".to_owned(),
        ),
        (
            "variables.after.all(key, key in variables.own || \
             variables.before[?key] == variables.after[?key]) && \
             variables.before.all(key, key in variables.own || key in variables.after)"
                .to_owned(),
            format!(
                "the reclaim agent may change no annotation but {}",
                ANNOTATIONS.join(", ")
            ),
        ),
        (
            format!(
                "variables.own.all(key, \
                 variables.after[?key].orValue('').size() <= {LONGEST_VALUE})"
            ),
            format!(
                "an annotation of the reclaim agent must be at most {LONGEST_VALUE} characters"
            ),
        ),
    ]
}

fn labels() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([
        ("app.kubernetes.io/name", "5spot"),
        ("app.kubernetes.io/component", "reclaim-agent"),
    ])
}

fn object(version: &str, kind: &str, name: &str, namespace: Option<&str>) -> Value {
    let mut object = json!({
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "labels": labels()},
    });
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = namespace.into();
    }
    object
}

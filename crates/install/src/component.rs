//! The objects of one component: what all manifests have in common.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The name of the API group of roles.
const RBAC: &str = "rbac.authorization.k8s.io";

/// What the objects of a component share.
#[derive(Clone, Debug)]
pub(crate) struct Component {
    /// The namespace of those that are in one.
    pub(crate) namespace: String,
    /// Their labels.
    pub(crate) labels: BTreeMap<String, String>,
}

impl Component {
    /// The component in another namespace.
    pub(crate) fn within(&self, namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            labels: self.labels.clone(),
        }
    }

    /// An object of a kind of [`version`], with these fields beside its metadata.
    pub(crate) fn object(&self, kind: &str, name: &str, fields: Value) -> Value {
        let mut metadata = json!({"name": name});
        if !is_cluster_scoped(kind) {
            metadata["namespace"] = json!(self.namespace);
        }
        metadata["labels"] = json!(self.labels);
        let mut object =
            json!({"apiVersion": version(kind), "kind": kind, "metadata": metadata});
        if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
            object.extend(fields);
        }
        object
    }

    /// A ServiceAccount whose token is mounted only if a pod requests it.
    pub(crate) fn service_account(&self, name: &str) -> Value {
        let fields = json!({"automountServiceAccountToken": false});
        self.object("ServiceAccount", name, fields)
    }

    /// That ServiceAccount as the subject of a binding.
    pub(crate) fn subject(&self, account: &str) -> Value {
        json!({"kind": "ServiceAccount", "name": account, "namespace": self.namespace})
    }

    /// A Role or a ClusterRole.
    pub(crate) fn role(&self, kind: &str, name: &str, rules: &[Value]) -> Value {
        self.object(kind, name, json!({"rules": rules}))
    }

    /// A RoleBinding or a ClusterRoleBinding with the name of the role, of that kind.
    pub(crate) fn binding(
        &self,
        kind: &str,
        (of, role): (&str, &str),
        subjects: &[Value],
    ) -> Value {
        let role_ref = json!({"apiGroup": RBAC, "kind": of, "name": role});
        let fields = json!({"roleRef": role_ref, "subjects": subjects});
        self.object(kind, role, fields)
    }

    /// An admission policy, and the binding of the same name by which it denies.
    pub(crate) fn policy(&self, name: &str, spec: Value) -> [Value; 2] {
        let binding = json!({"policyName": name, "validationActions": ["Deny"]});
        [
            self.object("ValidatingAdmissionPolicy", name, json!({"spec": spec})),
            self.object(
                "ValidatingAdmissionPolicyBinding",
                name,
                json!({"spec": binding}),
            ),
        ]
    }
}

fn is_cluster_scoped(kind: &str) -> bool {
    let begins = |with| kind.starts_with(with);
    kind == "Namespace" || begins("Cluster") || begins("Validating")
}

/// The API version of a kind that is installed; one of those of roles for every other.
fn version(kind: &str) -> &'static str {
    match kind {
        "ConfigMap" | "Namespace" | "Secret" | "Service" | "ServiceAccount" => "v1",
        "DaemonSet" | "Deployment" => "apps/v1",
        "NetworkPolicy" => "networking.k8s.io/v1",
        "PodDisruptionBudget" => "policy/v1",
        "Certificate" | "Issuer" => "cert-manager.io/v1",
        "PodMonitor" | "PrometheusRule" | "ServiceMonitor" => "monitoring.coreos.com/v1",
        "ValidatingAdmissionPolicy"
        | "ValidatingAdmissionPolicyBinding"
        | "ValidatingWebhookConfiguration" => "admissionregistration.k8s.io/v1",
        _ => "rbac.authorization.k8s.io/v1",
    }
}

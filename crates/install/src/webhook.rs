//! The admission policy as a webhook, for clusters whose API servers do not support policies:
//! its ServiceAccount, its Deployment, and its webhook configuration.

pub use fivespot_api::port::WEBHOOK as PORT;
use fivespot_api::{RESOURCES, Resource, name, vap};
use serde_json::{Value, json};

use crate::component::Component;
use crate::controller::{Network, POLICIES_SINCE};
use crate::permission::Scope;
use crate::pod::{self, EPHEMERAL_STORAGE, HEALTH_PORT, METRICS_PORT, NodeFeatures};
use crate::role;

/// The port of the Service.
const SERVICE_PORT: u16 = 443;
/// How long an API server waits for a response.
const TIMEOUT_SECONDS: u32 = 5;
/// The first minor version whose API server supports match conditions of webhooks.
pub const MATCH_CONDITIONS_SINCE: u32 = 28;

/// The roles with which the webhook asks who may write targets.
const TARGET_ROLE: &str = "5spot-webhook-targets";
const ASKING_ROLE: &str = "5spot-webhook-access-reviews";

/// Where the files of a certificate are mounted.
const CERTIFICATE_DIR: &str = "/etc/5spot/certificate";

/// What issues and renews the webhook's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum CertificateManager {
    /// The webhook itself, which may therefore change its own webhook configuration.
    #[default]
    #[value(name = "own")]
    Webhook,
    /// cert-manager, which must be installed; the webhook has no rights but those to ask who may do
    /// what.
    CertManager,
}

/// The webhook in one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespace in which it runs. Its objects are excluded from the webhook.
    pub namespace: String,
    /// The image with `5spot-webhook` as its entry point.
    pub image: String,
    /// Number of replicas; all of them serve.
    pub replicas: u32,
    /// The oldest Kubernetes version that must accept the manifests, 1.`kube_minor`.
    pub kube_minor: u32,
    /// What issues and renews its certificate.
    pub certificate_manager: CertificateManager,
    /// What it does with an object that violates a rule: `Deny`, `Warn`, `Audit`.
    pub validation_actions: Vec<String>,
    /// The ConfigMap of its namespace with the kinds that a ScheduledCapacity may name as its target,
    /// see [`kinds_in`](crate::capacity_policy::kinds_in). Without one, it admits no
    /// ScheduledCapacity.
    pub capacity_targets: Option<String>,
    /// What its NetworkPolicy allows.
    pub network: Network,
    /// What its pods require of their nodes.
    pub node_features: NodeFeatures,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: name::SYSTEM_NAMESPACE.to_owned(),
            image: format!("5spot-webhook:{}", env!("CARGO_PKG_VERSION")),
            replicas: 2,
            kube_minor: MATCH_CONDITIONS_SINCE,
            certificate_manager: CertificateManager::default(),
            validation_actions: vec!["Deny".to_owned()],
            capacity_targets: None,
            network: Network::default(),
            node_features: NodeFeatures::default(),
        }
    }
}

impl Settings {
    /// All objects, in the order in which they are applied. The namespace must exist. Cannot
    /// fail.
    pub fn documents(&self) -> Vec<Value> {
        let mut all = Vec::new();
        let account = self.component().service_account(name::WEBHOOK);
        match self.certificate_manager {
            CertificateManager::Webhook => {
                if self.kube_minor >= POLICIES_SINCE {
                    all.extend(webhook_restriction(&self.namespace));
                }
                all.extend([account, self.secret()]);
                all.extend(self.roles());
            }
            CertificateManager::CertManager => {
                all.push(account);
                all.extend(self.certificate());
            }
        }
        all.extend(self.asking_roles());
        all.extend(self.target_roles());
        all.extend([
            self.service(),
            self.deployment(),
            pod::disruption_budget(&self.component(), name::WEBHOOK),
            self.network_policy(),
            self.configuration(),
        ]);
        all
    }

    fn component(&self) -> Component {
        component(&self.namespace)
    }

    fn object(&self, kind: &str, name: &str, spec: Value) -> Value {
        self.component().object(kind, name, json!({"spec": spec}))
    }

    /// The objects from which cert-manager creates the Secret, with a self-signed certificate.
    fn certificate(&self) -> [Value; 2] {
        let host = format!("{}.{}.svc", name::WEBHOOK_SERVICE, self.namespace);
        let spec = json!({
            "secretName": name::WEBHOOK,
            "dnsNames": [host, format!("{host}.cluster.local")],
            "issuerRef": {"kind": "Issuer", "name": name::WEBHOOK},
        });
        [
            self.object("Issuer", name::WEBHOOK, json!({"selfSigned": {}})),
            self.object("Certificate", name::WEBHOOK, spec),
        ]
    }

    /// An empty Secret, which the webhook fills. The webhook gets no right to create Secrets,
    /// because it could then create a token of another ServiceAccount of the namespace.
    fn secret(&self) -> Value {
        let fields = json!({"type": "Opaque"});
        self.component().object("Secret", name::WEBHOOK, fields)
    }

    /// The roles of the webhook and their bindings.
    pub fn roles(&self) -> [Value; 4] {
        self.bound(
            name::WEBHOOK,
            role::named_rules(Scope::WebhookNamespace),
            role::named_rules(Scope::WebhookClusterWide),
        )
    }

    /// The role with which it asks who may do what, and its binding.
    fn asking_roles(&self) -> [Value; 2] {
        let rules = role::unnamed_rules(Scope::WebhookQuestions);
        let [_, _, role, binding] = self.bound(ASKING_ROLE, Vec::new(), rules);
        [role, binding]
    }

    /// The role with which it reads which kinds may be targets, and its binding. Empty if it does not.
    pub fn target_roles(&self) -> Vec<Value> {
        let Some(kinds) = &self.capacity_targets else {
            return Vec::new();
        };
        let mut in_namespace = role::named_rules(Scope::WebhookTargetKinds);
        for rule in &mut in_namespace {
            rule["resourceNames"] = json!([kinds]);
        }
        let [role, binding, _, _] = self.bound(TARGET_ROLE, in_namespace, Vec::new());
        vec![role, binding]
    }

    /// A role of the namespace and one of the cluster with these rules, bound to the webhook.
    fn bound(
        &self,
        name: &str,
        in_namespace: Vec<Value>,
        everywhere: Vec<Value>,
    ) -> [Value; 4] {
        let component = self.component();
        let subjects = [component.subject(name::WEBHOOK)];
        [
            component.role("Role", name, &in_namespace),
            component.binding("RoleBinding", ("Role", name), &subjects),
            component.role("ClusterRole", name, &everywhere),
            component.binding("ClusterRoleBinding", ("ClusterRole", name), &subjects),
        ]
    }

    fn service(&self) -> Value {
        let port = ("https", SERVICE_PORT);
        pod::service(&self.component(), name::WEBHOOK_SERVICE, port)
    }

    /// The Deployment of the webhook.
    pub fn deployment(&self) -> Value {
        let mut deployment = pod::deployment(
            (&self.component(), name::WEBHOOK),
            self.replicas,
            self.node_features,
            self.container(),
        );
        // It continues to serve for a while after SIGTERM.
        deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] =
            40.into();
        if self.certificate_manager == CertificateManager::CertManager {
            let pod = &mut deployment["spec"]["template"]["spec"];
            pod["volumes"] = json!([{
                "name": "certificate",
                "secret": {"secretName": name::WEBHOOK, "defaultMode": 0o440},
            }]);
            // The files belong to root and to this group.
            pod["securityContext"]["fsGroup"] = pod::NOBODY.into();
            pod["containers"][0]["volumeMounts"] = json!([{
                "name": "certificate",
                "mountPath": CERTIFICATE_DIR,
                "readOnly": true,
            }]);
        }
        deployment
    }

    fn container(&self) -> Value {
        let port = |name: &str, port: u16| json!({"name": name, "containerPort": port, "protocol": "TCP"});
        json!({
            "name": "webhook",
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "args": self.arguments(),
            "env": [pod::env_from_field("POD_NAMESPACE", "metadata.namespace")],
            "ports": [
                port("https", PORT),
                port("metrics", METRICS_PORT),
                port("health", HEALTH_PORT),
            ],
            "livenessProbe": pod::probe("/healthz", 3),
            "readinessProbe": pod::probe("/readyz", 2),
            "resources": {
                "requests": {
                    "cpu": "50m",
                    "memory": "64Mi",
                    "ephemeral-storage": EPHEMERAL_STORAGE.0,
                },
                "limits": {
                    "cpu": "1",
                    "memory": "256Mi",
                    "ephemeral-storage": EPHEMERAL_STORAGE.1,
                },
            },
            "securityContext": pod::container_security_context(),
        })
    }

    /// The arguments of `5spot-webhook` with which the webhook is started.
    pub fn arguments(&self) -> Vec<String> {
        let actions = self.validation_actions.join(",");
        let mut words = vec![
            format!("--validation-actions={actions}"),
            "--classes".to_owned(),
        ];
        if self.certificate_manager == CertificateManager::CertManager {
            words.push(format!("--certificate-dir={CERTIFICATE_DIR}"));
        }
        if let Some(kinds) = &self.capacity_targets {
            words.push(format!("--capacity-targets={kinds}"));
        }
        words
    }

    /// The NetworkPolicy. Ingress: admission requests, and reads of the metrics from the
    /// namespace of [`Network`]. Probes come from the pod's own node, from which Kubernetes
    /// always allows traffic. Egress: requests to the API server, on the ports of [`Network`].
    fn network_policy(&self) -> Value {
        let port = |port: u16| pod::tcp_ports(&[port].into());
        let ingress = [
            json!({
                "from": pod::metrics_readers(&self.network.metrics_namespace),
                "ports": port(METRICS_PORT),
            }),
            // API servers are not in a pod that a selector could match.
            json!({"ports": port(PORT)}),
        ];
        let egress = [json!({"ports": self.network.api_servers()})];
        pod::network_policy(&self.component(), name::WEBHOOK, &ingress, &egress)
    }

    /// The ValidatingWebhookConfiguration, for the same requests that the policy matches.
    ///
    /// Without `caBundle`, which the webhook sets, API servers do not trust it and reject every
    /// request. If match conditions are supported, requests that the policy always admits are
    /// not sent to the webhook, so that finalizers can be removed while no replica responds.
    pub fn configuration(&self) -> Value {
        let webhooks: Vec<Value> = RESOURCES.iter().map(|it| self.webhook(it)).collect();
        let mut configuration = self.component().object(
            "ValidatingWebhookConfiguration",
            name::WEBHOOK_CONFIGURATION,
            json!({"webhooks": webhooks}),
        );
        if self.certificate_manager == CertificateManager::CertManager {
            configuration["metadata"]["annotations"] = json!({
                "cert-manager.io/inject-ca-from": format!("{}/{}", self.namespace, name::WEBHOOK),
            });
        }
        configuration
    }

    fn webhook(&self, resource: &Resource) -> Value {
        let rules =
            &vap::policy_of(resource)["spec"]["matchConstraints"]["resourceRules"];
        let mut webhook = json!({
            "name": resource.webhook,
            "clientConfig": {"service": {
                "namespace": self.namespace,
                "name": name::WEBHOOK_SERVICE,
                "path": resource.webhook_path,
                "port": SERVICE_PORT,
            }},
            "rules": rules,
            "namespaceSelector": {"matchExpressions": [{
                "key": "kubernetes.io/metadata.name",
                "operator": "NotIn",
                "values": [self.namespace],
            }]},
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT_SECONDS,
            "admissionReviewVersions": ["v1"],
        });
        for rule in webhook["rules"].as_array_mut().into_iter().flatten() {
            let is_namespaced = resource.is_namespaced;
            rule["scope"] = if is_namespaced {
                "Namespaced"
            } else {
                "Cluster"
            }
            .into();
        }
        if self.kube_minor >= MATCH_CONDITIONS_SINCE {
            // Optional selection is not used: it is newer than match conditions.
            webhook["matchConditions"] = json!([
                {
                    "name": "not-being-deleted",
                    "expression": "!has(object.metadata.deletionTimestamp)",
                },
                {
                    "name": "created-or-spec-changed",
                    "expression": "oldObject == null || !has(object.spec) || \
                                   !has(oldObject.spec) || object.spec != oldObject.spec",
                },
            ]);
        }
        webhook
    }
}

/// The policy and the binding that restrict what the webhook in `namespace` may change
/// in webhook configurations to the CA bundle of its own one. Roles cannot restrict fields, and
/// an attacker who controls the webhook could have every Secret sent to it.
pub fn webhook_restriction(namespace: &str) -> [Value; 2] {
    let user = name::service_account_user(namespace, name::WEBHOOK);
    let same = |before: &str, after: &str, fields: &[&str]| {
        let equal = |field: &&str| format!("{after}.?{field} == {before}.?{field}");
        fields.iter().map(equal).collect::<Vec<_>>().join(" && ")
    };
    let metadata = ["labels", "annotations", "finalizers", "ownerReferences"];
    let of_object = same("oldObject.metadata", "object.metadata", &metadata);
    let of_webhook = same(
        "was",
        "is",
        &[
            "name",
            "rules",
            "failurePolicy",
            "matchPolicy",
            "namespaceSelector",
            "objectSelector",
            "sideEffects",
            "timeoutSeconds",
            "admissionReviewVersions",
            "matchConditions",
            "clientConfig.?url",
            "clientConfig.?service",
        ],
    );
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["admissionregistration.k8s.io"],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"],
        }]},
        "matchConditions": [{
            "name": "requested-by-webhook",
            "expression": format!("request.userInfo.username == '{user}'"),
        }],
        "validations": [{
            "expression": format!(
                "request.operation == 'UPDATE' && {of_object} && \
                 object.?webhooks.orValue([]).size() == oldObject.?webhooks.orValue([]).size() && \
                 object.?webhooks.orValue([]).all(is, \
                 oldObject.?webhooks.orValue([]).exists(was, {of_webhook}))"
            ),
            "message": "the webhook may only change the caBundle of its own webhook configuration",
            "reason": "Forbidden",
        }],
    });
    component(namespace).policy(name::WEBHOOK_POLICY, spec)
}

/// The webhook in this namespace.
fn component(namespace: &str) -> Component {
    Component {
        namespace: namespace.to_owned(),
        labels: name::webhook_labels(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn match_conditions_are_omitted_for_older_kubernetes() {
        let has_conditions = |kube_minor: u32| {
            let settings = Settings {
                kube_minor,
                ..Settings::default()
            };
            let configuration = settings.configuration();
            configuration["webhooks"][0]
                .get("matchConditions")
                .is_some()
        };
        assert!(!has_conditions(27));
        assert!(has_conditions(28));
    }

    #[test]
    fn the_namespace_of_the_webhook_is_excluded() {
        let configuration = Settings::default().configuration();
        let webhook = &configuration["webhooks"][0];
        assert_eq!(webhook["failurePolicy"], "Fail");
        assert_eq!(
            webhook["namespaceSelector"]["matchExpressions"][0]["values"],
            json!(["5spot-system"])
        );
        assert_eq!(
            webhook["rules"][0]["resources"],
            json!(["scheduledmachines"])
        );
    }
}

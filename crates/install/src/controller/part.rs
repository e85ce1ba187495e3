//! One Deployment of the operator, and the objects around it.

use serde_json::{Value, json};

use super::{Settings, ZONEINFO, ZONEINFO_DIR, resources};
use crate::component::Component;
use crate::pod::{self, HEALTH_PORT, METRICS_PORT};

/// The controllers that run together under one identity.
pub(crate) struct Part<'s> {
    pub(super) settings: &'s Settings,
    /// The name of the ServiceAccount and of the Deployment.
    pub(super) name: &'static str,
    pub(super) component: Component,
    /// The name of the Service of the metrics. Older Kubernetes versions reject one that starts
    /// with a digit.
    pub(super) metrics: &'static str,
    /// The arguments of `5spot-controller`.
    pub(super) arguments: Vec<String>,
}

impl Part<'_> {
    /// All of them but the NetworkPolicy.
    pub(crate) fn objects(&self) -> Vec<Value> {
        vec![
            self.service_account(),
            self.deployment(),
            self.service(),
            self.disruption_budget(),
        ]
    }

    /// The ServiceAccount to which the roles are bound. Its token is mounted only if a pod
    /// requests it.
    pub(crate) fn service_account(&self) -> Value {
        self.component.service_account(self.name)
    }

    /// The Deployment.
    pub(crate) fn deployment(&self) -> Value {
        let mut deployment = pod::deployment(
            (&self.component, self.name),
            self.settings.replicas,
            self.settings.node_features,
            self.container(),
        );
        if let Some(source) = &self.settings.zoneinfo {
            let pod = &mut deployment["spec"]["template"]["spec"];
            let mut volume = source.clone();
            volume.insert("name".to_owned(), ZONEINFO.into());
            pod["volumes"] = json!([volume]);
            pod["containers"][0]["volumeMounts"] = json!([{
                "name": ZONEINFO,
                "mountPath": ZONEINFO_DIR,
                "readOnly": true,
            }]);
        }
        deployment
    }

    fn container(&self) -> Value {
        json!({
            "name": "controller",
            "image": self.settings.image,
            "imagePullPolicy": "IfNotPresent",
            "args": self.arguments,
            "env": [
                pod::env_from_field("POD_NAME", "metadata.name"),
                pod::env_from_field("POD_NAMESPACE", "metadata.namespace"),
            ],
            "ports": [
                {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
                {"name": "health", "containerPort": HEALTH_PORT, "protocol": "TCP"},
            ],
            "livenessProbe": pod::probe("/healthz", 3),
            "readinessProbe": pod::probe("/readyz", 2),
            "resources": resources(),
            "securityContext": pod::container_security_context(),
        })
    }

    /// The Service of the metrics endpoint.
    pub(crate) fn service(&self) -> Value {
        pod::service(&self.component, self.metrics, ("metrics", METRICS_PORT))
    }

    /// Keeps one replica while nodes are drained.
    pub(crate) fn disruption_budget(&self) -> Value {
        pod::disruption_budget(&self.component, self.name)
    }

    /// The NetworkPolicy of its pods.
    pub(crate) fn allowed_traffic(&self) -> Value {
        let network = &self.settings.network;
        let readers = json!({
            "from": pod::metrics_readers(&network.metrics_namespace),
            "ports": pod::tcp_ports(&[METRICS_PORT].into()),
        });
        let api_servers = json!({"ports": network.api_servers()});
        let egress = [pod::dns(), api_servers];
        pod::network_policy(&self.component, self.name, &[readers], &egress)
    }
}

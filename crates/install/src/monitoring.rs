//! What Prometheus and Grafana are given: how the metrics are scraped, the alerts, and a dashboard.
//!
//! The metrics are those of the controller's and the webhook's tables; a test of the command line,
//! which knows both, finds a name that is in neither.

mod alert;
mod dashboard;

use std::collections::BTreeMap;

use fivespot_api::name;
use serde_json::{Value, json};

use crate::role::metadata;

pub use alert::{ALERTS, Alert, rules};
pub use dashboard::{PANELS, Panel, dashboard};

const OPERATOR_API: &str = "monitoring.coreos.com/v1";

/// Where the metrics are, and how often they are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespace of the operator.
    pub home: String,
    /// The interval between two scrapes, as Prometheus has it.
    pub interval: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            home: name::SYSTEM_NAMESPACE.to_owned(),
            interval: "30s".to_owned(),
        }
    }
}

impl Settings {
    /// A ServiceMonitor of the Prometheus operator.
    pub fn service_monitor(&self) -> Value {
        self.monitor("ServiceMonitor", "endpoints")
    }

    /// A PodMonitor, which needs no Service and finds the webhook as well.
    pub fn pod_monitor(&self) -> Value {
        let mut monitor = self.monitor("PodMonitor", "podMetricsEndpoints");
        monitor["spec"]["selector"] =
            json!({"matchLabels": {"app.kubernetes.io/name": "5spot"}});
        monitor
    }

    fn monitor(&self, kind: &str, endpoints: &str) -> Value {
        json!({
            "apiVersion": OPERATOR_API,
            "kind": kind,
            "metadata": metadata(name::CONTROLLER, Some(&self.home)),
            "spec": {
                "selector": {"matchLabels": name::controller_labels()},
                endpoints: [{"port": "metrics", "interval": self.interval}],
            },
        })
    }

    /// The alerts, for the Prometheus operator.
    pub fn prometheus_rule(&self) -> Value {
        json!({
            "apiVersion": OPERATOR_API,
            "kind": "PrometheusRule",
            "metadata": metadata(name::CONTROLLER, Some(&self.home)),
            "spec": rules(),
        })
    }

    /// The dashboard, for Grafana's sidecar, which looks for the label.
    pub fn dashboard_config_map(&self) -> Value {
        let mut labels: BTreeMap<String, String> = name::controller_labels();
        labels.insert("grafana_dashboard".to_owned(), "1".to_owned());
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "5spot-dashboard",
                "namespace": self.home,
                "labels": labels,
            },
            "data": {"5spot.json": format!("{:#}\n", dashboard())},
        })
    }
}

//! The objects for Prometheus and Grafana: scrape configurations, and the alerts and the dashboard,
//! which are files in the formats of these programs.
//!
//! The metrics are those in the tables of the controller and the webhook. A test of the command
//! line, which has access to both, fails for a name that is in neither.

use std::collections::BTreeMap;

use fivespot_api::name;
use serde_json::{Value, json};

use crate::component::Component;
use crate::controller::operator;

/// The dashboard, as Grafana imports and exports it. Its data source is a variable.
pub const DASHBOARD: &str = include_str!("monitoring/dashboard.json");

/// The alerts as a Prometheus rule file. Cannot fail: the tests read the same text.
pub fn rules() -> Value {
    serde_saphyr::from_str(include_str!("monitoring/alerts.yaml")).unwrap_or_default()
}

/// The namespace of the metrics, and the scrape interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The namespace of the operator.
    pub namespace: String,
    /// The scrape interval in Prometheus' notation.
    pub interval: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: name::SYSTEM_NAMESPACE.to_owned(),
            interval: "30s".to_owned(),
        }
    }
}

impl Settings {
    /// A ServiceMonitor of the Prometheus operator.
    pub fn service_monitor(&self) -> Value {
        let mut monitor = self.monitor("ServiceMonitor", "endpoints");
        let [mut labels, capacity] = [name::controller_labels(), name::capacity_labels()];
        let component = "app.kubernetes.io/component";
        let values = [labels.remove(component), capacity.get(component).cloned()];
        monitor["spec"]["selector"] = json!({
            "matchLabels": labels,
            "matchExpressions": [{
                "key": component,
                "operator": "In",
                "values": values.into_iter().flatten().collect::<Vec<_>>(),
            }],
        });
        monitor
    }

    /// A PodMonitor. It needs no Service and selects the webhook as well.
    pub fn pod_monitor(&self) -> Value {
        let mut monitor = self.monitor("PodMonitor", "podMetricsEndpoints");
        monitor["spec"]["selector"] =
            json!({"matchLabels": {"app.kubernetes.io/name": "5spot"}});
        monitor
    }

    /// A monitor of that kind. The label `namespace` of some metrics is that of the machines, and
    /// the Prometheus operator would replace it by the namespace of the pod.
    fn monitor(&self, kind: &str, endpoints: &str) -> Value {
        let spec = json!({
            "selector": {"matchLabels": name::controller_labels()},
            endpoints: [{
                "port": "metrics",
                "interval": self.interval,
                "honorLabels": true,
            }],
        });
        operator(&self.namespace).object(kind, name::CONTROLLER, json!({"spec": spec}))
    }

    /// The alerts, for the Prometheus operator.
    pub fn prometheus_rule(&self) -> Value {
        let component = operator(&self.namespace);
        let fields = json!({"spec": rules()});
        component.object("PrometheusRule", name::CONTROLLER, fields)
    }

    /// The dashboard, for Grafana's sidecar, which selects it by the label.
    pub fn dashboard_config_map(&self) -> Value {
        let mut labels: BTreeMap<String, String> = name::controller_labels();
        labels.insert("grafana_dashboard".to_owned(), "1".to_owned());
        let component = Component {
            namespace: self.namespace.clone(),
            labels,
        };
        let fields = json!({"data": {"5spot.json": DASHBOARD}});
        component.object("ConfigMap", "5spot-dashboard", fields)
    }
}

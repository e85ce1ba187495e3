//! ComponentStatuses: the answers of the other components of a control plane, which a kube-apiserver
//! asks at each read.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{BuiltinKind, column};
use crate::meta;
use crate::resource::{Column, Resource, Verb};

/// `componentstatuses` of `v1`.
#[derive(Debug)]
pub(super) struct ComponentStatus;

/// The components that listen on a port of the machine, which kube-apiserver asks there.
const LISTENERS: [(&str, u16); 2] =
    [("scheduler", 10_259), ("controller-manager", 10_257)];

impl BuiltinKind for ComponentStatus {
    fn resource(&self) -> Resource {
        let column = |name: &str| {
            let text = format!("{name} of the component conditions");
            Column::new(name, "string", &text)
        };
        let mut resource =
            Resource::new("", "v1", "ComponentStatus", "componentstatuses")
                .cluster_scoped()
                .with_short_names(&["cs"])
                .with_verbs(&[Verb::Get, Verb::List])
                .without_generation()
                .with_columns(["Status", "Message", "Error"].map(column).to_vec());
        let deprecation = "v1 ComponentStatus is deprecated in v1.19+";
        resource.deprecation = Some(deprecation.to_owned());
        resource
    }

    /// As beside a kube-apiserver without a scheduler and a controller manager: none is asked, because
    /// one that runs on the machine need not belong to this server. The store is a part of the server.
    fn computed(&self) -> Option<Vec<Value>> {
        let refused = LISTENERS.map(|(name, port)| {
            let at = format!("127.0.0.1:{port}");
            let message = format!(
                "Get \"https://{at}/healthz\": dial tcp {at}: connect: connection refused"
            );
            component(name, "False", &message)
        });
        let store = component("etcd-0", "True", "ok");
        Some(refused.into_iter().chain([store]).collect())
    }

    fn cells(&self, object: &Value, _now: Timestamp) -> Vec<Value> {
        let condition = &object["conditions"][0];
        let status = match condition["status"].as_str() {
            Some("True") => "Healthy",
            _ => "Unhealthy",
        };
        vec![
            meta::name(object).into(),
            status.into(),
            column::string(&condition["message"]),
            column::string(&condition["error"]),
        ]
    }
}

fn component(name: &str, status: &str, message: &str) -> Value {
    json!({
        "kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name},
        "conditions": [{"type": "Healthy", "status": status, "message": message}],
    })
}

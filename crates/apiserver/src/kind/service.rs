//! Services: stored as they are, with nobody who answers for them.

use jiff::Timestamp;
use serde_json::Value;

use super::{BuiltinKind, FinalizerRule, column, items};
use crate::resource::{Column, Resource, Subresource};

const NONE: &str = "<none>";

/// `services` of `v1`.
#[derive(Debug)]
pub(super) struct Service;

impl BuiltinKind for Service {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "Service", "services")
            .with_short_names(&["svc"])
            .with_category("all")
            .without_generation()
            .created_on_update()
            .with_subresources(&[Subresource::Status])
            .with_columns(vec![
                Column::new("Type", "string", ""),
                Column::new("Cluster-IP", "string", ""),
                Column::new("External-IP", "string", ""),
                Column::new("Port(s)", "string", ""),
                Column::age(),
                Column::new("Selector", "string", "").wide(),
            ])
    }

    fn finalizer_rule(&self) -> FinalizerRule {
        FinalizerRule::OnCreate
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let spec = &object["spec"];
        let shown = |field: &str, absent: &str| {
            Value::from(spec[field].as_str().unwrap_or(absent).to_owned())
        };
        let ports = items(spec, "ports").map(|(_, port)| {
            let protocol = port["protocol"].as_str().unwrap_or("TCP");
            format!("{}/{protocol}", port["port"])
        });
        let ports: Vec<String> = ports.collect();
        vec![
            column::name(object),
            shown("type", "ClusterIP"),
            shown("clusterIP", NONE),
            NONE.into(),
            if ports.is_empty() {
                NONE.into()
            } else {
                ports.join(",").into()
            },
            column::age(object, now),
            column::labels(&spec["selector"]),
        ]
    }
}

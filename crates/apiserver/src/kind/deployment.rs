//! Deployments: stored as they are, with nobody who runs them.

use jiff::Timestamp;
use serde_json::Value;

use super::{BuiltinKind, column, workload};
use crate::resource::{Column, Resource, Subresource};

/// `deployments` of `apps/v1`.
#[derive(Debug)]
pub(super) struct Deployment;

impl BuiltinKind for Deployment {
    fn resource(&self) -> Resource {
        Resource::new("apps", "v1", "Deployment", "deployments")
            .with_short_names(&["deploy"])
            .with_category("all")
            .with_subresources(&[Subresource::Status])
            .with_columns(vec![
                Column::new("Ready", "string", ""),
                Column::new("Up-to-date", "string", ""),
                Column::new("Available", "string", ""),
                Column::age(),
                Column::new("Containers", "string", "").wide(),
                Column::new("Images", "string", "").wide(),
                Column::new("Selector", "string", "").wide(),
            ])
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let count = |field: &str| {
            let count = object["status"][field].as_i64().unwrap_or(0);
            Value::from(count.to_string())
        };
        vec![
            column::name(object),
            workload::ready(object),
            count("updatedReplicas"),
            count("availableReplicas"),
            column::age(object, now),
            workload::containers(object, "name"),
            workload::containers(object, "image"),
            column::selector(&object["spec"]["selector"]),
        ]
    }
}

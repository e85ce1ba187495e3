//! StatefulSets: stored as they are, with nobody who runs them.

use jiff::Timestamp;
use serde_json::Value;

use super::{BuiltinKind, column, workload};
use crate::resource::{Column, Resource, Subresource};

/// `statefulsets` of `apps/v1`.
#[derive(Debug)]
pub(super) struct StatefulSet;

impl BuiltinKind for StatefulSet {
    fn resource(&self) -> Resource {
        Resource::new("apps", "v1", "StatefulSet", "statefulsets")
            .with_short_names(&["sts"])
            .with_category("all")
            .with_subresources(&[Subresource::Status])
            .with_columns(vec![
                Column::new("Ready", "string", ""),
                Column::age(),
                Column::new("Containers", "string", "").wide(),
                Column::new("Images", "string", "").wide(),
            ])
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            workload::ready(object),
            column::age(object, now),
            workload::containers(object, "name"),
            workload::containers(object, "image"),
        ]
    }
}

//! NetworkPolicies: stored as they are, with no network that obeys them.

use jiff::Timestamp;
use serde_json::Value;

use super::{BuiltinKind, column};
use crate::resource::{Column, Resource};

/// `networkpolicies` of `networking.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct NetworkPolicy;

impl BuiltinKind for NetworkPolicy {
    fn resource(&self) -> Resource {
        Resource::new(
            "networking.k8s.io",
            "v1",
            "NetworkPolicy",
            "networkpolicies",
        )
        .with_short_names(&["netpol"])
        .with_columns(vec![
            Column::new("Pod-Selector", "string", ""),
            Column::age(),
        ])
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![
            column::name(object),
            column::selector(&object["spec"]["podSelector"]),
            column::age(object, now),
        ]
    }
}

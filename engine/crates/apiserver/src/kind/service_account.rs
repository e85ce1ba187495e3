//! Service accounts. The module `identity` issues their tokens.

use jiff::Timestamp;
use serde_json::Value;

use super::{BuiltinKind, column};
use crate::resource::{Column, Resource, Subresource};

/// `serviceaccounts` of `v1`.
#[derive(Debug)]
pub(super) struct ServiceAccount;

impl BuiltinKind for ServiceAccount {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "ServiceAccount", "serviceaccounts")
            .returned_when_deleted()
            .with_short_names(&["sa"])
            .without_generation()
            .with_subresources(&[Subresource::Token])
            .with_columns(vec![Column::age()])
    }

    fn revalidates_name(&self) -> bool {
        true
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        vec![column::name(object), column::age(object, now)]
    }
}

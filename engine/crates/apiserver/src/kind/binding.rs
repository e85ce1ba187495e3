//! Bindings: the assignment of a pod to a node. Posted, not stored.

use super::BuiltinKind;
use crate::resource::{Resource, Verb};

/// `bindings` of `v1`.
#[derive(Debug)]
pub(super) struct Binding;

impl BuiltinKind for Binding {
    fn resource(&self) -> Resource {
        Resource::new("", "v1", "Binding", "bindings")
            .with_verbs(&[Verb::Create])
            .without_generation()
    }
}

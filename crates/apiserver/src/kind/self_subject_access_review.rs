//! The review of whether the user who asks may do something: answered, and not stored.

use super::BuiltinKind;
use crate::resource::{Resource, Verb};

/// `selfsubjectaccessreviews` of `authorization.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct SelfSubjectAccessReview;

impl BuiltinKind for SelfSubjectAccessReview {
    fn resource(&self) -> Resource {
        Resource::new(
            "authorization.k8s.io",
            "v1",
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
        )
        .in_the_cluster()
        .with_verbs(&[Verb::Create])
        .without_generation()
    }
}

//! SelfSubjectReviews: the identity of the requesting user. Evaluated, not stored.

use super::BuiltinKind;
use crate::resource::{Resource, Verb};

/// `selfsubjectreviews` of `authentication.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct SelfSubjectReview;

impl BuiltinKind for SelfSubjectReview {
    fn resource(&self) -> Resource {
        Resource::new(
            "authentication.k8s.io",
            "v1",
            "SelfSubjectReview",
            "selfsubjectreviews",
        )
        .cluster_scoped()
        .with_verbs(&[Verb::Create])
        .without_generation()
    }
}

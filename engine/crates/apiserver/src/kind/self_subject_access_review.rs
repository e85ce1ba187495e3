//! SelfSubjectAccessReviews: whether the requesting user may perform an action. Evaluated, not
//! stored.

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
        .cluster_scoped()
        .with_verbs(&[Verb::Create])
        .without_generation()
    }
}

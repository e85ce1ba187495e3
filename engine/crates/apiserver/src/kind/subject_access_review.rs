//! SubjectAccessReviews: whether a user may perform an action. Evaluated, not stored.

use super::BuiltinKind;
use crate::resource::{Resource, Verb};

/// `subjectaccessreviews` of `authorization.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct SubjectAccessReview;

impl BuiltinKind for SubjectAccessReview {
    fn resource(&self) -> Resource {
        Resource::new(
            "authorization.k8s.io",
            "v1",
            "SubjectAccessReview",
            "subjectaccessreviews",
        )
        .cluster_scoped()
        .with_verbs(&[Verb::Create])
        .without_generation()
    }
}

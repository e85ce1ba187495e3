//! LocalSubjectAccessReviews: whether a user may perform an action in a namespace. Evaluated, not
//! stored.

use super::BuiltinKind;
use crate::resource::{Resource, Verb};

/// `localsubjectaccessreviews` of `authorization.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct LocalSubjectAccessReview;

impl BuiltinKind for LocalSubjectAccessReview {
    fn resource(&self) -> Resource {
        Resource::new(
            "authorization.k8s.io",
            "v1",
            "LocalSubjectAccessReview",
            "localsubjectaccessreviews",
        )
        .with_verbs(&[Verb::Create])
        .without_generation()
    }
}

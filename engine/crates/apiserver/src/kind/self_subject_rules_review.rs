//! SelfSubjectRulesReviews: the actions that the requesting user may perform in a namespace.
//! Evaluated, not stored.

use super::BuiltinKind;
use crate::resource::{Resource, Verb};

/// `selfsubjectrulesreviews` of `authorization.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct SelfSubjectRulesReview;

impl BuiltinKind for SelfSubjectRulesReview {
    fn resource(&self) -> Resource {
        Resource::new(
            "authorization.k8s.io",
            "v1",
            "SelfSubjectRulesReview",
            "selfsubjectrulesreviews",
        )
        .cluster_scoped()
        .with_verbs(&[Verb::Create])
        .without_generation()
    }
}

//! TokenReviews: the user of a token. Evaluated, not stored.

use super::BuiltinKind;
use crate::resource::{Resource, Verb};

/// `tokenreviews` of `authentication.k8s.io/v1`.
#[derive(Debug)]
pub(super) struct TokenReview;

impl BuiltinKind for TokenReview {
    fn resource(&self) -> Resource {
        Resource::new("authentication.k8s.io", "v1", "TokenReview", "tokenreviews")
            .cluster_scoped()
            .with_verbs(&[Verb::Create])
            .without_generation()
    }
}
